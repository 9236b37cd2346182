//! Decisions about objects with very many findings, from files and as in a cluster.

#![allow(clippy::indexing_slicing, reason = "a test that cannot go on must stop")]

use std::sync::Arc;

use crate::state;
use memgate_model::finding::{Cause, Severity};
use memgate_model::object::{Coverage, KindState};
use memgate_model::request::Occasion;
use memgate_primitives::budget::{Budget, MAX_ENTRIES};
use memgate_schema::crd::{Crd, SchemaNode};
use memgate_schema::violation::message;
use memgate_schema::{Status, Violations};
use serde_json::{Value, json};

use super::*;

fn decided(snapshot: &Snapshot, (group, kind): (&str, &str), object: &str, old: Option<&str>) -> Decision {
    let request = Request {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        group: group.into(),
        version: "v1alpha1".into(),
        kind: kind.into(),
        subresource: "".into(),
        namespace: "team-a".into(),
        name: "a".into(),
        object: Some(object),
        old_object: old,
        occasion: Occasion::default(),
        cancelled: None,
    };
    decide(&request, snapshot)
}

/// From files, and as in a cluster.
fn snapshots() -> [Snapshot; 2] {
    let files = state::empty(memgate_platforms::default_settings());
    let mut cluster = state::empty(memgate_platforms::default_settings());
    cluster.crds = None;
    [files, cluster]
}

const MEMORY: (&str, &str) = ("ark.mckinsey.com", "Memory");
const PACK: (&str, &str) = ("sympozium.ai", "PersonaPack");

fn list(count: usize, element: impl Fn(usize) -> String) -> String {
    (0..count).map(element).collect::<Vec<_>>().join(",")
}

fn memory(headers: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"a"}},"spec":{{"address":{{"value":"http://a"}},"headers":[{headers}]}}}}"#
    )
}

