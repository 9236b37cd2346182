//! Policies that were exported, at a real apiserver and against memgate: the same rules are broken by the same objects,
//! with the same words. What differs has to stand among what was not exported.
//!
//! No webhook of memgate is asked about these namespaces, so what the apiserver says is what the exported policies say.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use jiff::Timestamp;
use memgate_core::admission;
use memgate_install::exported_policies::{ExportOptions, Exported, export};
use memgate_model::finding::Severity;
use memgate_model::request::{Occasion, Operation, Point};
use memgate_primitives::duration;
use memgate_workbench::casefile::Case as Asked;
use memgate_workbench::casefile::request::{review, state};
use serde_json::{Value, json};

use super::{entries_of, object};
use crate::{
    fixture::{Fixture, Trial},
    installed::memgate,
    request::{Answer, path, send},
    support::{cases, control_plane::ControlPlane, wait},
};

/// The rules of a scene. An apiserver shows 4096 bytes of warnings in all, so each scene has only some of them.
const RULES: [(&str, &str); 3] = [
    ("rules", include_str!("exported.yaml")),
    ("fields", include_str!("exported_fields.yaml")),
    ("lists", include_str!("exported_lists.yaml")),
];

/// How many pairs of a rule and an object have to be compared.
const ENOUGH_PAIRS: usize = 2_000;

/// How many objects are taken from the cases.
const MOST_OBJECTS: usize = 320;

/// How many of them have to be broken rules.
const ENOUGH_BROKEN: usize = 200;

/// How many updates have to be compared.
const ENOUGH_UPDATES: usize = 30;

/// Durations at the ends of what an apiserver reads, and beyond.
const DURATIONS: [&str; 12] = [
    "9999999h", "2562048h", "99999999999999999999h", "399999h", "000000000720h", "100000000s", ".5h", "+1h",
    "24h0m0s", "-9999999h", "1h1m1s1ms1us1ns", "900000000000000000ns",
];

pub(crate) fn trials() -> Vec<Trial> {
    let judged = RULES.into_iter().flat_map(|(name, rules)| {
        let of = |what: &str| format!("policies::exported_{name}_{what}_as_memgate_does");
        [
            Trial::new(of("warn"), move |fixture| warns(fixture, rules)),
            Trial::new(of("deny"), move |fixture| denies(fixture, rules)),
        ]
    });
    let others = [
        // There is one ArkConfig for all trials.
        Trial::alone("policies::exported_ones_match_what_has_no_namespace_by_its_labels", without_namespace),
        Trial::new("policies::what_is_exported_of_the_library_is_accepted", library),
    ];
    judged.chain(others).collect()
}

/// What is said of an object: whether it is refused, and which rules are named, each with its words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    denied: bool,
    rules: BTreeMap<String, BTreeSet<String>>,
    /// Whether the object is refused, also by what is not exported.
    denied_at_all: bool,
}

impl Said {
    /// Adds the words of a finding, if it is one of a policy: `FIELD: WORDS (memgate policy NAME/RULE)`.
    fn add(&mut self, text: &str) {
        let found = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (memgate policy "));
        if let Some((words, rule)) = found {
            self.rules.entry(rule.to_owned()).or_default().insert(words.to_owned());
        }
    }

    /// Adds a rule of which an apiserver has cut the warning, as it does with all of them when they are long together.
    /// A policy of these trials is named `NAMESPACE-RULE`, exported as `memgate-policy-NAME-FAMILY-ACTION`.
    fn add_cut(&mut self, text: &str, namespace: &str) {
        let exported = text
            .strip_prefix("Validation failed for ValidatingAdmissionPolicy 'memgate-policy-")
            .and_then(|text| text.split_once('\''));
        if let Some((policy, _)) = exported
            && let Some(policy) = policy.rsplitn(3, '-').nth(2)
            && let Some(rule) = policy.strip_prefix(namespace).and_then(|it| it.strip_prefix('-'))
        {
            self.rules.entry(format!("{policy}/{rule}")).or_default().insert("…".to_owned());
        }
    }
}

/// A namespace, its policies, and what became of them.
struct Scene<'f> {
    cluster: &'f ControlPlane,
    namespace: String,
    policies: Vec<Value>,
    exported: Exported,
    /// A case about nothing.
    blank: Asked,
}

