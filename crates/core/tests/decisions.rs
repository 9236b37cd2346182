//! Every case of `tests/cases` and of the policies of `examples` through the library, with what must be true of every
//! decision.
//!
//! A trial is named `library: file: case`. A part of the cases ([`Share`]) is asked again: `snapshot: file: case`, where
//! the state was read from a cluster. `claims: file: case` are those of `tests/claims`.

#![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

#[path = "../../../tests/support/case_trials.rs"]
mod case_trials;
#[path = "../../../tests/support/cases.rs"]
mod cases;
#[path = "../../../tests/support/share.rs"]
mod share;
#[path = "../../../tests/support/spelling.rs"]
mod spelling;

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use case_trials::Way;
use libtest_mimic::Arguments;
use memgate_core::admission;
use memgate_core::decide::audit::audit;
use memgate_core::decide::decide;
use memgate_core::decide::views::views;
use memgate_core::patch::Patch;
use memgate_core::state;
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, kept, kinds};
use memgate_model::answer::Answer;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::Kind;
use memgate_model::memory_view::{ViewPath, ViewValue};
use memgate_model::object::Object;
use memgate_model::platform_settings::EVERY_NAMESPACE;
use memgate_model::policy::{Policies, Rule};
use memgate_model::request::{Occasion, Operation, Point, Request};
use memgate_model::snapshot::Snapshot;
use memgate_policy::never_applies::never_applies;
use memgate_policy::read;
use memgate_primitives::review_path::Phase;
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::compare::CaseOutcome;
use memgate_workbench::files::casefile::request;
use serde_json::{Value, json};
use share::Share;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let all = [cases::cases()?, cases::library_cases()?].concat();
    let ways = [
        Way { name: "library", answer, takes: |_| true, share: Share::All },
        Way { name: "snapshot", answer: answer_by_listing, takes: is_listed, share: Share::Tenth.or_all() },
    ];
    let mut trials = case_trials::trials_of(&ways, all);
    let claims = Way { name: "claims", answer: answer_with_claims, takes: |_| true, share: Share::All };
    trials.extend(case_trials::trials_of(&[claims], cases::claims()?));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn answer(case: &Case) -> Result<CaseOutcome> {
    what_never_applies_is_silent(case)?;
    what_is_in_the_state_is_audited_alike(case)?;
    if is_listed(case) {
        what_is_kept_is_judged_alike(case, &state::empty(request::state(case)?.settings))?;
    }
    let state = request::state(case)?;
    odd_spelling_is_answered_alike(case, &state)?;
    answer_with(case, &state)
}

/// Escapes in keys and texts, and blanks, change nothing of an answer.
fn odd_spelling_is_answered_alike(case: &Case, snapshot: &Snapshot) -> Result<()> {
    let review = request::review(case);
    for phase in Phase::ALL {
        let answer = |body: &str| -> Result<(Value, Value)> {
            let review = admission::parse(body)?;
            let decision = decide(&review.request, snapshot);
            let mut answer: Value = serde_json::from_slice(&admission::respond(phase, &review, &decision)?)?;
            let patch = answer["response"]["patch"].take();
            let patch = STANDARD.decode(patch.as_str().unwrap_or_default())?;
            Ok((answer, serde_json::from_slice(&patch).unwrap_or_default()))
        };
        let odd = spelling::odd(&review);
        let (plain, odd) = (answer(&review.to_string())?, answer(&odd).with_context(|| odd.clone())?);
        ensure!(plain == odd, "plain {} {}\nodd {} {}", plain.0, plain.1, odd.0, odd.1);
    }
    Ok(())
}

