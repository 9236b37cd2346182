//! Many large bodies at once.

use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Mutex;

use crate::client::{Answer, head, post};
use crate::running::Victim;

const CALLERS: usize = 64;
const BODY_BYTES: usize = 8 << 20;

/// How much of each is sent first: more than its head.
const BEGIN_BYTES: usize = 128 << 10;

/// Three quarters of the memory limit that the installation gives.
const BOUND_MIB: u64 = 192;

/// Both tests keep a machine busy; one after the other they take no longer than together.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The largest review that is read.
const MAX_BODY_BYTES: usize = 20 << 20;

/// A review of exactly so many bytes.
fn large(uid: usize, bytes: usize) -> Vec<u8> {
    let start = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u-{uid}","kind":{{"version":"v1","kind":"Pod"}},"operation":"CREATE","namespace":"team","object":{{"metadata":{{"labels":{{"arkonis.dev/deployment":"scout"}}}},"spec":{{"containers":[{{"name":"agent"}}]}},"status":{{"message":""#
    );
    let end = r#""}}}}"#;
    let filling = "x".repeat(bytes - start.len() - end.len());
    format!("{start}{filling}{end}").into_bytes()
}

fn is_good(answer: &Answer, uid: usize) -> bool {
    let review = answer.review();
    review["uid"] == format!("u-{uid}") && review["patch"].is_string()
}

/// An answer after which an apiserver, or its client, tries again.
fn may_come_again(answer: &Answer) -> bool {
    let is_told = matches!(answer.status, 429 | 503) && answer.header("retry-after") == Some("1");
    is_told || is_refused(answer)
}

/// Whether it refuses a review for which there is no room.
fn is_refused(answer: &Answer) -> bool {
    answer.status == 200 && {
        let mut review = answer.review();
        let status = review["status"].take();
        review["allowed"] == false && status["code"] == 429 && status["details"]["retryAfterSeconds"] == 1
    }
}

/// S3 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_beyond_the_capacity_are_refused_at_once_and_the_rest_is_served() {
    let _alone = ALONE.lock().await;
    let mut victim = Victim::with_settings("timeoutBody: 1m").await;
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        callers.push(victim.connect().await);
    }
    // Seven eighths of 40 MiB have room for four. All others are refused before they send their bodies to the end; on a busy
    // machine some of them with 429, because they waited.
    for (uid, caller) in callers.iter_mut().enumerate() {
        caller.send(&head("/mutate?timeout=30s", BODY_BYTES)).await;
        caller.send(&large(uid, 2 * BEGIN_BYTES)[..BEGIN_BYTES]).await;
    }
    victim
        .until("60 should be refused", async |victim| {
            let for_bytes = victim.metric("memgate_admission_shed_total{cause=\"bytes\"}").await;
            let for_waiting = victim.metric("memgate_admission_shed_total{cause=\"queue\"}").await;
            for_bytes > 0 && for_bytes + for_waiting == 60
        })
        .await;
    let answers = callers.into_iter().enumerate().map(async |(uid, mut caller)| {
        let answer = caller.send_for_answer(&large(uid, BODY_BYTES)[BEGIN_BYTES..]).await;
        let comes_again = may_come_again(&answer);
        assert!(comes_again || is_good(&answer, uid));
        comes_again
    });
    let answers = join_all(answers).await;
    assert_eq!(answers.iter().filter(|comes_again| **comes_again).count(), 60);
    assert!(victim.peak_mib() <= BOUND_MIB, "{} MiB", victim.peak_mib());
    victim.is_well().await;
}

/// Asks whether there is room, and again after a 429, as an apiserver does.
async fn insist(victim: &Victim, uid: usize, bytes: usize) {
    let ask = String::from_utf8(head("/mutate?timeout=30s", bytes)).unwrap();
    let ask = ask.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    for _ in 0..600 {
        let mut caller = victim.connect().await;
        caller.send(ask.as_bytes()).await;
        let answer = caller.answer().await;
        if answer.status == 100 {
            let answer = caller.send_for_answer(&large(uid, bytes)).await;
            if is_good(&answer, uid) {
                return;
            }
            assert!(may_come_again(&answer), "{answer:?}");
        } else {
            assert!(may_come_again(&answer), "{answer:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never served");
}

/// S3 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_callers_are_served_when_they_retry() {
    all_are_served(CALLERS, BODY_BYTES).await;
}

/// S3 of stress/ATTACKS.md. One at a time has room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_the_largest_reviews_are_served_when_they_retry() {
    all_are_served(CALLERS / 4, MAX_BODY_BYTES).await;
}

