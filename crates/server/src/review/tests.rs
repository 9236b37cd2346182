//! Pods that wait for what they refer to, against a stub of an apiserver and a paused clock.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::store::apply_event::StoreChange;
use crate::test_support::{Lines, Reply, client, not_found};
use memgate_certs::clock::Clock;
use memgate_core::decide::decide;
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::object::{Coverage, KindState, Object};
use memgate_platforms::arkonis;

const GRACE: Duration = Duration::from_secs(30);

/// A handler of a cluster without any objects.
fn handler(grace: Duration) -> Arc<ReviewHandler> {
    Arc::new(unshared_handler(grace))
}

fn unshared_handler(grace: Duration) -> ReviewHandler {
    let store = Store::watching(memgate_platforms::default_settings(), grace, true);
    for kind in store.kinds() {
        store.apply(kind, StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))));
    }
    let (client, _) = client(|_| async { not_found() }.boxed());
    let metrics = Arc::new(Metrics::new([]));
    ReviewHandler {
        store: Arc::new(store),
        large_steps: Arc::new(Semaphore::new(1)),
        lookups: Some(Lookups::new(client, 4, Arc::clone(&metrics))),
        metrics,
        decide,
        clock: Clock::default(),
        event_recorder: None,
        decision_log: Arc::default(),
    }
}

fn put(handler: &ReviewHandler, kind: &'static Kind, name: &str, spec: &Value) {
    let object = json!({"metadata": {"name": name, "namespace": "team"}, "spec": spec});
    let object = Object::read(kind, object).expect("an object").expect("has a name");
    handler.store.apply(kind, StoreChange::Insert(object));
}

fn kind(name: &str) -> &'static Kind {
    arkonis::FAMILY.kinds.watched.iter().find(|kind| kind.kind == name).expect("is watched")
}

/// A pod of the agent "scout" that a ReplicaSet made.
fn pod() -> Value {
    json!({
        "metadata": {
            "generateName": "p-", "labels": {"arkonis.dev/deployment": "scout"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u-2", "controller": true,
            }],
        },
        "spec": {"containers": [{"name": "agent"}]},
    })
}

async fn asked(handler: &Arc<ReviewHandler>, phase: Phase, pod: &Value, dry_run: bool) -> Value {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "namespace": "team", "object": pod, "dryRun": dry_run,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
        },
    });
    let now = Instant::now();
    let deadline = Deadline::new(now, Duration::from_secs(10));
    let arrival = Arrival { phase, body: review.to_string().into(), start: now, peer: None };
    let answer = handler.answer(&arrival, deadline).await;
    let answer = answer.expect("an answer");
    let mut body: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(body["response"]["auditAnnotations"]["reason"], answer.labels.reason);
    assert_eq!(body["response"]["allowed"], answer.labels.verdict == "allowed");
    body["response"].take()
}

async fn asked_about(handler: &Arc<ReviewHandler>, pod: &Value) -> Value {
    asked(handler, Phase::Mutate, pod, false).await
}

