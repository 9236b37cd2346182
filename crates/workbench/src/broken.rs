//! References that a branch broke: at its base they stood for an object, and now they stand for none, since the object was
//! renamed, moved or removed, or the reference was changed. Such a finding denies. References of new objects only warn.
//!
//! `find` adds the findings that are missing, before what was rendered is traced to its files; `mark` makes denials of
//! all of them, before the repository gives its severities. No cluster denies them.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::compared::{
    AtBase, BrokenField, Comparison, Fate, NamingField, Presence, References, Target, words,
};
use crate::inputs::Inputs;
use crate::judge::{Checked, Decided, NO_OBJECT_OF_KIND};
use crate::notices::Notice;
use crate::passed_over::Why;
use crate::paths::without_dots;
use crate::report::ObjectRef;
use memgate_manifest::source::Source;
use memgate_model::finding::{Cause, DeniedBy, Finding, Severity};
use memgate_model::object::Reference;
use memgate_platforms::references::{no_key_message, not_found_message};
use memgate_primitives::plain_text::{plain, quoted, quoted_key};
use memgate_primitives::pointer::Pointer;

/// The objects and references of a base. `shown` gives the name of a file as the user would write it.
pub fn at_base(base: &mut Checked, shown: impl Fn(&str) -> String) -> AtBase {
    let of_units = std::mem::take(&mut base.places_of_units).into_values();
    let places = iter::once(std::mem::take(&mut base.inputs.places)).chain(of_units).collect();
    let mut units = std::mem::take(&mut base.compared.references);
    for file in units.values_mut().flat_map(|references| references.objects.values_mut()) {
        *file = shown(file).into();
    }
    AtBase { places, units }
}

/// Keeps the references of a unit, and of a branch adds a warning for each that it broke and that has none.
pub(crate) fn find(checked: &mut Checked, now: Option<References>, comparison: &Comparison) {
    let (Some(now), unit) = (now, checked.inputs.unit.clone()) else { return };
    if let Comparison::With(base) = comparison
        && let Some(before) = base.units.get(&unit)
    {
        let unreadable = Unreadable::of(&checked.inputs);
        let mut broken: Vec<_> = broken(before, &now, &unreadable).collect();
        let Inputs { neighbours, number, .. } = &checked.inputs;
        let is_made = |Target { kind, namespace, name }: Target| {
            neighbours.find_by_name(*number, &kind, &namespace, &name).is_some()
        };
        broken.retain(|(field, _)| !field.targets().any(is_made));
        let known = broken.iter().filter(|(_, fate)| !matches!(fate, Fate::Unreadable(_)));
        let known: Vec<_> = known.map(|(field, _)| *field).collect();
        // That they are gone is said, whether a cluster has them or not.
        let gone: BTreeSet<Target> = known.iter().flat_map(|field| field.targets()).collect();
        let is_gone = |it: &Reference| gone.contains(&target_of(it));
        for decided in checked.decided.iter_mut().filter(|decided| decided.unknown.iter().any(is_gone)) {
            decided.unknown = decided.unknown.iter().filter(|it| !is_gone(it)).cloned().collect();
        }
        add_findings(checked, known.into_iter());
        let entry = |(field, fate): (&NamingField, Fate)| {
            let key = field.key.as_ref().map(|_| field.code);
            ((field.user.clone(), field.part.join(&field.pointer)), BrokenField { key, fate })
        };
        // Where one field says the name and the key, one of them is missing.
        checked.compared.broken = broken.into_iter().map(entry).collect();
    }
    checked.compared.standings.insert(unit.clone(), std::mem::take(&mut checked.inputs.standing));
    checked.compared.references.insert(unit, now);
}

/// What a field names, and of that the key.
type Part<'r> = (&'r Target, Option<&'r str>);

impl NamingField {
    fn part_of<'t>(&'t self, target: &'t Target) -> Part<'t> {
        (target, self.key.as_deref())
    }
}

