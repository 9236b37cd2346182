//! Times at both ends, before, at and after what they are compared with.

use std::collections::BTreeSet;

use memgate_core::admission::Admitted;
use memgate_core::state;
use memgate_model::finding::Severity;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::policy::Policies;
use memgate_model::request::{Occasion, Point};
use memgate_policy::leftover::{self, Used};
use memgate_policy::{put, timestamp};
use serde_json::{Value, json};

use super::{admitted, case, memory, policy};

const START: &str = "2027-01-15T00:00:00Z";
const END: &str = "2027-03-01T00:00:00Z";

fn promoted(at: &str) -> Value {
    let rules = json!([{"id": "durable", "backends": {"durable": true}}]);
    let exemptions = json!({"namespaces": ["ex"], "maxAge": "366d"});
    policy("org", &json!({"promote": {"at": at, "to": "deny"}, "rules": rules, "exemptions": exemptions}))
}

fn exemption(from: &str, expires_at: &str) -> Value {
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
        "metadata": {"name": "legacy", "namespace": "ex"},
        "spec": {
            "policy": "org", "rules": ["durable"], "target": {"namespaces": ["team"]},
            "reason": "moves to redis in March", "from": from, "expiresAt": expires_at,
        },
    })
}

fn at(state: &[Value], now: jiff::Timestamp) -> Admitted {
    let mut case = case(state, &memory("in-context"), &json!({}));
    case.occasion = Occasion::new(Point::Admission, now);
    admitted(&case).expect("can be read")
}

fn time(text: &str) -> jiff::Timestamp {
    timestamp(text).expect("a time")
}

#[test]
fn promotions_and_exemptions_at_any_time() {
    use jiff::Timestamp;
    let nanosecond = jiff::SignedDuration::from_nanos(1);
    let (start, end) = (time(START), time(END));
    for (now, promoted_by_then, exempt) in [
        (Timestamp::MIN, false, false),
        (Timestamp::UNIX_EPOCH, false, false),
        (start - nanosecond, false, false),
        (start, true, true),
        (end - nanosecond, true, true),
        (end, true, false),
        (Timestamp::MAX, true, false),
    ] {
        let plain = at(&[promoted(START)], now);
        assert_eq!(plain.allowed(), !promoted_by_then, "{now}");
        let message = plain.decision.findings[0].message().into_owned();
        assert_eq!(message.contains("denied from 2027-01-15"), !promoted_by_then, "{now}: {message}");
        let with_exemption = at(&[promoted(START), exemption(START, END)], now);
        assert_eq!(with_exemption.allowed(), exempt || !promoted_by_then, "{now}");
        let is_note = with_exemption.decision.findings[0].severity == Severity::Note;
        assert_eq!(is_note, exempt, "{now}");
    }
}

/// The clock of one replica may go back: it says what it would have said then.
#[test]
fn a_clock_that_goes_back() {
    let (before, after) = (time("2027-01-14T23:59:59Z"), time(START));
    let says = |now| at(&[promoted(START)], now).decision.findings[0].message().into_owned();
    let first = says(before);
    assert_ne!(says(after), first);
    assert_eq!(says(before), first);
}

#[test]
fn exemptions_that_come_to_nothing() {
    let now = time("2027-02-01T00:00:00Z");
    let leftover = |objects: &[Value], now| {
        let mut snapshot = state::empty(memgate_platforms::default_settings());
        for object in objects {
            state::add(&mut snapshot, object).expect("numbers");
        }
        let found = leftover::exemptions(&snapshot.policies, &Used::default(), now);
        found.into_iter().map(|(_, finding)| finding.code.name).collect::<Vec<_>>()
    };
    let exemption = exemption(START, END);
    assert_eq!(leftover(std::slice::from_ref(&exemption), now), ["policy/exemption-rejected"]);
    assert_eq!(leftover(&[promoted(START), exemption.clone()], now), ["policy/exemption-unused"]);
    let all = [promoted(START), exemption];
    assert_eq!(leftover(&all, jiff::Timestamp::MAX), ["policy/exemption-expired"]);
    assert!(leftover(&all, jiff::Timestamp::MIN).is_empty());
}

#[test]
fn reports_the_policy_whose_default_another_one_overrides() {
    let mut policies = Policies::default();
    for name in ["a", "b"] {
        let default =
            json!({"family": "arkonis", "kind": "ArkMemory", "field": "/spec/redis/maxEntries", "value": 1});
        let manifest = json!({"metadata": {"name": name}, "spec": {"defaults": [default]}});
        assert!(put(&mut policies, &memgate_platforms::ALL, &MEMORY_POLICY, &manifest).is_empty());
    }
    let of = |name: &str| leftover::overlaps(&BTreeSet::from([name.to_owned()]), &policies);
    assert!(of("a").is_empty());
    let reported = of("b");
    let [(object, finding)] = reported.as_slice() else { panic!("one finding") };
    assert_eq!((object.name.as_str(), finding.pointer.as_str()), ("b", "/spec/defaults/0/field"));
}