/// Conditions of rules, and rules, of which each is tried with each.
const CONDITIONS: [&str; 35] = [
    r#"{"backends": ["redis"]}"#,
    r#"{"backends": ["in-context", "in-memory"]}"#,
    r#"{"backends": ["pgvector", "Redis"]}"#,
    r#"{"providers": ["qdrant"]}"#,
    r#"{"providers": ["quadrant"]}"#,
    r#"{"fields": [{"path": "ttlSeconds", "exists": false}]}"#,
    r#"{"fields": [{"path": "ttlSeconds", "exists": true}]}"#,
    r#"{"fields": [{"path": "ttlSeconds", "min": 1}, {"path": "ttlSeconds", "max": 3600}]}"#,
    r#"{"fields": [{"path": "ttlSeconds", "in": [0, 60]}]}"#,
    r#"{"fields": [{"path": "ttlSeconds", "written": true}]}"#,
    r#"{"fields": [{"path": "ttlSeconds", "written": false}]}"#,
    r#"{"fields": [{"path": "durable", "equals": true}]}"#,
    r#"{"fields": [{"path": "durable", "equals": false}]}"#,
    r#"{"fields": [{"path": "kind", "in": ["ArkMemory", "Agent"]}]}"#,
    r#"{"fields": [{"path": "kind", "notIn": ["SwarmMemory"]}]}"#,
    r#"{"fields": [{"path": "family", "equals": "orloj"}]}"#,
    r#"{"fields": [{"path": "labels[\"team\"]", "exists": true}]}"#,
    r#"{"fields": [{"path": "labels[\"team\"]", "exists": false}]}"#,
    r#"{"fields": [{"path": "name", "matches": ["n*"]}]}"#,
    r#"{"fields": [{"path": "users", "min": 1}]}"#,
    r#"{"fields": [{"path": "users", "exists": false}]}"#,
    r#"{"fields": [{"path": "endpoint", "exists": false}]}"#,
    r#"{"fields": [{"path": "endpoint.from", "in": ["literal"]}]}"#,
    r#"{"fields": [{"path": "endpoint.host", "exists": true}]}"#,
    r#"{"fields": [{"path": "collection", "exists": false}]}"#,
    r#"{"fields": [{"path": "operations", "in": ["read"]}]}"#,
    r#"{"fields": [{"path": "secrets[].name", "matches": ["*"]}]}"#,
    r#"{"fields": [{"path": "embedding.provider", "in": ["openai"]}]}"#,
    r#"{"fields": [{"path": "embedding", "exists": false}]}"#,
    r#"{"fields": [{"path": "maxEntries", "equals": 0}]}"#,
    r#"{"fields": [{"path": "storageBytes", "max": "2Gi"}]}"#,
    r#"{"fields": [{"path": "namespace", "exists": true}]}"#,
    r#"{"fields": [{"path": "endpoint.from", "in": ["service"]}]}"#,
    r#"{"fields": [{"path": "kind", "in": ["Query", "Pod"]}, {"path": "endpoint.from", "in": ["service"]}]}"#,
    r#"{"fields": [{"path": "secrets[].name", "written": true}, {"path": "secrets[].name", "written": false}]}"#,
];
const RULES: [&str; 36] = [
    r#""backends": {"durable": true}"#,
    r#""backends": {"allow": ["redis", "in-memory"]}"#,
    r#""backends": {"deny": ["pgvector"]}"#,
    r#""providers": {"allow": ["qdrant", "pgvector"]}"#,
    r#""providers": {"deny": ["quadrant"]}"#,
    r#""retention": {"max": "1h"}"#,
    r#""retention": {"zero": "forbid"}"#,
    r#""capacity": {"maxEntries": {"max": 100}}"#,
    r#""capacity": {"storage": {"max": "4Gi"}}"#,
    r#""labels": {"required": ["team"]}"#,
    r#""labels": {"values": {"team": ["a*"]}}"#,
    r#""operations": {"deny": ["write"]}"#,
    r#""secrets": {"required": true}"#,
    r#""endpoint": {"tls": "require"}"#,
    r#""anyOf": [{"backends": {"durable": true}}, {"labels": {"required": ["team"]}}]"#,
    r#""fields": [{"path": "ttlSeconds", "exists": true}]"#,
    r#""fields": [{"path": "ttlSeconds", "max": 7200}]"#,
    r#""fields": [{"path": "ttlSeconds", "min": 1}]"#,
    r#""fields": [{"path": "ttlSeconds", "written": true}]"#,
    r#""fields": [{"path": "kind", "in": ["ArkMemory", "Agent"]}]"#,
    r#""fields": [{"path": "family", "in": ["orloj", "ark"]}]"#,
    r#""fields": [{"path": "role", "equals": "memory"}]"#,
    r#""fields": [{"path": "name", "matches": ["n*", "a*"]}]"#,
    r#""fields": [{"path": "users", "max": 0}]"#,
    r#""fields": [{"path": "users", "exists": true}]"#,
    r#""fields": [{"path": "collection", "matches": ["*"]}]"#,
    r#""fields": [{"path": "provider", "matches": ["*"]}]"#,
    r#""fields": [{"path": "storageBytes", "min": 1}]"#,
    r#""fields": [{"path": "endpoint", "exists": true}]"#,
    r#""fields": [{"path": "endpoint", "exists": false}]"#,
    r#""fields": [{"path": "durable", "equals": true}]"#,
    r#""fields": [{"path": "embedding.provider", "in": ["openai", "google", "voyageai"]}]"#,
    r#""fields": [{"path": "operations", "in": ["read", "search"]}]"#,
    r#""fields": [{"path": "secrets[].name", "exists": true}]"#,
    r#""backends": {"deny": ["http"]}"#,
    r#""anyOf": [{"fields": [{"path": "role", "equals": "memory"}]}, {"backends": {"durable": true}}]"#,
];

