//! Warns about objects that do not exist although another one names them, and about keys that they lack. What refers to
//! what says the table of a family ([`Edge`]); all families get the same words.

use memgate_model::edge::{Edge, Form, Home, Key, Missing, Named, NamedKey, Site, Wanted};
use memgate_model::finding::Details;
use memgate_model::memory_view::USERS;
use memgate_primitives::name::meant_name;

use crate::common::REFERENCE_TERMINATING;
use crate::message::{MANY, fit_message, truncate, truncate_text};
use crate::prelude::*;

/// What an edge to a Secret names.
pub(crate) static SECRETS: [&Kind; 1] = [&SECRET];

/// What an edge to a `ConfigMap` names.
pub(crate) static CONFIG_MAPS: [&Kind; 1] = [&CONFIG_MAP];

/// How many existing names all missing names of an object are compared with.
const MAX_COMPARED: usize = 1_000;

/// The warning about memory that is being deleted, at the place that refers to it; `None` for any other memory.
pub(crate) fn going(memory: &Object, pointer: impl FnOnce() -> Pointer) -> Option<Finding> {
    memory.deleting().then(|| {
        let values = [memory.kind.kind, &memory.namespace, &memory.name];
        let finding = warning(&REFERENCE_TERMINATING, pointer(), "{bare} {/} is being deleted", values);
        finding.elsewhere(memory, Pointer::new("/metadata/deletionTimestamp"), "it is being deleted")
    })
}

/// What is missing, or is memory that is being deleted, of that to which the subject refers by these edges.
pub fn findings(edges: &'static [Edge], subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let (mut findings, mut left) = (Vec::new(), MAX_COMPARED);
    if !state.budget().wants_warnings() {
        return findings;
    }
    for edge in edges.iter().filter(|edge| edge.from.contains(&subject.kind)) {
        if edge.missing.is_none() && !edge.serves_memory {
            continue;
        }
        let sites = edge.sites(subject.object);
        if sites.is_empty() || !(edge.matters)(subject, state) {
            continue;
        }
        for site in sites.iter().filter(|site| (edge.counts)(site, subject.object)) {
            findings.extend(finding(edge, site, (subject, &mut left), state));
        }
    }
    findings
}

/// Those of objects of an index that are not being deleted, which come first; of very many only the first.
pub(crate) fn staying<'s>(objects: impl Iterator<Item = &'s Object>) -> impl Iterator<Item = &'s Object> {
    objects.take_while(|object| !object.deleting()).take(MANY)
}

/// The objects of the state that use a memory and are not being deleted, by kind, namespace and name; of very many only the
/// first.
pub fn users<'s>(
    family: &'static Family,
    (kind, namespace, name): (&'static Kind, &str, &str),
    state: &mut StateReader<'s>,
) -> impl Iterator<Item = &'s Object> {
    let kinds = referrers(family, |edge| edge.uses_memory && edge.to.contains(&kind), (namespace, name));
    let users = kinds.into_iter().flat_map(|(kind, key)| {
        // This notes those that are not held, and whether some are unknown.
        drop(state.everywhere(kind));
        staying(state.indexed(kind, family.by_memory, &key))
    });
    users.take(MANY)
}

/// The objects of a namespace whose views have values of the written object, directly or by way of others, and that are not
/// being deleted, unless a kind has as many as `limit`: by kind and name, at most so many of a kind.
pub fn read_by<'s, 't>(
    family: &'static Family,
    (written, trees): (&Subject<'_>, impl IntoIterator<Item = &'t Tree>),
    limit: usize,
    state: &mut StateReader<'s>,
) -> Vec<&'s Object> {
    let namespace = written.namespace;
    let homes = trees.into_iter().map(|tree| (family.views.own_namespace)(tree, namespace).to_owned());
    let homes: BTreeSet<String> = homes.collect();
    let mut found: Vec<&'s Object> = Vec::new();
    let serves = |edge: &Edge, kind| edge.serves_memory && edge.to.contains(&kind);
    let (mut seen, mut of_kinds) = (BTreeSet::new(), BTreeMap::new());
    let mut targets: Vec<_> =
        homes.into_iter().map(|home| (written.kind, home, written.name.to_owned())).collect();
    while let Some((kind, home, name)) = targets.pop() {
        for (kind, key) in referrers(family, |edge| serves(edge, kind), (&home, &name)) {
            let left: &mut usize = of_kinds.entry(kind).or_insert(limit);
            if *left == 0 {
                continue;
            }
            let is_used = family.edges.iter().any(|edge| serves(edge, kind) && !edge.from.is_empty());
            let here = state.indexed_in(kind, (family.by_memory, &key), Some(namespace));
            let here = here.take_while(|user| is_used || !user.deleting());
            for user in here.filter(|user| seen.insert((user.kind, Arc::clone(&user.name)))) {
                found.push(user);
                *left -= 1;
                let home = (family.views.own_namespace)(user.tree(), &user.namespace);
                targets.push((user.kind, home.to_owned(), user.name.to_string()));
                if *left == 0 {
                    break;
                }
            }
        }
    }
    // One that is being deleted is not judged, but those that use it are.
    if of_kinds.values().all(|left| *left > 0) {
        found.retain(|user| !user.deleting());
    }
    found.sort_by_key(|user| (user.kind.kind, user.kind, Arc::clone(&user.name)));
    found
}

