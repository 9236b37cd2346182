//! References that a branch broke: at its base they stood for an object, and now they stand for none, since the object was
//! renamed, moved or removed, or the reference was changed. Such a finding denies. References of new objects only warn.
//!
//! `find` adds the findings that are missing, before what was rendered is traced to its files; [`mark`] makes denials of
//! all of them, once the repository has given its severities.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::compared::{AtBase, Comparison, NamingField, ObjectText, Presence, References, Target};
use crate::judge::{Checked, Decided, NO_OBJECT_OF_KIND};
use crate::notices::Notice;
use crate::report::ObjectRef;
use crate::repository::without_dots;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_model::object::Reference;
use memgate_platforms::references::not_found_message;
use memgate_primitives::plain_text::{plain, quoted};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::nearest;

/// How many new objects of one kind and namespace are compared with a name.
const MAX_COMPARED: usize = 1_000;

/// The objects and references of a base. `shown` gives the name of a file as the user would write it.
pub fn at_base(base: &mut Checked, shown: impl Fn(&str) -> String) -> AtBase {
    let of_sets = std::mem::take(&mut base.places_of_sets).into_values();
    let places = iter::once(std::mem::take(&mut base.inputs.places)).chain(of_sets).collect();
    let mut sets = std::mem::take(&mut base.compared.references);
    for object in sets.values_mut().flat_map(|references| references.objects.values_mut()) {
        object.file = shown(&object.file).into();
    }
    AtBase { places, sets }
}

/// Keeps the references of a set, and of a branch adds a warning for each that it broke and that has none.
pub(crate) fn find(checked: &mut Checked, now: Option<References>, comparison: &Comparison) {
    let (Some(mut now), set) = (now, checked.inputs.set.clone()) else { return };
    now.without_key = without_key(checked);
    if let Comparison::With(base) = comparison
        && let Some(before) = base.sets.get(&set)
    {
        let became = Became::of(before, &now, &checked.inputs.errors);
        let broken: Vec<_> = broken(before, &now, &became).collect();
        add_findings(checked, broken.iter().map(|(field, _)| *field));
        let entry = |(field, how): (&NamingField, String)| (field_of(field), how);
        checked.compared.broken = broken.into_iter().map(entry).chain(lost_keys(before, &now)).collect();
    }
    checked.compared.standings.insert(set.clone(), std::mem::take(&mut checked.inputs.standing));
    checked.compared.references.insert(set, now);
}

fn field_of(field: &NamingField) -> (ObjectRef, Pointer) {
    (field.user.clone(), field.part.join(&field.pointer))
}

/// The codes about keys that an object lacks.
fn is_about_key(finding: &Finding) -> bool {
    let edges = memgate_platforms::ALL.iter().flat_map(|family| family.edges);
    let mut missing = edges.filter_map(|edge| edge.missing.as_ref());
    finding.policy.is_none() && missing.any(|it| it.key == finding.code && it.key != it.object)
}

/// The fields about which a finding says that an object lacks a key.
fn without_key(checked: &Checked) -> BTreeSet<(ObjectRef, Pointer)> {
    let of_object = |decided: &Decided| {
        let object_ref = ObjectRef {
            api_version: Arc::default(),
            set: checked.inputs.set.as_str().into(),
            ..decided.object.object_ref.clone()
        };
        let about = decided.located_findings().filter(|(finding, _)| is_about_key(finding));
        about.map(|(_, pointer)| (object_ref.clone(), pointer)).collect::<Vec<_>>()
    };
    checked.decided.iter().flat_map(of_object).collect()
}

