//! Chains alone, and whole entries against a stub.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::json;

use super::*;
use crate::CertPolicy;
use crate::ca::Ca;
use crate::test_support::{StubCluster, path};

const NOW: i64 = 2_000_000_000;

fn refused(text: &str) -> TrustVerdict {
    TrustVerdict::Refused(text.to_owned())
}

#[test]
fn verifies_as_an_apiserver_does() {
    let policy = CertPolicy::default();
    let (ca, other) = (Ca::generate(NOW, &policy).expect("a CA"), Ca::generate(NOW, &policy).expect("a CA"));
    let chain = ca.sign(&["a.b.svc".to_owned()], NOW, &policy).expect("a leaf").chain;
    let (good, bad) = ([ca.cert.certificate()], [other.cert.certificate()]);
    let both = [bad[0].clone(), good[0].clone()];
    let week = 7 * 86400;
    for (bundle, name, now, expected) in [
        (&good[..], "a.b.svc", NOW, TrustVerdict::Trusted),
        (&both, "a.b.svc", NOW, TrustVerdict::Trusted),
        (&bad, "a.b.svc", NOW, refused("no CA in caBundle has signed it")),
        (&good, "c.b.svc", NOW, refused("it is not for c.b.svc")),
        (&good, "a.b.svc", NOW + week + 1, refused("it, or the CA that signed it, has expired")),
        (&good, "a.b.svc", NOW - week, refused("it, or the CA that signed it, is not valid yet")),
        (&[], "a.b.svc", NOW, refused("caBundle holds no certificate that can be used")),
    ] {
        assert_eq!(verify_chain(bundle, &chain, name, now), expected, "{name} {now}");
    }
    assert_eq!(verify_chain(&good, &[], "a.b.svc", NOW), refused("the server shows no certificate"));
}

#[test]
fn knows_where_an_entry_leads() {
    for (config, asks_for, address) in [
        (json!({"service": {"name": "m", "namespace": "n"}}), "m.n.svc", None),
        (json!({"url": "https://host.example:8443/mutate"}), "host.example", Some("host.example:8443")),
        (json!({"url": "https://host.example/mutate"}), "host.example", Some("host.example:443")),
        (json!({"url": "https://[::1]:8443/mutate"}), "::1", Some("[::1]:8443")),
        (json!({"url": "https://127.0.0.1:8443/"}), "127.0.0.1", Some("127.0.0.1:8443")),
        (json!({}), "", None),
    ] {
        let target = target(&json!({"clientConfig": config}));
        assert_eq!((target.asks_for.as_str(), target.address.as_deref()), (asks_for, address));
    }
}

#[tokio::test]
async fn reports_of_every_entry_and_reads_no_secret() {
    let cluster = StubCluster::new();
    cluster.refuse("GET /api/v1", 403);
    let policy = CertPolicy::default();
    let ca = Ca::generate(NOW, &policy).expect("a CA");
    let text = BASE64_STANDARD.encode(ca.certificate_pem());
    cluster.change(&path(Phase::Mutate), |object| {
        let service = json!({"name": "memgate", "namespace": "home"});
        object["webhooks"][0]["clientConfig"] = json!({"caBundle": text, "service": service});
    });
    let leaf = ca.sign(&["memgate.home.svc".to_owned()], NOW, &policy).expect("a leaf");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), ca_bundle::certificate_pem(&leaf.chain[0])).expect("written");
    let mut question = VerifyOptions {
        configuration: "memgate",
        chain: Some(file.path()),
        now: NOW,
        ..VerifyOptions::default()
    };
    let entries = verify(&cluster.client(), &question).await.expect("entries");
    let verdicts: Vec<_> = entries.iter().map(|entry| &entry.verdict).collect();
    let empty = refused("caBundle holds no certificate");
    assert_eq!(verdicts, [&TrustVerdict::Trusted, &empty, &empty, &empty]);
    assert_eq!(entries[0].chain[0].names, ["memgate.home.svc"]);
    assert_eq!(entries[0].chain[0].issuer, entries[0].bundle[0].subject);
    question.chain = None;
    let entries = verify(&cluster.client(), &question).await.expect("entries");
    let reason = "it is reached from within the cluster only; give --url or --cert";
    assert!(matches!(&entries[0].verdict, TrustVerdict::Unasked(said) if said == reason));
    question.now = NOW + 366 * 86400;
    let entries = verify(&cluster.client(), &question).await.expect("entries");
    assert!(matches!(&entries[0].verdict, TrustVerdict::Refused(reason) if reason.contains("expired")));
    question.configuration = "other";
    assert_eq!(verify(&cluster.client(), &question).await.expect("none"), []);
}

/// A cluster whose four entries lead to one Service and trust these.
fn trusting(bundles: [&[&Ca]; 4]) -> StubCluster {
    let cluster = StubCluster::new();
    for (which, bundles) in Phase::ALL.into_iter().zip(bundles.chunks(2)) {
        cluster.change(&path(which), |object| {
            for (index, bundle) in bundles.iter().enumerate() {
                let text: String = bundle.iter().map(|ca| ca.certificate_pem()).collect();
                let service = json!({"name": "memgate", "namespace": "home"});
                let text = BASE64_STANDARD.encode(text);
                object["webhooks"][index]["clientConfig"] = json!({"caBundle": text, "service": service});
            }
        });
    }
    cluster
}

#[tokio::test]
async fn entries_of_one_server_that_was_not_asked_must_trust_the_same() {
    let (one, other) = (Ca::generate(NOW, &CertPolicy::default()), Ca::generate(NOW, &CertPolicy::default()));
    let (one, other) = (&one.expect("a CA"), &other.expect("a CA"));
    let question = VerifyOptions { configuration: "memgate", now: NOW, ..VerifyOptions::default() };
    for (last, agree) in [(&[one, other][..], true), (&[other, one], true), (&[one], false)] {
        let both = &[one, other][..];
        let cluster = trusting([both, both, both, last]);
        for entry in verify(&cluster.client(), &question).await.expect("entries") {
            assert_eq!(matches!(entry.verdict, TrustVerdict::Unasked(_)), agree, "{:?}", entry.verdict);
            if let TrustVerdict::Unknown(reason) = &entry.verdict {
                assert!(reason.contains("ask again in a moment, or give --url"), "{reason}");
            }
            assert_eq!(matches!(entry.verdict, TrustVerdict::Unknown(_)), !agree, "{:?}", entry.verdict);
        }
    }
}

#[tokio::test]
async fn a_server_is_asked_once_for_all_entries_that_lead_to_it() {
    let ca = &Ca::generate(NOW, &CertPolicy::default()).expect("a CA");
    let cluster = trusting([&[ca], &[ca], &[ca], &[ca]]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let question = VerifyOptions {
        configuration: "memgate",
        address: Some(&address),
        now: NOW,
        ..VerifyOptions::default()
    };
    let mut calls = 0;
    let answer_none = async {
        loop {
            drop(listener.accept().await.expect("a call"));
            calls += 1;
        }
    };
    let client = cluster.client();
    let entries = tokio::select! {
        entries = verify(&client, &question) => entries.expect("entries"),
        () = answer_none => unreachable!("it never ends"),
    };
    assert!(entries.iter().all(|entry| matches!(entry.verdict, TrustVerdict::Unknown(_))), "{entries:?}");
    assert_eq!((entries.len(), calls), (4, 1));
}