/// The kinds that refer by these edges to an object of this name, each with the key of the index, once.
fn referrers(
    family: &'static Family,
    counts: impl Fn(&Edge) -> bool,
    (namespace, name): (&str, &str),
) -> Vec<(&'static Kind, String)> {
    let mut kinds: Vec<(&Kind, String)> = Vec::new();
    for edge in family.edges.iter().filter(|edge| counts(edge)) {
        let key = edge.key_of(namespace, name);
        kinds.extend(edge.from.iter().map(|kind| (*kind, key.clone())));
    }
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Adds to the views of memory how many agents name it: to that of an object, and to those of what the object uses, where
/// the object itself is one of the agents. Objects that run once and end do not count.
pub fn count_users(
    family: &'static Family,
    subject: &Subject<'_>,
    view: &mut MemoryView,
    state: &mut StateReader<'_>,
) {
    let itself = state.peek(subject.kind, subject.namespace, subject.name);
    let used_before = itself.map(|object| (family.by_memory.keys)(object)).unwrap_or_default();
    let is_agent = |kind: &&'static Kind| !family.views.transient.contains(kind);
    let prefix = subject.object.text_at(&["metadata", "generateName"]).filter(|_| subject.name.is_empty());
    let is_to_be_named = prefix.is_some_and(|it| state.has_to_be_named(subject.kind, subject.namespace, it));
    let own = usize::from(is_agent(&subject.kind) && !is_to_be_named);
    let mut count = |memory: &mut MemoryView, is_used: bool| {
        let is_it = |edge: &Edge| edge.serves_memory && edge.to.iter().any(|kind| kind.kind == memory.kind);
        let mut keys = referrers(family, is_it, (&memory.namespace, &memory.name));
        keys.retain(|(kind, _)| is_agent(kind));
        let is_counted = |key: &String| is_used && used_before.iter().any(|used| **used == **key);
        let known = keys.iter().any(|(kind, key)| *kind == subject.kind && is_counted(key));
        let edges = family.edges.iter().filter(|edge| is_it(edge));
        let is_asked = |edge: &&Edge| matches!(edge.home, Home::OrIn(_));
        let to = edges.clone().filter(is_asked).flat_map(|edge| edge.to);
        let kinds = edges.clone().flat_map(|edge| edge.from).chain(to).copied();
        let named = format!("{} {}", memory.kind, memory.path());
        let all = state.count_once(named, kinds, |state| {
            let mut all = 0;
            for (kind, key) in &keys {
                all += state.count_indexed(kind, family.by_memory, key);
            }
            all + edges.map(|edge| users_elsewhere(family, edge, (memory, &is_agent), state)).sum::<usize>()
        });
        let users = all + if is_used && !known { own } else { 0 };
        memory.put(USERS, "/metadata/name", i64::try_from(users).ok());
    };
    if view.role == Role::Memory {
        count(view, false);
    }
    for source in &mut view.sources {
        count(&mut source.view, true);
    }
}

/// How many objects of other namespaces name by this edge an object for all namespaces that have none of their own.
fn users_elsewhere(
    family: &'static Family,
    edge: &'static Edge,
    (memory, is_agent): (&MemoryView, &dyn Fn(&&'static Kind) -> bool),
    state: &mut StateReader<'_>,
) -> usize {
    if !matches!(edge.home, Home::OrIn(namespace) if namespace == memory.namespace) {
        return 0;
    }
    let mut users = 0;
    for kind in edge.from.iter().copied().filter(is_agent) {
        let named = state.indexed(kind, family.by_memory, &edge.key_of("", &memory.name));
        let others = named.filter(|user| *user.namespace != *memory.namespace);
        let mut home: (&str, bool) = ("", false);
        users += others
            .filter(|user| {
                if *user.namespace != *home.0 {
                    let mut to = edge.to.iter();
                    home = (
                        &user.namespace,
                        to.any(|to| state.peek(to, &user.namespace, &memory.name).is_some()),
                    );
                }
                !home.1
            })
            .count();
    }
    users
}

fn finding(
    edge: &'static Edge,
    site: &Site<'_, Tree>,
    (subject, left): (&Subject<'_>, &mut usize),
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let named = edge.named(site, subject.object, subject.namespace)?;
    let optional = |holder: &Tree| holder.get("optional") == Some(&Tree::Boolean(true));
    if edge.may_be_optional && optional(site.holder) {
        return None;
    }
    match (edge.look_up)(&Wanted { edge, named, by: subject.object }, state) {
        Lookup::Unknown(()) => None,
        Lookup::Absent => {
            Some(not_found((edge, edge.missing.as_ref()?), (site, &named), (subject.namespace, left), state))
        }
        Lookup::Found(object) => {
            let going = edge.serves_memory.then(|| going(object, || site.pointer.clone()));
            let missing = edge.missing.as_ref();
            going
                .flatten()
                .or_else(|| without_key((edge, missing?), (site, &named), (subject.object, object), state))
        }
    }
}

fn not_found(
    (edge, missing): (&'static Edge, &'static Missing),
    (site, named): (&Site<'_, Tree>, &Named<'_>),
    (subject_namespace, left): (&str, &mut usize),
    state: &mut StateReader<'_>,
) -> Finding {
    let kind = edge.to.first().map_or("object", |kind| kind.kind);
    let other = in_another_namespace(edge, named, state);
    // What another namespace has is that one's own: a name that is not there is all that a tenant may learn of it.
    let may_hint = state.names_others() || named.namespace == subject_namespace;
    let exists = match &other {
        Some(other) => Some(exists_in(edge, site, &other.object.namespace)),
        None => exists_only_in(edge, named, state).filter(|_| may_hint),
    };
    let (ending, meant, by_kustomize) = match exists {
        Some(exists) => (exists, None, None),
        None if !may_hint => Default::default(),
        None => match meant(edge, named, left, state) {
            Ok(meant) => (String::new(), Some(meant), None),
            Err(by_kustomize) => (String::new(), None, by_kustomize),
        },
    };
    let help = by_kustomize.map_or(Cow::Borrowed(missing.effect), Cow::Owned);
    let slip = meant_name(named.name);
    let meant = slip.as_deref().or(meant);
    let [name, home, near] = [named.name, named.namespace, meant.unwrap_or_default()].map(excerpt);
    let meant = meant.map(|meant| named.replaced(site.text, meant));
    let fix = meant.clone().filter(|_| slip.is_some()).map(Fix::Text);
    let details = move |_: &Pointer| {
        let message = fit_message(|limit| {
            let [name, home, near] = [&name, &home, &near].map(|name| truncate(name, limit));
            let near = Some(&*near).filter(|near| !near.is_empty());
            not_found_message(kind, &name, &home) + &ending + &did_you_mean(near)
        });
        Details { meant: meant.clone(), fix: fix.clone(), ..Details::from(message) }
    };
    let finding = Finding::warn_within(state.budget(), missing.object, site.pointer.clone(), details);
    let reference = |kind: &&'static Kind| {
        let (namespace, name) = (if kind.namespaced { named.namespace } else { "" }, named.name.to_owned());
        Reference { kind, namespace: namespace.to_owned(), name }
    };
    let missing = edge.to.iter().map(reference).collect();
    let finding = if help.is_empty() { finding } else { finding.help(help) };
    Finding { missing, ..finding.and_elsewhere(|| other) }
}

/// What a message about a pod says of an object of the same name in another namespace, where it may say so.
pub(crate) fn exists_elsewhere(
    kinds: &[&'static Kind],
    (namespace, name): (&str, &str),
    state: &StateReader<'_>,
) -> String {
    let other = first_elsewhere(kinds, (namespace, name), state).filter(|_| state.names_others());
    other.map_or_else(String::new, |other| exists_with(&other.namespace, SAME_NAMESPACE))
}

/// The advice for references that cannot name a namespace.
const SAME_NAMESPACE: &str = "references are same-namespace";

fn exists_with(namespace: &str, advice: &str) -> String {
    format!(" (exists in {}; {advice})", quoted(namespace))
}

/// What a message says of an object of the same name in another namespace.
fn exists_in(edge: &Edge, site: &Site<'_, Tree>, namespace: &str) -> String {
    let advice = match edge.home {
        Home::Beside(field) => {
            let parent = site.pointer.parent().unwrap_or_default();
            format!("set {}.{field}", parent.tokens().last().unwrap_or_default())
        }
        Home::InText(_) if edge.form == Form::Part && !matches!(edge.key, Key::InText) => {
            format!("write {}", quoted(&format!("{namespace}/{}", site.text.trim())))
        }
        Home::Own | Home::OrIn(_) | Home::InText(_) => SAME_NAMESPACE.to_owned(),
    };
    exists_with(namespace, &advice)
}

/// What every message about a missing object says. One that objects of all namespaces name is looked for in all of them.
pub fn not_found_message(kind: &str, name: &str, namespace: &str) -> String {
    match namespace {
        "" => format!("{kind} {} not found in any namespace", quoted(name)),
        namespace => format!("{kind} {} not found in namespace {}", quoted(name), quoted(namespace)),
    }
}

/// What every message says about a key that an object lacks; of a Service, a port.
pub fn no_key_message(kind: &str, name: &str, key: &str) -> String {
    let what = if kind == SERVICE.kind { "port" } else { "key" };
    format!("{kind} {} has no {what} {}", quoted(name), quoted_key(key))
}

/// What a message says of an object of the same name under another group.
fn exists_only_in(edge: &Edge, named: &Named<'_>, state: &StateReader<'_>) -> Option<String> {
    let is_there = |kind: &&&Kind| {
        let object = state.peek(kind, named.namespace, named.name);
        object.is_some_and(|object| !object.deleting())
    };
    edge.other_groups.iter().find(is_there).map(|kind| format!(" (exists only in {})", kind.group))
}

/// The name of an object of this namespace that is like the missing one.
///
/// # Errors
/// Without one: what to do about an object whose name kustomize made of the missing name, if there may be one.
fn meant<'s>(
    edge: &'static Edge,
    named: &Named<'_>,
    left: &mut usize,
    state: &mut StateReader<'s>,
) -> Result<&'s str, Option<String>> {
    let budget = state.budget();
    // The next missing name has half of what is left.
    let share = left.div_ceil(2);
    let kinds = edge.to.iter().copied();
    let mut known: Vec<&'s str> = Vec::new();
    state.quietly(|state| {
        for kind in kinds {
            let others = state.list(kind, named.namespace).map(|object| &*object.name);
            let compared = others.take(share.saturating_sub(known.len()));
            known.extend(compared.take_while(|name| budget.bytes(name.len())));
        }
    });
    *left -= known.len();
    let hashed = known.iter().find(|made| has_hash(named.name, made)).copied();
    let near = hashed.or_else(|| nearest(named.name, known.iter().copied()));
    // The name with a prefix is right for one overlay, and wrong for all others.
    let by_kustomize = match near {
        Some(near) => of_kustomize(named.name, near),
        None => known.iter().find_map(|name| of_kustomize(named.name, name)),
    };
    near.filter(|_| by_kustomize.is_none()).ok_or(by_kustomize)
}

/// Whether a name is another one with the hash of a generator.
fn has_hash(name: &str, made: &str) -> bool {
    let hash = made.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    hash.is_some_and(|it| it.len() == HASH_CHARS && it.bytes().all(|b| HASH_ALPHABET.contains(&b)))
}

/// What to do about a name that kustomize made of the name that is missing.
fn of_kustomize(missing: &str, made: &str) -> Option<String> {
    let is_longer = made.strip_suffix(missing).is_some_and(|prefix| prefix.ends_with('-'))
        || made.strip_prefix(missing).is_some_and(|suffix| suffix.starts_with('-'));
    let (cause, end) = if has_hash(missing, made) {
        ("kustomize made", " (the hash of a generator; `disableNameSuffixHash` leaves it out);")
    } else {
        is_longer.then_some(("if kustomize made", " (namePrefix or nameSuffix),"))?
    };
    let made = quoted(made);
    Some(format!(
        "{cause} {made} of it{end} write the output of `memgate schema kustomize` to a file, and list the file under `configurations:` of the kustomization"
    ))
}

/// The hash of a generator. Source: sigs.k8s.io/kustomize, api/hasher, `encode`.
const HASH_CHARS: usize = 10;
const HASH_ALPHABET: &[u8] = b"bcdfghkmt2456789";

fn first_elsewhere<'s>(
    kinds: &[&'static Kind],
    (namespace, name): (&str, &str),
    state: &StateReader<'s>,
) -> Option<&'s Object> {
    kinds.iter().find_map(|kind| state.peek(kind, state.elsewhere(kind, namespace, name)?, name))
}

/// The place of an object with this name in another namespace.
fn in_another_namespace(edge: &Edge, named: &Named<'_>, state: &StateReader<'_>) -> Option<Elsewhere> {
    if !state.names_others() {
        return None;
    }
    let object = first_elsewhere(edge.to, (named.namespace, named.name), state)?;
    Some(Elsewhere::of(object, Pointer::new("/metadata/namespace"), "it is in this namespace"))
}

fn without_key(
    (edge, missing): (&'static Edge, &'static Missing),
    (site, named): (&Site<'_, Tree>, &Named<'_>),
    (object, found): (&Tree, &Object),
    state: &StateReader<'_>,
) -> Option<Finding> {
    let NamedKey { key, pointer, .. } =
        edge.key_in(site, named, (object, found)).filter(|key| !key.is_there)?;
    // What makes an object of this name may add the key.
    if matches!(edge.key, Key::Port(..)) || state.may_be_made(found.kind, &found.namespace, &found.name) {
        return None;
    }
    let (kind, name, key) = (found.kind.kind, excerpt(named.name), excerpt(key));
    let message = move |_: &Pointer| {
        fit_message(|limit| no_key_message(kind, &truncate(&name, limit), &truncate_text(&key, limit)))
    };
    let finding = Finding::warn_within(state.budget(), missing.key, pointer, message);
    let has_data = found.tree().get("data").is_some() || found.tree().get("stringData").is_none();
    let at = Pointer::new(if has_data { "/data" } else { "/stringData" });
    Some(finding.elsewhere(found, at, "has no such key"))
}

#[cfg(test)]
mod tests {
    use super::of_kustomize;
    use crate::{ALL, state_kinds};
    use memgate_model::edge::{Edge, Home, Key};
    use memgate_primitives::pointer::Pointer;

    /// The fields of a row: the name, and those beside it.
    fn fields(edge: &Edge) -> Vec<Pointer> {
        let name = Pointer::new(edge.path.replace('*', "0"));
        let parent = name.parent().unwrap_or_default();
        let mut fields = vec![name];
        fields.extend(if let Home::Beside(field) = edge.home { Some(parent.key(field)) } else { None });
        fields.extend(match edge.key {
            Key::Beside(field) | Key::Port(field, _) => Some(parent.key(field)),
            Key::At(field) => Some(Pointer::new(field)),
            _ => None,
        });
        fields
    }

    #[test]
    fn every_row_is_about_fields_and_kinds_that_decisions_read() {
        let edges = ALL.iter().flat_map(|family| family.edges);
        for edge in edges.filter(|edge| edge.missing.is_some() || edge.serves_memory) {
            for kind in edge.from {
                for field in fields(edge) {
                    assert!(kind.schema.reads(&field), "{} {field}", kind.kind);
                }
                let of_state = state_kinds(&ALL).find(|known| *known == *kind).filter(|_| edge.serves_memory);
                let is_found = of_state.is_none_or(|kept| kept.schema.reads(&fields(edge)[0]));
                assert!(is_found, "{} {} is not in the state", kind.kind, edge.path);
            }
            for kind in edge.to {
                let knows_going = kind.schema.reads(&Pointer::new("/metadata/deletionTimestamp"));
                assert!(knows_going || !edge.serves_memory, "{} keeps no time of deletion", kind.kind);
                assert!(state_kinds(&ALL).any(|known| known == *kind), "{} is not in the state", kind.kind);
            }
        }
    }

    #[test]
    fn knows_what_kustomize_makes_of_a_name() {
        for (made, verb) in [
            ("notes-redis-964fm59bd5", Some("kustomize made")),
            ("notes-redis-prod", Some("if kustomize made")),
            ("dev-notes-redis", Some("if kustomize made")),
            ("notes-redi", None),
            ("xnotes-redis", None),
            ("notes-redis", None),
        ] {
            let help = of_kustomize("notes-redis", made);
            assert_eq!(help.is_some(), verb.is_some(), "{made}");
            assert!(help.unwrap_or_default().starts_with(verb.unwrap_or_default()), "{made}");
        }
    }
}
