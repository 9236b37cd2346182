//! The judgement and the whole look, against a stub.

use serde_json::json;

use super::*;
use crate::server::certs::Terms;
use crate::server::certs::ca::Ca;
use crate::server::certs::registration::Which;
use crate::server::certs::stub::{Cluster, path};

const NOW: i64 = 2_000_000_000;

fn refused(text: &str) -> Verdict {
    Verdict::Refused(text.to_owned())
}

#[test]
fn judges_as_an_apiserver_does() {
    let terms = Terms::default();
    let (ca, other) = (Ca::make(NOW, &terms).expect("a CA"), Ca::make(NOW, &terms).expect("a CA"));
    let chain = ca.sign(&["a.b.svc".to_owned()], NOW, &terms).expect("a leaf").chain;
    let (good, bad) = ([ca.anchor.certificate()], [other.anchor.certificate()]);
    let both = [bad[0].clone(), good[0].clone()];
    let week = 7 * 86400;
    for (bundle, name, now, expected) in [
        (&good[..], "a.b.svc", NOW, Verdict::Trusted),
        (&both, "a.b.svc", NOW, Verdict::Trusted),
        (&bad, "a.b.svc", NOW, refused("no CA in caBundle has signed it")),
        (&good, "c.b.svc", NOW, refused("it is not for c.b.svc")),
        (&good, "a.b.svc", NOW + week + 1, refused("it, or the CA that signed it, has expired")),
        (&good, "a.b.svc", NOW - week, refused("it, or the CA that signed it, is not valid yet")),
        (&[], "a.b.svc", NOW, refused("caBundle holds no certificate that can be used")),
    ] {
        assert_eq!(judge(bundle, &chain, name, now), expected, "{name} {now}");
    }
    assert_eq!(judge(&good, &[], "a.b.svc", NOW), refused("the server shows no certificate"));
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
        assert_eq!((target.asks_for().as_str(), target.address(None).as_deref()), (asks_for, address));
        assert_eq!(target.address(Some("x:1")).as_deref(), Some("x:1"));
    }
}

#[tokio::test]
async fn tells_of_every_entry_and_reads_no_secret() {
    let cluster = Cluster::new();
    cluster.refuse("GET /api/v1", 403);
    let terms = Terms::default();
    let ca = Ca::make(NOW, &terms).expect("a CA");
    let text = BASE64_STANDARD.encode(ca.certificate_pem());
    cluster.change(&path(Which::Mutating), |object| {
        let service = json!({"name": "memgate", "namespace": "home"});
        object["webhooks"][0]["clientConfig"] = json!({"caBundle": text, "service": service});
    });
    let leaf = ca.sign(&["memgate.home.svc".to_owned()], NOW, &terms).expect("a leaf");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), anchor::certificate_pem(&leaf.chain[0])).expect("written");
    let mut question =
        Question { configuration: "memgate", chain: Some(file.path()), now: NOW, ..Question::default() };
    let entries = verify(&cluster.client(), &question).await.expect("entries");
    let verdicts: Vec<_> = entries.iter().map(|entry| &entry.verdict).collect();
    let empty = refused("caBundle holds no certificate");
    assert_eq!(verdicts, [&Verdict::Trusted, &empty, &empty, &empty]);
    assert_eq!(entries[0].chain[0].names, ["memgate.home.svc"]);
    assert_eq!(entries[0].chain[0].issuer, entries[0].bundle[0].subject);
    question.chain = None;
    let entries = verify(&cluster.client(), &question).await.expect("entries");
    assert!(matches!(&entries[0].verdict, Verdict::Unknown(reason) if reason.contains("--url")));
    question.configuration = "other";
    assert_eq!(verify(&cluster.client(), &question).await.expect("none"), []);
}
