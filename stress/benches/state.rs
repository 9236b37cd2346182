//! State that grows: what an event costs in a namespace of 50,000 Queries, what reading them costs, and what it
//! takes to fill a state with 100,000.
//!
//! `cargo bench -p memgate-stress --bench state`. Results: stress/PERFORMANCE.md.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(missing_docs, reason = "criterion's macros make items without any")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use memgate_model::kind::Kind;
use memgate_model::object::{Coverage, KindState, Object};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;

/// How many there are already.
const OBJECTS: usize = 50_000;

fn kind() -> &'static Kind {
    memgate_platforms::state_kind(&memgate_platforms::ALL, "ark.mckinsey.com", "Query")
        .expect("a kind of the family")
}

/// A Query as the platform leaves it.
fn query(number: usize) -> Object {
    let text = format!(
        r#"{{"apiVersion":"ark.mckinsey.com/v1alpha1","kind":"Query","metadata":{{"name":"{}","namespace":"team","uid":"0c2a5b7e-6393-11e8-b7cc-{number:012x}","resourceVersion":"{number}","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"chat"}},"managedFields":[{{"manager":"ark","operation":"Update"}}]}},"spec":{{"input":"What happened since yesterday?","memory":{{"name":"notes"}},"sessionId":"s-{number}","target":{{"type":"agent","name":"scout"}},"timeout":"5m","ttl":"720h"}},"status":{{"phase":"done","duration":"2s","response":{{"content":"Nothing."}}}}}}"#,
        name(number)
    );
    let read = Object::read(kind(), &mut serde_json::Deserializer::from_str(&text)).expect("JSON");
    read.expect("it has a name")
}

/// Names in no order, as generated ones are.
fn name(number: usize) -> String {
    format!("query-{:05x}-{number}", number.wrapping_mul(7_919) % 1_048_573)
}

fn filled(objects: usize) -> Snapshot {
    let mut state = KindState::new(Coverage::Watched);
    for number in 0..objects {
        state.insert(query(number));
    }
    let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
    snapshot.set(kind(), state);
    snapshot
}

/// Each time with a reader that still has the snapshot before.
fn events(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("an event among 50,000");
    let mut latest = filled(OBJECTS);
    let mut published = Arc::new(latest.clone());
    let mut number = 0;
    let mut next = || {
        number = (number + 31_337) % OBJECTS;
        number
    };
    group.bench_function("a change", |bencher| {
        bencher.iter(|| {
            latest.kind_mut(kind()).insert(query(next()));
            published = Arc::new(latest.clone());
        });
    });
    group.bench_function("removed and there again", |bencher| {
        bencher.iter(|| {
            let number = next();
            latest.kind_mut(kind()).remove("team", &name(number));
            published = Arc::new(latest.clone());
            latest.kind_mut(kind()).insert(query(number));
            published = Arc::new(latest.clone());
        });
    });
    group.finish();
}

fn reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reading 50,000");
    let snapshot = filled(OBJECTS);
    let names: Vec<String> = (0..OBJECTS).map(|number| name(number * 31_337 % OBJECTS)).collect();
    let mut next = names.iter().cycle();
    let work = Budget::default();
    let mut state = StateReader::new(&snapshot, &work);
    group.bench_function("one by name", |bencher| {
        bencher.iter(|| state.peek(kind(), "team", next.next().expect("a name")).is_some());
    });
    group.bench_function("all of them", |bencher| {
        bencher.iter(|| state.everywhere(kind()).filter(|query| black_box(query).deleting()).count());
    });
    group.bench_function("those of a namespace", |bencher| {
        bencher.iter(|| state.list(kind(), "team").filter(|query| black_box(query).deleting()).count());
    });
    group.finish();
}

fn filling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("filling");
    group.sample_size(10);
    group.bench_function("with 100,000, read already", |bencher| {
        let objects = || (0..2 * OBJECTS).map(query).collect::<Vec<_>>();
        bencher.iter_batched(
            objects,
            |objects| {
                let mut state = KindState::new(Coverage::Watched);
                for object in objects {
                    state.insert(object);
                }
                state
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("with 100,000, from JSON", |bencher| {
        bencher.iter_batched(|| (), |()| filled(2 * OBJECTS), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, events, reading, filling);
criterion_main!(benches);
