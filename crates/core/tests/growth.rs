//! What a state takes that has grown: 50,000 each of the kinds that pile up in a cluster, and changes of them while
//! readers keep older snapshots. Alone in its process, since it reads the memory of all of it. What it prints is in
//! stress/FAULTS.md:
//!
//! `cargo test -p memgate-core --test growth -- --nocapture`

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops where something is wrong, and says what it saw"
)]

#[path = "../../../tests/support/memory.rs"]
mod memory;

use memgate_model::object::{Coverage, KindState, Object};
use memgate_model::snapshot::Snapshot;
use memory::kib;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many of each kind.
const OBJECTS: usize = 50_000;

/// Changes of ten seconds.
const CHANGES: usize = 5_000;

/// How many snapshots readers keep all the time.
const READERS: usize = 64;

/// The most that an object may take, beside what a debug build and the allocator add to it; twice what was measured.
const MAX_BYTES_PER_OBJECT: usize = 1_600;

/// The most that the changes may add.
const MAX_GROWTH_KIB: usize = 24 * 1024;

/// Each kind with the spec and status of a typical object.
const KINDS: [(&str, &str, &str); 3] = [
    (
        "ark.mckinsey.com",
        "Query",
        r#""spec":{"input":"What happened since yesterday?","memory":{"name":"notes"},"sessionId":"s-1","conversationId":"c-1","target":{"type":"agent","name":"scout"},"timeout":"5m","ttl":"720h"},"status":{"phase":"done","duration":"2s","conditions":[{"type":"Completed","status":"True"}],"response":{"content":"Nothing."}}"#,
    ),
    (
        "core.orka.ai",
        "Task",
        r#""spec":{"type":"ai","prompt":"Sum up the week.","agentRef":{"name":"scout"},"ai":{"tools":["recall_memory","remember"]},"env":[{"name":"LOG_LEVEL","value":"info"}],"timeout":"30m"},"status":{"phase":"Succeeded","jobName":"task-1","attempts":1}"#,
    ),
    (
        "sympozium.ai",
        "AgentRun",
        r#""spec":{"agentRef":"scout","agentId":"default","sessionKey":"k-1","task":"Sum up the week.","model":{"provider":"openai","model":"gpt-4o","authSecretRef":"key"},"skills":[{"skillPackRef":"memory"}],"timeout":"10m"},"status":{"phase":"Succeeded","podName":"run-1","tokenUsage":{"total":900}}"#,
    ),
];

fn object((group, kind, rest): (&str, &str, &str), number: usize) -> Object {
    let name = format!("scout-{:05x}-{number}", number.wrapping_mul(7_919) % 1_048_573);
    let text = format!(
        r#"{{"apiVersion":"{group}/v1alpha1","kind":"{kind}","metadata":{{"name":"{name}","namespace":"team","uid":"0c2a5b7e-6393-11e8-b7cc-{number:012x}","resourceVersion":"{number}","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app.kubernetes.io/name":"chat","sympozium.ai/ensemble":"desk"}},"annotations":{{"example.dev/owner":"team"}},"ownerReferences":[{{"kind":"Agent","name":"scout"}}],"managedFields":[{{"manager":"controller","operation":"Update"}}]}},{rest}}}"#
    );
    let kind =
        memgate_platforms::state_kind(&memgate_platforms::ALL, group, kind).expect("a kind that is watched");
    Object::read_to_keep(kind, ("team", &name), &text).expect("JSON").expect("it has a name")
}

/// Of the whole process, in KiB.
fn resident() -> usize {
    kib(std::process::id(), "VmRSS:").and_then(|kib| kib.try_into().ok()).expect("its memory")
}

#[test]
fn many_objects_take_little_and_changes_nothing() {
    let mut latest = Snapshot::new(memgate_platforms::default_settings());
    for of_kind in KINDS {
        let kind = object(of_kind, 0).kind;
        let before = resident();
        let mut state = KindState::new(Coverage::Watched);
        for number in 0..OBJECTS {
            state.insert(object(of_kind, number));
        }
        let counted = state.kept().map(|object| object.bytes()).sum::<usize>() / OBJECTS;
        assert_eq!(state.len(), OBJECTS, "all are held");
        println!("counted {counted} bytes each");
        // A hundred thousand fit into the 128 MiB that the state may take.
        assert!(counted * 100_000 <= 128 << 20, "{counted}");
        latest.set(kind, state);
        let each = (resident() - before) * 1024 / OBJECTS;
        println!("{OBJECTS} {}: {} KiB, {each} bytes each", kind.plural, resident() - before);
        assert!(each <= MAX_BYTES_PER_OBJECT, "{} bytes for each of the {}", each, kind.plural);
    }

    let before = resident();
    let mut readers = VecDeque::new();
    for change in 0..CHANGES {
        let of_kind = KINDS[change % KINDS.len()];
        let changed = object(of_kind, change * 31_337 % OBJECTS);
        latest.kind_mut(changed.kind).insert(changed);
        readers.push_back(Arc::new(latest.clone()));
        if readers.len() > READERS {
            readers.pop_front();
        }
    }
    let growth = resident().saturating_sub(before);
    println!("{CHANGES} changes beside {READERS} readers: {growth} KiB more");
    assert!(growth <= MAX_GROWTH_KIB, "{growth} KiB more after {CHANGES} changes");
    assert!(latest.kind(object(KINDS[0], 0).kind).is_some_and(|state| state.len() == OBJECTS));
}
