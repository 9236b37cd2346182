//! Objects that are larger than what memgate reads, and objects with more findings than it tells.

use std::sync::atomic::AtomicBool;

use memgate_core::decide::decide;
use memgate_model::decision::{Decision, NotShown};
use memgate_model::finding::Severity;
use memgate_model::reason::Reason;
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::budget::MAX_ENTRIES;
use serde_json::{Value, json};

fn agent(allow: &[&str], tools: usize) -> Value {
    let tools = vec!["memory.read"; tools];
    json!({
        "apiVersion": "orloj.dev/v1",
        "kind": "Agent",
        "metadata": {"name": "scout", "namespace": "team-a"},
        "spec": {"memory": {"ref": "notes", "allow": allow}, "tools": tools},
    })
}

fn decided(object: &Value, old: Option<&Value>, cancelled: Option<&AtomicBool>) -> Decision {
    let (object, old) = (object.to_string(), old.map(Value::to_string));
    let request = Request {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        group: "orloj.dev".into(),
        kind: "Agent".into(),
        old_object: old.as_deref(),
        cancelled,
        ..Request::to_create_pod("team-a", "scout", &object)
    };
    decide(&request, &Snapshot::new(memgate_platforms::default_settings()))
}

fn reported(decision: &Decision, severity: Severity) -> usize {
    decision.findings.iter().filter(|finding| finding.severity == severity).count()
}

#[test]
fn a_list_of_ten_thousand_entries_is_read_and_one_more_is_refused() {
    let full = decided(&agent(&vec!["read"; MAX_ENTRIES], 0), None, None);
    assert_eq!(full.reason, Reason::Valid);
    let over = decided(&agent(&vec!["read"; MAX_ENTRIES + 1], 0), None, None);
    assert_eq!((over.reason, over.allowed()), (Reason::OverLimit, false));
    let finding = over.findings.first().expect("a finding");
    assert_eq!(over.findings.len(), 1, "{:?}", over.findings);
    assert_eq!(finding.code.name, "memgate/over-limit");
    assert_eq!(finding.pointer.as_str(), "/spec/memory/allow");
    assert_eq!(finding.message(), "spec.memory.allow: memgate reads 10000 entries at most");
}

#[test]
fn what_is_stored_with_too_much_can_still_be_changed() {
    let over = agent(&vec!["read"; MAX_ENTRIES + 1], 0);
    let updated = decided(&over, Some(&over), None);
    assert_eq!((updated.reason, updated.allowed()), (Reason::OverLimit, true));
    assert_eq!(reported(&updated, Severity::Warn), 1);
    let grown = decided(&over, Some(&agent(&["read"], 0)), None);
    assert!(!grown.allowed());
}

#[test]
fn tells_fifty_findings_and_counts_the_others() {
    let decision = decided(&agent(&["wrong"; 40], 60), None, None);
    assert_eq!((reported(&decision, Severity::Deny), reported(&decision, Severity::Warn)), (40, 10));
    assert_eq!(decision.not_shown, NotShown { denials: 0, warnings: 50 });
    let decision = decided(&agent(&["wrong"; 1_000], 60), None, None);
    assert_eq!((reported(&decision, Severity::Deny), reported(&decision, Severity::Warn)), (50, 0));
    assert_eq!(decision.not_shown, NotShown { denials: 950, warnings: 60 });
}

#[test]
fn the_ratchet_looks_at_findings_that_are_not_told() {
    let stored = agent(&["wrong"; 1_000], 0);
    let updated = decided(&stored, Some(&stored), None);
    assert!(updated.allowed());
    assert_eq!(updated.not_shown, NotShown { denials: 0, warnings: 950 });
}

#[test]
fn ends_when_the_caller_has_gone() {
    let decision = decided(&agent(&vec!["read"; 2_000], 0), None, Some(&AtomicBool::new(true)));
    assert_eq!(decision.reason, Reason::Cancelled);
}

#[test]
fn of_ten_thousand_settings_that_do_not_exist_fifty_are_reported() {
    let settings = |name: &str| {
        json!({
            "apiVersion": "kubeswarm.io/v1alpha1", "kind": "SwarmSettings",
            "metadata": {"name": name, "namespace": "team"}, "spec": {},
        })
    };
    let known: Vec<Value> = (0..5_000).map(|number| settings(&format!("house-{number}"))).collect();
    let state = super::pod_events::state(&known);
    let name: [fn(usize) -> Value; 4] = [
        |number| json!(format!("hause-{number}")),
        |_| json!("hause"),
        |_| json!(""),
        |number| if number % 2 == 0 { json!(number) } else { json!("A B") },
    ];
    for name in name {
        let named: Vec<Value> = (0..MAX_ENTRIES).map(|number| json!({"name": name(number)})).collect();
        let agent = json!({
            "apiVersion": "kubeswarm.io/v1alpha1", "kind": "SwarmAgent", "metadata": {"name": "scout"},
            "spec": {"model": "m", "prompt": {"inline": "p"}, "settings": named},
        });
        let decision = super::pod_events::decided(&agent, &state);
        let last = decision.findings.last().expect("a finding");
        assert_eq!(decision.findings.len(), 50, "{last:?}");
        assert!(last.message().contains("settings") || last.message().contains("SwarmSettings"), "{last:?}");
    }
}
