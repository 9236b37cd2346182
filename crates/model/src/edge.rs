//! References between objects. One row, an [`Edge`], says which field of which kinds names an object, of which kind,
//! and where it is looked up.
//!
//! Whatever memgate says of references comes from these rows. This module finds the places of a row in an object and
//! reads the names there; it looks nothing up.

use std::borrow::Cow;

use serde_json::Value;

use crate::finding::Code;
use crate::kind::Kind;
use crate::object::{DEFAULT_NAMESPACE, Lookup, Object};
use crate::state_reader::StateReader;
use crate::subject::Subject;
use crate::tree::Tree;
use memgate_primitives::pointer::{Path, Pointer, unescape};

/// A field that names another object.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// The kinds that have the field; none for the pods of a platform, where their templates are too.
    pub from: &'static [&'static Kind],
    /// The field, as a JSON pointer with `*` for the elements of a list.
    pub path: &'static str,
    /// The kinds of the object: the one that messages name, then those that stand for it.
    pub to: &'static [&'static Kind],
    /// Where the name is looked up.
    pub home: Home,
    /// The key that the object must have.
    pub key: Key,
    /// How the name stands in the value.
    pub form: Form,
    /// Whether it counts as a use of memory.
    pub uses_memory: bool,
    /// Whether the object is memory, or what memory depends on: views of the object that refers have values of it, and one
    /// that is being deleted is reported.
    pub serves_memory: bool,
    /// The name that counts where nothing stands at a path of the object.
    pub default: Option<(&'static [&'static str], &'static str)>,
    /// Whether `optional: true` beside the name allows the object to be missing.
    pub may_be_optional: bool,
    /// Whether the platform reads the field, by its place and the object.
    pub counts: fn(&Site<'_, Tree>, &Tree) -> bool,
    /// Whether the object itself has to do with memory.
    pub matters: fn(&Subject<'_>, &mut StateReader<'_>) -> bool,
    /// Finds the object.
    pub look_up: LookUp,
    /// What is said where the object or its key is missing; `None` for nothing.
    pub missing: Option<Missing>,
    /// The kinds of the same name in other groups, which do not count.
    pub other_groups: &'static [&'static Kind],
}

/// Finds the object that an edge names.
pub type LookUp = for<'s> fn(&Wanted<'_>, &mut StateReader<'s>) -> Lookup<'s>;

/// Reads a name, given the object that has it and the object's namespace.
pub type ReadName = for<'t> fn(&'t str, &'t Tree, &'t str) -> Named<'t>;

/// Where the name of an edge is looked up.
#[derive(Debug, Clone, Copy)]
pub enum Home {
    /// In the object's own namespace.
    Own,
    /// In the namespace that the field of this name beside it says, or else in the object's own.
    Beside(&'static str),
    /// In the object's own namespace, or else in this one, which is for all.
    OrIn(&'static str),
    /// As the text itself says.
    InText(ReadName),
}

/// The key that the named object must have.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    /// None.
    None,
    /// Always this one.
    Fixed(&'static str),
    /// The one in the field of this name beside the name.
    Beside(&'static str),
    /// The one in the field with this pointer.
    At(&'static str),
    /// The one in the text itself.
    InText,
    /// The one that the function says to be missing, given the object that refers.
    Lacking(for<'t> fn(&'t Tree, &Object) -> Option<&'t str>),
    /// The port of the name in the field beside the name, if the function says that it is there. A platform has findings
    /// of its own about it.
    Port(&'static str, fn(&Object, &str) -> bool),
}

/// A key that an object must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKey<'t> {
    /// The key; empty for all that the object must have.
    pub key: &'t str,
    /// The field that says it, else the field with the name of the object.
    pub pointer: Pointer,
    /// Whether the object has it.
    pub is_there: bool,
}

/// How a name stands in its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The value is the name.
    Whole,
    /// The value may have more in it, such as a namespace.
    Part,
    /// The value is made from the name.
    Made,
    /// The name has a meaning to the platform and cannot be another one.
    Fixed,
}

/// What is said where the object of an edge, or its key, is missing.
#[derive(Debug, Clone, Copy)]
pub struct Missing {
    /// The code for a missing object.
    pub object: &'static Code,
    /// The code for a missing key.
    pub key: &'static Code,
    /// What that means, as help; empty for nothing.
    pub effect: &'static str,
}

/// A name, and where it is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'t> {
    /// The namespace.
    pub namespace: &'t str,
    /// The name.
    pub name: &'t str,
    /// The key, if the text says it.
    pub key: Option<&'t str>,
}

/// The object that an edge names.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'w> {
    /// The row.
    pub edge: &'w Edge,
    /// The name, and where it is looked up.
    pub named: Named<'w>,
    /// The object that refers to it.
    pub by: &'w Tree,
}

impl Wanted<'_> {
    /// The object of this kind with the name.
    pub fn get<'s>(&self, kind: &'static Kind, state: &mut StateReader<'s>) -> Lookup<'s> {
        state.get(kind, self.named.namespace, self.named.name)
    }
}

