//! Following a kind against a stub.

use std::sync::atomic::{AtomicU16, Ordering};

use futures::FutureExt;
use tokio::sync::watch;

use super::*;
use crate::model::settings::Settings;
use crate::model::snapshot::{Lookup, Questions};
use crate::server::store::groups::follow_groups;
use crate::server::stub::{Asked, Reply, client, not_found};

fn list(name: &str) -> Reply {
    let items = format!(r#"[{{"metadata":{{"name":"{name}","namespace":"team","resourceVersion":"2"}}}}]"#);
    (200, format!(r#"{{"kind":"L","apiVersion":"v1","metadata":{{"resourceVersion":"3"}},"items":{items}}}"#))
}

/// Follows the first kind of all, whose lists are answered with `status` and whose watches never
/// say anything.
fn follow_first(status: &Arc<AtomicU16>) -> (Arc<Store>, &'static Kind, Asked) {
    let store = Arc::new(Store::watching(Settings::default()));
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
    let (groups, known) = watch::channel(Groups::Any);
    tokio::spawn(async move {
        follow(following, client, kind, known, Duration::from_millis(20)).await;
        drop(groups);
    });
    (store, kind, asked)
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
    expected(&Questions::new(&store.snapshot()).get(kind, "team", "a"))
}

#[tokio::test]
async fn a_kind_that_is_not_served_has_no_objects_until_it_is() {
    let status = Arc::new(AtomicU16::new(404));
    let (store, kind, _) = follow_first(&status);
    until(|| !store.is_cold(kind)).await;
    assert!(store.snapshot().kind(kind).is_some_and(KindState::is_empty));
    assert!(lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Unknown)), "it may be installed now");
    status.store(200, Ordering::SeqCst);
    until(|| lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Found(_)))).await;
    let state = store.snapshot();
    assert_eq!(Questions::new(&state).get(kind, "team", "b"), Lookup::Unknown, "it may be newer");
}

#[tokio::test]
async fn an_apiserver_that_fails_is_asked_again_after_a_while() {
    let status = Arc::new(AtomicU16::new(503));
    let (store, kind, asked) = follow_first(&status);
    until(|| !asked.all().is_empty()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(store.is_cold(kind));
    assert_eq!(asked.all().len(), 1);
    assert!(store.measure().iter().any(|(_, _, age)| !age.is_zero()));
    status.store(200, Ordering::SeqCst);
    until(|| !store.is_cold(kind)).await;
}

#[tokio::test]
async fn a_group_that_is_not_served_costs_no_list() {
    let served = Arc::new(AtomicU16::new(0));
    let store = Arc::new(Store::watching(Settings::default()));
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
    let (groups, known) = watch::channel(Groups::Unknown);
    tokio::spawn(follow_groups(client.clone(), groups, pause));
    tokio::spawn(follow(Arc::clone(&store), client, kind, known, pause));
    until(|| !store.is_cold(kind) && asked.all().len() > 3).await;
    assert!(asked.all().iter().all(|path| path == "/apis"), "{:?}", asked.all());
    served.store(1, Ordering::SeqCst);
    until(|| lookup_is(&store, kind, |lookup| matches!(lookup, Lookup::Found(_)))).await;
    served.store(0, Ordering::SeqCst);
}
