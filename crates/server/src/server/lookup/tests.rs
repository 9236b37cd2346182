//! Lookups against a stub.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::*;
use crate::server::test_support::{Reply, RequestedPaths, client, not_found};
use memgate_core::family;
use memgate_model::kind::{Kind, SECRET};

fn kind() -> &'static Kind {
    family::ALL[0].kinds.watched[0]
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

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[tokio::test]
async fn reports_what_exists_and_what_does_not() {
    let (lookups, asked) = lookups(4, |path| {
        async move { if path.ends_with("/there") { object(&path) } else { not_found() } }.boxed()
    });
    let answers = lookups.get_all(vec![reference("there"), reference("gone")], soon()).await;
    let found: Vec<_> = answers.iter().map(|(_, object)| object.is_some()).collect();
    assert_eq!(found, [true, false]);
    let base = format!("/apis/{}/{}/namespaces/team/{}", kind().group, kind().version, kind().plural);
    assert_eq!(
        asked.all(),
        [format!("{base}/there?"), format!("{base}/gone?")].map(|p| p.trim_end_matches('?').to_owned())
    );
}

#[tokio::test]
async fn a_failure_does_not_count_as_an_answer() {
    let (lookups, _) = lookups(4, |_| async { (500, "{}".to_owned()) }.boxed());
    assert!(lookups.get_all(vec![reference("a")], soon()).await.is_empty());
    let (lookups, _) = self::lookups(4, |_| async { (200, "hello".to_owned()) }.boxed());
    assert!(lookups.get_all(vec![reference("a")], soon()).await.is_empty());
}

#[tokio::test]
async fn does_not_wait_beyond_its_time() {
    let (lookups, _) = lookups(4, |_| futures::future::pending().boxed());
    let until = Instant::now() + Duration::from_millis(20);
    assert!(lookups.get_all(vec![reference("a")], until).await.is_empty());
}

#[tokio::test]
async fn never_asks_for_a_name_that_cannot_be() {
    let (lookups, asked) = lookups(4, |path| async move { object(&path) }.boxed());
    for name in ["../../../../../api/v1/namespaces/team/secrets/s", "a/b", "a?b", "A", "..", "a%2f"] {
        let answers = lookups.get_all(vec![reference(name)], soon()).await;
        assert!(matches!(answers.as_slice(), [(_, None)]), "{name}");
    }
    let elsewhere = Reference { namespace: "../x".to_owned(), ..reference("a") };
    assert!(matches!(lookups.get_all(vec![elsewhere], soon()).await.as_slice(), [(_, None)]));
    assert!(asked.all().is_empty());
}

#[test]
fn never_asks_for_a_secret() {
    assert!(!Lookups::is_supported(&Reference { kind: &SECRET, ..reference("a") }));
    assert!(Lookups::is_supported(&reference("a")));
    for family in family::ALL {
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
    let ask = || lookups.get_all(vec![reference("a")], until);
    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // The first request is under way: its answer may be older than these questions.
        join_all([ask(), ask(), ask()]).await
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
    let hanging = lookups.get_all(vec![reference("a")], soon());
    let later = async {
        while asked.all().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        lookups.get_all(vec![reference("a")], soon()).await
    };
    tokio::select! {
        _ = hanging => panic!("the first request must still be under way"),
        answers = later => assert!(matches!(answers.as_slice(), [(_, Some(_))])),
    }
}

#[tokio::test]
async fn asks_only_so_many_things_at_a_time() {
    let (lookups, asked) = lookups(2, |_| futures::future::pending().boxed());
    let names: Vec<_> = (0..10).map(|number| reference(&format!("a{number}"))).collect();
    let answers = lookups.get_all(names, Instant::now() + Duration::from_millis(50)).await;
    assert!(answers.is_empty());
    assert_eq!(asked.all().len(), 2);
}

/// Reviews keep what was looked up for them until they are answered, and tenants choose how large it is.
#[tokio::test]
async fn what_was_looked_up_takes_a_bounded_part_of_memory() {
    let (lookups, _) = lookups(16, |path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let padding = if name == "small" { 0 } else { 1 << 20 };
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"team"}},"other":"{}"}}"#,
            "x".repeat(padding)
        );
        async move { (200, text) }.boxed()
    });
    let shortly = || Instant::now() + Duration::from_millis(300);
    let names: Vec<_> = (0..6).map(|number| reference(&format!("large-{number}"))).collect();
    let first = lookups.get_all(names.clone(), shortly()).await;
    assert_eq!(first.len(), 2, "the others wait for memory");
    assert!(lookups.get_all(vec![reference("small")], shortly()).await.is_empty(), "all of it is used");
    drop(first);
    assert_eq!(lookups.get_all(vec![reference("small")], soon()).await.len(), 1);
    let again = lookups.get_all(vec![reference("large-9")], soon()).await;
    assert!(matches!(again.as_slice(), [(_, Some(_))]));
}

#[tokio::test]
async fn an_object_with_more_values_than_a_decision_may_read_is_not_found_out_about() {
    let (lookups, _) = lookups(4, |path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let count = if name == "many" { 200_000 } else { 150_000 };
        let labels: Vec<_> = (0..count).map(|number| format!("\"{number:x}\":\"\"")).collect();
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"team","labels":{{{}}}}}}}"#,
            labels.join(",")
        );
        async move { (200, text) }.boxed()
    });
    assert!(lookups.get_all(vec![reference("many")], soon()).await.is_empty());
    let answers = lookups.get_all(vec![reference("fewer")], soon()).await;
    assert!(matches!(answers.as_slice(), [(_, Some(_))]));
}