impl Named<'_> {
    /// The text in which this name stands, with another one in its place.
    pub fn replaced(&self, text: &str, new: &str) -> String {
        // The namespace before it and the key behind it may be the same word.
        let start = text.rfind('/').map_or(0, |slash| slash + 1);
        let (before, rest) = text.split_at(start);
        format!("{before}{}", rest.replacen(self.name, new, 1))
    }
}

/// A place of an edge in an object.
#[derive(Debug, Clone)]
pub struct Site<'t, N> {
    /// The field with the name.
    pub pointer: Pointer,
    /// The value there.
    pub text: &'t str,
    /// What holds the field: an object, or a list of names.
    pub holder: &'t N,
    /// The element of the innermost list on the way.
    pub element: Option<&'t N>,
}

/// A value in which edges are found.
pub trait Node: Sized {
    /// The field of this name.
    fn member(&self, name: &str) -> Option<&Self>;
    /// The text of the field of this name.
    fn member_text(&self, name: &str) -> Option<&str>;
    /// The elements of a list; none of anything else.
    fn members(&self) -> &[Self];
    /// The string, if it is one.
    fn as_text(&self) -> Option<&str>;
}

impl Node for Tree {
    fn member(&self, name: &str) -> Option<&Self> {
        self.get(name)
    }

    fn member_text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::text).or_else(|| self.entry(name))
    }

    fn members(&self) -> &[Self] {
        self.elements()
    }

    fn as_text(&self) -> Option<&str> {
        self.text()
    }
}

impl Node for Value {
    fn member(&self, name: &str) -> Option<&Self> {
        self.get(name)
    }

