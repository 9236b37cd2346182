//! What the objects of files refer to, whether a finding is about it or not: by the tables of all platforms, and what the
//! pods of agents need besides. The check of a branch compares the references of two commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::compared::{NamingField, Presence, References, Target};
use crate::inputs::Inputs;
use crate::load::objects_in;
use crate::object_name::object_ref;
use crate::objects::{agent_templates, is_of_agent};
use crate::origins::files::Files;
use crate::origins::find::file_of;
use crate::report::ObjectRef;
use memgate_core::state::makers::made;
use memgate_manifest::document::Document;
use memgate_manifest::later::is_filled_in_later;
use memgate_model::edge::{Edge, Home, Named, NamedKey, Site, Wanted};
use memgate_model::family::{Family, Subject};
use memgate_model::finding::Code;
use memgate_model::kind::Kind;
use memgate_model::object::{Lookup, Object};
use memgate_model::recurring_texts::RecurringTexts;
use memgate_model::request::{Operation, Point};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::workload;
use memgate_platforms::common::REFERENCE_BROKEN;
use memgate_platforms::other_references::other_references;
use memgate_platforms::state_kinds;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

/// The references of pods, by the kind of the object.
const OF_PODS: [(&str, &str); 15] = [
    ("Secret", "/spec/containers/*/env/*/valueFrom/secretKeyRef/name"),
    ("Secret", "/spec/containers/*/envFrom/*/secretRef/name"),
    ("Secret", "/spec/initContainers/*/env/*/valueFrom/secretKeyRef/name"),
    ("Secret", "/spec/initContainers/*/envFrom/*/secretRef/name"),
    ("Secret", "/spec/volumes/*/secret/secretName"),
    ("Secret", "/spec/volumes/*/projected/sources/*/secret/name"),
    ("Secret", "/spec/imagePullSecrets/*/name"),
    ("ConfigMap", "/spec/containers/*/env/*/valueFrom/configMapKeyRef/name"),
    ("ConfigMap", "/spec/containers/*/envFrom/*/configMapRef/name"),
    ("ConfigMap", "/spec/initContainers/*/env/*/valueFrom/configMapKeyRef/name"),
    ("ConfigMap", "/spec/initContainers/*/envFrom/*/configMapRef/name"),
    ("ConfigMap", "/spec/volumes/*/configMap/name"),
    ("ConfigMap", "/spec/volumes/*/projected/sources/*/configMap/name"),
    ("PersistentVolumeClaim", "/spec/volumes/*/persistentVolumeClaim/claimName"),
    ("ServiceAccount", "/spec/serviceAccountName"),
];

/// The references of the objects to check, by the state of the inputs.
pub(crate) fn references(inputs: &mut Inputs, files: &mut Files) -> References {
    files.know(&inputs.sources);
    let objects = std::mem::take(&mut inputs.state_objects);
    let (mut all, inputs) = (References { objects, ..References::default() }, &*inputs);
    let mut texts = RecurringTexts::default();
    let chosen = inputs.snapshot.settings.namespace.as_deref();
    let named = |document: &Document, texts: &mut RecurringTexts| {
        let named = object_ref(document, chosen, texts);
        ObjectRef { api_version: Arc::default(), unit: inputs.unit.as_str().into(), ..named }
    };
    let objects =
        || inputs.sources.iter().flat_map(|source| objects_in(source, inputs)).map(|(document, _)| document);
    for document in objects() {
        let ObjectRef { kind, namespace, name, .. } = named(&document, &mut texts);
        let file: Arc<str> = file_of(document.place(), &inputs.origins, files).into();
        // An object with a number that cannot be read is denied.
        for made in made(&inputs.snapshot.settings, document.value()).unwrap_or_default() {
            let target = Target::new(made.kind.kind, &made.namespace, &made.name);
            all.objects.entry(target).or_insert_with(|| Arc::clone(&file));
        }
        all.objects.insert(Target::new(&kind, &namespace, &name), file);
    }
    for document in objects() {
        let user = named(&document, &mut texts);
        let has_namespace = document.namespace().or(chosen).is_some();
        Reader { document: &document, user, has_namespace, snapshot: &inputs.snapshot, all: &mut all }.read();
    }
    for field in
        all.fields.iter_mut().filter(|field| field.presence == Presence::Missing && field.key.is_none())
    {
        if field.targets().any(|target| all.objects.contains_key(&target)) {
            field.presence = Presence::Unknown;
        }
    }
    all
}

