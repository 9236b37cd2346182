//! Lookups against a stub.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::test_support::{Reply, RequestedPaths, client, not_found};
use memgate_model::kind::{Kind, SECRET};

fn kind() -> &'static Kind {
    memgate_platforms::ALL[0].kinds.watched[0]
}

fn reference(name: &str) -> Reference {
    Reference { kind: kind(), namespace: "team".to_owned(), name: name.to_owned() }
}

fn lookups<F>(max_requests: usize, reply: F) -> (Lookups, RequestedPaths)
where
    F: Fn(String) -> BoxFuture<'static, Reply> + Clone + Send + Sync + 'static,
{
    let (client, asked) = client(reply);
    (Lookups::new(client, max_requests, Arc::new(Metrics::new([]))), asked)
}

fn object(path: &str) -> Reply {
    let name = path.rsplit('/').next().unwrap_or_default();
    (200, format!(r#"{{"metadata":{{"name":"{name}","namespace":"team"}}}}"#))
}

/// Why each lookup failed; nothing for one that did not.
fn reasons(answers: &Answers) -> Vec<Option<&str>> {
    answers.iter().map(|(_, answer)| answer.as_ref().err().map(AsRef::as_ref)).collect()
}

/// The body of an error of an apiserver.
fn status(code: u16) -> Reply {
    (code, json!({"kind": "Status", "status": "Failure", "message": "no", "code": code}).to_string())
}

/// Looks up for a review of its own.
async fn get_all(lookups: &Lookups, references: Vec<Reference>, until: Instant) -> Answers {
    lookups.of_review(until).await.expect("a turn").get_all(references, until).await
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[tokio::test]
async fn reports_what_exists_and_what_does_not() {
    let (lookups, asked) = lookups(4, |path| {
        async move { if path.ends_with("/there") { object(&path) } else { not_found() } }.boxed()
    });
    let answers = get_all(&lookups, vec![reference("there"), reference("gone")], soon()).await;
    assert!(matches!(answers.as_slice(), [(_, Ok(Some(_))), (_, Ok(None))]), "{answers:?}");
    let base = format!("/apis/{}/{}/namespaces/team/{}", kind().group, kind().version, kind().plural);
    assert_eq!(
        asked.all(),
        [format!("{base}/there?"), format!("{base}/gone?")].map(|p| p.trim_end_matches('?').to_owned())
    );
}

#[tokio::test]
async fn a_failure_does_not_count_as_an_answer() {
    for (reply, why) in [
        (status(401), "401 Unauthorized"),
        (status(403), "403 Forbidden"),
        (status(500), "500 Internal Server Error"),
        ((429, "slow down".to_owned()), "429 Too Many Requests"),
        ((200, "hello".to_owned()), "it cannot be read"),
    ] {
        let (lookups, _) = lookups(4, move |_| {
            let reply = reply.clone();
            async move { reply }.boxed()
        });
        let answers = get_all(&lookups, vec![reference("a")], soon()).await;
        assert_eq!(reasons(&answers), [Some(why)]);
    }
}

#[tokio::test]
async fn does_not_wait_beyond_its_time() {
    let (lookups, _) = lookups(4, |_| futures::future::pending().boxed());
    let until = Instant::now() + Duration::from_millis(20);
    let answers = get_all(&lookups, vec![reference("a")], until).await;
    assert_eq!(reasons(&answers), [Some("the apiserver did not answer in time")]);
}

#[tokio::test]
async fn never_asks_for_a_name_that_cannot_be() {
    let (lookups, asked) = lookups(4, |path| async move { object(&path) }.boxed());
    for name in ["../../../../../api/v1/namespaces/team/secrets/s", "a/b", "a?b", "A", "..", "a%2f"] {
        let answers = get_all(&lookups, vec![reference(name)], soon()).await;
        assert!(matches!(answers.as_slice(), [(_, Ok(None))]), "{name}");
    }
    let elsewhere = Reference { namespace: "../x".to_owned(), ..reference("a") };
    assert!(matches!(get_all(&lookups, vec![elsewhere], soon()).await.as_slice(), [(_, Ok(None))]));
    assert!(asked.all().is_empty());
}

#[test]
fn never_asks_for_a_secret() {
    assert!(!Lookups::is_supported(&Reference { kind: &SECRET, ..reference("a") }));
    assert!(Lookups::is_supported(&reference("a")));
    for family in memgate_platforms::ALL {
        assert!(family.kinds.watched.iter().all(|kind| kind.plural != "secrets"));
    }
}

#[tokio::test]
async fn equal_questions_share_a_request_that_is_still_to_be_sent() {
    let (lookups, asked) = lookups(8, |path| {
        async move {
            tokio::time::sleep(Duration::from_millis(400)).await;
            object(&path)
        }
        .boxed()
    });
    let until = soon();
    let ask = || get_all(&lookups, vec![reference("a")], until);
    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // The first request is under way: its answer may be older than these questions.
        futures::future::join_all([ask(), ask(), ask()]).await
    };
    let (first, later) = tokio::join!(ask(), later);
    assert_eq!(first.len() + later.iter().map(Vec::len).sum::<usize>(), 4);
    assert_eq!(asked.all().len(), 2);
}

#[tokio::test]
async fn a_request_that_hangs_delays_others_briefly() {
    let number = Arc::new(AtomicUsize::new(0));
    let (lookups, asked) = lookups(8, move |path| {
        let first = number.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { futures::future::pending().await } else { object(&path) } }.boxed()
    });
    let hanging = get_all(&lookups, vec![reference("a")], soon());
    let later = async {
        while asked.all().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        get_all(&lookups, vec![reference("a")], soon()).await
    };
    tokio::select! {
        _ = hanging => panic!("the first request must still be under way"),
        answers = later => assert!(matches!(answers.as_slice(), [(_, Ok(Some(_)))])),
    }
}

#[tokio::test]
async fn asks_only_so_many_things_at_a_time() {
    let (lookups, asked) = lookups(2, |_| futures::future::pending().boxed());
    let names: Vec<_> = (0..10).map(|number| reference(&format!("a{number}"))).collect();
    let answers = get_all(&lookups, names, Instant::now() + Duration::from_millis(50)).await;
    assert!(answers.iter().all(|(_, answer)| answer.is_err()));
    assert_eq!(asked.all().len(), 2);
}

fn config_map(name: &str) -> Reference {
    let mut kinds = memgate_platforms::ALL.iter().flat_map(|family| family.kinds.fetched);
    let kind = kinds.find(|kind| kind.kind == "ConfigMap").expect("ark's");
    Reference { kind, ..reference(name) }
}

/// A ConfigMap with so many bytes of data as the end of its name says.
fn lookups_of_config_maps() -> Lookups {
    let (lookups, _) = lookups(16, |path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let length = name.rsplit('-').next().and_then(|length| length.parse().ok()).unwrap_or_default();
        let data = "x".repeat(length);
        let text =
            format!(r#"{{"metadata":{{"name":"{name}","namespace":"team"}},"data":{{"key":"{data}"}}}}"#);
        async move { (200, text) }.boxed()
    });
    lookups
}

/// Reviews keep what was looked up for them until they are answered, and tenants choose how large it is.
#[tokio::test]
async fn large_objects_of_one_review_take_nothing_from_another() {
    let lookups = lookups_of_config_maps();
    for (large, most) in [(3, 1_500_000), (16, 700_000), (16, 100_000), (16, 1_000_000), (1, 3_000_000)] {
        let names = (0..large).map(|number| config_map(&format!("large-{number}-{most}"))).collect();
        let mut evil = lookups.of_review(soon()).await.expect("a turn");
        let begun = Instant::now();
        let answers = evil.get_all(names, begun + Duration::from_hours(1)).await;
        let kept = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()?.as_ref());
        let kept: Vec<_> = kept.map(|object| object.bytes()).collect();
        assert_eq!(kept.len(), large.min(MOST_BYTES / most), "{most}: the others are left out");
        let others = reasons(&answers)
            .into_iter()
            .flatten()
            .filter(|why| *why == "what was looked up is too large")
            .count();
        assert_eq!(kept.len() + others, large, "{most}");
        let bytes: usize = kept.iter().sum();
        assert!((most * kept.len()..=MOST_BYTES).contains(&bytes), "{bytes}");
        // It still has all of that.
        let small = get_all(&lookups, vec![config_map("small-10")], soon()).await;
        assert!(matches!(small.as_slice(), [(_, Ok(Some(_)))]), "{most}");
        drop(answers);
    }
}

