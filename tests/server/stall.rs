//! A runtime that stalls, or falls behind.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use memgate_core::decide::decide;
use memgate_model::decision::Decision;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Decide;
use memgate_server::runtime_builder;
use tokio::runtime::{Builder, Runtime};

use crate::client::{post, review};
use crate::running::{Running, until};

/// Whether decisions may go on.
static OPEN: Mutex<bool> = Mutex::new(false);
static OPENED: Condvar = Condvar::new();

/// Blocks its thread, as a task does that computes for too long.
fn blocks(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    let _open = OPENED.wait_while(OPEN.lock().unwrap(), |open| !*open).unwrap();
    decide(request, snapshot)
}

/// A server on the runtime that serves, of its own and with one thread, as in a pod of its own.
fn start(decide: Decide) -> (Runtime, Running) {
    let runtime = runtime_builder().worker_threads(1).build().unwrap();
    let server = {
        let _inside = runtime.enter();
        Running::start(|options| {
            options.decide = decide;
            options.timers.stall = Duration::from_millis(500);
        })
    };
    (runtime, server)
}

/// R15 of stress/FAULTS.md.
#[test]
fn probes_show_a_stalled_runtime() {
    let (stuck_runtime, stuck) = start(blocks);
    let (other_runtime, other) = start(decide);
    let test = Builder::new_current_thread().enable_all().build().unwrap();
    test.block_on(async {
        assert_eq!(stuck.health("/livez").await.status, 200);
        let mut caller = stuck.connect().await;
        caller.send(&post("/mutate", review("u-1", Some("scout")))).await;
        let dead = || async { stuck.health("/livez").await.status == 500 };
        until("the probe should fail when no task runs", dead).await;
        assert!(stuck.health("/livez").await.text().starts_with("no task has run for"));
        let ready = stuck.health("/readyz").await;
        assert_eq!(ready.status, 503);
        assert!(ready.text().contains("no task has run for"), "{}", ready.text());
        assert_eq!(stuck.health("/metrics").await.status, 200);

        assert_eq!(other.ask(&post("/mutate", review("u-2", None))).await.review()["uid"], "u-2");
        for probe in ["/livez", "/readyz"] {
            assert_eq!(other.health(probe).await.status, 200, "{probe}");
        }

        *OPEN.lock().unwrap() = true;
        OPENED.notify_all();
        assert_eq!(caller.answer().await.review()["uid"], "u-1");
        let alive = || async { stuck.health("/livez").await.status == 200 };
        until("it should be alive again", alive).await;
    });
    stuck_runtime.shutdown_background();
    other_runtime.shutdown_background();
}

/// Whether the rush may begin.
static RUSH: Mutex<bool> = Mutex::new(false);
static RUSHED: Condvar = Condvar::new();

/// Takes a hundred times as long as usual, and begins when all callers have asked.
fn is_slow(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    drop(RUSHED.wait_while(RUSH.lock().unwrap(), |begun| !*begun).unwrap());
    std::thread::sleep(Duration::from_millis(6));
    decide(request, snapshot)
}

#[test]
fn of_a_rush_some_are_answered_and_the_others_refused() {
    let (runtime, server) = start(is_slow);
    let test = Builder::new_current_thread().enable_all().build().unwrap();
    test.block_on(async {
        let mut callers = Vec::new();
        for _ in 0..400 {
            callers.push(server.connect().await);
        }
        for caller in &mut callers {
            caller.send(&post("/mutate?timeout=2s", review("u-1", None))).await;
        }
        // More than two seconds of work.
        *RUSH.lock().unwrap() = true;
        RUSHED.notify_all();
        let (mut taken, mut refused) = (0, 0_u64);
        for caller in &mut callers {
            let answer = caller.answer().await;
            match (answer.status, answer.header("retry-after")) {
                (200, _) => taken += 1,
                (429, Some("1")) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
        let shed = server.metric("memgate_admission_shed_total{cause=\"queue\"}").await;
        assert_eq!(shed, Some(refused.to_string()));
        let calm = || async { server.ask(&post("/mutate", review("u-2", None))).await.status == 200 };
        until("it should serve again when the rush is over", calm).await;
    });
    runtime.shutdown_background();
}
