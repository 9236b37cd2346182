//! That certs/cert-manager.yaml asks for the certificate that memgate serves and the apiserver wants.

use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_manifest::document::parse;
use memgate_manifest::source::Source;
use memgate_primitives::review_path::service_names;
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../certs/cert-manager.yaml");

fn objects() -> Vec<Value> {
    let parsed = parse(&Arc::new(Source::new("cert-manager.yaml", TEXT)));
    parsed.documents.iter().map(|document| document.value().clone()).collect()
}

#[test]
fn the_certificate_bears_the_names_that_the_apiserver_asks_for() {
    let objects = objects();
    assert_eq!(objects.len(), 4);
    let leaf = objects.iter().find(|object| object["spec"]["secretName"] == "memgate-tls");
    let leaf = leaf.expect("the Secret that the Deployment mounts");
    assert_eq!(leaf["spec"]["dnsNames"], json!(service_names("memgate", "memgate-system")));
    assert_eq!(leaf["metadata"]["name"], "memgate", "what inject-ca-from names");
}

#[test]
fn every_issuer_that_is_named_is_there() {
    let objects = objects();
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let issuers: BTreeSet<_> = of_kind("Issuer").map(|issuer| issuer["metadata"]["name"].as_str()).collect();
    for certificate in of_kind("Certificate") {
        assert!(issuers.contains(&certificate["spec"]["issuerRef"]["name"].as_str()), "{certificate}");
    }
    let secrets: BTreeSet<_> =
        of_kind("Certificate").map(|certificate| certificate["spec"]["secretName"].as_str()).collect();
    let signing = of_kind("Issuer").filter_map(|issuer| issuer["spec"]["ca"]["secretName"].as_str());
    for secret in signing {
        assert!(secrets.contains(&Some(secret)), "{secret}");
    }
    for object in &objects {
        assert_eq!(object["metadata"]["namespace"], "memgate-system");
    }
}