impl<'f> Scene<'f> {
    /// Exports each rule as a policy of its own with this action, and applies it.
    fn new(fixture: &'f Fixture, action: &str, rules: &str) -> Result<Self> {
        fixture.memgate()?;
        let cluster = fixture.cluster()?;
        // A short name: each warning names the namespace three times.
        let namespace = cluster.labelled_namespace("ex", &[("team", "team-a")])?;
        let mut policies = Vec::new();
        for rule in entries_of(rules)? {
            let id = rule["id"].as_str().context("a rule has no id")?.to_owned();
            let spec = json!({
                "match": {"namespaces": [namespace], "excludeUsers": ["unseen"]},
                "actions": {"admission": action}, "rules": [rule],
            });
            policies.push(object("MemoryPolicy", &json!({"name": format!("{namespace}-{id}")}), &spec));
        }
        let blank = nothing()?;
        let asked = Asked { state: policies.clone(), ..blank.clone() };
        let snapshot = state(&asked)?;
        let options = ExportOptions {
            families: &memgate_platforms::ALL,
            excluded_namespaces: &[],
            now: Timestamp::now(),
        };
        let exported = export(&snapshot.policies, &options);
        Ok(Self { cluster, namespace, policies, exported, blank })
    }

    fn install(&self) -> Result<()> {
        // What comes last is in force last.
        let canary = json!({
            "match": {"namespaces": [self.namespace]}, "actions": {"admission": "warn"},
            "rules": [{"id": "canary", "labels": {"required": ["canary"]}}],
        });
        let canary = object("MemoryPolicy", &json!({"name": format!("{}-zz", self.namespace)}), &canary);
        let snapshot = state(&Asked { state: vec![canary], ..self.blank.clone() })?;
        let options = ExportOptions {
            families: &[&memgate_platforms::ark::FAMILY],
            excluded_namespaces: &[],
            now: Timestamp::now(),
        };
        let last = export(&snapshot.policies, &options);
        self.cluster.admin().apply(&self.exported.render()?)?;
        self.cluster.admin().apply(&last.render()?)?;
        let memory = json!({
            "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "canary"},
            "spec": {"address": {"value": "http://a"}},
        });
        wait::until("the exported policies to be in force", || {
            let answer = self.create(&memory, "?dryRun=All")?;
            Ok(said_by_apiserver(&answer, &self.namespace)?
                .rules
                .keys()
                .any(|rule| rule.ends_with("/canary"))
                .then_some(()))
        })
    }

    fn create(&self, object: &Value, query: &str) -> Result<Answer> {
        let path = format!("{}{query}", path(object, &self.namespace, None)?);
        self.cluster.block_on(send(&self.cluster.client(), Method::POST, &path, Some(object)))
    }

    fn rehearse_update(&self, stored: &Value, object: &Value) -> Result<Answer> {
        let name = stored["metadata"]["name"].as_str().context("a stored object has a name")?;
        let path = format!("{}?dryRun=All", path(object, &self.namespace, Some(name))?);
        self.cluster.block_on(send(&self.cluster.client(), Method::PUT, &path, Some(object)))
    }