async fn all_are_served(callers: usize, bytes: usize) {
    let _alone = ALONE.lock().await;
    let victim = Victim::with_settings("timeoutBody: 1m").await;
    join_all((0..callers).map(|uid| insist(&victim, uid, bytes))).await;
    assert!(victim.peak_mib() <= BOUND_MIB, "{} MiB", victim.peak_mib());
    assert_eq!(victim.metric("memgate_admission_bytes_in_flight").await, 0);
    victim.is_well().await;
}

/// How many bytes each policy has.
const POLICY_BYTES: usize = 3_700_000;

/// MemoryPolicies of [`POLICY_BYTES`] that take the most memory for their bytes, by what they repeat. The last two
/// are valid.
fn policies() -> Vec<(&'static str, String)> {
    let policy = |metadata: &str, spec: &str, more: &str| {
        format!(
            r#"{{"apiVersion":"policy.memgate.dev/v1alpha1","kind":"MemoryPolicy","metadata":{{"name":"large"{metadata}}},"spec":{{"rules":[{{"id":"a","hint":"b","labels":{{"required":["a"]}}}}]{spec}}}{more}}}"#
        )
    };
    let room = POLICY_BYTES - policy("", "", "").len() - 100;
    let many = |part: &dyn Fn(usize) -> String| {
        let mut text = String::with_capacity(room);
        for number in 0.. {
            let part = part(number);
            if text.len() + part.len() + 1 > room {
                break;
            }
            text.push_str(if text.is_empty() { "" } else { "," });
            text.push_str(&part);
        }
        text
    };
    let zeros = many(&|_| "0".to_owned());
    let empty = many(&|_| "{}".to_owned());
    let fields = many(&|number| format!(r#""f{number:x}":0"#));
    let words = many(&|number| format!(r#""{number:x}""#));
    let rule = |number| format!(r#"{{"id":"r{number}","labels":{{"a":0,"b":0,"c":0,"d":0}}}}"#);
    let lists = format!("{}{}", "[],".repeat(room / 3 - 1), "[]");
    vec![
        ("zeros in an unknown field", policy("", &format!(r#","more":[{zeros}]"#), "")),
        ("objects in an unknown field", policy("", &format!(r#","more":[{empty}]"#), "")),
        ("unknown fields", policy("", &format!(",{fields}"), "")),
        ("unknown fields of the object", policy("", "", &format!(",{fields}"))),
        ("labels", policy(&format!(r#","labels":{{{fields}}}"#), "", "")),
        ("rules", policy("", &format!(r#","rules":[{}]"#, many(&rule)), "")),
        ("namespaces", policy("", &format!(r#","match":{{"namespaces":[{words}]}}"#), "")),
        ("lists in the status", policy("", "", &format!(r#","status":{{"a":[{lists}]}}"#))),
        ("a long text", policy(&format!(r#","annotations":{{"a":"{}"}}"#, "x".repeat(room)), "", "")),
        ("blanks", policy("", "", &" ".repeat(room))),
    ]
}

/// A review of a new policy.
fn review_of(policy: &str, uid: usize) -> String {
    let kind = r#"{"group":"policy.memgate.dev","version":"v1alpha1","kind":"MemoryPolicy"}"#;
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u-{uid}","kind":{kind},"name":"large","operation":"CREATE","object":{policy}}}}}"#
    )
}

/// The answer to a review that is sent again after each 429, for as long as a busy machine takes.
async fn answer_to(victim: &Victim, review: &str) -> Answer {
    let request = post("/validate?timeout=30s", review.as_bytes());
    loop {
        let answer = victim.connect().await.send_for_answer(&request).await;
        if !may_come_again(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// S24 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_policies_at_once() {
    let _alone = ALONE.lock().await;
    let victim = Victim::with_settings("timeoutBody: 1m").await;
    let policies = policies();
    let answers = (0..CALLERS).zip(policies.iter().cycle()).map(async |(uid, (sort, policy))| {
        let answer = answer_to(&victim, &review_of(policy, uid)).await;
        // A debug build on a busy machine may not end in time.
        let allowed = (answer.status != 504).then(|| answer.review()["allowed"] == true);
        let is_valid = matches!(*sort, "a long text" | "blanks");
        assert!(allowed.is_none_or(|allowed| allowed == is_valid), "{sort}: {}", answer.text());
    });
    join_all(answers).await;
    assert!(victim.peak_mib() <= BOUND_MIB, "{} MiB", victim.peak_mib());
    assert_eq!(victim.metric("memgate_admission_bytes_in_flight").await, 0);
    victim.is_well().await;
}