    fn member_text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    fn members(&self) -> &[Self] {
        self.as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn as_text(&self) -> Option<&str> {
        self.as_str()
    }
}

impl Edge {
    /// A row of a field with the name of an object of its own namespace, without a word about one that is missing.
    pub const fn new(
        from: &'static [&'static Kind],
        path: &'static str,
        to: &'static [&'static Kind],
    ) -> Self {
        Self {
            from,
            path,
            to,
            home: Home::Own,
            key: Key::None,
            form: Form::Whole,
            uses_memory: false,
            serves_memory: false,
            default: None,
            may_be_optional: false,
            counts: |_, _| true,
            matters: |_, _| true,
            look_up: look_up_all,
            missing: None,
            other_groups: &[],
        }
    }

    /// The same with codes for a missing object, and what that means.
    #[must_use]
    pub const fn warns(self, object: &'static Code, effect: &'static str) -> Self {
        Self { missing: Some(Missing { object, key: object, effect }), ..self }
    }

    /// The same for an object that must have a key, with the code for a missing one.
    #[must_use]
    pub const fn with_key(self, key: Key, code: &'static Code) -> Self {
        let missing = match self.missing {
            Some(missing) => Some(Missing { key: code, ..missing }),
            None => None,
        };
        Self { key, missing, ..self }
    }

    /// The same, where the platform reads the field only if this holds of its place and of the object.
    #[must_use]
    pub const fn only_if(self, counts: fn(&Site<'_, Tree>, &Tree) -> bool) -> Self {
        Self { counts, ..self }
    }

    /// The same, where it matters only if this holds of the object.
    #[must_use]
    pub const fn where_it_matters(self, matters: fn(&Subject<'_>, &mut StateReader<'_>) -> bool) -> Self {
        Self { matters, ..self }
    }

    /// The same as a use of memory.
    #[must_use]
    pub const fn of_memory(self) -> Self {
        Self { uses_memory: true, serves_memory: true, ..self }
    }

    /// The same, where memory depends on the object.
    #[must_use]
    pub const fn serving_memory(self) -> Self {
        Self { serves_memory: true, ..self }
    }

    /// The same with another way to find the object.
    #[must_use]
    pub const fn found_by(self, look_up: LookUp) -> Self {
        Self { look_up, ..self }
    }

    /// The same, without a word where none of the kind exists in the namespace, not even in a cluster.
    #[must_use]
    pub const fn where_some(self) -> Self {
        Self { look_up: look_up_some, ..self }
    }

    /// The same, without a word where files hold no object of the kind.
    #[must_use]
    pub const fn where_known(self) -> Self {
        Self { look_up: look_up_known, ..self }
    }

    /// The same for a name that is looked up elsewhere.
    #[must_use]
    pub const fn in_home(self, home: Home) -> Self {
        Self { home, ..self }
    }

    /// The same for a value of another form.
    #[must_use]
    pub const fn of_form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// The same with a name that counts where nothing stands at a path of the object.
    #[must_use]
    pub const fn or_else(self, path: &'static [&'static str], name: &'static str) -> Self {
        Self { default: Some((path, name)), ..self }
    }

    /// The key by which users of an object are found: the kind that messages name, and where it is.
    pub fn key_of(&self, namespace: &str, name: &str) -> String {
        format!("{} {namespace}/{name}", self.to.first().map_or("", |kind| kind.kind))
    }

    /// The key that the named object must have, given the object that refers; `None` for none.
    pub fn key_in<'t>(
        &self,
        site: &Site<'t, Tree>,
        named: &Named<'t>,
        (object, found): (&'t Tree, &Object),
    ) -> Option<NamedKey<'t>> {
        // A platform's own Secrets have their data elsewhere.
        if !found.kind.group.is_empty() {
            return None;
        }
        let beside = |field| {
            let pointer = site.pointer.parent()?.key(field);
            Some((site.holder.get(field)?.text()?, pointer))
        };
        let (key, pointer) = match self.key {
            Key::None => return None,
            Key::Fixed(key) => (key, site.pointer.clone()),
            Key::Beside(field) | Key::Port(field, _) => beside(field)?,
            Key::At(at) => {
                let pointer = Pointer::new(at);
                let tokens: Vec<_> = pointer.tokens().collect();
                let path: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
                (object.text_at(&path)?, pointer)
            }
            Key::InText => (named.key?, site.pointer.clone()),
            Key::Lacking(lacking) => {
                let lacking = lacking(object, found);
                let (key, pointer) = (lacking.unwrap_or_default(), site.pointer.clone());
                return Some(NamedKey { key, pointer, is_there: lacking.is_none() });
            }
        };
        let is_there = match self.key {
            Key::Port(_, has) => has(found, key),
            _ => found.has_data_key(key),
        };
        (!key.is_empty()).then_some(NamedKey { key, pointer, is_there })
    }

    /// Where the field stands in an object.
    pub fn sites<'t, N: Node>(&self, object: &'t N) -> Vec<Site<'t, N>> {
        let mut found = Vec::new();
        if let Some(path) = self.path.strip_prefix('/') {
            collect(object, path, (Path::Root, None), &mut found);
        }
        found
    }

    /// The name at a place in an object of this namespace; `None` for a blank.
    pub fn named<'t, N: Node>(
        &self,
        site: &Site<'t, N>,
        object: &'t Tree,
        namespace: &'t str,
    ) -> Option<Named<'t>> {
        let own = Named { namespace, name: site.text, key: None };
        let named = match self.home {
            Home::Own | Home::OrIn(_) => own,
            Home::Beside(field) => {
                let other = site.holder.member_text(field).filter(|other| !other.is_empty());
                Named { namespace: other.unwrap_or(namespace), ..own }
            }
            Home::InText(read) => read(site.text, object, namespace),
        };
        (!named.name.trim().is_empty()).then_some(named)
    }
}