    /// What memgate says, with the objects as the apiserver has completed them. It refuses by what is exported.
    fn said_by_memgate(&self, object: &Value, old: Option<&Value>) -> Result<Said> {
        let mut all = self.policies.clone();
        all.push(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": self.namespace, "labels": {"team": "team-a"}},
        }));
        let asked = Asked {
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            state: all,
            object: Some(object.clone()),
            old_object: old.cloned(),
            ..self.blank.clone()
        };
        let body = review(&asked).to_string();
        let mut parsed = admission::parse(&body)?;
        parsed.request.occasion = Occasion::new(Point::Admission, Timestamp::now());
        let decision = admission::admit(&parsed.request, &state(&asked)?)?.decision;
        let mut said = Said::default();
        for finding in decision.findings.iter().filter(|finding| finding.policy.is_some()) {
            if finding.severity == Severity::Note {
                continue;
            }
            let code = finding.policy.as_ref().map(|it| format!("/{}", it.rule.id)).unwrap_or_default();
            let is_denial = finding.severity == Severity::Deny;
            said.denied_at_all |= is_denial;
            said.denied |= is_denial && !self.is_left_out(&code, object);
            said.add(&finding.message());
        }
        Ok(said)
    }

    /// Whether it was said that a rule is not exported for objects of this kind.
    fn is_left_out(&self, rule: &str, object: &Value) -> bool {
        let id = rule.split('/').nth(1).unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let group = object["apiVersion"].as_str().and_then(|it| it.split_once('/')).unwrap_or_default().0;
        let is_of = |family: &&memgate_model::family::Family| {
            family.views.kinds.iter().any(|(it, _)| it.group == group && it.kind == kind)
        };
        let family = memgate_platforms::ALL.into_iter().find(is_of).map_or("", |family| family.name);
        // `orka Agent` where the kind has one name on several platforms.
        let named = format!("{family} {kind}");
        let of_kind = |what: &str| {
            let several =
                memgate_platforms::ALL.iter().any(|family| what.contains(&format!("{} {kind}", family.name)));
            if several { what.contains(&named) } else { what.split([' ', ',', ':']).any(|word| word == kind) }
        };
        self.exported.left_out.iter().any(|it| it.rule.as_deref() == Some(id) && of_kind(&it.what))
    }

    /// Compares what both say, rule by rule.
    fn compare(&self, object: &Value, here: &Said, there: &Said, wrong: &mut Vec<String>) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        for (rule, words) in &here.rules {
            match there.rules.get(rule) {
                None if self.is_left_out(rule, object) || here.denied && there.denied => {}
                None => wrong
                    .push(format!("{kind} {name}: only memgate says {rule}: {words:?}: {}", object["spec"])),
                Some(said) => {
                    let same = |text: &String| {
                        text.contains('…') || words.iter().any(|words| text.ends_with(without_field(words)))
                    };
                    if !said.iter().all(same) {
                        wrong.push(format!("{kind} {name}: {rule}: {said:?} instead of {words:?}"));
                    }
                }
            }
        }
        for (rule, words) in there.rules.iter().filter(|(rule, _)| !here.rules.contains_key(*rule)) {
            if !rule.ends_with("/canary") && !has_odd_duration(object) {
                wrong.push(format!(
                    "{kind} {name}: only the apiserver says {rule}: {words:?}: {}",
                    object["spec"]
                ));
            }
        }
    }

    fn clean_up(&self) -> Result<()> {
        delete(self.cluster, &self.exported)?;
        delete_pair(self.cluster, &format!("memgate-policy-{}-zz-ark-warn", self.namespace))
    }
}

/// Deletes exported policies and their bindings.
fn delete(cluster: &ControlPlane, exported: &Exported) -> Result<()> {
    let mut names = exported.policies.iter().filter_map(|[policy, _]| policy["metadata"]["name"].as_str());
    names.try_for_each(|name| delete_pair(cluster, name))
}

fn delete_pair(cluster: &ControlPlane, name: &str) -> Result<()> {
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        cluster.kubectl(&["delete", kind, name, "--wait=false"])?.ok()?;
    }
    Ok(())
}

/// The words behind the field: of what is missing, memgate names the nearest field that is there.
fn without_field(words: &str) -> &str {
    words.split_once(": ").map_or(words, |(_, words)| words)
}

/// A case about nothing.
fn nothing() -> Result<Asked> {
    let (_, mut case) = cases::cases()?.into_iter().next().context("there are no cases")?;
    case.namespace = None;
    case.user = None;
    case.subresource = String::new();
    Ok(case)
}

