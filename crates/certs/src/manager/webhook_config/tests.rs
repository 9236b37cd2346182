//! Which CAs count as trusted, and what is written.

use futures::FutureExt as _;
use serde_json::json;

use super::*;
use crate::CertPolicy;
use crate::ca::Ca;
use crate::test_support::{StubCluster, path};

fn cert() -> CaCert {
    Ca::generate(2_000_000_000, &CertPolicy::default()).expect("a CA").cert
}

/// A configuration whose entries trust these.
fn config(entries: &[&[CaCert]]) -> WebhookConfig {
    let entry = |(index, bundle): (usize, &&[CaCert])| {
        let text = BASE64_STANDARD.encode(ca_bundle::pem(bundle));
        json!({"name": format!("{index}.memgate.dev"), "clientConfig": {"caBundle": text}})
    };
    let webhooks: Vec<_> = entries.iter().enumerate().map(entry).collect();
    let text = json!({"metadata": {"name": "memgate", "resourceVersion": "7"}, "webhooks": webhooks});
    WebhookConfig::read(&serde_json::from_value(text).expect("an object"))
}

#[test]
fn a_ca_is_trusted_when_all_entries_have_it() {
    let (one, other) = (cert(), cert());
    let both = [one.clone(), other.clone()];
    let (full, half, none) =
        (config(&[&both, &both]), config(&[&both, &both[..1]]), WebhookConfig::default());
    for (mutating, validating, trusted) in [
        (Some(full.clone()), Some(full.clone()), [true, true]),
        (Some(full.clone()), Some(half.clone()), [true, false]),
        (Some(half), Some(none.clone()), [true, false]),
        (Some(full.clone()), None, [false, false]),
        (Some(none.clone()), Some(none), [false, false]),
        (Some(full), Some(config(&[&[]])), [false, false]),
    ] {
        let observed = [mutating, validating];
        let all_trust = |cert: &CaCert| {
            let bundles = bundles(&observed);
            !bundles.is_empty() && bundles.iter().all(|bundle| bundle.contains(cert))
        };
        assert_eq!([&one, &other].map(all_trust), trusted, "{observed:?}");
    }
}

#[test]
fn only_entries_that_differ_are_written_and_only_in_the_version_that_was_read() {
    let (one, other) = (cert(), cert());
    let both = [one.clone(), other.clone()];
    let reversed = [other, one];
    assert_eq!(config(&[&both, &reversed]).patch(&both), None, "the order does not count");
    assert_eq!(WebhookConfig::default().patch(&both), None);
    let patch = config(&[&both, &both[..1], &[]]).patch(&both).expect("two differ");
    let text = BASE64_STANDARD.encode(ca_bundle::pem(&both));
    let entry = |name| json!({"name": name, "clientConfig": {"caBundle": text}});
    let webhooks = [entry("1.memgate.dev"), entry("2.memgate.dev")];
    assert_eq!(patch, json!({"metadata": {"resourceVersion": "7"}, "webhooks": webhooks}));
}

#[tokio::test(start_paused = true)]
async fn follows_one_object_by_its_name() {
    let cluster = StubCluster::new();
    cluster.remove(&path(Phase::Validate));
    let observed = Sender::<Observed>::default();
    let configs = Phase::ALL.map(|kind| LiveConfig::new(&cluster.client(), kind, "memgate", &observed));
    let mut seen = observed.subscribe();
    let both = futures::future::join_all(configs.map(LiveConfig::follow)).fuse();
    let known = seen.wait_for(|seen| seen.iter().all(Option::is_some));
    tokio::select! {
        _ = both => panic!("following never ends"),
        known = known => {
            let [Some(mutating), Some(validating)] = &*known.expect("it is followed") else { panic!() };
            assert_eq!((mutating.entries.len(), validating), (2, &WebhookConfig::default()));
        }
    }
}