/// The policies, of one rule each, that are said never to apply.
static IDLE: LazyLock<Arc<Policies>> = LazyLock::new(|| {
    let roles = ["", r#""roles": ["memory"], "#, r#""roles": ["referrer"], "#, r#""roles": ["pod"], "#];
    let when = CONDITIONS.iter().map(|it| format!(r#""when": {it}, "#)).chain([String::new()]);
    let mut idle = Policies::default();
    for (when, number) in when.zip(0..) {
        for (rule, index) in RULES.iter().zip(0..) {
            for roles in roles {
                let text = format!(r#"[{{"id": "it", "hint": "h", {roles}{when}{rule}}}]"#);
                let rules: Value = serde_json::from_str(&text).unwrap_or_default();
                assert!(rules.is_array(), "{text}");
                let name = format!("{number}-{index}-{}", roles.len());
                let head = ["policy.memgate.dev/v1alpha1", "MemoryPolicy"];
                let policy = json!({
                    "apiVersion": head[0], "kind": head[1], "metadata": {"name": name}, "spec": {"rules": rules},
                });
                // Not every type of rule has every role.
                let (policy, faults) = read::policy(&policy, &memgate_platforms::ALL);
                if faults.is_empty() && !never_applies(&policy, &memgate_platforms::ALL).is_empty() {
                    idle.insert(policy);
                }
            }
        }
    }
    assert!(idle.iter().count() > 200, "{} policies", idle.iter().count());
    Arc::new(idle)
});

/// No rule that is said never to apply says anything of an object that is accepted.
fn what_never_applies_is_silent(case: &Case) -> Result<()> {
    let is_usual = case.operation == Operation::Create
        && case.state.iter().all(|it| it["kind"] != "CustomResourceDefinition");
    // An apiserver refuses the memory in the state of these.
    let has_invalid_memory =
        ["warns-of-a-swarm-agent-whose-memory-is-invalid", "warns-of-an-agent-whose-memory-lacks-redis"]
            .contains(&case.name.as_str());
    if case.object.is_none() || !is_usual || has_invalid_memory {
        return Ok(());
    }
    let mut snapshot = request::state(case)?;
    snapshot.policies = Arc::clone(&IDLE);
    let body = request::review(case).to_string();
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    let findings = admission::admit(&review.request, &snapshot)?.decision.findings;
    let is_too_large =
        |it: &Finding| it.message().contains("is too large") || it.message().contains("too many");
    if findings.iter().any(|it| it.policy.is_none() && it.is_denial() || is_too_large(it)) {
        return Ok(());
    }
    // Whatever its rules are, a policy may say that it cannot judge an object.
    let says = |it: &&Finding| it.policy.is_some() && !it.message().contains("more than 256 objects");
    let of_idle = findings.iter().find(says);
    ensure!(
        of_idle.is_none(),
        "{} was said never to apply: {}",
        of_idle.map(|it| it.code_name().to_owned()).unwrap_or_default(),
        of_idle.map(|it| it.message().into_owned()).unwrap_or_default(),
    );
    Ok(())
}

/// The same where objects of every namespace may claim another one of Orloj.
fn answer_with_claims(case: &Case) -> Result<CaseOutcome> {
    let mut settings = memgate_platforms::default_settings();
    settings.platforms.orloj.source_namespaces = vec![EVERY_NAMESPACE.to_owned()];
    answer_with(case, &request::state_over(&state::empty(settings), case)?)
}

/// The same with the state as commands read it from a cluster.
fn answer_by_listing(case: &Case) -> Result<CaseOutcome> {
    let settings = request::state(case)?.settings;
    let mut file = ClusterSnapshot::new("2027-01-01T00:00:00Z".to_owned(), None);
    for kind in kinds(&settings.families) {
        let objects: Vec<Value> =
            case.state.iter().filter(|it| is_of(kind, it)).map(|it| kept(kind, it)).collect();
        let known = match objects.is_empty() {
            false => Answer::Found(()),
            // Of these, a case says nothing by leaving them out.
            true if kind.group.is_empty() || kind.is("ark.mckinsey.com", "Memory") => {
                Answer::Unknown("not in the case".to_owned())
            }
            true => Answer::Absent,
        };
        file.add_entry(kind.api_version(), kind.kind, known);
        file.items.extend(objects);
    }
    let mut snapshot = state::empty(settings);
    file.put(&mut snapshot)?;
    answer_with(case, &snapshot)
}

/// Policies say the same of an object as it is kept in a file, where it lasts and has no credential.
fn what_is_kept_is_judged_alike(case: &Case, empty: &Snapshot) -> Result<()> {
    let Some(object) = case.object.as_ref().filter(|_| case.operation == Operation::Create) else {
        return Ok(());
    };
    let mut lasting = empty.settings.families.iter().flat_map(|family| family.audited());
    let Some(kind) = lasting.find(|kind| is_of(kind, object)) else { return Ok(()) };
    let kept = kept(kind, object);
    if kept.to_string().contains("**") {
        return Ok(());
    }
    let mut snapshot = request::state(case)?;
    snapshot.crds = None;
    let said = |object: &Value| -> Result<Vec<String>> {
        let case = Case { object: Some(object.clone()), ..case.clone() };
        let body = request::review(&case).to_string();
        let mut review = admission::parse(&body)?;
        let user = review.request.occasion.user;
        review.request.occasion = Occasion { user, ..case.occasion };
        let findings = admission::admit(&review.request, &snapshot)?.decision.findings;
        let of_policies = findings.into_iter().filter(|finding| finding.policy.is_some());
        Ok(of_policies.map(|it| format!("{:?} {} {}", it.severity, it.pointer, it.message())).collect())
    };
    let (whole, kept) = (said(object)?, said(&kept)?);
    ensure!(whole == kept, "of the object policies say {whole:?}, of what is kept of it {kept:?}");
    Ok(())
}

/// An audit says the same of an object as the state of a server holds it. It does not hold annotations, so a server
/// lists the objects when a policy reads them.
fn what_is_in_the_state_is_audited_alike(case: &Case) -> Result<()> {
    let Some(object) = case.object.as_ref().filter(|_| case.operation == Operation::Create) else {
        return Ok(());
    };
    let mut snapshot = request::state(case)?;
    snapshot.crds = None;
    if snapshot.policies.iter().flat_map(|policy| &policy.rules).any(Rule::reads_annotations) {
        return Ok(());
    }
    let audited: Vec<_> = snapshot.settings.families.iter().flat_map(|family| family.audited()).collect();
    let Some(kind) = audited.into_iter().find(|kind| is_of(kind, object)) else { return Ok(()) };
    let Some(stored) = Object::read(kind, object)? else { return Ok(()) };
    let said = |object: &Value| -> Result<String> {
        let case = Case { object: Some(object.clone()), ..case.clone() };
        let body = request::review(&case).to_string();
        let mut review = admission::parse(&body)?;
        review.request.occasion = Occasion::new(Point::Audit, case.occasion.now);
        Ok(format!("{:#?}", audit(&review.request, &snapshot)))
    };
    let mut held = stored.tree().to_json();
    for field in ["apiVersion", "kind"] {
        let fields = held.as_object_mut().context("no object")?;
        fields.insert(field.to_owned(), object.get(field).cloned().unwrap_or_default());
    }
    let (whole, held) = (said(object)?, said(&held)?);
    ensure!(whole == held, "of the object policies say {whole}, of what the state holds of it {held}");
    Ok(())
}

/// Whether a snapshot can hold the state of a case, which has no definitions.
fn is_listed(case: &Case) -> bool {
    let is_kept = |object: &Value| {
        let kinds = kinds(&memgate_platforms::ALL);
        let kind = kinds.into_iter().find(|kind| is_of(kind, object));
        kind.is_some()
    };
    let of_files_alone =
        |name: &str| OF_FILES_ALONE.contains(&name) || name.starts_with("gives-a-made-agent-");
    case.state.iter().all(is_kept) && !of_files_alone(&case.name)
}

/// Cases about what files leave open: a cluster has a status, its controllers have made what they make, and what it
/// does not hold is missing.
const OF_FILES_ALONE: [&str; 20] = [
    "notes-a-query-whose-config-is-not-known",
    "notes-a-query-whose-config-is-not-known-at-admission",
    "does-not-judge-a-change-of-a-ttl-that-was-unknown",
    "notes-a-query-without-ttl-where-no-ark-config-is-known",
    "says-why-a-query-without-ttl-cannot-be-judged",
    "accepts-a-run-of-an-agent-that-its-ensemble-makes",
    "accepts-a-secret-where-only-another-namespace-has-some",
    "accepts-ark-settings-where-none-are-among-the-inputs",
    "accepts-swarm-settings-where-none-are-among-the-inputs",
    "accepts-swarm-settings-where-there-are-only-ark-settings",
    "adds-a-configured-memory-without-status",
    "ignores-the-namespace-of-the-configured-memory",
    "injects-for-an-agent-that-its-ensemble-makes",
    "injects-what-the-config-of-a-made-agent-says",
    "orloj-accepts-a-secret-where-none-is-known",
    "says-nothing-of-a-pod-where-secrets-of-another-namespace-are-known",
    "seeds-the-sidecar-of-a-made-agent",
    "warns-of-a-run-of-celln-of-a-made-agent",
    "warns-of-a-variable-that-the-maker-sets",
    "warns-of-the-spent-budget-of-the-maker",
];

fn is_of(kind: &Kind, object: &Value) -> bool {
    let (group, name) = state::group_and_kind(object);
    kind.is(group, name)
}

fn answer_with(case: &Case, snapshot: &Snapshot) -> Result<CaseOutcome> {
    let body = request::review(case).to_string();
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    let admitted = admission::admit(&review.request, snapshot)?;
    let answer = admission::review(&review, snapshot)?;
    ensure!(answer == admission::review(&review, snapshot)?, "the same question has two answers");
    let answered = CaseOutcome::from_review(&serde_json::from_slice(&answer)?, case.object.as_ref());
    another_implementation_agrees(case, &admitted)?;
    second_pass_changes_nothing(&review.request, &admitted, snapshot)?;
    views_are_as_their_tables_say(case, &review.request, &admitted, snapshot)?;
    let findings = &admitted.decision.findings;
    let of = |severity| findings.iter().filter(move |finding| finding.severity == severity);
    Ok(CaseOutcome {
        allowed: admitted.allowed(),
        message: answered.map_err(anyhow::Error::msg)?.message,
        warnings: of(Severity::Warn).map(|finding| finding.message().into_owned()).collect(),
        codes: Some(findings.iter().map(|finding| finding.code_name().to_owned()).collect()),
        changed: Some(!admitted.edits.is_empty() && admitted.allowed()),
        after: admitted.object.as_deref().map(serde_json::from_str).transpose()?,
    })
}

/// A view of a new object that is accepted holds the words of its table alone, and all that the table says it holds. What is
/// said of rules that never apply rests on that. Other definitions may allow more.
fn views_are_as_their_tables_say(
    case: &Case,
    request: &Request<'_>,
    admitted: &admission::Admitted,
    snapshot: &Snapshot,
) -> Result<()> {
    let is_usual = case.operation == Operation::Create
        && case.state.iter().all(|it| it["kind"] != "CustomResourceDefinition");
    let by_family = admitted.decision.findings.iter().any(|it| it.policy.is_none() && it.is_denial());
    let Some(stored) = admitted.object.as_deref().filter(|_| is_usual && !request.is_pod() && !by_family)
    else {
        return Ok(());
    };
    for view in views(request, stored, snapshot) {
        let families = memgate_platforms::ALL.iter().filter(|family| family.name == view.family);
        let tables = families.flat_map(|family| family.views.tables);
        let is_own = |kind: &&Kind| kind.is(&request.group, &request.kind);
        let of_view = tables.filter(|table| table.role == view.role && table.kinds.iter().any(is_own));
        for table in of_view {
            for (path, words) in table.values {
                for found in ViewPath::known(path).parts(&view).filter_map(|part| part.value) {
                    let word = match found {
                        ViewValue::Text(text) => text.into_owned(),
                        ViewValue::Flag(flag) => flag.to_string(),
                        other => anyhow::bail!("{path} holds {other:?}"),
                    };
                    ensure!(words.contains(&word.as_str()), "{path} of a {} is {word}", view.kind);
                }
            }
            for path in table.sure.iter().filter(|path| table.can_have(&view, path)) {
                let is_there = view.has_value(path) || view.why_unknown(path).is_some();
                ensure!(is_there, "a {} has no {path}", view.kind);
            }
        }
    }
    Ok(())
}

/// The object after the edits is what another implementation of RFC 6902 makes of it.
fn another_implementation_agrees(case: &Case, admitted: &admission::Admitted) -> Result<()> {
    if admitted.edits.is_empty() {
        return Ok(());
    }
    let mut object = case.object.clone().context("edits, and no object")?;
    let patch: json_patch::Patch = serde_json::from_value(serde_json::to_value(Patch(&admitted.edits))?)?;
    json_patch::patch(&mut object, &patch)?;
    let ours: Value = serde_json::from_str(admitted.object.as_deref().unwrap_or_default())?;
    ensure!(ours == object, "json_patch makes {object}, memgate {ours}");
    no_pod_gets_more_rights(case.object.as_ref().unwrap_or(&Value::Null), &object)
}

/// A patch gives a pod no access to its node and no account: what it has of these stays, and what is added has none.
fn no_pod_gets_more_rights(before: &Value, after: &Value) -> Result<()> {
    const OF_POD: [&str; 6] =
        ["hostNetwork", "hostPID", "hostIPC", "hostUsers", "serviceAccountName", "runtimeClassName"];
    if before["kind"] != "Pod" {
        return Ok(());
    }
    let [old, new] = [&before["spec"], &after["spec"]];
    for field in OF_POD {
        ensure!(old[field] == new[field], "spec.{field} becomes {}", new[field]);
    }
    for list in ["containers", "initContainers"] {
        for container in items(&new[list]) {
            let rights = &container["securityContext"];
            let stays = named(&old[list], container).is_some_and(|old| old["securityContext"] == *rights);
            let raised = ["privileged", "allowPrivilegeEscalation"].iter().any(|field| rights[field] == true)
                || rights.pointer("/capabilities/add").is_some_and(|it| !it.is_null());
            ensure!(stays || !raised, "a container gets {rights}");
        }
    }
    let host_path =
        |volume: &&Value| !volume["hostPath"].is_null() && named(&old["volumes"], volume).is_none();
    ensure!(items(&new["volumes"]).iter().find(host_path).is_none(), "a volume of the node is added");
    Ok(())
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The item of a list with the same name.
fn named<'l>(list: &'l Value, item: &Value) -> Option<&'l Value> {
    items(list).iter().find(|old| old["name"] == item["name"])
}

fn second_pass_changes_nothing(
    request: &Request<'_>,
    admitted: &admission::Admitted,
    snapshot: &Snapshot,
) -> Result<()> {
    if request.operation == Operation::Delete {
        return Ok(());
    }
    let again = Request { object: admitted.object.as_deref(), ..request.clone() };
    let again = admission::admit(&again, snapshot)?;
    ensure!(again.edits.is_empty(), "a second pass still changes something: {:?}", again.edits);
    Ok(())
}
