//! Following a kind against a stub.

use std::sync::atomic::{AtomicU16, Ordering};

use futures::FutureExt;
use tokio::sync::watch;

use super::*;
use crate::test_support::{Reply, RequestedPaths, client, not_found};
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;

fn list(name: &str) -> Reply {
    let items = format!(r#"[{{"metadata":{{"name":"{name}","namespace":"team","resourceVersion":"2"}}}}]"#);
    (200, format!(r#"{{"kind":"L","apiVersion":"v1","metadata":{{"resourceVersion":"3"}},"items":{items}}}"#))
}

/// Follows the first kind of all, whose lists are answered with `status` and whose watches never
/// say anything.
fn follow_first(status: &Arc<AtomicU16>) -> (Arc<Store>, &'static Kind, RequestedPaths) {
    let store = Arc::new(Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true));
    let kind = store.kinds()[0];
    let status = Arc::clone(status);
    let (client, asked) = client(move |path| {
        let reply = match status.load(Ordering::SeqCst) {
            404 => not_found(),
            200 if path.contains("watch=true") => (0, String::new()),
            200 => list("a"),
            other => (other, "{}".to_owned()),
        };
        async move { reply }.boxed()
    });
    let following = Arc::clone(&store);
    let (groups, known) = watch::channel(ApiGroups::Any);
    tokio::spawn(async move {
        follow(following, client, kind, known, timers()).await;
        drop(groups);
    });
    (store, kind, asked)
}

fn timers() -> Arc<Timers> {
    let (discovery_interval, watch_idle) = (Duration::from_millis(20), Duration::from_millis(100));
    Arc::new(Timers { discovery_interval, watch_idle, ..Timers::default() })
}

async fn until(check: impl Fn() -> bool) {
    let patient = async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), patient).await.expect("it should come to that");
}

fn lookup_is(store: &Store, kind: &'static Kind, expected: fn(&Lookup<'_>) -> bool) -> bool {
    expected(&StateReader::new(&store.snapshot(), &Budget::default()).get(kind, "team", "a"))
}

#[tokio::test]
async fn a_kind_that_is_not_served_has_no_objects_until_it_is() {
    let status = Arc::new(AtomicU16::new(404));
    let (store, kind, _) = follow_first(&status);
    until(|| store.is_synced(kind)).await;
    assert!(store.snapshot().kind(kind).is_some_and(KindState::is_empty));
    assert!(
        lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Unknown(()))),
        "it may be installed now"
    );
    status.store(200, Ordering::SeqCst);
    until(|| lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Found(_)))).await;
    let state = store.snapshot();
    assert_eq!(
        StateReader::new(&state, &Budget::default()).get(kind, "team", "b"),
        Lookup::Unknown(()),
        "it may be newer"
    );
}

#[tokio::test]
async fn an_apiserver_that_fails_is_asked_again_after_a_while() {
    let status = Arc::new(AtomicU16::new(503));
    let (store, kind, asked) = follow_first(&status);
    until(|| !asked.all().is_empty()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!store.is_synced(kind));
    assert_eq!(asked.all().len(), 1);
    status.store(200, Ordering::SeqCst);
    until(|| store.is_synced(kind)).await;
}

#[tokio::test]
async fn a_group_that_is_not_served_costs_no_list() {
    let served = Arc::new(AtomicU16::new(0));
    let store = Arc::new(Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true));
    let kind = store.kinds()[0];
    let group = Arc::clone(&served);
    let (client, asked) = client(move |path| {
        let names = if group.load(Ordering::SeqCst) == 0 { "" } else { kind.group };
        let groups = format!(r#"{{"groups":[{{"name":"{names}","versions":[]}}]}}"#);
        let reply = match path.as_str() {
            "/apis" => (200, groups),
            path if path.contains("watch=true") => (0, String::new()),
            _ => list("a"),
        };
        async move { reply }.boxed()
    });
    let pause = Duration::from_millis(20);
    let (groups, known) = watch::channel(ApiGroups::Unknown);
    tokio::spawn(poll_groups(client.clone(), groups, pause));
    tokio::spawn(follow(Arc::clone(&store), client, kind, known, timers()));
    until(|| store.is_synced(kind) && asked.all().len() > 3).await;
    assert!(asked.all().iter().all(|path| path == "/apis"), "{:?}", asked.all());
    served.store(1, Ordering::SeqCst);
    until(|| lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Found(_)))).await;
    served.store(0, Ordering::SeqCst);
}

const TOO_OLD: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}"#;

const BOOKMARK: &str =
    r#"{"type":"BOOKMARK","object":{"kind":"K","apiVersion":"v1","metadata":{"resourceVersion":"9"}}}"#;