/// The fields that named an object at the base, or a key of it, and do not now, each with what became of it.
fn broken<'r>(
    before: &'r References,
    now: &'r References,
    unreadable: &'r Unreadable,
) -> impl Iterator<Item = (&'r NamingField, Fate)> {
    // What each object named, by kind and whether it is a key, and the object that was found.
    let mut found: BTreeMap<(&ObjectRef, &str, bool), BTreeMap<Part<'_>, &Target>> = BTreeMap::new();
    for field in before.fields.iter().filter(|field| field.presence == Presence::Found) {
        let object = field.found.as_ref().unwrap_or(&field.target);
        let of_user = found.entry((&field.user, &field.target.kind, field.key.is_some())).or_default();
        of_user.insert(field.part_of(&field.target), object);
    }
    let named: BTreeSet<(&ObjectRef, Target, Option<&str>)> = now
        .fields
        .iter()
        .flat_map(|field| field.targets().map(move |target| (&field.user, target, field.key.as_deref())))
        .collect();
    // The first of each kind that an object named and does not name any more.
    let dropped = found.iter().filter_map(|((user, kind, is_key), parts)| {
        let is_dropped = |(target, key): &&Part<'_>| !named.contains(&(*user, (*target).clone(), *key));
        Some(((*user, *kind, *is_key), *parts.keys().find(is_dropped)?))
    });
    let dropped: BTreeMap<_, Part<'_>> = dropped.collect();
    let missing = now.fields.iter().filter(|field| field.presence == Presence::Missing);
    missing.filter_map(move |field| {
        let (user, is_key) = (&field.user, field.key.is_some());
        let found_before = |it: Target| {
            let parts = found.get(&(user, &*it.kind, is_key))?;
            parts.get(&field.part_of(&it)).copied()
        };
        if let Some(gone) = field.targets().find_map(found_before) {
            let had = || Fate::Gone(format!("{} {} had it before", gone.kind, quoted(&gone.name)));
            return Some((field, if is_key { had() } else { unreadable.fate(before, gone) }));
        }
        let dropped = field.kinds.iter().find_map(|kind| dropped.get(&(user, *kind, is_key)))?;
        Some((field, Fate::Gone(named_before(field, *dropped))))
    })
}

/// That a field named another object before, or another key of the same one.
fn named_before(field: &NamingField, (target, key): Part<'_>) -> String {
    let Target { kind, namespace, name } = target;
    match key.filter(|_| *target == field.target) {
        Some("") => return "it lacked no key before".to_owned(),
        Some(key) => return format!("it named {} before", quoted_key(key)),
        None => {}
    }
    let home = if *namespace == field.target.namespace {
        String::new()
    } else {
        format!(" in namespace {}", quoted(namespace))
    };
    format!("it named {kind} {}{home} before", quoted(name))
}

fn target_of(Reference { kind, namespace, name }: &Reference) -> Target {
    Target::new(kind.kind, namespace, name)
}

/// Adds a warning at each field that has none about what is missing: to the decision about its object, else to the file.
fn add_findings<'r>(checked: &mut Checked, fields: impl Iterator<Item = &'r NamingField>) {
    type Place = (*const Source, usize, Pointer);
    let mut known: BTreeSet<(Place, Option<&str>)> = BTreeSet::new();
    let mut judged: BTreeMap<Place, &mut Decided> = BTreeMap::new();
    for decided in &mut checked.decided {
        let place =
            |pointer| (Arc::as_ptr(decided.object.place.source()), decided.object.place.start(), pointer);
        for (finding, pointer) in decided.located_findings().filter(|(it, _)| it.policy.is_none()) {
            known.extend(is_about_missing(finding).then(|| (place(pointer.clone()), None)));
            known.extend(finding.missing.is_empty().then(|| (place(pointer), Some(finding.code.name))));
        }
        let at = place(decided.object.template());
        judged.insert(at, decided);
    }
    let mut notices = Vec::new();
    for field in fields {
        let NamingField { part, pointer, place, target, key, code, .. } = field;
        let at = |pointer: Pointer| (Arc::as_ptr(place.source()), place.start(), pointer);
        if !known.insert((at(part.join(pointer)), key.as_ref().map(|_| code.name))) {
            continue;
        }
        let Target { kind, namespace, name } = target;
        let message = match key {
            Some(key) => no_key_message(kind, name, key),
            None => not_found_message(kind, name, namespace),
        };
        let mut finding = Finding::warn(code, pointer.clone(), message);
        finding.cause = Cause::NotFound;
        finding.fingerprint_value =
            format!("{kind} {namespace}/{name} {}", key.as_deref().unwrap_or_default());
        finding.settle_at(&part.join(pointer));
        if let Some(decided) = judged.get_mut(&at(part.clone())) {
            Arc::make_mut(&mut decided.admitted).decision.findings.push(finding);
        } else {
            finding.pointer = part.join(pointer);
            let span = place.locate(&finding.pointer).caret;
            let object_ref = ObjectRef { api_version: Arc::clone(&field.api_version), ..field.user.clone() };
            notices.push(Notice { object_ref, ..Notice::new(place.source(), span, finding) });
        }
    }
    checked.inputs.notices.extend(notices);
}