/// The keys of the objects from which views of an object of the state have values by these edges: of the memory that it
/// uses, and of what serves that memory. Those that an object for all namespaces may serve have a key without a namespace too.
pub fn memory_used(edges: &[Edge], object: &Object) -> Vec<Cow<'static, str>> {
    let of_edge = |edge: &Edge| {
        let (tree, namespace) = (object.tree(), &object.namespace);
        let absent = edge.default.filter(|(path, _)| tree.at(path).is_none());
        let default = absent.map(|(_, name)| edge.key_of(namespace, name));
        let sites = edge.sites(tree).into_iter().filter(|site| (edge.counts)(site, tree));
        let named = sites.filter_map(|site| {
            let named = edge.named(&site, tree, namespace)?;
            let anywhere = matches!(edge.home, Home::OrIn(_)).then(|| edge.key_of("", named.name));
            Some([Some(edge.key_of(named.namespace, named.name)), anywhere])
        });
        named.flatten().flatten().chain(default).collect::<Vec<_>>()
    };
    let used = edges.iter().filter(|edge| edge.serves_memory && edge.from.contains(&object.kind));
    used.flat_map(of_edge).map(Cow::Owned).collect()
}

/// The object under the first of the kinds that has it. One in files whose namespace is not given counts for a field that
/// names another namespace.
pub fn look_up_all<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let is_open = |object: &&Object| !object.namespace_given && matches!(wanted.edge.home, Home::Beside(_));
    let mut answer = Lookup::Absent;
    for kind in wanted.edge.to {
        match wanted.get(kind, state) {
            Lookup::Absent => {
                let anywhere = state.peek(kind, DEFAULT_NAMESPACE, wanted.named.name).filter(is_open);
                if let Some(object) = anywhere {
                    return Lookup::Found(object);
                }
            }
            Lookup::Unknown(()) => answer = Lookup::Unknown(()),
            found @ Lookup::Found(_) => return found,
        }
    }
    answer
}

/// The same, but unknown where none of these kinds exists in the namespace.
pub fn look_up_some<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let exists = wanted.edge.to.iter().any(|kind| state.holds_one_in(kind, wanted.named.namespace));
    known_if(exists, look_up_all(wanted, state))
}

/// The same, but unknown where no object of any of the kinds is known.
pub fn look_up_known<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let is_known = wanted.edge.to.iter().any(|kind| state.is_known(kind));
    known_if(is_known, look_up_all(wanted, state))
}

/// An object that is absent is unknown, unless this is so.
pub fn known_if(is_known: bool, found: Lookup<'_>) -> Lookup<'_> {
    if found == Lookup::Absent && !is_known { Lookup::Unknown(()) } else { found }
}

fn collect<'t, N: Node>(
    node: &'t N,
    path: &str,
    (here, element): (Path<'_>, Option<&'t N>),
    found: &mut Vec<Site<'t, N>>,
) {
    let (token, rest) = path.split_once('/').map_or((path, None), |(token, rest)| (token, Some(rest)));
    if token == "*" {
        for (index, member) in node.members().iter().enumerate() {
            let at = Path::Index(&here, index);
            match rest {
                Some(rest) => collect(member, rest, (at, Some(member)), found),
                None => found.extend(member.as_text().map(|text| Site {
                    pointer: at.pointer(),
                    text,
                    holder: node,
                    element: Some(member),
                })),
            }
        }
        return;
    }
    let key = unescape(token);
    let at = Path::Key(&here, &key);
    match rest {
        Some(rest) => {
            if let Some(member) = node.member(&key) {
                collect(member, rest, (at, element), found);
            }
        }
        None => found.extend(node.member_text(&key).map(|text| Site {
            pointer: at.pointer(),
            text,
            holder: node,
            element,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_each_place_in_lists_maps_and_labels() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "one"}},
            "spec": {"headers": [{"from": {"name": "two"}}, {}, {"from": {"name": "three"}}], "names": ["four", 5]},
        });
        for (path, expected) in [
            ("/metadata/labels/a.b~1c", &[("/metadata/labels/a.b~1c", "one")][..]),
            (
                "/spec/headers/*/from/name",
                &[("/spec/headers/0/from/name", "two"), ("/spec/headers/2/from/name", "three")],
            ),
            ("/spec/names/*", &[("/spec/names/0", "four")]),
            ("/spec/missing/name", &[]),
        ] {
            let edge = Edge::new(&[], path, &[]);
            let sites = edge.sites(&object);
            let found: Vec<_> = sites.iter().map(|site| (site.pointer.as_str(), site.text)).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
