//! One request in process: the bytes of an AdmissionReview to the bytes of its response.
//!
//! `cargo bench -p memgate-stress --bench request`. Goals and results: stress/PERFORMANCE.md.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(clippy::print_stdout, reason = "sizes belong to the result")]
#![allow(missing_docs, reason = "criterion's macros make items without any")]

use std::hint::black_box;

mod common;

use crate::common::{review, snapshot};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memgate_core::{admission, decide};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::review_path::Phase;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the server does with a body, without the socket.
fn respond(body: &[u8], snapshot: &Snapshot) -> Vec<u8> {
    let body = std::str::from_utf8(body).expect("UTF-8");
    let review = admission::parse(body).expect("a review");
    let decision = decide::decide(&review.request, snapshot);
    admission::respond(Phase::Mutate, &review, &decision).expect("a response")
}

fn sizes(criterion: &mut Criterion) {
    let snapshot = snapshot();
    let mut group = criterion.benchmark_group("body to response");
    for (name, body) in [
        ("4 KB", review("arkonis.dev/deployment", 20, 600, false)),
        ("64 KB, 500 env", review("arkonis.dev/deployment", 500, 36_000, false)),
        ("1.5 MB, 28,000 env", review("arkonis.dev/deployment", 28_000, 0, false)),
        ("1.4 MB, one annotation", review("arkonis.dev/deployment", 20, 1_400_000, true)),
        ("4 KB, no family", review("example.dev/other", 20, 600, false)),
    ] {
        let patched = respond(body.as_bytes(), &snapshot).windows(5).any(|window| window == b"patch");
        assert_eq!(patched, !name.contains("no family"), "{name}");
        println!("{name}: {} bytes", body.len());
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| respond(black_box(body.as_bytes()), &snapshot));
        });
    }
    group.finish();
}

/// Doubling the env vars must not do more than double the time.
fn growth(criterion: &mut Criterion) {
    let snapshot = snapshot();
    let mut group = criterion.benchmark_group("growth");
    for env in [500, 1_000, 2_500, 5_000, 10_000] {
        let body = review("arkonis.dev/deployment", env, 0, false);
        group.bench_function(BenchmarkId::from_parameter(env), |bencher| {
            bencher.iter(|| respond(black_box(body.as_bytes()), &snapshot));
        });
    }
    group.finish();
}

/// Deciding alone, beyond reading the envelope.
fn deciding(criterion: &mut Criterion) {
    let snapshot = snapshot();
    let mut group = criterion.benchmark_group("decide");
    for (name, label) in [("agent pod", "arkonis.dev/deployment"), ("no family", "example.dev/other")] {
        let body = review(label, 20, 600, false);
        let review = admission::parse(&body).expect("a review");
        group.bench_function(name, |bencher| {
            bencher.iter(|| decide::decide(black_box(&review.request), &snapshot));
        });
    }
    group.finish();
}

/// For each family the case that changes its pod most, as it is and with many more env vars.
fn families(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("families");
    for family in memgate_platforms::ALL {
        let richest = common::cases(family).into_iter().filter_map(|case| Some((edits(&case)?, case)));
        let Some((_, case)) = richest.max_by_key(|(edits, _)| *edits) else { continue };
        let snapshot = request::state(&case).expect("a state");
        for env in [0, 500, 1_000, 10_000] {
            let body = request::review(&padded(&case, env)).to_string();
            println!("{}, {env} more: {} bytes", family.name, body.len());
            group.bench_function(BenchmarkId::new(family.name, env), |bencher| {
                bencher.iter(|| respond(black_box(body.as_bytes()), &snapshot));
            });
        }
    }
    group.finish();
}

/// How many edits a case makes to its pod; `None` when it makes none.
fn edits(case: &Case) -> Option<usize> {
    let snapshot = request::state(case).expect("a state");
    let body = request::review(case).to_string();
    let review = admission::parse(&body).ok()?;
    let edits = decide::decide(&review.request, &snapshot).edits.len();
    (review.request.is_pod() && edits > 0).then_some(edits)
}

/// The case with so many more variables in every container.
fn padded(case: &Case, env: usize) -> Case {
    let mut case = case.clone();
    let containers = case.object.as_mut().and_then(|object| object.pointer_mut("/spec/containers"));
    for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
        let variables: Vec<Value> = (0..env)
            .map(|number| json!({"name": format!("SETTING_{number:05}"), "value": format!("the value of {number}")}))
            .collect();
        match container.get_mut("env").and_then(Value::as_array_mut) {
            Some(list) => list.extend(variables),
            None if env > 0 => container["env"] = json!(variables),
            None => {}
        }
    }
    case
}

criterion_group!(benches, sizes, growth, deciding, families);
criterion_main!(benches);