/// The fields of which the object had the key at the base, or that named another one.
fn lost_keys<'r>(
    before: &'r References,
    now: &'r References,
) -> impl Iterator<Item = ((ObjectRef, Pointer), String)> {
    // A key may stand beside the name, and other names too.
    let has_keys = |field: &&NamingField| ["Secret", "ConfigMap"].contains(&&*field.target.kind);
    let holder = |(user, pointer): &(ObjectRef, Pointer)| (user.clone(), pointer.parent());
    let found = |references: &'r References| {
        let found = references.fields.iter().filter(|field| field.presence == Presence::Found);
        let found = found.filter(has_keys);
        found.map(|field| (holder(&field_of(field)), &field.target)).collect::<BTreeMap<_, _>>()
    };
    let (found_before, found_now) = (found(before), found(now));
    let lost = now.without_key.iter().filter(|field| !before.without_key.contains(field));
    lost.filter_map(move |field| {
        let Target { kind, name, .. } = found_before.get(&holder(field))?;
        let (kind, name) = (kind.as_str(), quoted(name));
        let is_same = found_before.get(&holder(field)) == found_now.get(&holder(field));
        let how = if is_same {
            format!("{kind} {name} had it before")
        } else {
            format!("it named {kind} {name} before")
        };
        Some((field.clone(), how))
    })
}

/// The fields that named an object at the base and do not now, each with what became of it.
fn broken<'r>(
    before: &'r References,
    now: &'r References,
    became: &'r Became<'_>,
) -> impl Iterator<Item = (&'r NamingField, String)> {
    // What each object named, by kind, and the object that was found.
    let mut found: BTreeMap<(&ObjectRef, &str), BTreeMap<&Target, &Target>> = BTreeMap::new();
    for field in before.fields.iter().filter(|field| field.presence == Presence::Found) {
        let object = field.found.as_ref().unwrap_or(&field.target);
        found.entry((&field.user, &field.target.kind)).or_default().insert(&field.target, object);
    }
    let users: BTreeSet<&ObjectRef> = now.fields.iter().map(|field| &field.user).collect();
    // A new object that is called as one that is gone is that one, else one with the same content, if only one is.
    let mut moved: BTreeMap<(&str, &str), Vec<&ObjectRef>> = BTreeMap::new();
    let mut renamed: BTreeMap<(&str, &str, u64), Vec<&ObjectRef>> = BTreeMap::new();
    for (user, _) in found.keys().filter(|(user, _)| !now.has(&target_of(user))) {
        let content =
            before.objects.get(&target_of(user)).map(|it| (&*user.kind, &*user.namespace, it.content));
        let homes = [
            Some(moved.entry((&user.kind, &user.name)).or_default()),
            content.map(|it| renamed.entry(it).or_default()),
        ];
        for homes in homes.into_iter().flatten() {
            homes.extend((homes.last() != Some(user)).then_some(*user));
        }
    }
    let user_before = move |user: &'r ObjectRef| {
        let target = target_of(user);
        let only =
            |homes: Option<&Vec<&'r ObjectRef>>| if let [home] = homes?[..] { Some(home) } else { None };
        let of_content = || {
            let content = now.objects.get(&target)?.content;
            only(renamed.get(&(&*user.kind, &*user.namespace, content)))
        };
        let home = || only(moved.get(&(&*user.kind, &*user.name))).or_else(of_content);
        (!before.has(&target)).then(home).flatten().unwrap_or(user)
    };
    let named: BTreeSet<(&ObjectRef, Target)> = now
        .fields
        .iter()
        .flat_map(|field| field.targets().map(move |target| (&field.user, target)))
        .collect();
    // The first object of each kind that an object named and does not name any more.
    let mut dropped: BTreeMap<(&ObjectRef, &str), Option<&Target>> = BTreeMap::new();
    for user in users {
        let own = found.range((user_before(user), "")..).take_while(|((it, _), _)| *it == user_before(user));
        for ((_, kind), targets) in own {
            let first = targets.keys().find(|target| !named.contains(&(user, (**target).clone())));
            dropped.insert((user, kind), first.copied());
        }
    }
    let missing = now.fields.iter().filter(|field| field.presence == Presence::Missing);
    missing.filter_map(move |field| {
        let user = user_before(&field.user);
        let found_before = |it: Target| Some(*found.get(&(user, &*it.kind))?.get(&it)?);
        if let Some(gone) = field.targets().find_map(found_before) {
            return Some((field, became.of_gone(gone)?));
        }
        let dropped = field.kinds.iter().find_map(|kind| *dropped.get(&(&field.user, kind))?)?;
        let home = &dropped.namespace;
        let home = if *home == field.target.namespace {
            String::new()
        } else {
            format!(" in namespace {}", quoted(home))
        };
        Some((field, format!("it named {} {}{home} before", dropped.kind, quoted(&dropped.name))))
    })
}