fn count(asked: &RequestedPaths, wanted: impl Fn(&str) -> bool) -> usize {
    asked.all().iter().filter(|path| wanted(path)).count()
}

fn is_watch(path: &str) -> bool {
    path.contains("watch=true")
}

#[tokio::test]
async fn a_watch_that_falls_silent_is_taken_up_again_where_it_was() {
    let (_store, _, asked) = follow_first(&Arc::new(AtomicU16::new(200)));
    until(|| count(&asked, is_watch) > 2).await;
    assert_eq!(count(&asked, |path| !is_watch(path)), 1, "{:?}", asked.all());
    assert!(asked.all().iter().filter(|path| is_watch(path)).all(|path| path.contains("resourceVersion=3")));
}

/// Follows the first kind of all, whose list is there, with these answers to its watches, the last
/// of them for ever.
fn follow_watched(watches: &'static [(u16, &str)]) -> (Arc<Store>, &'static Kind, RequestedPaths) {
    let store = Arc::new(Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true));
    let kind = store.kinds()[0];
    let number = Arc::new(AtomicU16::new(0));
    let (client, asked) = client(move |path| {
        let reply = if is_watch(&path) {
            let number = usize::from(number.fetch_add(1, Ordering::SeqCst));
            let (status, text) = watches[number.min(watches.len() - 1)];
            (status, text.to_owned())
        } else {
            list("a")
        };
        async move { reply }.boxed()
    });
    let (groups, known) = watch::channel(ApiGroups::Any);
    let following = Arc::clone(&store);
    tokio::spawn(async move {
        follow(following, client, kind, known, timers()).await;
        drop(groups);
    });
    (store, kind, asked)
}

#[tokio::test]
async fn a_version_that_is_too_old_is_listed_anew() {
    let (store, kind, asked) = follow_watched(&[(200, TOO_OLD), (0, "")]);
    until(|| count(&asked, |path| !is_watch(path)) > 1).await;
    until(|| count(&asked, is_watch) > 1).await;
    assert!(lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Found(_))));
}

#[tokio::test]
async fn a_watch_that_cannot_start_where_the_list_was_is_listed_anew() {
    const EXPIRED: &str = r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410}"#;
    let (_store, _, asked) = follow_watched(&[(410, EXPIRED), (0, "")]);
    until(|| count(&asked, |path| !is_watch(path)) > 1 && count(&asked, is_watch) > 1).await;
}

#[tokio::test]
async fn a_list_that_is_always_too_old_is_not_asked_for_without_a_pause() {
    let started = std::time::Instant::now();
    let (_store, _, asked) = follow_watched(&[(200, TOO_OLD)]);
    until(|| count(&asked, |path| !is_watch(path)) > 2).await;
    assert!(started.elapsed() > RELIST_DELAY, "two pauses");
}

#[tokio::test]
async fn bookmarks_are_activity_and_failures_are_not() {
    let status = Arc::new(AtomicU16::new(500));
    let (store, kind, asked) = follow_first(&status);
    until(|| count(&asked, |_| true) > 1).await;
    let started = store.watches()[kind].last_activity;
    until(|| count(&asked, |_| true) > 2).await;
    assert_eq!(store.watches()[kind].last_activity, started);

    let (store, kind, asked) = follow_watched(&[(200, BOOKMARK)]);
    until(|| count(&asked, is_watch) > 1).await;
    let last_activity = store.watches()[kind].last_activity;
    until(|| store.watches()[kind].last_activity > last_activity).await;
    assert_eq!(count(&asked, |path| !is_watch(path)), 1);
}

/// Objects of any size stand in a page, so it is asked for fewer of them until they are few bytes.
#[tokio::test]
async fn a_page_with_too_many_bytes_is_asked_for_in_smaller_ones() {
    let store = Arc::new(Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true));
    let kind = store.kinds()[0];
    let (client, asked) = client(move |path| {
        let limit =
            path.split(['?', '&']).find_map(|part| part.strip_prefix("limit=")?.parse::<usize>().ok());
        let (status, text) = if is_watch(&path) { (0, String::new()) } else { list("a") };
        // As many bytes for each object as the largest ones have.
        let reply = (status, text + &" ".repeat(limit.unwrap_or_default() * (1 << 20)));
        async move { reply }.boxed()
    });
    let (groups, known) = watch::channel(ApiGroups::Any);
    tokio::spawn(follow(Arc::clone(&store), client, kind, known, timers()));
    until(|| store.is_synced(kind)).await;
    let limits = [500, 100, 20, 4].map(|limit| format!("limit={limit}"));
    for limit in &limits {
        assert_eq!(count(&asked, |path| path.split(['?', '&']).any(|part| part == limit)), 1, "{limit}");
    }
    assert!(lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Found(_))));
    drop(groups);
}