/// Whether the TTL of an object is not a duration of Go. Of one that is too long an apiserver counts the longest; memgate
/// refuses the text itself.
fn has_odd_duration(object: &Value) -> bool {
    object["spec"]["ttl"].as_str().is_some_and(|ttl| duration::nanoseconds(ttl).is_none())
}

/// What the apiserver says: in a refusal, of which it names the first, and in warnings.
fn said_by_apiserver(answer: &Answer, namespace: &str) -> Result<Said> {
    let mut said = Said { denied: !answer.granted(), ..Said::default() };
    for text in answer.warnings.iter().map(String::as_str).chain([answer.message()]) {
        let is_whole = !text.contains("resulted in error") && !text.contains("breaks the rule");
        ensure!(is_whole, "{text}");
        if text.ends_with(')') { said.add(text) } else { said.add_cut(text, namespace) }
    }
    Ok(said)
}

/// The objects of all cases, once each, that are of a kind which rules see.
fn objects(namespace: &str) -> Result<Vec<Value>> {
    let viewed: BTreeSet<(&str, &str)> = memgate_platforms::ALL
        .into_iter()
        .flat_map(|family| family.views.kinds)
        .map(|(kind, _)| (kind.group, kind.kind))
        .collect();
    let (mut seen, mut objects) = (BTreeSet::new(), Vec::new());
    for (_, case) in cases::cases()? {
        for mut object in case.state.into_iter().chain(case.object).chain(case.old_object) {
            let group = object["apiVersion"].as_str().and_then(|it| it.split_once('/')).unwrap_or_default().0;
            let kind = object["kind"].as_str().unwrap_or_default();
            if kind == "Namespace" || !viewed.contains(&(group, kind)) || !object["metadata"].is_object() {
                continue;
            }
            let metadata = json!({
                "name": object["metadata"]["name"], "namespace": namespace, "labels": object["metadata"]["labels"],
                "annotations": object["metadata"]["annotations"],
            });
            object["metadata"] = metadata;
            if seen.insert(object.to_string()) {
                objects.push(object);
            }
        }
    }
    // Of each kind the same share.
    let step = objects.len().div_ceil(MOST_OBJECTS);
    objects.sort_by_cached_key(|object| object["kind"].as_str().unwrap_or_default().to_owned());
    let queries = DURATIONS.into_iter().enumerate().map(|(index, ttl)| {
        json!({
            "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query", "spec": {"input": "hello", "ttl": ttl},
            "metadata": {"name": format!("lasts-{index}"), "namespace": namespace},
        })
    });
    // Of which there are so few that none may be in the share.
    let agent = json!({
        "apiVersion": "orloj.dev/v1", "kind": "Agent", "metadata": {"name": "writes", "namespace": namespace},
        "spec": {"model_ref": "gpt", "prompt": "Take notes.", "memory": {"ref": "notes", "allow": ["write"]}},
    });
    let redis = json!({"secretRef": {"name": "notes-redis"}, "ttlSeconds": 86400});
    let memory = json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "spec": {"backend": "redis", "redis": redis},
        "metadata": {"name": "lasts-a-day", "namespace": namespace},
    });
    let endless = json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "spec": {"backend": "redis"},
        "metadata": {"name": "lasts", "namespace": namespace},
    });
    let own = [agent, memory, endless];
    Ok(objects.into_iter().step_by(step.max(1)).chain(queries).chain(own).collect())
}

