//! Reviews that lie about their namespace. A caller that reaches the port can claim any namespace, and then learns what a
//! tenant of that namespace could learn. Of other namespaces an answer has only what a platform's rules give for a
//! reference in the object itself. S14 of stress/ATTACKS.md.

mod lie;
pub(crate) mod marks;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use memgate_certs::tls::CertSource;
use memgate_core::admission;
use memgate_core::decide::decide;
use memgate_core::state;
use memgate_model::decision::Decision;
use memgate_model::finding::Finding;
use memgate_model::request::Request as AdmissionRequest;
use memgate_model::snapshot::Snapshot;
use memgate_platforms::ark::codes::SCHEMA;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::review_path::Phase;
use memgate_server::options::{Decide, Options};
use memgate_server::{State, router};
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::read::read;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::cases::cases;

use lie::{Claim, claims, is_foreign, place};
use marks::{MARK, UrlPart, leaves, mark, pattern};

/// Where something of another namespace stood in an answer, and in which cases.
type Leaks = BTreeMap<String, Vec<String>>;

/// What is looked for in each case.
type Look = fn(&str, &Case, &mut Leaks);

/// Looks into all cases with a state, on every processor.
fn look(into: Look) -> Leaks {
    let cases = cases().unwrap();
    let cases: Vec<_> = cases.iter().filter(|(_, case)| !case.state.is_empty()).collect();
    assert!(cases.len() > 1_000, "{} cases are too few to say anything", cases.len());
    let (all, next) = (Mutex::new(Leaks::new()), Mutex::new(cases.iter()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut leaks = Leaks::new();
                loop {
                    let Some((file, case)) = next.lock().unwrap().next() else { break };
                    into(file, case, &mut leaks);
                }
                for (place, cases) in leaks {
                    all.lock().unwrap().entry(place).or_default().extend(cases);
                }
            });
        }
    });
    all.into_inner().unwrap()
}

/// The state of a case as a cluster has it, where every object is in a namespace that knows one.
fn placed(case: &Case) -> Vec<Value> {
    let mut objects = case.state.clone();
    objects.iter_mut().for_each(place);
    objects
}

fn snapshot(objects: &[Value]) -> Option<Snapshot> {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    for object in objects {
        state::add(&mut snapshot, object).ok()?;
    }
    Some(snapshot)
}

/// The state with what is not of the claimed namespace marked; `None` when all of it is.
fn marked(case: &Case, claimed: &str, part: UrlPart) -> Option<Vec<Value>> {
    let mut objects = placed(case);
    let mut foreign = objects.iter_mut().filter(|object| is_foreign(object, claimed)).peekable();
    foreign.peek()?;
    foreign.for_each(|object| mark(object, part));
    Some(objects)
}

/// All that an answer says, with the patch in clear text behind it.
fn shown(answer: &Value) -> String {
    let patch = answer["response"]["patch"].as_str().map(|patch| BASE64_STANDARD.decode(patch).unwrap());
    answer.to_string() + std::str::from_utf8(&patch.unwrap_or_default()).unwrap()
}

/// The words of a text that hold a mark.
fn marks_in(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|word| word.find(MARK).map(|at| word[at..].to_owned()))
        .collect();
    words.sort();
    words.dedup();
    words
}

fn routes(decide: Decide, snapshot: Snapshot) -> Router {
    let tls = CertSource::SelfSigned { names: Vec::new(), ca: std::env::temp_dir().join("unused") };
    router(&Options { decide, ..Options::new(tls) }, State::Fixed(snapshot))
}

/// The answers of both calls through the router; what is refused says so in its text.
async fn posted(routes: &Router, review: &Value) -> String {
    let mut answered = String::new();
    for path in ["/mutate?timeout=30s", "/validate?timeout=30s"] {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Body::from(review.to_string())).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
        answered += &serde_json::from_slice(&body)
            .map_or_else(|_| String::from_utf8_lossy(&body).into_owned(), |answer| shown(&answer));
    }
    answered
}