/// Makes a denial of each finding about what the branch broke.
pub(crate) fn mark(checked: &mut Checked, base: &AtBase) {
    let Checked { decided, inputs, compared, .. } = checked;
    let unreadable = Unreadable::of(inputs);
    let fate = |finding: &Finding, object: &ObjectRef, pointer: Pointer| {
        let user = ObjectRef { api_version: Arc::default(), ..object.clone() };
        let is_about = |it: &&BrokenField| {
            let is_missing = it.key.is_none() && is_about_missing(finding);
            finding.policy.is_none()
                && (is_missing || it.key == Some(finding.code) && finding.missing.is_empty())
        };
        let of_field = compared.broken.get(&(user, pointer)).filter(is_about);
        of_field.map(|it| it.fate.clone()).or_else(|| {
            let ObjectRef { kind, namespace, name, unit, .. } = object;
            let before = base.units.get(&**unit).filter(|it| it.has(&Target::new(kind, namespace, name)))?;
            let gone = finding.missing.iter().find(|it| base.has(it))?;
            Some(unreadable.fate(before, &target_of(gone)))
        })
    };
    for decided in decided.iter_mut() {
        let object = &decided.object;
        let all = &decided.admitted.decision.findings;
        let fates = all.iter().map(|it| {
            let pointer = object.in_document(&it.pointer);
            Some((fate(it, &object.object_ref, pointer.clone())?, pointer))
        });
        let fates: Vec<_> = fates.collect();
        if fates.iter().any(Option::is_some) {
            let findings = &mut Arc::make_mut(&mut decided.admitted).decision.findings;
            for (finding, fate) in findings.iter_mut().zip(fates) {
                if let Some((fate, pointer)) = fate {
                    tell(finding, &fate, &pointer);
                }
            }
        }
    }
    for Notice { finding, object_ref, .. } in &mut inputs.notices {
        let pointer = finding.pointer.clone();
        if let Some(fate) = fate(finding, object_ref, pointer.clone()) {
            tell(finding, &fate, &pointer);
        }
    }
}

/// Whether a finding says that an object does not exist.
fn is_about_missing(finding: &Finding) -> bool {
    finding.policy.is_none() && (finding.cause == Cause::NotFound || !finding.missing.is_empty())
}

/// Says in a finding at this place of a document what became of what is missing. It denies, unless that is not known.
fn tell(finding: &mut Finding, fate: &Fate, pointer: &Pointer) {
    if !matches!(fate, Fate::Unreadable(_)) {
        (finding.severity, finding.denied_by) = (Severity::Deny, DeniedBy::Report);
    }
    // A denial names its field, however long it is.
    let message = finding.message_at(pointer);
    let message = message.strip_suffix(&format!(" ({NO_OBJECT_OF_KIND})")).unwrap_or(&message);
    let message = match fate {
        Fate::Gone(how) => format!("{message}; broken by this branch: {how}"),
        Fate::Unreadable(where_it_was) => format!("{message}; {where_it_was}"),
    };
    *finding = finding.clone().with_message(message);
}