/// The object that refers, as one that is referred to.
fn target_of(ObjectRef { kind, namespace, name, .. }: &ObjectRef) -> Target {
    Target::new(kind, namespace, name)
}

/// Adds a warning at each field that has none about a missing object: to the decision about its object, else to the file.
fn add_findings<'r>(checked: &mut Checked, fields: impl Iterator<Item = &'r NamingField>) {
    type Place = (*const Source, usize, Pointer);
    let mut known: BTreeSet<Place> = BTreeSet::new();
    let mut judged: BTreeMap<Place, &mut Decided> = BTreeMap::new();
    for decided in &mut checked.decided {
        let place =
            |pointer| (Arc::as_ptr(decided.object.place.source()), decided.object.place.start(), pointer);
        let missing = decided.located_findings().filter(|(finding, _)| is_about_missing(finding));
        known.extend(missing.map(|(_, pointer)| place(pointer)));
        let at = place(decided.object.template());
        judged.insert(at, decided);
    }
    let mut notices = Vec::new();
    for field in fields {
        let NamingField { part, pointer, place, target, code, .. } = field;
        let at = |pointer: Pointer| (Arc::as_ptr(place.source()), place.start(), pointer);
        if !known.insert(at(part.join(pointer))) {
            continue;
        }
        let Target { kind, namespace, name } = target;
        let mut finding = Finding::warn(code, pointer.clone(), not_found_message(kind, name, namespace));
        finding.cause = Cause::NotFound;
        finding.fingerprint_value = format!("{kind} {namespace}/{name}");
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

/// Makes a denial of each finding about a reference that the branch broke.
pub fn mark(checked: &mut Checked, base: &AtBase) {
    let Checked { decided, inputs, compared, .. } = checked;
    let sets = compared.references.iter();
    let sets = sets
        .filter_map(|(set, now)| Some((set.as_str(), Became::of(base.sets.get(set)?, now, &inputs.errors))));
    let became: BTreeMap<&str, Became<'_>> = sets.collect();
    let ending = |finding: &Finding, object: &ObjectRef, pointer: Pointer| {
        let user = ObjectRef { api_version: Arc::default(), ..object.clone() };
        let is_old = base.sets.get(&*user.set).is_some_and(|before| before.has(&target_of(&user)));
        let of_field = compared.broken.get(&(user, pointer)).cloned();
        of_field.filter(|_| is_about_missing(finding) || is_about_key(finding)).or_else(|| {
            let gone = finding.missing.iter().find(|it| is_old && base.has(it))?;
            let Reference { kind, namespace, name } = gone;
            became.get(&*object.set)?.of_gone(&Target::new(kind.kind, namespace, name))
        })
    };
    for decided in decided.iter_mut() {
        let object = &decided.object;
        let all = &decided.admitted.decision.findings;
        let endings = all.iter().map(|it| ending(it, &object.object_ref, object.in_document(&it.pointer)));
        let endings: Vec<_> = endings.collect();
        if endings.iter().any(Option::is_some) {
            let findings = &mut Arc::make_mut(&mut decided.admitted).decision.findings;
            findings.iter_mut().zip(endings).for_each(|(finding, ending)| deny(finding, ending));
        }
    }
    for Notice { finding, object_ref, .. } in &mut inputs.notices {
        let ending = ending(finding, object_ref, finding.pointer.clone());
        deny(finding, ending);
    }
}

/// Whether a finding says that an object does not exist.
fn is_about_missing(finding: &Finding) -> bool {
    finding.policy.is_none() && (finding.cause == Cause::NotFound || !finding.missing.is_empty())
}

fn deny(finding: &mut Finding, ending: Option<String>) {
    let Some(ending) = ending else { return };
    let message = finding.message();
    let message = message.strip_suffix(&format!(" ({NO_OBJECT_OF_KIND})")).unwrap_or(&message);
    *finding = finding.clone().with_message(format!("{message}; broken by this branch: {ending}"));
    finding.severity = Severity::Deny;
}

/// What became of the objects of the base.
struct Became<'r> {
    before: &'r References,
    /// The objects that are new, by kind and namespace, and their namespaces, by kind and name.
    new: BTreeMap<(&'r str, &'r str), Vec<(&'r str, &'r ObjectText)>>,
    namespaces: BTreeMap<(&'r str, &'r str), &'r str>,
    /// The files that cannot be read now: what was in them may still be there.
    unreadable: BTreeSet<PathBuf>,
}

impl<'r> Became<'r> {
    fn of(before: &'r References, now: &'r References, errors: &[Error]) -> Self {
        let (mut new, mut namespaces) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        for (Target { kind, namespace, name }, text) in now.objects.iter().filter(|(it, _)| !before.has(it)) {
            new.entry((kind.as_str(), namespace.as_str())).or_default().push((name.as_str(), text));
            namespaces.entry((kind.as_str(), name.as_str())).or_insert(namespace.as_str());
        }
        for objects in new.values_mut() {
            objects.truncate(MAX_COMPARED);
        }
        let unreadable = errors.iter().filter_map(|error| Some(path(error.place()?.0))).collect();
        Self { before, new, namespaces, unreadable }
    }

    /// What became of an object that is gone: its likely new name, or its new namespace. `None` if that is not known.
    fn of_gone(&self, gone: &Target) -> Option<String> {
        let Target { kind, namespace, name } = gone;
        let (old, before) = (format!("{kind} {}", quoted(name)), self.before.objects.get(gone));
        if before.is_some_and(|before| self.unreadable.contains(&path(&before.file))) {
            return None;
        }
        let new = self.new.get(&(kind, namespace)).map(Vec::as_slice).unwrap_or_default();
        let near = nearest(name, new.iter().map(|(name, _)| *name));
        if let Some(home) = self.namespaces.get(&(kind, name)).filter(|_| near.is_none()) {
            return Some(format!("{old} is now in namespace {}", quoted(home)));
        }
        if let Some(new) = near.or_else(|| likely(name, before, new)) {
            return Some(format!("{old} is now {}", quoted(new)));
        }
        Some(match before.map(|it| &*it.file).filter(|file| !file.starts_with('<')) {
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

/// The new object that is likely an old one: of several the only one with its content, in its file, or of a name that begins
/// with the same word.
fn likely<'r>(name: &str, before: Option<&ObjectText>, new: &[(&'r str, &'r ObjectText)]) -> Option<&'r str> {
    let is_alike = |it: &ObjectText| before.is_some_and(|before| before.content == it.content);
    let is_beside = |it: &ObjectText| before.is_some_and(|before| path(&before.file) == path(&it.file));
    let begins = |other: &str| name.split(['-', '.']).next() == other.split(['-', '.']).next();
    let mut left = new.to_vec();
    let mut narrow = |fits: &dyn Fn(&(&str, &ObjectText)) -> bool| {
        if left.iter().any(fits) {
            left.retain(|it| fits(it));
        }
    };
    narrow(&|(_, it)| is_alike(it));
    narrow(&|(_, it)| is_beside(it));
    narrow(&|(name, _)| begins(name));
    if let [(only, _)] = left[..] { Some(only) } else { None }
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
        let base = Arc::new(base);
        let mut checked = run(now, Comparison::With(Arc::clone(&base)));
        mark(&mut checked, &base);
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

    /// An Ensemble makes Agents.
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
        let before = [run.clone(), ensemble("scout"), other.clone()];
        assert_eq!(broken(&before, &[run, ensemble("finder"), other]).len(), 1);
        assert!(broken(&before, &before).is_empty());
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
                assert!(messages[0].contains("ModelEndpoint \"old\" is now \"new\""), "{messages:?}");
            }
        }
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
            for (now, expected) in [
                (with(vec![user("old"), target("a", "new")]), "is now \"new\""),
                (with(vec![user("old"), target("b", "old")]), "is now in namespace \"b\""),
                (with(vec![user("old")]), "is gone"),
                (with(vec![user("other"), target("a", "old")]), "\"old\" before"),
                ([user("old")].into_iter().chain(around(&user("old"))).collect(), "is gone"),
            ] {
                let got = broken(&before, &now);
                // Its memory may be in any namespace.
                if user("old")["kind"] == "ArkConfig" && expected.contains("in namespace") {
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