/// The marks in the answers to all lies of a case.
fn posted_marks(decide: Decide, file: &str, case: &Case, leaks: &mut Leaks) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let family = file.split('/').next().unwrap_or_default();
    for Claim { namespace, reviews } in claims(case) {
        for part in UrlPart::ALL {
            let state = marked(case, &namespace, part).and_then(|objects| snapshot(&objects));
            let Some(state) = state else { continue };
            let routes = routes(decide, state);
            for review in &reviews {
                for mark in marks_in(&runtime.block_on(posted(&routes, review))) {
                    let named = format!("{} as {namespace}", case.name);
                    leaks.entry(format!("{family}: {part:?}: {mark}")).or_default().push(named);
                }
            }
        }
    }
}

/// What was found, apart from the cases in which: nothing but what a table names, and all of that.
fn expect_rows<'t>(found: &Leaks, table: impl IntoIterator<Item = &'t str>) {
    let known: BTreeSet<&str> = table.into_iter().collect();
    let new: Vec<_> = found.iter().filter(|(row, _)| !known.contains(row.as_str())).collect();
    let gone: Vec<_> = known.iter().filter(|row| !found.contains_key(**row)).collect();
    assert!(new.is_empty() && gone.is_empty(), "new: {new:#?}\nin no answer any more: {gone:#?}");
}

#[test]
fn no_answer_holds_a_credential_or_status_of_another_namespace() {
    let leaks = look(|file, case, leaks| posted_marks(decide, file, case, leaks));
    expect_rows(&leaks, table::MARKS.map(|(row, _)| row));
}

/// That the test above can fail: a decision that tells what it sees is found out, in a warning and in each lie.
#[test]
fn a_decision_that_tells_the_state_is_found_out() {
    fn telling(request: &AdmissionRequest<'_>, snapshot: &Snapshot) -> Decision {
        let mut decision = decide(request, snapshot);
        let seen = format!("{snapshot:?}");
        let told = seen.match_indices(MARK).map(|(at, _)| &seen[at..at + MARK.len() + "status".len()]);
        let told: String = told.take(3).collect();
        decision.findings.push(Finding::warn(&SCHEMA, Pointer::root(), format!("sees {told}")));
        decision
    }
    let object = |name: &str| {
        json!({
            "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory",
            "metadata": {"name": name, "namespace": "team-b"},
            "spec": {"address": {"value": "http://notes.example.com"}}, "status": {"phase": "ready"},
        })
    };
    let mut asked = object("mine");
    asked["metadata"]["namespace"] = json!("team-a");
    let case =
        json!({"name": "it", "state": [object("theirs")], "object": asked, "expect": {"allowed": true}});
    let case = read(&case).unwrap().remove(0);
    let (mut honest, mut leaks) = (Leaks::new(), Leaks::new());
    posted_marks(decide, "ark/it", &case, &mut honest);
    posted_marks(telling, "ark/it", &case, &mut leaks);
    assert!(honest.is_empty(), "{honest:?}");
    let found: BTreeSet<_> = leaks.into_values().flatten().collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["it as team-a", "it as unused"]);
}