#[tokio::test]
async fn reviews_take_turns() {
    let lookups = lookups_of_config_maps();
    let mut turns = Vec::new();
    for _ in 0..MOST_REVIEWS {
        turns.push(lookups.of_review(soon()).await.expect("a turn"));
    }
    let shortly = Instant::now() + Duration::from_millis(20);
    assert!(lookups.of_review(shortly).await.is_none(), "all of the memory is promised");
    turns.pop();
    let names = vec![config_map("small-10"), config_map("large-1000000")];
    assert_eq!(reasons(&get_all(&lookups, names, soon()).await), [None, None]);
}

#[tokio::test]
async fn an_object_with_more_values_than_a_decision_may_read_is_not_found_out_about() {
    let (lookups, _) = lookups(4, |path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let count = if name == "many" { 200_000 } else { 10_000 };
        let labels: Vec<_> = (0..count).map(|number| format!("\"{number:x}\":\"\"")).collect();
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"team","labels":{{{}}}}}}}"#,
            labels.join(",")
        );
        async move { (200, text) }.boxed()
    });
    let answers = get_all(&lookups, vec![reference("many"), reference("fewer")], soon()).await;
    assert_eq!(reasons(&answers), [Some("it has too many values"), None]);
}

#[tokio::test]
async fn looks_up_so_many_objects_for_one_decision() {
    let (lookups, asked) = lookups(4, |path| async move { object(&path) }.boxed());
    let names = (0..10_000).map(|number| reference(&format!("a{number}"))).collect();
    let answers = get_all(&lookups, names, soon()).await;
    assert_eq!((answers.len(), asked.all().len()), (10_000, Lookups::MOST));
    let failed = reasons(&answers).into_iter().flatten();
    assert_eq!(
        failed.filter(|why| *why == "the object depends on too many others").count(),
        10_000 - Lookups::MOST
    );
}