/// What cannot be read now: objects of the base may still be there.
struct Unreadable {
    /// The files and directories of which not all can be read.
    paths: BTreeSet<PathBuf>,
    /// The words of the texts, each with the first of them: an object may have moved there.
    words: BTreeMap<String, Arc<Source>>,
}

impl Unreadable {
    fn of(inputs: &Inputs) -> Self {
        let mut first = BTreeMap::new();
        let faulty = inputs.errors.iter().filter_map(|error| Some(&error.syntax_error()?.source_text));
        let faulty: BTreeMap<&str, &Arc<Source>> = faulty.map(|source| (source.name(), source)).collect();
        for source in faulty.into_values() {
            for word in words(source.text()) {
                first.entry(word.to_owned()).or_insert_with(|| Arc::clone(source));
            }
        }
        let paths = inputs.errors.iter().filter_map(|error| Some(error.place()?.0));
        let templates = inputs.passed_over.iter().filter(|it| it.why == Why::Template);
        let templates = templates.map(|it| it.source.name());
        Self { paths: paths.chain(templates).map(path).collect(), words: first }
    }

    /// What became of an object that is gone.
    fn fate(&self, before: &References, gone: &Target) -> Fate {
        let old = format!("{} {}", gone.kind, quoted(&gone.name));
        let file = before.objects.get(gone).map(|file| &**file).filter(|file| !file.starts_with('<'));
        let is_unreadable = |file: &&str| path(file).ancestors().any(|it| self.paths.contains(it));
        if let Some(file) = file.filter(is_unreadable) {
            return Fate::Unreadable(format!(
                "{old} was in {}, not all of which can be read now",
                plain(file)
            ));
        }
        if let Some(source) = self.words.get(&gone.name) {
            let file = plain(source.name()).into_owned();
            return Fate::Unreadable(format!("{old} may be in {file}, not all of which can be read now"));
        }
        Fate::Gone(match file {
            None => format!("{old} is gone"),
            Some(file) if Path::new(file).exists() => format!("{old} is gone from {}", plain(file)),
            Some(file) => format!("{old} is gone with {}", plain(file)),
        })
    }
}

