//! The pods of all cases, as pods of every kind of workload: they are judged and edited like those of a Job.

use memgate_core::patch::Patch;
use memgate_model::request::Occasion;
use memgate_model::workload::{ALL, KNATIVE, Workload};
use memgate_platforms::common::SCHEMA;
use memgate_platforms::selects_pod;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::judge::{Checked, check};
use memgate_workbench::files::load::load;
use serde_json::{Map, Value, json};

/// An object of a kind with a pod template at the first place that a pattern fits, and the place.
fn owner(workload: &Workload, pattern: &str, template: &Value, namespace: &Value) -> (Value, String) {
    let at = pattern.rsplit('/').filter(|token| !token.is_empty());
    let mut object = at.fold(template.clone(), |below, token| match token {
        "N" => json!([below]),
        token => json!({ token.replace('*', "x"): below }),
    });
    let version = if workload.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", workload.group) };
    (object["apiVersion"], object["kind"]) = (version.into(), workload.kind.into());
    (object["metadata"]["name"], object["metadata"]["namespace"]) = ("owner".into(), namespace.clone());
    (object, pattern.replace('N', "0").replace('*', "x"))
}

/// What is said of an object that makes pods, and what is added to it, with places below that of the template.
fn judged(object: &Value, state: &[Value], place: &str) -> (bool, Vec<Value>, Vec<Value>) {
    let state: Vec<String> = state.iter().map(|it| format!("---\n{it}\n")).collect();
    let inputs = load(&Plan::of_text(&format!("{}---\n{object}\n", state.concat()))).expect("loads");
    let Checked { decided, .. } = check(inputs, Occasion::default());
    let owner = decided.iter().find(|it| &*it.object.object_ref.name == "owner");
    let Some(owner) = owner else { return (false, Vec::new(), Vec::new()) };
    let below = |pointer: &str| pointer.strip_prefix(place).map(str::to_owned);
    // An apiserver judges the form of built-in kinds alone.
    let findings = owner.findings().filter(|it| *it.code != SCHEMA).filter_map(|it| {
        let at = below(it.pointer.as_str())?;
        let field = Pointer::new(place).field();
        let message = it.message().replace(&format!("{field}."), if field.is_empty() { "." } else { "" });
        // A long place is not said where the words would not fit.
        let message = message.trim_start_matches("spec: ");
        Some(json!([it.code_name(), it.severity.name(), at, message]))
    });
    let edits = owner.object.edits_in_document(&owner.decision.edits);
    let mut edits = serde_json::to_value(Patch(&edits)).expect("JSON");
    for edit in edits.as_array_mut().expect("a list") {
        edit["path"] = below(edit["path"].as_str().expect("a path")).expect("in the template").into();
    }
    (owner.is_judged, findings.collect(), edits.as_array().cloned().unwrap_or_default())
}

fn is_of_new_pod(case: &Value) -> bool {
    let is_new = case["operation"].as_str().is_none_or(|operation| operation == "CREATE");
    is_new && case["object"]["kind"] == "Pod" && case["object"]["spec"].is_object()
}

#[test]
fn every_kind_that_makes_pods_is_judged_like_a_job() {
    // That one is in no namespace, and is judged as in `default`.
    let namespaced = ALL.iter().filter(|workload| workload.kind != "ClusterTrainingRuntime");
    let places: Vec<(&Workload, &str)> =
        namespaced.flat_map(|it| it.templates.iter().map(move |pattern| (it, *pattern))).collect();
    let job = ALL.iter().find(|workload| workload.kind == "Job").expect("known");
    let (mut injected, mut told, mut others, mut wrong) = (0, 0, 0, Vec::new());
    let documents = crate::cases::documents().expect("case files");
    let cases = documents
        .iter()
        .flat_map(|(file, cases)| cases.as_array().into_iter().flatten().map(move |it| (file, it)));
    // All together take long.
    let cases = cases.filter(|(_, case)| is_of_new_pod(case)).step_by(2);
    for ((file, case), (workload, pattern)) in cases.zip(places.into_iter().cycle()) {
        let pod = &case["object"];
        let kept = ["labels", "annotations"].map(|key| (key.to_owned(), pod["metadata"][key].clone()));
        let kept: Map<_, _> = kept.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let template = json!({"metadata": kept, "spec": pod["spec"]});
        let namespace = &pod["metadata"]["namespace"];
        let state = case["state"].as_array().cloned().unwrap_or_default();
        let (object, place) = owner(job, "/spec/template", &template, namespace);
        let expected = judged(&object, &state, &place);
        let is_agent = selects_pod(&memgate_platforms::ALL, &template["metadata"]);
        let containers = pod["spec"]["containers"].as_array();
        let has_names = containers.is_some_and(|all| all.iter().all(|it| it["name"].is_string()));
        if workload.group == KNATIVE && !has_names {
            continue;
        }
        let (object, place) = owner(workload, pattern, &template, namespace);
        let (is_judged, findings, edits) = judged(&object, &state, &place);
        injected += usize::from(!edits.is_empty());
        told += usize::from(!findings.is_empty());
        let nothing = (false, Vec::new(), Vec::new());
        let expected = if is_agent || workload.is_built_in() { &expected } else { &nothing };
        others += usize::from(!is_agent);
        if (is_judged, &findings, &edits) != (expected.0, &expected.1, &expected.2) {
            let title = format!("{file}: {} as {} {}", case["name"], workload.group, workload.kind);
            wrong.push(format!("{title}: {is_judged} {findings:?} {edits:?}, not {expected:?}"));
        }
    }
    let first: Vec<&str> = wrong.iter().map(String::as_str).take(5).collect();
    assert!(wrong.is_empty(), "{} wrong: {}", wrong.len(), first.join("\n"));
    assert!(injected > 50 && told > 50 && others > 5, "{injected} {told} {others}");
}