fn warns(fixture: &Fixture, rules: &str) -> Result<()> {
    let scene = Scene::new(fixture, "warn", rules)?;
    scene.install()?;
    let (mut pairs, mut broken, mut wrong) = (0, 0, Vec::new());
    let mut fired = BTreeSet::new();
    for object in objects(&scene.namespace)? {
        let answer = scene.create(&object, "?dryRun=All")?;
        if !answer.granted() {
            continue;
        }
        let (here, there) =
            (scene.said_by_memgate(&answer.body, None)?, said_by_apiserver(&answer, &scene.namespace)?);
        pairs += scene.policies.len();
        broken += there.rules.len();
        fired.extend(there.rules.keys().cloned());
        scene.compare(&answer.body, &here, &there, &mut wrong);
    }
    scene.clean_up()?;
    println!("exported: {pairs} pairs, {broken} broken rules");
    ensure!(wrong.is_empty(), "{} of {pairs} differ:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(pairs >= ENOUGH_PAIRS && broken >= ENOUGH_BROKEN, "{pairs} pairs, {broken} broken rules");
    let silent: Vec<&str> = scene
        .policies
        .iter()
        .filter_map(|policy| policy["spec"]["rules"][0]["id"].as_str())
        .filter(|id| !id.starts_with("fixed") && !fired.iter().any(|rule| rule.ends_with(&format!("/{id}"))))
        .collect();
    ensure!(silent.is_empty(), "no object breaks {silent:?}");
    Ok(())
}

/// The objects that are updated are stored before the policies are there.
fn denies(fixture: &Fixture, rules: &str) -> Result<()> {
    let scene = Scene::new(fixture, "deny", rules)?;
    let (mut stored, mut wrong) = (Vec::new(), Vec::new());
    let mut objects = objects(&scene.namespace)?;
    // A stored ArkConfig would be that of all trials.
    objects.retain(|object| !has_odd_duration(object) && object["kind"] != "ArkConfig");
    for object in &objects {
        let answer = scene.create(object, "")?;
        if answer.granted() {
            stored.push(answer.body);
        }
    }
    scene.install()?;
    let (mut creates, mut updates, mut kept) = (0, 0, 0);
    for object in objects.iter().step_by(3) {
        let mut object = object.clone();
        object["metadata"]["name"] =
            json!(format!("{}-2", object["metadata"]["name"].as_str().unwrap_or_default()));
        let answer = scene.create(&object, "?dryRun=All")?;
        let there = said_by_apiserver(&answer, &scene.namespace)?;
        if there.denied && there.rules.is_empty() {
            continue;
        }
        creates += 1;
        let object = if there.denied { &object } else { &answer.body };
        scene.compare(object, &scene.said_by_memgate(object, None)?, &there, &mut wrong);
    }
    for old in &stored {
        let kind = |object: &Value| (object["apiVersion"].clone(), object["kind"].clone());
        let others = objects.iter().filter(|other| kind(other) == kind(old)).map(|other| &other["spec"]);
        for spec in std::iter::once(&old["spec"]).chain(others.step_by(5).take(3)) {
            let mut object = old.clone();
            object["spec"] = spec.clone();
            object["metadata"]["annotations"]["touched"] = json!("yes");
            let answer = scene.rehearse_update(old, &object)?;
            let there = said_by_apiserver(&answer, &scene.namespace)?;
            if there.denied && there.rules.is_empty() {
                continue;
            }
            updates += 1;
            kept += usize::from(!there.denied && !there.rules.is_empty());
            let object = if there.denied { &object } else { &answer.body };
            let here = scene.said_by_memgate(object, Some(old))?;
            // An export takes an element of a list at another place for another one.
            let mut denials = there.rules.values().flatten().filter(|text| text.contains("denied request"));
            let is_moved = there.denied && denials.all(|text| text.contains('['));
            // Of a rule that is left out in part, the other part may deny.
            let is_in_part = there.denied && here.denied_at_all;
            if here.denied != there.denied && !is_moved && !is_in_part {
                wrong.push(format!("update of {old}\nto {object}\nmemgate {here:?}\napiserver {there:?}"));
            }
            scene.compare(object, &here, &there, &mut wrong);
        }
    }
    scene.clean_up()?;
    println!("exported: {creates} creates, {updates} updates, {kept} of them left as they were");
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(creates > 50 && updates >= ENOUGH_UPDATES && kept > 10, "{creates}, {updates}, {kept}");
    Ok(())
}

/// An ArkConfig is in no namespace: a selector of namespaces goes by its own labels, and no list of them names it.
fn without_namespace(fixture: &Fixture) -> Result<()> {
    fixture.memgate()?;
    let cluster = fixture.cluster()?;
    let team = cluster.fresh_namespace("selected")?;
    let expressions = json!([
        {"key": "team", "operator": "In", "values": [team]}, {"key": "old", "operator": "DoesNotExist"},
        {"key": "tier", "operator": "NotIn", "values": ["lab"]},
    ]);
    let by_label = json!({"labels": {"required": [team]}});
    // Of an absent namespace no condition fails; an expression that fails to evaluate would refuse the object.
    let by_namespace =
        json!({"fields": [{"path": "namespace", "in": [team]}, {"path": "namespace", "exists": true}]});
    let selector = json!({"matchExpressions": expressions});
    let matches = [
        ("selected", json!({"namespaceSelector": selector, "excludeNamespaces": ["*"]}), &by_label, "warn"),
        ("listed", json!({"namespaces": ["*"]}), &by_label, "warn"),
        ("nowhere", json!({"namespaceSelector": selector}), &by_namespace, "deny"),
    ];
    let policies = matches.map(|(name, mut matching, rule, action)| {
        matching["kinds"] = json!(["ArkConfig"]);
        let mut rule = rule.clone();
        rule["id"] = json!(name);
        let spec = json!({"match": matching, "actions": {"admission": action}, "rules": [rule]});
        object("MemoryPolicy", &json!({"name": format!("{team}-{name}")}), &spec)
    });
    let snapshot = state(&Asked { state: policies.to_vec(), ..nothing()? })?;
    let families = [&memgate_platforms::ark::FAMILY];
    let options = ExportOptions { families: &families, excluded_namespaces: &[], now: Timestamp::now() };
    let exported = export(&snapshot.policies, &options);
    cluster.admin().apply(&exported.render()?)?;
    let rules_broken = |labels: Value| -> Result<Vec<String>> {
        let config = json!({
            "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "ArkConfig",
            "metadata": {"name": "default", "labels": labels}, "spec": {},
        });
        let path = format!("{}?dryRun=All", path(&config, "", None)?);
        let answer = cluster.block_on(send(&cluster.client(), Method::POST, &path, Some(&config)))?;
        ensure!(answer.granted(), "{}", answer.message());
        Ok(said_by_apiserver(&answer, &team)?.rules.into_keys().filter(|rule| rule.contains(&team)).collect())
    };
    let selected = format!("{team}-selected/selected");
    wait::until("the exported policy to be in force", || {
        Ok(rules_broken(json!({"team": team}))?.contains(&selected).then_some(()))
    })?;
    for (labels, expected) in [
        (json!({"team": team, "tier": "prod"}), vec![selected.clone()]),
        (json!({"team": team, "tier": "lab"}), vec![]),
        (json!({"team": team, "old": ""}), vec![]),
        (json!({"team": "another"}), vec![]),
        (json!(null), vec![]),
    ] {
        let broken = rules_broken(labels.clone())?;
        ensure!(broken == expected, "{labels}: {broken:?}");
    }
    delete(cluster, &exported)
}

/// Each policy of the library that can be exported, wholly or in part.
fn library(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let (mut exported, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/policy/library"))? {
        let file = entry?.path().display().to_string();
        let policies = memgate(&["policy", "export", "--to", "vap", "--partial", &file])?;
        let count = policies.matches("kind: ValidatingAdmissionPolicy\n").count();
        if count > 0 {
            let output =
                cluster.admin().run_with_input(&["apply", "--dry-run=server", "-f", "-"], &policies)?;
            let created = output.stdout.lines().filter(|line| line.starts_with("validatingadmissionpolicy."));
            if created.count() != count || !output.stderr.is_empty() {
                wrong.push(format!("{file}: {}{}", output.stdout, output.stderr));
            }
        }
        exported += count;
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(exported >= 20, "{exported} policies");
    Ok(())
}