/// The path of a file, however it is written.
fn path(file: &str) -> PathBuf {
    without_dots(Path::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::run::{Run, judged};
    use memgate_model::request::Occasion;
    use memgate_platforms::ALL;
    use memgate_platforms::other_references::other_references;
    use serde_json::{Value, json};

    fn run(objects: &[Value], comparison: Comparison) -> Checked {
        let text: String = objects
            .iter()
            .flat_map(|object| ["---\n".to_owned(), object.to_string(), "\n".to_owned()])
            .collect();
        let plan = Plan { comparison, ..Plan::of_text(&text) };
        judged(&Run { plan, occasion: Occasion::default() }).expect("loads")
    }

    /// The denials of what the branch broke.
    fn broken(before: &[Value], now: &[Value]) -> Vec<String> {
        let base = at_base(&mut run(before, Comparison::Base), str::to_owned);
        let checked = run(now, Comparison::With(Arc::new(base)));
        let notices = checked.inputs.notices.iter().map(|notice| &notice.finding);
        let all = checked.decided.iter().flat_map(Decided::findings).chain(notices);
        let denials = all.filter(|finding| finding.is_denial());
        let messages = denials.map(|finding| finding.message().into_owned());
        messages.filter(|message| message.contains("broken by this branch: ")).collect()
    }

    /// Puts a value at a path, with one element for each list.
    fn put(object: &mut Value, path: &str, value: Value) {
        let (token, rest) = path.split_once('/').map_or((path, None), |(token, rest)| (token, Some(rest)));
        let token = token.replace("~1", "/");
        let below = match rest {
            None => return object[token] = value,
            Some("*") => return object[token] = json!([value]),
            Some(rest) => match rest.strip_prefix("*/") {
                Some(rest) => {
                    let list = &mut object[&*token];
                    if list.is_null() {
                        *list = json!([{}]);
                    }
                    return put(&mut list[0], rest, value);
                }
                None => rest,
            },
        };
        put(&mut object[token], below, value);
    }

    fn object(group: &str, version: &str, kind: &str, (namespace, name): (&str, &str)) -> Value {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
    }

    /// What else an object must say for a field to be read.
    fn settle(user: &mut Value, path: &str) {
        let kind = user["kind"].as_str().unwrap_or_default().to_owned();
        let mut set = |path: &str, value: &str| put(user, path, value.into());
        match (&*kind, path) {
            ("Pod", _) => set("metadata/labels/memgate.dev~1inject", "enabled"),
            ("Task", "/spec/agentRef/name") => set("spec/type", "ai"),
            ("Task", _) => set("spec/env/*/name", "ORKA_MEMORY_CONTEXT_LIMIT"),
            ("ModelConfig", "/spec/foundry/endpointFrom/name") => set("spec/provider", "Foundry"),
            ("ModelConfig", _) => set("spec/provider", "OpenAI"),
            (_, "/spec/redis/secretRef/name") => set("spec/backend", "redis"),
            (_, "/spec/vectorStore/secretRef/name" | "/spec/embedding/apiKeyRef/name") => {
                set("spec/backend", "vector-store");
            }
            ("Memory", "/spec/auth/secretRef" | "/spec/endpoint_secret_ref") => set("spec/provider", "http"),
            _ => {}
        }
    }

    /// The objects without which a field does not matter.
    fn around(user: &Value) -> Vec<Value> {
        let group = user["apiVersion"].as_str().and_then(|it| it.split('/').next()).unwrap_or_default();
        let (version, kind, path) = match (user["kind"].as_str(), group) {
            (Some("ModelEndpoint"), _) => ("v1", "Memory", "spec/embedding_model"),
            (Some("ModelConfig"), "kagent.dev") => {
                ("v1alpha2", "Agent", "spec/declarative/memory/modelConfig")
            }
            (Some("ModelConfig"), _) => {
                ("v1alpha3", "Agent", "spec/harness/kagent/memory/modelConfigRef/name")
            }
            _ => return Vec::new(),
        };
        let mut other = object(group, version, kind, ("a", "around"));
        put(&mut other, path, "user".into());
        vec![other]
    }

    /// A field that names an object of a kind, in an object that has it.
    struct Row {
        user: Value,
        path: String,
        to: [String; 2],
    }

    /// An Ensemble makes Agents, which take their names from its configs. That other Agents are known does not matter.
    #[test]
    fn what_an_ensemble_does_not_make_any_more_is_gone() {
        let mut run = object("sympozium.ai", "v1alpha1", "AgentRun", ("a", "run"));
        put(&mut run, "spec/agentRef", "team-scout".into());
        let other = object("sympozium.ai", "v1alpha1", "Agent", ("a", "zzzzzzzz"));
        let ensemble = |config: &str| {
            let mut ensemble = object("sympozium.ai", "v1alpha1", "Ensemble", ("a", "team"));
            put(&mut ensemble, "spec/agentConfigs/*/name", config.into());
            ensemble
        };
        for others in [vec![other], Vec::new()] {
            let with = |objects: &[Value]| [objects, &others].concat();
            let before = with(&[run.clone(), ensemble("scout")]);
            let expected = "Agent \"team-scout\" is gone";
            for now in [with(&[run.clone(), ensemble("finder")]), with(std::slice::from_ref(&run))] {
                let messages = broken(&before, &now);
                assert!(messages.len() == 1 && messages[0].ends_with(expected), "{messages:?}");
            }
            assert!(broken(&before, &before).is_empty());
        }
    }

    /// The keys of Secrets and ConfigMaps and the ports of Services are references too, on whichever side they change.
    #[test]
    fn keys_and_ports_break_like_names() {
        let config_map = |keys: &[&str]| {
            let data: serde_json::Map<_, _> =
                keys.iter().map(|key| ((*key).to_owned(), json!("5"))).collect();
            let mut map = object("", "v1", "ConfigMap", ("a", "limits"));
            map["data"] = data.into();
            map
        };
        let mut service = object("", "v1", "Service", ("a", "limits"));
        let with_port = |service: &mut Value, name: &str| {
            put(service, "spec/ports/*", json!({"name": name, "port": 80}));
            service.clone()
        };
        let user_of = |user: &Value, path: &str, key: &str| {
            let mut user = user.clone();
            put(&mut user, &format!("{path}/name"), "limits".into());
            put(
                &mut user,
                &format!("{path}/{}", if path.ends_with("serviceRef") { "port" } else { "key" }),
                key.into(),
            );
            user
        };
        let mut task = object("core.orka.ai", "v1alpha1", "Task", ("a", "user"));
        put(&mut task, "spec/env/*/name", "ORKA_MEMORY_CONTEXT_LIMIT".into());
        let memory = object("ark.mckinsey.com", "v1alpha1", "Memory", ("a", "user"));
        let mut pod = object("", "v1", "Pod", ("a", "user"));
        put(&mut pod, "metadata/labels/memgate.dev~1inject", "enabled".into());
        put(&mut pod, "spec/containers/*/name", "agent".into());
        for (user, path, what) in [
            (task, "spec/env/*/valueFrom/configMapKeyRef", "ConfigMap"),
            (memory.clone(), "spec/address/valueFrom/configMapKeyRef", "ConfigMap"),
            (memory, "spec/address/valueFrom/serviceRef", "Service"),
            (pod, "spec/containers/*/env/*/valueFrom/configMapKeyRef", "ConfigMap"),
        ] {
            let mut target = |key: &str| match what {
                "Service" => with_port(&mut service, key),
                _ => config_map(&[key]),
            };
            let before = [user_of(&user, path, "one"), target("one")];
            for (now, expected) in [
                ([user_of(&user, path, "one"), target("two")], format!("{what} \"limits\" had it before")),
                ([user_of(&user, path, "two"), target("one")], "it named \"one\" before".to_owned()),
            ] {
                let messages = broken(&before, &now);
                let is_said = messages.len() == 1 && messages[0].ends_with(&expected);
                assert!(is_said, "{path}: {expected}: {messages:?}");
            }
            let now = [user_of(&user, path, "two"), target("two")];
            assert!(broken(&before, &now).is_empty() && broken(&before, &before).is_empty(), "{path}");
            // What was wrong before is not the branch's.
            let wrong = [user_of(&user, path, "two"), target("one")];
            assert!(broken(&wrong, &wrong).is_empty(), "{path}");
        }
    }

    /// Names with a namespace before them, and the namespace that Orloj takes for an object's own.
    #[test]
    fn orloj_looks_models_up_where_they_are() {
        let endpoint =
            |namespace: &str, name: &str| object("orloj.dev", "v1", "ModelEndpoint", (namespace, name));
        let other = endpoint("b", "zzzzzzzz");
        for (annotation, name) in [("", "b/old"), ("b", "old")] {
            for path in ["spec/model_ref", "spec/fallback_model_refs/*"] {
                let mut agent = object("orloj.dev", "v1", "Agent", ("a", "user"));
                if !annotation.is_empty() {
                    put(&mut agent, "metadata/annotations/orloj.dev~1target-namespace", annotation.into());
                }
                put(&mut agent, path, name.into());
                let before = [agent.clone(), endpoint("b", "old"), other.clone()];
                let now = [agent, endpoint("b", "new"), other.clone()];
                let messages = broken(&before, &now);
                assert_eq!(messages.len(), 1, "{path} {name}");
                assert!(messages[0].contains("ModelEndpoint \"old\" is gone"), "{messages:?}");
            }
        }
    }

    /// A ModelConfig with which no agent embeds: no rule of memory judges it.
    #[test]
    fn what_is_outside_of_memory_breaks_too() {
        let mut config = object("kagent.dev", "v1alpha2", "ModelConfig", ("a", "chat"));
        put(&mut config, "spec/provider", "OpenAI".into());
        put(&mut config, "spec/apiKeySecret", "key".into());
        let secret = |name: &str| object("", "v1", "Secret", ("a", name));
        let messages = broken(&[config.clone(), secret("key")], &[config, secret("new-key")]);
        assert!(messages.len() == 1 && messages[0].ends_with("Secret \"key\" is gone"), "{messages:?}");
    }

    /// What a denial says is gone is not also unknown. What another object names is.
    #[test]
    fn what_is_gone_is_not_unknown() {
        let memory = |name: &str| {
            let mut memory = object("arkonis.dev", "v1alpha1", "ArkMemory", ("a", name));
            put(&mut memory, "spec/backend", "redis".into());
            put(&mut memory, "spec/redis/secretRef/name", name.into());
            memory
        };
        let secret = object("", "v1", "Secret", ("a", "redis"));
        let base = at_base(&mut run(&[memory("redis"), secret], Comparison::Base), str::to_owned);
        let now = ["redis", "other"].map(memory);
        let checked = run(&now, Comparison::With(Arc::new(base)));
        let denials = checked.decided.iter().flat_map(Decided::findings).filter(|it| it.is_denial()).count();
        let unknown: Vec<&str> =
            checked.decided.iter().flat_map(|it| &it.unknown).map(|it| it.name.as_str()).collect();
        assert_eq!((denials, unknown), (1, vec!["other"]));
    }

    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for family in ALL {
            for edge in family.edges {
                let from = edge.from.iter().map(|kind| (kind.group, kind.version, kind.kind));
                let pod = edge.from.is_empty().then_some(("", "v1", "Pod"));
                for (group, version, kind) in from.chain(pod) {
                    for to in edge.to {
                        let user = object(group, version, kind, ("a", "user"));
                        rows.push(Row {
                            user,
                            path: edge.path.to_owned(),
                            to: [to.api_version(), to.kind.to_owned()],
                        });
                    }
                }
            }
            for row in other_references(family) {
                let user = object(&row.from.group, "v1alpha1", &row.from.kind, ("a", "user"));
                let version = if row.to.group.is_empty() {
                    "v1".to_owned()
                } else {
                    format!("{}/v1alpha1", row.to.group)
                };
                rows.push(Row { user, path: row.path.clone(), to: [version, row.to.kind.clone()] });
            }
        }
        rows
    }

    /// Whatever a field of any table names, a branch that takes it away breaks the field.
    #[test]
    fn every_reference_of_every_table_can_break() {
        let mut untouched = Vec::new();
        for Row { user, path, to: [api_version, kind] } in rows() {
            let target = |namespace: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
            let user = |name: &str| {
                let mut user = user.clone();
                put(&mut user, &path[1..], name.into());
                settle(&mut user, &path);
                user
            };
            let other = target("a", "zzzzzzzz");
            let others = || around(&user("old")).into_iter().chain([other.clone()]);
            let with = |objects: Vec<Value>| -> Vec<Value> { objects.into_iter().chain(others()).collect() };
            let before = with(vec![user("old"), target("a", "old")]);
            let title = format!("{} {path} to {api_version} {kind}", user("old")["kind"]);
            let elsewhere = with(vec![user("old"), target("b", "old")]);
            for (now, expected) in [
                (with(vec![user("old"), target("a", "new")]), "is gone"),
                (elsewhere.clone(), "is gone"),
                (with(vec![user("old")]), "is gone"),
                (with(vec![user("other"), target("a", "old")]), "\"old\" before"),
                ([user("old")].into_iter().chain(around(&user("old"))).collect(), "is gone"),
            ] {
                let got = broken(&before, &now);
                // Its memory may be in any namespace.
                if user("old")["kind"] == "ArkConfig" && now == elsewhere {
                    assert!(got.is_empty(), "{got:?}");
                    continue;
                }
                if !got.iter().any(|message| message.contains(expected)) {
                    untouched.push(format!("{title}: {expected}: {got:?}"));
                }
            }
            let mut new = user("gone");
            new["metadata"]["name"] = "new-user".into();
            assert!(broken(&before, &with(vec![user("old"), target("a", "old"), new])).is_empty(), "{title}");
            assert!(broken(&before, &before).is_empty(), "{title}");
        }
        assert!(untouched.is_empty(), "{}", untouched.join("\n"));
    }
}
