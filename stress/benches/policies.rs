//! What policies cost: loading them, judging by them, auditing by them, and passing by those that do not match.
//!
//! `cargo bench -p memgate-stress --bench policies`. Goals and results: stress/PERFORMANCE.md.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up must stop"
)]
#![allow(missing_docs, reason = "criterion's macros make items without any")]

use std::hint::black_box;

mod common;

use crate::common::{review, snapshot};
use criterion::{Criterion, criterion_group, criterion_main};
use memgate_core::admission;
use memgate_core::decide::audit::audit;
use memgate_core::decide::decide;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::policy::Policies;
use memgate_model::request::{Occasion, Point};
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

/// A memory object that breaks no rule of [`rules`].
const MEMORY: &str = r#"{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkMemory","metadata":{"name":"notes",
    "namespace":"team-a","labels":{"team":"a","tier":"gold"}},"spec":{"backend":"vector-store","vectorStore":
    {"provider":"qdrant","endpoint":"https://qdrant.team-a.svc:6333","collection":"team-a-notes","ttlSeconds":3600,
    "secretRef":{"name":"team-a-qdrant"}}}}"#;

/// Twenty typed rules on memory, none of which is broken.
fn rules() -> Vec<Value> {
    let typed = [
        json!({"backends": {"allow": ["redis", "vector-store"], "durable": true}}),
        json!({"providers": {"allow": ["qdrant", "weaviate"], "deny": ["pinecone"]}}),
        json!({"endpoint": {"schemes": ["https"], "hosts": ["**.svc"], "ports": [6333], "loopback": "forbid"}}),
        json!({"endpoint": {"private": "forbid", "inCluster": "require"}}),
        json!({"secrets": {"inline": "forbid", "required": true, "names": ["team-*"], "namespaces": "same"}}),
        json!({"retention": {"min": "1m", "max": "30d"}}),
        json!({"capacity": {"maxEntries": {"max": 1000}}}),
        json!({"tenancy": {"from": {"namespace": true}, "collection": "{tenant}-*", "secrets": "{tenant}-*"}}),
        json!({"roles": ["memory"], "labels": {"required": ["team"], "values": {"tier": ["gold", "silver-*"]}}}),
        json!({"immutable": ["backend", "collection"]}),
    ];
    let numbered = typed.iter().cycle().zip(0..20).map(|(rule, number)| {
        let mut rule = rule.clone();
        rule["id"] = format!("rule-{number}").into();
        rule
    });
    numbered.collect()
}

fn manifest(name: &str, matching: &Value) -> Value {
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1",
        "kind": "MemoryPolicy",
        "metadata": {"name": name},
        "spec": {"match": matching, "actions": {"admission": "deny"}, "rules": rules()},
    })
}

/// A hundred policies: those of the library, five times.
fn library() -> Vec<Value> {
    let library = common::library();
    let all: Vec<Value> = (0..5)
        .flat_map(|number| {
            library.iter().cloned().map(move |mut policy| {
                let name = policy["metadata"]["name"].as_str().expect("a name");
                policy["metadata"]["name"] = format!("{name}-{number}").into();
                policy
            })
        })
        .collect();
    assert_eq!(all.len(), 100, "the library has changed");
    all
}

fn with_policies(mut snapshot: Snapshot, manifests: &[Value]) -> Snapshot {
    let mut policies = Policies::default();
    for manifest in manifests {
        let faults = memgate_policy::put(&mut policies, &memgate_platforms::ALL, &MEMORY_POLICY, manifest);
        assert!(faults.is_empty(), "{faults:?}");
    }
    snapshot.policies = policies.into();
    snapshot
}

fn body(object: &str, name: &str) -> String {
    let mut object: Value = serde_json::from_str(object).expect("JSON");
    object["metadata"]["name"] = name.into();
    let kind = json!({"group": "arkonis.dev", "version": "v1alpha1", "kind": "ArkMemory"});
    let request = json!({"uid": "1", "kind": kind, "name": name, "namespace": "team-a", "operation": "CREATE", "object": object});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

fn judge(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policies");
    let memory = body(MEMORY, "notes");
    let pod = review("arkonis.dev/deployment", 20, 600, false);
    let twenty = |matching: &Value| -> Vec<Value> {
        (0..20).map(|number| manifest(&format!("other-{number}"), matching)).collect()
    };
    let ours = json!({"families": ["arkonis"]});
    for (name, snapshot) in [
        ("none", snapshot()),
        ("1 of 20 rules", with_policies(snapshot(), &[manifest("one", &ours)])),
        ("20 of another platform", with_policies(snapshot(), &twenty(&json!({"families": ["ark"]})))),
        ("20 of another kind", with_policies(snapshot(), &twenty(&json!({"kinds": ["ArkAgent"]})))),
        ("20 of other namespaces", with_policies(snapshot(), &twenty(&json!({"namespaces": ["prod-*"]})))),
        ("100 of the library", with_policies(snapshot(), &library())),
    ] {
        for (of, body) in [("memory", &memory), ("pod", &pod)] {
            let review = admission::parse(body).expect("a review");
            assert!(decide(&review.request, &snapshot).allowed(), "{name}");
            group.bench_function(format!("{of}, {name}"), |bencher| {
                bencher.iter(|| decide(black_box(&review.request), &snapshot));
            });
        }
    }
    group.finish();
}

/// Ten thousand stored objects, each judged once, as a replica does it but for its pauses.
fn audit_all(criterion: &mut Criterion) {
    let bodies: Vec<String> = (0..10_000).map(|number| body(MEMORY, &format!("notes-{number}"))).collect();
    let requests: Vec<_> = bodies
        .iter()
        .map(|body| {
            let mut request = admission::parse(body).expect("a review").request;
            request.occasion = Occasion::new(Point::Audit, request.occasion.now);
            request
        })
        .collect();
    let mut group = criterion.benchmark_group("audit of 10,000 objects");
    group.sample_size(10);
    for (name, policies) in [("no policy", Vec::new()), ("100 of the library", library())] {
        let snapshot = with_policies(snapshot(), &policies);
        assert!(
            policies.is_empty() || !audit(&requests[0], &snapshot).judgement.findings.is_empty(),
            "{name}"
        );
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                requests
                    .iter()
                    .map(|request| audit(request, &snapshot).judgement.findings.len())
                    .sum::<usize>()
            });
        });
    }
    group.finish();
}

fn load(criterion: &mut Criterion) {
    let numbered =
        (0..200).map(|number| manifest(&format!("p-{number}"), &json!({"families": ["arkonis"]}))).collect();
    for (name, manifests) in
        [("load 200 policies of 20 rules", numbered), ("load 100 policies of the library", library())]
    {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                with_policies(Snapshot::new(memgate_platforms::default_settings()), black_box(&manifests))
            });
        });
    }
}

criterion_group!(benches, judge, load, audit_all);
criterion_main!(benches);
