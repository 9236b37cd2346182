//! Reviews that take the most time for their size, beside ordinary ones.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use memgate_server::runtime_builder;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use crate::https::{Answer, Caller, plain, post};
use crate::{CALL_TIMEOUT, Served, Tally, send, show};

/// How many ordinary reviews a second.
const RATE: f64 = 200.0;

/// How many callers send the worst reviews.
#[derive(Clone, Copy)]
pub(crate) struct Callers {
    /// How many send 60 KB.
    pub(crate) small: u64,
    /// How many send 3 MB.
    pub(crate) large: u64,
}

/// The times of the answers to the worst reviews by status, in milliseconds.
#[derive(Default)]
struct Answers {
    good: Vec<f64>,
    refused: Vec<f64>,
    late: Vec<f64>,
    other: u64,
}

impl Answers {
    fn note(&mut self, status: Option<u16>, millis: f64) {
        match status {
            Some(200) => self.good.push(millis),
            Some(429) => self.refused.push(millis),
            Some(504) => self.late.push(millis),
            _ => self.other += 1,
        }
    }
}

pub(crate) async fn run(time: Duration, callers: Callers) {
    let served = Served::start_on(&mut runtime_builder(), |_| {});
    send(&served, RATE, Duration::from_secs(2)).await;
    report("alone", send(&served, RATE, time).await);
    let probes = spawn_local(probe(served.health, time + Duration::from_secs(2)));
    let (stop, small, large) = flood(served.caller.clone(), callers);
    sleep(Duration::from_secs(1)).await;
    let among = send(&served, RATE, time).await;
    stop.notify_waiters();
    report("beside the worst", among);
    for (name, answers) in [("60 KB", small), ("3 MB", large)] {
        let Answers { good, refused, late, other } = answers.recv().expect("answers");
        println!("{name}: {other} without one of these answers");
        show("  200", good);
        show("  429", refused);
        show("  504", late);
    }
    let (good, of, slowest) = probes.await.expect("probes");
    println!("/livez: 200 {good} times of {of}, the slowest {:.1} ms", slowest.as_secs_f64() * 1_000.0);
}

fn report(name: &str, tally: Tally) {
    let Tally { served, refused, late, failed, unsent } = tally;
    println!("{name}: {RATE:.0} a second, late {late}, failed {failed}, unsent {unsent}");
    show("  200", served);
    show("  429", refused);
}

/// Callers on a thread of their own, until the notification; then the answers of the small and the large ones.
fn flood(
    caller: Caller,
    callers: Callers,
) -> (Arc<Notify>, mpsc::Receiver<Answers>, mpsc::Receiver<Answers>) {
    let stop = Arc::new(Notify::new());
    let ((tell_small, small), (tell_large, large)) = (mpsc::channel(), mpsc::channel());
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let answers: [Rc<RefCell<Answers>>; 2] = Default::default();
        let [of_small, of_large] = &answers;
        LocalSet::new().block_on(&runtime, async {
            for (count, bytes, answers) in
                [(callers.small, 60_000, of_small), (callers.large, 3_000_000, of_large)]
            {
                let requests: Rc<[_]> = worst(bytes).into();
                for _ in 0..count {
                    spawn_local(ask(caller.clone(), Rc::clone(&requests), Rc::clone(answers)));
                }
            }
            stopped.notified().await;
        });
        for (tell, answers) in [tell_small, tell_large].into_iter().zip(answers) {
            tell.send(answers.take()).expect("a receiver");
        }
    });
    (stop, small, large)
}

/// Sends one review after the other.
async fn ask(caller: Caller, requests: Rc<[Arc<[u8]>]>, answers: Rc<RefCell<Answers>>) {
    let mut connection = None;
    for request in requests.iter().cycle() {
        if connection.is_none() {
            connection = caller.connect().await.ok();
        }
        let Some(connected) = &mut connection else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let began = Instant::now();
        let status = status(connected.exchange(request)).await;
        let millis = began.elapsed().as_secs_f64() * 1_000.0;
        answers.borrow_mut().note(status, millis);
        // The connection of a large body that was refused is closed.
        if status != Some(200) {
            connection = None;
        }
        if status == Some(429) {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The status of an answer that comes in time.
async fn status(answer: impl Future<Output = anyhow::Result<Answer>>) -> Option<u16> {
    Some(timeout(CALL_TIMEOUT, answer).await.ok()?.ok()?.status_for_client())
}

/// Asks `/livez` twenty times a second. Returns how many answers were 200, of how many, and the slowest.
async fn probe(health: std::net::SocketAddr, time: Duration) -> (u64, u64, Duration) {
    let (start, mut good, mut all, mut slowest) = (Instant::now(), 0, 0, Duration::ZERO);
    while start.elapsed() < time {
        let began = Instant::now();
        good += u64::from(status(plain(health, "/livez")).await == Some(200));
        all += 1;
        slowest = slowest.max(began.elapsed());
        sleep(Duration::from_millis(50)).await;
    }
    (good, all, slowest)
}

/// The reviews that took the most time of all small inputs in a search (`just cost search`), of so many bytes.
fn worst(bytes: usize) -> [Arc<[u8]>; 4] {
    let list = |element: &str| vec![element; bytes / (element.len() + 1)].join(",");
    let labels: Vec<_> = (0..bytes / 14).map(|number| format!(r#""l{number:07}":1"#)).collect();
    [
        ("orloj.dev/v1", "Agent", format!(r#"{{"model_ref":"m","memory":{{"ref":"r","allow":[{}]}}}}"#, list("1"))),
        (
            "sympozium.ai/v1alpha1",
            "Ensemble",
            format!(
                r#"{{"sharedMemory":{{"enabled":true,"membrane":{{"permeability":[{{"agentConfig":"a","acceptTags":[{}]}}]}}}}}}"#,
                list("{}")
            ),
        ),
        ("ark.mckinsey.com/v1alpha1", "Memory", format!(r#"{{"headers":[{}]}}"#, list(r#"{"name":""}"#))),
        ("ark.mckinsey.com/v1alpha1", "Query", format!(r#"{{"overrides":{{{}}}}}"#, labels.join(","))),
    ]
    .map(|(version, kind, spec)| {
        let (group, number) = version.split_once('/').expect("a group");
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"CREATE","namespace":"team-a","name":"worst","kind":{{"group":"{group}","version":"{number}","kind":"{kind}"}},"object":{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"worst"}},"spec":{spec}}}}}}}"#
        );
        post("/validate", &review).into()
    })
}