fn held(handler: &ReviewHandler) -> u64 {
    let text = handler.metrics.text().expect("metrics");
    let series = "memgate_pods_held_total{family=\"arkonis\"} ";
    text.lines().find_map(|line| line.strip_prefix(series)?.parse().ok()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_agent_and_then_for_its_memory() {
    let handler = handler(GRACE);
    let refused = asked_about(&handler, &pod()).await;
    assert_eq!(
        refused,
        json!({
            "uid": "u-1", "allowed": false,
            "status": {
                "code": 403, "status": "Failure", "reason": "Forbidden",
                "message": "waits for ArkAgent \"team/scout\"; it will be admitted without in 30 s \
                            (memgate arkonis/pod-agent-not-found)",
                "details": {"kind": "Pod"},
            },
            "auditAnnotations": {"uid": "u-1", "reason": "reference-pending", "codes": "arkonis/pod-agent-not-found"},
        })
    );
    advance(Duration::from_secs(20)).await;
    put(&handler, kind("ArkAgent"), "scout", &json!({"memoryRef": {"name": "notes"}}));
    let refused = asked_about(&handler, &pod()).await;
    let message = "waits for ArkMemory \"team/notes\"; it will be admitted without in 30 s \
                   (memgate arkonis/pod-memory-not-found)";
    assert_eq!(refused["status"]["message"], message);
    put(&handler, kind("ArkMemory"), "notes", &json!({"backend": "in-context"}));
    let admitted = asked_about(&handler, &pod()).await;
    assert_eq!(admitted["auditAnnotations"]["reason"], "injected");
    assert_eq!(held(&handler), 2);
}

#[tokio::test(start_paused = true)]
async fn after_the_grace_time_pods_are_admitted_without() {
    let handler = handler(GRACE);
    put(&handler, kind("ArkAgent"), "scout", &json!({"memoryRef": {"name": "notes"}}));
    for seconds in [30, 10] {
        let message = asked_about(&handler, &pod()).await["status"]["message"].take();
        assert!(message.as_str().is_some_and(|text| text.contains(&format!("in {seconds} s "))), "{message}");
        advance(Duration::from_secs(20)).await;
    }
    for _ in 0..2 {
        let admitted = asked_about(&handler, &pod()).await;
        assert_eq!(admitted["allowed"], true);
        assert_eq!(admitted["auditAnnotations"]["reason"], "reference-missing");
        assert_eq!(admitted["warnings"].as_array().map(Vec::len), Some(1), "{admitted}");
        advance(Duration::from_hours(24)).await;
    }
    put(&handler, kind("ArkMemory"), "notes", &json!({"backend": "in-context"}));
    let (namespace, name) = ("team".to_owned(), "notes".to_owned());
    handler.store.apply(kind("ArkMemory"), StoreChange::Remove { namespace, name });
    assert_eq!(asked_about(&handler, &pod()).await["status"]["code"], 403, "it was there in between");
}

#[tokio::test(start_paused = true)]
async fn others_do_not_wait_and_let_no_time_begin() {
    let handler = handler(GRACE);
    let mut bare = pod();
    bare["metadata"]["ownerReferences"].take();
    let mut required = pod();
    required["metadata"]["labels"]["memgate.dev/inject"] = json!("required");
    let mut disabled = pod();
    disabled["metadata"]["labels"]["memgate.dev/inject"] = json!("disabled");
    let missing = "reference-missing";
    let rows = [
        ("bare", Phase::Mutate, &bare, false, true, missing),
        ("dry run", Phase::Mutate, &pod(), true, true, missing),
        ("no call for pods", Phase::Validate, &pod(), false, true, missing),
        ("opted out", Phase::Mutate, &disabled, false, true, "opted-out"),
        // It is refused for good, and says what is wrong.
        ("required", Phase::Mutate, &required, false, false, missing),
    ];
    for (what, phase, pod, dry_run, allowed, reason) in rows {
        let answer = asked(&handler, phase, pod, dry_run).await;
        assert_eq!(answer["allowed"], allowed, "{what}");
        assert_eq!(answer["auditAnnotations"]["reason"], reason, "{what}");
        assert!(answer["status"]["code"] != 403, "{what}");
    }
    advance(GRACE).await;
    let refused = asked_about(&handler, &pod()).await;
    let message = refused["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("in 30 s "), "{message}");
    assert_eq!(held(&handler), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_opts_out_lets_nothing_wait() {
    let handler = handler(GRACE);
    let namespace = json!({"metadata": {"name": "team", "labels": {"memgate.dev/inject": "disabled"}}});
    let namespace = Object::read(&NAMESPACE, namespace).expect("an object").expect("has a name");
    handler.store.apply(&NAMESPACE, StoreChange::Insert(namespace));
    assert_eq!(asked_about(&handler, &pod()).await["auditAnnotations"]["reason"], "opted-out");
}

#[tokio::test(start_paused = true)]
async fn the_grace_time_can_be_switched_off() {
    let handler = handler(Duration::ZERO);
    let admitted = asked_about(&handler, &pod()).await;
    assert_eq!(admitted["auditAnnotations"]["reason"], "reference-missing");
    assert_eq!(held(&handler), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_cluster_nothing_waits() {
    let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
    for kind in arkonis::FAMILY.kinds.watched {
        snapshot.set(kind, KindState::new(Coverage::Complete));
    }
    let store = Arc::new(Store::fixed(snapshot));
    let handler = Arc::new(ReviewHandler { store, lookups: None, ..unshared_handler(GRACE) });
    let admitted = asked_about(&handler, &pod()).await;
    assert_eq!(admitted["auditAnnotations"]["reason"], "reference-missing");
}

#[tokio::test(start_paused = true)]
async fn a_failed_lookup_does_not_make_a_pod_wait() {
    let (client, _) = client(|_| async { (500, "{}".to_owned()) }.boxed());
    let handler = unshared_handler(GRACE);
    let lookups = Some(Lookups::new(client, 4, Arc::clone(&handler.metrics)));
    let handler = Arc::new(ReviewHandler { lookups, ..handler });
    let admitted = asked_about(&handler, &pod()).await;
    assert_eq!(admitted["auditAnnotations"]["reason"], "reference-unknown");
}

/// A handler whose lookups are answered like this.
fn handler_with_lookups<F>(reply: F) -> Arc<ReviewHandler>
where
    F: Fn(String) -> BoxFuture<'static, Reply> + Clone + Send + Sync + 'static,
{
    let (client, _) = client(reply);
    let handler = unshared_handler(GRACE);
    let lookups = Some(Lookups::new(client, 128, Arc::clone(&handler.metrics)));
    Arc::new(ReviewHandler { lookups, ..handler })
}

fn required_pod(agent: &str) -> Value {
    let mut pod = pod();
    pod["metadata"]["labels"] = json!({"arkonis.dev/deployment": agent, "memgate.dev/inject": "required"});
    pod
}

/// The answer with which a required pod is refused.
fn refused(agent: &str, why: &str) -> Value {
    let message =
        format!("ArkAgent \"team/{agent}\" could not be looked up: {why} (memgate arkonis/lookup-failed)");
    json!({
        "code": 503, "status": "Failure", "reason": "ServiceUnavailable",
        "message": message,
        "details": {"kind": "Pod", "causes": [{
            "reason": "InternalError", "field": "metadata.labels[arkonis.dev/deployment]",
            "message": message,
        }]},
    })
}

#[tokio::test(start_paused = true)]
async fn a_required_pod_whose_lookup_fails_is_refused_with_the_reason() {
    for (code, why) in [
        (401, "401 Unauthorized"),
        (403, "403 Forbidden"),
        (429, "429 Too Many Requests"),
        (500, "500 Internal Server Error"),
    ] {
        let reply = json!({"kind": "Status", "status": "Failure", "message": "no", "code": code}).to_string();
        let handler = handler_with_lookups(move |_| {
            let reply = reply.clone();
            async move { (code, reply) }.boxed()
        });
        let answer = asked_about(&handler, &required_pod("scout")).await;
        assert_eq!((&answer["allowed"], &answer["status"]), (&json!(false), &refused("scout", why)));
        assert_eq!(answer["auditAnnotations"]["codes"], "arkonis/lookup-failed");
        assert_eq!(answer["auditAnnotations"]["reason"], "reference-unknown");

        let answer = asked_about(&handler, &pod()).await;
        let warnings = answer["warnings"].to_string();
        assert!(answer["allowed"] == true && warnings.contains(why), "{answer}");
    }
}

/// The timeout of these reviews is 10 s.
#[tokio::test(start_paused = true)]
async fn an_apiserver_that_does_not_answer_refuses_required_pods_within_a_second() {
    let handler = handler_with_lookups(|_| futures::future::pending().boxed());
    let why = "the apiserver did not answer in time";
    let start = Instant::now();
    assert_eq!(asked_about(&handler, &required_pod("scout")).await["status"], refused("scout", why));
    assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());

    // A pod that is admitted without its memory stays without, so it waits as long as it can.
    let start = Instant::now();
    let answer = asked_about(&handler, &pod()).await;
    assert!(answer["warnings"].to_string().contains(why), "{answer}");
    assert!((5..9).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_required_pods_at_once_are_refused_within_a_second() {
    let (client, asked) = client(|_| futures::future::pending().boxed());
    let handler = unshared_handler(GRACE);
    let lookups = Some(Lookups::new(client, 128, Arc::clone(&handler.metrics)));
    let handler = Arc::new(ReviewHandler { lookups, ..handler });
    let start = Instant::now();
    let answers = (0..10_000).map(|number| {
        let handler = Arc::clone(&handler);
        async move { asked_about(&handler, &required_pod(&format!("scout-{number}"))).await }
    });
    let answers = futures::future::join_all(answers).await;
    assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());
    let count = |why: &str| {
        let told = |answer: &&Value| answer["status"]["message"].as_str().is_some_and(|it| it.contains(why));
        answers.iter().filter(|answer| answer["status"]["code"] == 503).filter(told).count()
    };
    let asked = asked.all().len();
    assert!(asked <= 16, "the apiserver is asked {asked} times");
    assert_eq!(count("the apiserver did not answer in time"), asked);
    assert_eq!(count("too many other objects are being looked up"), 10_000 - asked);
}

/// An agent whose labels would take more than 4 times their JSON.
fn agent_with_labels_that_say_nothing() -> Value {
    let labels: serde_json::Map<_, _> = (0..9_900).map(|number| (format!("{number:x}"), "".into())).collect();
    json!({
        "metadata": {"labels": labels, "name": "scout", "namespace": "team"},
        "spec": {"model": "m", "systemPrompt": "s", "memoryRef": {"name": "notes"}},
    })
}

#[tokio::test]
async fn an_object_that_is_not_held_is_looked_up_and_never_missing() {
    let agent = agent_with_labels_that_say_nothing();
    let memory =
        json!({"metadata": {"name": "notes", "namespace": "team"}, "spec": {"backend": "in-context"}});
    // Kept by name; not kept at all; being deleted meanwhile.
    for (is_kept, is_there) in [(true, true), (false, true), (true, false)] {
        let answer = agent.clone();
        let (client, asked_for) = client(move |path| {
            let reply = if is_there && path.ends_with("/arkagents/scout") {
                (200, answer.to_string())
            } else {
                not_found()
            };
            async move { reply }.boxed()
        });
        let mut handler = unshared_handler(Duration::ZERO);
        handler.lookups = Some(Lookups::new(client, 4, Arc::clone(&handler.metrics)));
        let (agents, memories) = (kind("ArkAgent"), kind("ArkMemory"));
        if is_kept {
            let read = Object::read_to_keep(agents, ("team", "scout"), &agent.to_string());
            handler.store.apply(agents, StoreChange::Insert(read.expect("JSON").expect("a name")));
            assert!(
                handler
                    .store
                    .snapshot()
                    .kind(agents)
                    .is_some_and(|state| state.object("team", "scout").is_none())
            );
        }
        let read = Object::read_to_keep(memories, ("team", "notes"), &memory.to_string());
        handler.store.apply(memories, StoreChange::Insert(read.expect("JSON").expect("a name")));
        let handler = Arc::new(handler);
        let answer = asked_about(&handler, &pod()).await;
        let reason = if is_there { "injected" } else { "reference-missing" };
        assert_eq!(answer["auditAnnotations"]["reason"], reason, "{is_kept} {is_there}: {answer}");
        let wanted = |path: &&String| path.ends_with("/arkagents/scout");
        assert_eq!(asked_for.all().iter().filter(wanted).count(), 1, "once");
    }
}

#[tokio::test]
async fn users_of_a_memory_are_named_although_they_are_not_held() {
    let agent = agent_with_labels_that_say_nothing();
    let answer = agent.clone();
    let (client, _) = client(move |path| {
        let reply = if path.ends_with("/arkagents/scout") { (200, answer.to_string()) } else { not_found() };
        async move { reply }.boxed()
    });
    let mut handler = unshared_handler(Duration::ZERO);
    handler.lookups = Some(Lookups::new(client, 4, Arc::clone(&handler.metrics)));
    let read = Object::read_to_keep(kind("ArkAgent"), ("team", "scout"), &agent.to_string());
    handler.store.apply(kind("ArkAgent"), StoreChange::Insert(read.expect("JSON").expect("a name")));
    let memory = json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
        "metadata": {"name": "notes", "namespace": "team"}, "spec": {"backend": "in-context"},
    });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "DELETE", "namespace": "team", "name": "notes", "oldObject": memory,
            "kind": {"group": "arkonis.dev", "version": "v1alpha1", "kind": "ArkMemory"},
        },
    });
    let now = Instant::now();
    let arrival = Arrival { phase: Phase::Validate, body: review.to_string().into(), start: now, peer: None };
    let handler = Arc::new(handler);
    let answer = handler.answer(&arrival, Deadline::new(now, Duration::from_secs(10))).await;
    let body = String::from_utf8_lossy(&answer.expect("an answer").body).into_owned();
    assert!(body.contains("scout"), "{body}");
}

/// Its controller would make another one; a bare pod stays as it is.
#[tokio::test(start_paused = true)]
async fn a_bare_pod_without_its_memory_is_logged_as_a_warning() {
    let (handler, lines) = (handler(GRACE), Lines::default());
    let _guard = lines.capture();
    put(&handler, kind("ArkAgent"), "scout", &json!({"memoryRef": {"name": "notes"}}));
    let mut bare = pod();
    bare["metadata"].as_object_mut().expect("an object").remove("ownerReferences");
    assert_eq!(asked_about(&handler, &bare).await["allowed"], true);
    assert_eq!(asked_about(&handler, &pod()).await["allowed"], false, "it waits");
    put(&handler, kind("ArkMemory"), "notes", &json!({"backend": "in-context"}));
    assert_eq!(asked_about(&handler, &bare).await["allowed"], true);
    let [without, held, with]: [String; 3] = lines.take().try_into().expect("three lines");
    assert!(without.starts_with(" WARN "), "{without}");
    for part in [
        "missing=\"",
        "ArkMemory \\\"notes\\\" not found in namespace",
        "generateName=\"p-\"",
        "verdict=\"allowed\"",
    ] {
        assert!(without.contains(part), "{part} is not in {without}");
    }
    assert!(held.starts_with(" INFO ") && held.contains("owner=\"ReplicaSet/r\""), "{held}");
    assert!(with.starts_with(" INFO ") && !with.contains("missing="), "{with}");
    assert!(![without, held, with].iter().any(|line| line.contains("=\"\"")), "no key is empty");
}

#[tokio::test(start_paused = true)]
async fn the_line_about_a_denial_has_its_field() {
    let (handler, lines) = (handler(GRACE), Lines::default());
    let _guard = lines.capture();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "namespace": "team", "name": "notes",
            "kind": {"group": "arkonis.dev", "version": "v1alpha1", "kind": "ArkMemory"},
            "object": {
                "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
                "metadata": {"name": "notes", "namespace": "team"}, "spec": {"backend": "redis"},
            },
        },
    });
    let now = Instant::now();
    let arrival = Arrival { phase: Phase::Validate, body: review.to_string().into(), start: now, peer: None };
    let deadline = Deadline::new(now, Duration::from_secs(10));
    let answer = handler.answer(&arrival, deadline).await.expect("an answer");
    assert_eq!(answer.labels.verdict, "denied");
    let [line]: [String; 1] = lines.take().try_into().expect("one line");
    assert!(line.contains("field=\"spec.redis\"") && line.contains("denial=\""), "{line}");
}