#[test]
fn marks_are_found_wherever_they_stand() {
    let patch =
        BASE64_STANDARD.encode(format!(r#"[{{"op":"add","path":"/x","value":"http://{MARK}user@h"}}]"#));
    for answer in [
        json!({"response": {"patch": patch}}),
        json!({"response": {"status": {"message": format!("see {MARK}user/x")}}}),
        json!({"response": {"status": {"details": {"causes": [{"message": format!("\"{MARK}user\"")}]}}}}),
        json!({"response": {"warnings": [format!("u:{MARK}user@")]}}),
        json!({"response": {"auditAnnotations": {"codes": format!("a,{MARK}user")}}}),
    ] {
        assert_eq!(marks_in(&shown(&answer)), [format!("{MARK}user")], "{answer}");
    }
    assert!(marks_in(&shown(&json!({"response": {"warnings": ["user"]}}))).is_empty());
}

/// The answers of both calls, without the router.
fn answered(review: &str, snapshot: &Snapshot) -> String {
    let review = admission::parse(review).unwrap();
    let decision = decide(&review.request, snapshot);
    [Phase::Mutate, Phase::Validate]
        .into_iter()
        .map(|phase| admission::respond(phase, &review, &decision).unwrap())
        .map(|body| shown(&serde_json::from_slice(&body).unwrap()))
        .collect()
}

/// What of the objects of other namespaces gets into answers, one text after the other.
fn crossing(file: &str, case: &Case, leaks: &mut Leaks) {
    let family = file.split('/').next().unwrap_or_default();
    let state = placed(case);
    for Claim { namespace, reviews } in claims(case) {
        let reviews: Vec<_> = reviews.iter().map(Value::to_string).collect();
        for (index, object) in state.iter().enumerate().filter(|(_, object)| is_foreign(object, &namespace)) {
            for place in leaves(object) {
                if ["/kind", "/apiVersion", "/metadata/namespace"].contains(&place.as_str()) {
                    continue;
                }
                let mut objects = state.clone();
                let Some(Value::String(text)) = objects[index].pointer_mut(&place) else { continue };
                *text = match text.split_once("://") {
                    Some((scheme, _)) => format!("{scheme}://{MARK}.example.com/{MARK}"),
                    None => MARK.to_owned(),
                };
                let Some(snapshot) = snapshot(&objects) else { continue };
                if reviews.iter().any(|review| answered(review, &snapshot).contains(MARK)) {
                    let place = format!(
                        "{family}: {} {}",
                        object["kind"].as_str().unwrap_or_default(),
                        pattern(&place)
                    );
                    leaks.entry(place).or_default().push(format!("{} as {namespace}", case.name));
                }
            }
        }
    }
}

#[test]
fn only_named_fields_of_another_namespace_cross() {
    expect_rows(&look(crossing), table::FIELDS.map(|(row, _)| row));
}

/// Of which kinds of objects of other namespaces an answer says whether a name exists.
fn existence(file: &str, case: &Case, leaks: &mut Leaks) {
    let family = file.split('/').next().unwrap_or_default();
    let state = placed(case);
    let reviewed =
        case.object.as_ref().or(case.old_object.as_ref()).map_or(&Value::Null, |object| &object["kind"]);
    for Claim { namespace, reviews } in claims(case) {
        let reviews: Vec<_> = reviews.iter().map(Value::to_string).collect();
        let foreign = |object: &&Value| is_foreign(object, &namespace) && object["kind"] != "Namespace";
        let kinds: BTreeSet<&str> =
            state.iter().filter(foreign).filter_map(|object| object["kind"].as_str()).collect();
        let Some(before) = snapshot(&state).filter(|_| !kinds.is_empty()) else { continue };
        let before: Vec<_> = reviews.iter().map(|review| answered(review, &before)).collect();
        for kind in kinds {
            let mut renamed = state.clone();
            for object in renamed.iter_mut().filter(|object| object["kind"] == kind && foreign(&&**object)) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                object["metadata"]["name"] = json!(format!("{name}-elsewhere"));
            }
            let Some(renamed) = snapshot(&renamed) else { continue };
            if reviews.iter().zip(&before).any(|(review, before)| answered(review, &renamed) != *before) {
                let row = format!("{family}: {} of {kind}", reviewed.as_str().unwrap_or_default());
                leaks.entry(row).or_default().push(format!("{} as {namespace}", case.name));
            }
        }
    }
}

#[test]
fn only_named_kinds_of_another_namespace_can_be_asked_for() {
    expect_rows(&look(existence), table::KINDS.map(|(row, _)| row));
}
