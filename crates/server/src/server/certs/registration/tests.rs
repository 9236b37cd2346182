//! What counts as trust, and what is written.

use serde_json::json;

use super::*;
use crate::server::certs::Terms;
use crate::server::certs::ca::Ca;
use crate::server::certs::stub::Cluster;

fn anchor() -> Anchor {
    Ca::make(2_000_000_000, &Terms::default()).expect("a CA").anchor
}

/// A configuration whose entries trust these.
fn object(entries: &[&[Anchor]]) -> DynamicObject {
    let entry = |(index, bundle): (usize, &&[Anchor])| {
        let text = BASE64_STANDARD.encode(anchor::pem(bundle));
        json!({"name": format!("{index}.memgate.dev"), "clientConfig": {"caBundle": text}})
    };
    let webhooks: Vec<_> = entries.iter().enumerate().map(entry).collect();
    let text = json!({"metadata": {"name": "memgate", "uid": "u"}, "webhooks": webhooks});
    serde_json::from_value(text).expect("an object")
}

fn live(mutating: Seen, validating: Seen) -> Live {
    Live { mutating, validating }
}

#[test]
fn trust_is_what_all_entries_of_both_agree_on_and_counts_from_the_last_of_them() {
    let (one, other) = (anchor(), anchor());
    let both = [one.clone(), other.clone()];
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mutating = Seen::Absent.after(&object(&[&both, &both]), at(0));
    let validating = Seen::Absent.after(&object(&[&both, &both[..1]]), at(5));
    let seen = live(mutating.clone(), validating);
    let trusted = Trust([(one.clone(), Duration::from_secs(15))].into());
    assert_eq!(seen.trust(at(20)), trusted);
    assert!(seen.trusts(&one) && !seen.trusts(&other));

    // What stays has been trusted since it came, what comes again has not.
    let wiped = seen.validating.after(&object(&[&both[1..], &both[1..]]), at(6));
    let again = wiped.after(&object(&[&both, &both]), at(8));
    let trusted = [(one, Duration::from_secs(12)), (other, Duration::from_secs(14))];
    assert_eq!(live(mutating, again).trust(at(20)), Trust(trusted.into()));
}

#[test]
fn what_is_not_there_refuses_no_ca_and_is_not_ready_for_one() {
    let one = anchor();
    let there = Seen::Absent.after(&object(&[std::slice::from_ref(&one)]), Instant::now());
    for (validating, trusted, ready) in [
        (there.clone(), true, true),
        (Seen::Denied, false, true),
        (Seen::Absent, true, false),
        (Seen::Unknown, true, false),
        (Seen::Absent.after(&object(&[]), Instant::now()), true, true),
        (Seen::Absent.after(&object(&[&[]]), Instant::now()), false, false),
    ] {
        let live = live(there.clone(), validating);
        assert_eq!(live.trust(Instant::now()).0.contains_key(&one), trusted, "{live:?}");
        assert_eq!(live.trusts(&one), ready, "{live:?}");
    }
}

#[test]
fn a_patch_writes_only_where_something_is_to_be_written_and_tests_where_it_writes() {
    let one = anchor();
    let wanted = std::slice::from_ref(&one);
    let registration = Registration::read(&object(&[wanted, &[], wanted, &[anchor()]]));
    assert!(!registration.says(wanted));
    let patch = serde_json::to_value(registration.patch(wanted)).expect("JSON");
    let text = BASE64_STANDARD.encode(anchor::pem(wanted));
    let expected = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/webhooks/1/name", "value": "1.memgate.dev"},
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": text},
        {"op": "test", "path": "/webhooks/3/name", "value": "3.memgate.dev"},
        {"op": "add", "path": "/webhooks/3/clientConfig/caBundle", "value": text},
    ]);
    assert_eq!(patch, expected);
    assert!(Registration::read(&object(&[wanted, wanted])).says(wanted));
}

#[test]
fn neither_order_nor_repetition_is_drift() {
    let both = [anchor(), anchor()];
    let turned = [both[1].clone(), both[0].clone(), both[1].clone()];
    assert!(Registration::read(&object(&[&both, &turned])).says(&both));
    let more = [both[0].clone(), both[1].clone(), anchor()];
    assert!(!Registration::read(&object(&[&more])).says(&both), "a stranger could pretend to be memgate");
}

#[test]
fn what_cannot_be_read_is_told_once_and_so_is_its_end() {
    let mut troubles = Troubles::default();
    let step = Which::Mutating.reading();
    note_trouble(&mut troubles, step, &Ok(Seen::Denied));
    assert!(troubles.0[step].contains("memgate manifests"), "{troubles:?}");
    note_trouble(&mut troubles, step, &Err(kube::Error::Service("no answer".into())));
    assert!(troubles.0[step].contains("no answer"), "{troubles:?}");
    note_trouble(&mut troubles, step, &Ok(Seen::Absent));
    assert!(troubles.0.is_empty(), "{troubles:?}");
}

/// Real time: a loop that never waits would keep a paused clock where it is.
#[tokio::test]
async fn a_watch_that_ends_at_once_is_not_begun_again_at_once() {
    let cluster = Cluster::new();
    cluster.end_watches();
    let (live, _) = tokio::sync::watch::channel(Live::default());
    let name = "memgate".to_owned();
    let follow = follow(cluster.client(), Which::Mutating, name, live, Duration::from_secs(1));
    let ended = tokio::time::timeout(Duration::from_millis(500), follow).await;
    assert!(ended.is_err());
    assert_eq!(cluster.watches(), 1);
}