/// Reads the references of one object.
struct Reader<'r> {
    document: &'r Document,
    user: ObjectRef,
    has_namespace: bool,
    snapshot: &'r Snapshot,
    all: &'r mut References,
}

impl Reader<'_> {
    fn read(&mut self) {
        for family in self.snapshot.settings.families.clone() {
            let (group, kind) = (self.document.group(), self.document.kind());
            let kind = family.edges.iter().flat_map(|edge| edge.from).find(|it| it.is(group, kind)).copied();
            let tree = kind.map(|kind| Tree::parse(&self.document.value().to_string(), &kind.schema));
            let known = kind.zip(tree.and_then(Result::ok));
            let own = known.as_ref().and_then(|(kind, tree)| self.namespace_of_names(family, kind, tree));
            let own = own.unwrap_or(&self.user.namespace).to_owned();
            if let Some((kind, tree)) = known {
                self.of_edges(family, kind, &tree, &own);
            }
            self.of_other_rows(family, &own);
        }
        for (part, pod) in self.pods() {
            self.of_pod(&part, &pod);
        }
    }

    /// The pods of agents that the object is or makes, each with its place.
    fn pods(&self) -> Vec<(Pointer, Value)> {
        let (group, kind, value) = (self.document.group(), self.document.kind(), self.document.value());
        let itself = (group.is_empty() && kind == "Pod").then(|| (Pointer::root(), value));
        let templates = workload::find(group, kind).map(|it| agent_templates(it, value)).unwrap_or_default();
        let all = itself.into_iter().chain(templates).filter(|(_, pod)| is_of_agent(pod));
        all.map(|(part, pod)| (part, pod.clone())).collect()
    }

    /// The namespace of names without one, where the platform takes another than the object's own.
    fn namespace_of_names<'t>(&'t self, family: &Family, kind: &Kind, tree: &'t Tree) -> Option<&'t str> {
        let homes = family.edges.iter().filter(|edge| edge.from.contains(&kind)).map(|edge| edge.home);
        let mut read = homes.filter_map(|home| if let Home::InText(read) = home { Some(read) } else { None });
        Some(read.next()?("name", tree, &self.user.namespace).namespace)
    }

    /// Those about which a platform has findings.
    fn of_edges(&mut self, family: &'static Family, kind: &'static Kind, tree: &Tree, own: &str) {
        let (budget, user) = (Budget::default(), self.user.clone());
        let mut state = self.state(&budget);
        let (namespace, name) = (&*user.namespace, &*user.name);
        let subject =
            Subject { kind, operation: Operation::Create, namespace, name, object: tree, old: None };
        for edge in family.edges.iter().filter(|edge| edge.from.contains(&kind)) {
            // No decision reads these, so that the tree may lack them.
            if edge.missing.is_none() && !edge.serves_memory {
                let kinds: Vec<_> = edge.to.iter().map(|kind| kind.kind).collect();
                self.of_path((Pointer::root(), self.document.value()), edge.path, &kinds, own);
                continue;
            }
            let mut sites = edge.sites(tree);
            sites.retain(|site| {
                let is_optional = site.holder.get("optional") == Some(&Tree::Boolean(true));
                (edge.counts)(site, tree) && !(edge.may_be_optional && is_optional)
            });
            let default = edge.default.filter(|(path, _)| tree.at(path).is_none());
            if sites.is_empty() && default.is_none() {
                continue;
            }
            if !(edge.matters)(&subject, &mut state) {
                // No finding is about it, and it is a reference nevertheless.
                let kinds: Vec<_> = edge.to.iter().map(|kind| kind.kind).collect();
                self.of_path((Pointer::root(), self.document.value()), edge.path, &kinds, own);
                continue;
            }
            for site in &sites {
                self.add_site(edge, &Pointer::root(), (site, tree), &mut state);
            }
            if let Some((path, name)) = default {
                let at = (Pointer::root(), holder_of(path));
                self.add_edge(edge, at, (Named { namespace, name, key: None }, tree), &mut state);
            }
        }
    }

    /// The other ones of a platform. Rows of one field name one object, of one of several kinds.
    fn of_other_rows(&mut self, family: &'static Family, own: &str) {
        let (group, kind) = (self.document.group(), self.document.kind());
        let rows = other_references(family);
        let rows = rows.iter().filter(|row| row.from.kind == kind && row.from.group == group);
        let mut by_path: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
        for row in rows {
            by_path.entry(&row.path).or_default().push(&row.to.kind);
        }
        for (path, kinds) in by_path {
            self.of_path((Pointer::root(), self.document.value()), path, &kinds, own);
        }
    }

    fn of_pod(&mut self, part: &Pointer, pod: &Value) {
        let (budget, user) = (Budget::default(), self.user.clone());
        let mut state = self.state(&budget);
        let families = self.snapshot.settings.families.clone();
        for edge in families.iter().flat_map(|family| family.edges).filter(|edge| edge.from.is_empty()) {
            for site in edge.sites(pod) {
                if let Some(named) = edge.named(&site, &Tree::Null, &user.namespace) {
                    let at = (part.clone(), site.pointer.clone());
                    self.add_edge(edge, at, (named, &Tree::Null), &mut state);
                }
            }
        }
        for (kind, path) in OF_PODS {
            self.of_path((part.clone(), pod), path, &[kind], &user.namespace);
        }
    }

    fn state<'s>(&self, budget: &'s Budget<'s>) -> StateReader<'s>
    where
        Self: 's,
    {
        let new = if self.has_namespace { StateReader::new } else { StateReader::without_namespace };
        new(self.snapshot, budget).at(Point::Ci)
    }

    /// Adds the name at a place of an edge, and the key that the object must have.
    fn add_site<'t>(
        &mut self,
        edge: &'static Edge,
        part: &Pointer,
        (site, by): (&Site<'t, Tree>, &'t Tree),
        state: &mut StateReader<'_>,
    ) {
        let user = self.user.clone();
        let Some(named) = edge.named(site, by, &user.namespace) else { return };
        let Some(object) = self.add_edge(edge, (part.clone(), site.pointer.clone()), (named, by), state)
        else {
            return;
        };
        if let Some(NamedKey { key, pointer, is_there }) = edge.key_in(site, &named, (by, object)) {
            let presence = if is_there { Presence::Found } else { Presence::Missing };
            let code = edge.missing.as_ref().map_or(&REFERENCE_BROKEN, |missing| missing.key);
            let found = Target::new(object.kind.kind, &object.namespace, &object.name);
            let at = (part.clone(), pointer);
            self.add(at, (&[object.kind.kind], &named, Some(found)), (Some(key), presence), code);
        }
    }

    /// Adds a name of an edge. Returns the object.
    fn add_edge<'s>(
        &mut self,
        edge: &'static Edge,
        at: (Pointer, Pointer),
        (named, by): (Named<'_>, &Tree),
        state: &mut StateReader<'s>,
    ) -> Option<&'s Object> {
        let kinds: Vec<&'static str> = edge.to.iter().map(|kind| kind.kind).collect();
        let is_of_platform = edge.to.iter().all(|kind| !kind.group.is_empty());
        let answer = (edge.look_up)(&Wanted { edge, named, by }, state);
        let (presence, found) = match answer {
            Lookup::Found(object) => {
                (Presence::Found, Some(Target::new(object.kind.kind, &object.namespace, &object.name)))
            }
            Lookup::Absent => (Presence::Missing, None),
            // Where the files hold others of a platform's kind, a missing one is known to be, unless something makes it.
            Lookup::Unknown(()) => match self.presence(&kinds, &named) {
                Presence::Missing if is_of_platform && edge.to.iter().any(|kind| self.has_one(kind)) => {
                    (Presence::Found, None)
                }
                presence => (presence, None),
            },
        };
        let presence = if is_later(&named) { Presence::Unknown } else { presence };
        let code = edge.missing.as_ref().map_or(&REFERENCE_BROKEN, |missing| missing.object);
        self.add(at, (&kinds, &named, found), (None, presence), code);
        answer.found()
    }

    /// The names at a path of a part of the object, which have a namespace beside them or before a slash, or are in `own`.
    fn of_path(
        &mut self,
        (part, value): (Pointer, &Value),
        path: &'static str,
        kinds: &[&'static str],
        own: &str,
    ) {
        for site in Edge::new(&[], path, &[]).sites(value) {
            let beside = site.holder.get("namespace").and_then(Value::as_str);
            let (namespace, name) =
                site.text.split_once('/').unwrap_or_else(|| (beside.unwrap_or(own), site.text));
            let named = Named { namespace, name, key: None };
            if named.name.is_empty() || site.holder.get("optional") == Some(&Value::Bool(true)) {
                continue;
            }
            let presence = if is_later(&named) { Presence::Unknown } else { self.presence(kinds, &named) };
            let at = (part.clone(), site.pointer.clone());
            self.add(at, (kinds, &named, None), (None, presence), &REFERENCE_BROKEN);
            let key =
                site.holder.get("key").and_then(Value::as_str).filter(|_| path.ends_with("KeyRef/name"));
            if let (Some(key), Some(object)) = (key, self.object(kinds, &named)) {
                let presence = if object.has_data_key(key) { Presence::Found } else { Presence::Missing };
                let at = (part.clone(), site.pointer.parent().unwrap_or_default().key("key"));
                self.add(at, (kinds, &named, None), (Some(key), presence), &REFERENCE_BROKEN);
            }
        }
    }

    /// The object of one of these kinds that decisions look at, if it is known.
    fn object(&self, kinds: &[&'static str], named: &Named<'_>) -> Option<&Object> {
        let of_kinds = state_kinds(&self.snapshot.settings.families).filter(|it| kinds.contains(&it.kind));
        let mut states = of_kinds.filter_map(|kind| self.snapshot.kind(kind));
        states.find_map(|state| state.object(named.namespace, named.name))
    }

    /// Whether the files hold an object of this kind.
    fn has_one(&self, kind: &Kind) -> bool {
        let first = self.all.objects.range(Target::new(kind.kind, "", "")..).next();
        first.is_some_and(|(target, _)| target.kind == kind.kind)
    }

    /// Whether the files hold an object of one of these kinds, or another one that makes it.
    fn presence(&self, kinds: &[&'static str], named: &Named<'_>) -> Presence {
        let Named { namespace, name, .. } = *named;
        let is_here = |kind: &&str| self.all.has(&Target::new(kind, namespace, name));
        let of_kinds = || state_kinds(&self.snapshot.settings.families).filter(|it| kinds.contains(&it.kind));
        let is_made = |kind| self.snapshot.maker_of(kind, namespace, name).is_some();
        if kinds.iter().any(is_here) || of_kinds().any(is_made) {
            Presence::Found
        } else if of_kinds()
            .filter_map(|kind| self.snapshot.kind(kind))
            .any(|it| it.lacks_some_in(Some(namespace)))
        {
            Presence::Unknown
        } else {
            Presence::Missing
        }
    }

    fn add(
        &mut self,
        (part, pointer): (Pointer, Pointer),
        (kinds, named, found): (&[&'static str], &Named<'_>, Option<Target>),
        (key, presence): (Option<&str>, Presence),
        code: &'static Code,
    ) {
        let presence = if key.is_some_and(is_filled_in_later) { Presence::Unknown } else { presence };
        let here = |kind: &&&str| self.all.has(&Target::new(kind, named.namespace, named.name));
        let kind = kinds.iter().find(here).or_else(|| kinds.first()).copied().unwrap_or_default();
        let kind = found.as_ref().map_or(kind, |found| &found.kind);
        self.all.fields.push(NamingField {
            user: self.user.clone(),
            api_version: self.document.api_version().into(),
            place: self.document.shared_place(),
            part,
            pointer,
            target: Target::new(kind, named.namespace, named.name),
            found,
            key: key.map(str::to_owned),
            kinds: kinds.to_vec(),
            presence,
            code,
        });
    }
}

fn is_later(named: &Named<'_>) -> bool {
    [named.namespace, named.name].into_iter().any(is_filled_in_later)
}

/// What holds the field at a path.
fn holder_of(path: &[&str]) -> Pointer {
    let above = path.split_last().map_or(path, |(_, above)| above);
    above.iter().fold(Pointer::root(), |pointer, key| pointer.key(key))
}
