//! Which CAs count as trusted, and what is written.

use serde_json::json;

use super::*;
use crate::CertPolicy;
use crate::ca::Ca;
use crate::test_support::StubCluster;

fn cert() -> CaCert {
    Ca::generate(2_000_000_000, &CertPolicy::default()).expect("a CA").cert
}

/// A configuration whose entries trust these.
fn object(entries: &[&[CaCert]]) -> DynamicObject {
    let entry = |(index, bundle): (usize, &&[CaCert])| {
        let text = BASE64_STANDARD.encode(ca_bundle::pem(bundle));
        json!({"name": format!("{index}.memgate.dev"), "clientConfig": {"caBundle": text}})
    };
    let webhooks: Vec<_> = entries.iter().enumerate().map(entry).collect();
    let text = json!({"metadata": {"name": "memgate", "uid": "u"}, "webhooks": webhooks});
    serde_json::from_value(text).expect("an object")
}

fn observed(mutating: ConfigStatus, validating: ConfigStatus) -> Observed {
    Observed { mutating, validating }
}

#[test]
fn trust_is_what_all_entries_of_both_agree_on_and_counts_from_the_last_of_them() {
    let (one, other) = (cert(), cert());
    let both = [one.clone(), other.clone()];
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mutating = ConfigStatus::NotFound.after(&object(&[&both, &both]), at(0));
    let validating = ConfigStatus::NotFound.after(&object(&[&both, &both[..1]]), at(5));
    let status = observed(mutating.clone(), validating);
    let trusted = TrustedCas([(one.clone(), Duration::from_secs(15))].into());
    assert_eq!(status.trusted_cas(at(20)), trusted);
    assert!(status.trusts(&one) && !status.trusts(&other));

    // What stays has been trusted since it came, what comes again has not.
    let wiped = status.validating.after(&object(&[&both[1..], &both[1..]]), at(6));
    let again = wiped.after(&object(&[&both, &both]), at(8));
    let trusted = [(one, Duration::from_secs(12)), (other, Duration::from_secs(14))];
    assert_eq!(observed(mutating, again).trusted_cas(at(20)), TrustedCas(trusted.into()));
}

#[test]
fn what_is_not_there_refuses_no_ca_and_is_not_ready_for_one() {
    let one = cert();
    let there = ConfigStatus::NotFound.after(&object(&[std::slice::from_ref(&one)]), Instant::now());
    for (validating, trusted, ready) in [
        (there.clone(), true, true),
        (ConfigStatus::Forbidden, false, true),
        (ConfigStatus::NotFound, true, false),
        (ConfigStatus::Unknown, true, false),
        (ConfigStatus::NotFound.after(&object(&[]), Instant::now()), true, true),
        (ConfigStatus::NotFound.after(&object(&[&[]]), Instant::now()), false, false),
    ] {
        let observed = observed(there.clone(), validating);
        assert_eq!(observed.trusted_cas(Instant::now()).0.contains_key(&one), trusted, "{observed:?}");
        assert_eq!(observed.trusts(&one), ready, "{observed:?}");
    }
}

#[test]
fn a_patch_writes_only_where_something_is_to_be_written_and_tests_where_it_writes() {
    let one = cert();
    let wanted = std::slice::from_ref(&one);
    let config = WebhookConfig::read(&object(&[wanted, &[], wanted, &[cert()]]));
    assert!(!config.has_bundle(wanted));
    let patch = serde_json::to_value(config.patch(wanted)).expect("JSON");
    let text = BASE64_STANDARD.encode(ca_bundle::pem(wanted));
    let expected = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/webhooks/1/name", "value": "1.memgate.dev"},
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": text},
        {"op": "test", "path": "/webhooks/3/name", "value": "3.memgate.dev"},
        {"op": "add", "path": "/webhooks/3/clientConfig/caBundle", "value": text},
    ]);
    assert_eq!(patch, expected);
    assert!(WebhookConfig::read(&object(&[wanted, wanted])).has_bundle(wanted));
}

#[test]
fn neither_order_nor_repetition_is_drift() {
    let both = [cert(), cert()];
    let turned = [both[1].clone(), both[0].clone(), both[1].clone()];
    assert!(WebhookConfig::read(&object(&[&both, &turned])).has_bundle(&both));
    let more = [both[0].clone(), both[1].clone(), cert()];
    assert!(
        !WebhookConfig::read(&object(&[&more])).has_bundle(&both),
        "another server could impersonate memgate"
    );
}

#[test]
fn what_cannot_be_read_is_logged_once_and_so_is_its_end() {
    let mut failures = FailureLog::default();
    let (kind, step) = (Phase::Mutate, "read the mutating webhook configuration");
    log_failure(&mut failures, kind, &Ok(ConfigStatus::Forbidden));
    assert!(failures.last(step).contains("memgate manifests"), "{failures:?}");
    log_failure(&mut failures, kind, &Err(kube::Error::Service("no answer".into())));
    assert!(failures.last(step).contains("no answer"), "{failures:?}");
    log_failure(&mut failures, kind, &Ok(ConfigStatus::NotFound));
    assert!(failures.is_empty(), "{failures:?}");
}

/// Real time: a loop that never waits would keep a paused clock where it is.
#[tokio::test]
async fn a_watch_that_ends_at_once_is_not_begun_again_at_once() {
    let cluster = StubCluster::new();
    cluster.end_watches();
    let (observed, _) = tokio::sync::watch::channel(Observed::default());
    let config = LiveConfig::new(cluster.client(), Phase::Mutate, "memgate", &observed);
    let follow = config.follow(Duration::from_secs(1));
    let ended = tokio::time::timeout(Duration::from_millis(500), follow).await;
    assert!(ended.is_err());
    assert_eq!(cluster.watches(), 1);
}
