//! The command line in process: a file to what is written about it.
//!
//! `cargo bench -p memgate-stress --bench cli`. Results: stress/PERFORMANCE.md.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(missing_docs, reason = "criterion's macros make items without any")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memgate_model::request::Occasion;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::judge::check;
use memgate_workbench::files::load::load;
use memgate_workbench::files::place::report;
use memgate_workbench::report::{DEFAULT_WIDTH, text};
use serde_json::json;

/// What one file may hold that was written without line breaks.
const LINE_BYTES: usize = 2 << 20;

/// The number of objects; at most 50 findings of each are reported.
const OBJECTS: usize = 200;

/// Text about 10,000 findings, all on one line: each is shown with the text around it.
fn one_line(criterion: &mut Criterion) {
    let line = line();
    let mut group = criterion.benchmark_group("text of 10,000 findings");
    group.sample_size(10).throughput(Throughput::Bytes(line.len() as u64));
    group.bench_function("on one line of 2 MB", |bencher| {
        bencher.iter(|| {
            let inputs = load(&Plan::of_text(&line)).expect("loads");
            let checked = check(inputs, Occasion::default());
            let report = report(&checked);
            assert_eq!(report.findings.len(), 50 * OBJECTS);
            let mut out = Vec::new();
            text::write(&report, DEFAULT_WIDTH, &mut out).expect("memory");
            out
        });
    });
    group.finish();
}

/// A List of agents whose memory allows unknown operations.
fn line() -> String {
    let agent = |number: usize| {
        let allow: Vec<usize> = (0..60).collect();
        let note = "x".repeat(LINE_BYTES / OBJECTS - 400);
        json!({
            "apiVersion": "orloj.dev/v1",
            "kind": "Agent",
            "metadata": {"name": format!("a{number}"), "namespace": "team-a", "annotations": {"note": note}},
            "spec": {"memory": {"allow": allow}},
        })
    };
    let items: Vec<_> = (0..OBJECTS).map(agent).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

criterion_group!(benches, one_line);
criterion_main!(benches);