fn pack(tags: &str) -> String {
    let rule = format!(r#"{{"agentConfig":"a","acceptTags":[{tags}]}}"#);
    shared_memory(&format!(r#""membrane":{{"permeability":[{rule}]}}"#))
}

/// With these rules for access.
fn shared(rules: &str) -> String {
    shared_memory(&format!(r#""accessRules":[{rules}]"#))
}

fn nameless(number: usize) -> String {
    format!(r#"{{"access":"read-only","number":{number}}}"#)
}

fn shared_memory(fields: &str) -> String {
    let shared = format!(r#"{{"enabled":true,"storageSize":"1Gi",{fields}}}"#);
    let personas = r#"[{"name":"a","systemPrompt":"b"}]"#;
    format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"personas":{personas},"sharedMemory":{shared}}}}}"#)
}

#[test]
fn a_family_says_the_same_with_and_without_schemas() {
    let object = shared(&list(10_000, nameless));
    let decisions = snapshots().map(|snapshot| decided(&snapshot, PACK, &object, None));
    for decision in &decisions {
        assert_eq!(decision.reason, Reason::Invalid);
        assert_eq!(decision.findings.len(), MAX_REPORTED);
        assert!(decision.findings.iter().all(|finding| finding.cause == Cause::Required));
        assert!(decision.findings.iter().all(|finding| !finding.message().is_empty()));
    }
    assert_eq!(decisions[0].findings, decisions[1].findings);
}

#[test]
fn reports_what_an_update_adds_behind_many_stored_findings() {
    let stored = shared(&list(1_000, nameless));
    let object = shared(&list(1_040, nameless));
    for snapshot in snapshots() {
        let decision = decided(&snapshot, PACK, &object, Some(&stored));
        let denials = decision.findings.iter().filter(|finding| finding.severity == Severity::Deny);
        assert_eq!(denials.count(), 40);
        assert!(decision.findings.iter().all(|finding| !finding.message().is_empty()));
        // The older kind has no section for shared memory.
        let unknown = usize::from(snapshot.crds.is_some());
        assert_eq!(decision.not_shown, NotShown { denials: 0, warnings: 990 + unknown });
    }
}

#[test]
fn what_only_the_schema_has_too_much_of_warns() {
    let finalizers = list(10_001, |number| format!(r#""a.example/{number}""#));
    let spec = r#"{"personas":[{"name":"a","systemPrompt":"b"}]}"#;
    let object = format!(r#"{{"metadata":{{"name":"a","finalizers":[{finalizers}]}},"spec":{spec}}}"#);
    let [files, cluster] = snapshots().map(|snapshot| decided(&snapshot, PACK, &object, None));
    assert_eq!((files.reason, cluster.reason), (Reason::Valid, Reason::Valid));
    let reported: Vec<_> =
        files.findings.iter().map(|finding| (finding.severity, finding.message().into_owned())).collect();
    let expected = "metadata.finalizers: memgate reads 10000 entries at most";
    assert_eq!(reported, [(Severity::Warn, expected.to_owned())]);
    assert_eq!(cluster.findings, []);
}

#[test]
fn an_update_beyond_a_limit_is_denied_over_a_stored_object_at_it() {
    let tags = |count| pack(&list(count, |number| format!(r#""{number}""#)));
    let (at_limit, beyond) = (tags(MAX_ENTRIES), tags(MAX_ENTRIES + 1));
    for snapshot in snapshots() {
        let over_limit = |stored| {
            let decision = decided(&snapshot, PACK, &beyond, Some(stored));
            assert_eq!(decision.reason, Reason::OverLimit);
            decision.findings[0].severity
        };
        assert_eq!(over_limit(&at_limit), Severity::Deny);
        assert_eq!(over_limit(&tags(MAX_ENTRIES + 2)), Severity::Warn);
    }
}

#[test]
fn ten_thousand_entries_with_findings_are_judged() {
    let headers = list(10_000, |number| format!(r#"{{"nama":"authorization {number}"}}"#));
    for snapshot in snapshots() {
        let decision = decided(&snapshot, MEMORY, &memory(&headers), None);
        assert_eq!(decision.reason, Reason::Invalid);
        let not_shown = decision.not_shown.denials + decision.not_shown.warnings;
        assert!(decision.findings.len() + not_shown >= 20_000, "{:?}", decision.not_shown);
    }
}

#[test]
fn of_very_many_unknown_fields_fifty_are_reported_and_the_rest_is_counted() {
    let fields = list(100_000, |number| format!(r#""field{number}":{{"a":[1]}}"#));
    let object =
        format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"address":{{"value":"http://a"}},{fields}}}}}"#);
    let [files, cluster] = snapshots().map(|snapshot| decided(&snapshot, MEMORY, &object, None));
    assert_eq!((files.reason, cluster.findings.len()), (Reason::Valid, 0));
    let codes: Vec<_> = files.findings.iter().map(|finding| finding.code.name).collect();
    assert_eq!(codes, ["ark/unknown-field"; MAX_REPORTED]);
    assert_eq!(files.findings[49].pointer.as_str(), "/spec/field49");
    assert_eq!(files.not_shown, NotShown { denials: 0, warnings: 99_950 });
}

#[test]
fn a_definition_among_the_inputs_says_which_fields_there_are() {
    let object = r#"{"metadata":{"name":"a"},"spec":{"address":{"value":"http://a"},"cache":1,"headers":[],"ttl":"1h"}}"#;
    let given = with_definitions(|mut crd| {
        if crd["spec"]["names"]["kind"] == "Memory" && crd["spec"]["group"] == "ark.mckinsey.com" {
            let fields = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
            fields["cache"] = json!({"type": "integer"});
            fields.as_object_mut().expect("fields").remove("headers");
        }
        crd
    });
    let unknown = |snapshot: &Snapshot| {
        let findings = decided(snapshot, MEMORY, object, None).findings;
        let of_schema = findings.into_iter().filter(|finding| finding.code.name == "ark/unknown-field");
        of_schema
            .map(|it| (it.message().into_owned(), it.details().help.clone().unwrap_or_default().into_owned()))
            .collect::<Vec<_>>()
    };
    let refused = "\"kubectl apply\" refuses it (strict field validation), GitOps drops it silently";
    let expected = |source: &str, rows: &[&str]| {
        let row = |row: &&str| ((*row).to_owned(), format!("not in {source}; {refused}"));
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let ttl = "spec.ttl: unknown field, it will be dropped; set spec.ttl on the Query";
    let [files, _] = snapshots();
    let fields = r#"spec.cache: unknown field, it will be dropped; fields here: "address", "headers""#;
    assert_eq!(unknown(&files), expected("the CRD of Ark 0.1.67", &[fields, ttl]));
    let source = r#"CustomResourceDefinition "memories.ark.mckinsey.com" among the inputs"#;
    let fields = r#"spec.headers: unknown field, it will be dropped; fields here: "address", "cache""#;
    assert_eq!(unknown(&given), expected(source, &[fields, ttl]));
}

/// Ark's own ratchet goes by parts of an object: in a list that changed, what is stored is denied again.
#[test]
fn the_common_ratchet_leaves_a_family_alone_that_ratchets_by_itself() {
    let [_, cluster] = snapshots();
    let wrong = memory(r#"{"name":"a"}"#);
    assert_eq!(decided(&cluster, MEMORY, &wrong, None).reason, Reason::Invalid);
    let more = memory(r#"{"name":"a"},{"name":"c","value":{"value":"x"}}"#);
    assert_eq!(decided(&cluster, MEMORY, &more, Some(&wrong)).reason, Reason::Invalid);
    let elsewhere = wrong.replace("http://a", "http://b");
    let decision = decided(&cluster, MEMORY, &elsewhere, Some(&wrong));
    assert_eq!(decision.reason, Reason::Valid);
    assert!(decision.findings.iter().any(|finding| finding.pointer.as_str().starts_with("/spec/headers/0")));
}

/// A definition among the inputs speaks for itself, be it the same as the bundled one.
#[test]
fn what_another_release_takes_only_warns_by_the_bundled_definition_alone() {
    let memory = |provider: &str| {
        let store = format!(r#"{{"provider":"{provider}","endpoint":"http://a"}}"#);
        format!(
            r#"{{"metadata":{{"name":"a"}},"spec":{{"backend":"vector-store","vectorStore":{store},"embedding":{{"model":"a"}}}}}}"#
        )
    };
    for (provider, bundled, given) in [
        ("pinecone", true, false),
        ("qdrant", true, true),
        ("pgvector", true, true),
        ("milvus", false, false),
    ] {
        let files = state::empty(memgate_platforms::default_settings());
        let accepted = |snapshot: &Snapshot| {
            decided(snapshot, ("kubeswarm.io", "SwarmMemory"), &memory(provider), None).reason
                != Reason::Invalid
        };
        assert_eq!(accepted(&files), bundled, "{provider}");
        assert_eq!(accepted(&with_definitions(|crd| crd)), given, "{provider}");
    }
}

/// Files, with the bundled definitions, changed, as if they were among the inputs.
fn with_definitions(change: impl Fn(Value) -> Value) -> Snapshot {
    let mut files = state::empty(memgate_platforms::default_settings());
    let crds = files.crds.as_mut().expect("files have definitions");
    definitions(change).for_each(|crd| crds.insert(crd));
    files
}

/// The bundled definitions, changed.
fn definitions(change: impl Fn(Value) -> Value) -> impl Iterator<Item = Crd> {
    let files = memgate_platforms::ALL.iter().flat_map(|family| family.definitions.crds).map(|file| file());
    files.flat_map(move |text| {
        let source = Arc::new(memgate_manifest::source::Source::new("definitions", text));
        let documents = memgate_manifest::document::values(&source, &mut Vec::new());
        let read = |document: &memgate_manifest::document::Document| {
            memgate_schema::read(&change(document.value().clone())).expect("a definition")
        };
        documents.iter().map(read).collect::<Vec<_>>()
    })
}

#[test]
fn rules_of_bundled_definitions_are_evaluated_on_large_objects_among_many() {
    let tool = |index: usize| {
        let names = |count: usize| (0..count).map(|tool| format!("tool{tool}")).collect::<Vec<_>>();
        json!({"type": "McpServer", "mcpServer": {
            "name": format!("m{index}"), "toolNames": names(50), "requireApproval": names(50)}})
    };
    let tools: Vec<_> = (0..20).map(tool).collect();
    let prompt = "prompt ".repeat(10_000);
    for (group, kind, version, spec) in [
        (
            "kagent.dev",
            "Agent",
            "v1alpha2",
            json!({"type": "Declarative", "declarative": {"systemMessage": prompt, "tools": tools}}),
        ),
        (
            "core.orka.ai",
            "Task",
            "v1alpha1",
            json!({"type": "agent", "prompt": prompt, "agentRef": {"name": "a"}, "workspace": {"intent": "write"}}),
        ),
    ] {
        let crd = definitions(|crd| crd)
            .find(|crd| (&*crd.group, &*crd.kind) == (group, kind))
            .expect("a definition");
        let version = crd.served(version).expect("a version");
        let text = json!({"metadata": {"name": "a"}, "spec": spec}).to_string();
        let budget = Budget::default();
        let object = memgate_schema::document(&text, Some(version), Status::Dropped, &budget).expect("JSON");
        let mut found = Violations::new(&budget);
        memgate_schema::check_rules(version, memgate_schema::allowance(1_000_000), &object, None, &mut found);
        let found: Vec<_> = found.iter().map(message).collect();
        assert_eq!(found, [""; 0]);
    }
}

#[test]
fn every_rule_in_cel_of_the_bundled_definitions_can_be_evaluated() {
    fn count(node: &SchemaNode) -> usize {
        for rule in &node.rules {
            assert_eq!(rule.fault(), None, "{}", rule.text);
        }
        node.rules.len() + node.below().map(count).sum::<usize>()
    }
    let rules: usize = definitions(|crd| crd)
        .map(|crd| crd.versions.iter().map(|version| count(&version.schema)).sum::<usize>())
        .sum();
    assert!(rules >= 100, "{rules}");
}

#[test]
fn rules_for_a_definition_that_is_not_bundled_are_for_files_without_one() {
    let mut cluster = Snapshot::new(memgate_platforms::default_settings());
    for kind in memgate_platforms::state_kinds(&memgate_platforms::default_settings().families) {
        cluster.set(kind, KindState::new(Coverage::Watched));
    }
    let run = |fields: &str| {
        format!(
            r#"{{"metadata":{{"name":"a"}},"spec":{{"agentRef":"b","agentId":"c","sessionKey":"d",
            "model":{{"provider":"e","model":"f","authSecretRef":"g"}}{fields}}}}}"#
        )
    };
    let agent = |fields: &str| {
        let spec = format!(r#""agents":{{"default":{{"model":"a"}}}}{fields}"#);
        format!(r#"{{"metadata":{{"name":"a"}},"spec":{{{spec}}}}}"#)
    };
    let session = |agent: &str, runtime: &str| {
        let spec = format!(r#""agentRef":"{agent}","runtimeRef":"{runtime}""#);
        format!(r#"{{"metadata":{{"name":"a"}},"spec":{{{spec}}}}}"#)
    };
    let open = with_definitions(|mut crd| {
        for version in crd["spec"]["versions"].as_array_mut().expect("versions") {
            version["schema"] = json!({"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        }
        crd
    });
    let enduring = r#","backend":"celln","cellnSelection":{},"enduring":{},"executionLifecycle":"enduring""#;
    let (agent_run, an_agent) = ("AgentRun", "Agent");
    for (kind, object, old) in [
        (agent_run, run(r#","backend":"cellm""#), None),
        (agent_run, run(r#","backend":"""#), None),
        (agent_run, run(r#","executionLifecycle":"oneshot""#), None),
        (agent_run, run(r#","cellnSelection":{}"#), None),
        (agent_run, run(r#","enduring":{}"#), None),
        (agent_run, run(r#","conversation":{}"#), None),
        (agent_run, run(r#","executionLifecycle":"enduring""#), None),
        (agent_run, run(r#","executionLifecycle":"one-shot","mode":"server""#), None),
        (agent_run, run(""), Some(run(enduring))),
        (an_agent, agent(r#","execution":{"backend":"cellm"}"#), None),
        (an_agent, agent(r#","execution":{"executionLifecycle":"oneshot"}"#), None),
        (an_agent, agent(r#","workspace":{"perSessionPVC":true,"size":"big"}"#), None),
        (an_agent, agent(r#","workspace":{"perSessionPVC":true,"size":""}"#), None),
        ("HarnessSession", session("b", "c"), Some(session("a", "c"))),
        ("HarnessSession", session("a", "c"), Some(session("a", "b"))),
    ] {
        let kind = ("sympozium.ai", kind);
        for (snapshot, accepts) in
            [(&state::empty(memgate_platforms::default_settings()), false), (&open, true), (&cluster, true)]
        {
            let decision = decided(snapshot, kind, &object, old.as_deref());
            assert_eq!(decision.reason != Reason::Invalid, accepts, "{object} {:?}", decision.findings);
        }
    }
}
