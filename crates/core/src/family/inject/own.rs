//! The variables of its memory that a pod sets itself, in the containers where the platform's program reads them.
//!
//! What the declared memory wants is asked of the pod as it was sent; what it gets is read from the pod as it would be
//! stored, so that memgate's own rewrites do not count. Where it is open what the program uses, there is a view for
//! each possibility, so that a pod cannot hide one behind another.

use std::collections::BTreeMap;
use std::iter;

use memgate_model::finding::excerpt;
use memgate_model::memory_view::{
    EndpointSource, EndpointView, InlineView, MemoryView, OwnVariableView, Why,
};
use memgate_model::pod::{self, Container, Pod};
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::env::{self, ExistingEnv, Variable};
use crate::family::endpoint_view;

/// The field of a container whose variables memgate does not read.
const ENV_FROM: &str = "envFrom";

/// The variables of a family's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryVariableNames<'n> {
    /// The start of all names; others in the pod are skipped by it.
    pub(crate) prefixes: &'n [&'n str],
    /// The names.
    pub(crate) names: &'n [&'n str],
    /// The start of names that depend on the memory.
    pub(crate) open: Option<&'n str>,
}

impl MemoryVariableNames<'_> {
    /// The entries of a container's `env` that differ from what its memory wants, by name: with the wanted variable, or
    /// without one where the memory leaves it out.
    pub(crate) fn differing<'p, 'v, 'w>(
        self,
        existing: &ExistingEnv<'p>,
        wanted: &'v [Variable<'w>],
    ) -> impl Iterator<Item = (&'p str, &'p pod::EnvVarView<'p>, Option<&'v Variable<'w>>)> {
        let by_name: BTreeMap<&str, &'v Variable<'w>> =
            wanted.iter().map(|it| (it.name.as_ref(), it)).collect();
        existing.iter().filter_map(move |(name, entry)| {
            let variable = by_name.get(name).copied();
            let differs = match variable {
                Some(variable) => !variable.equals(entry),
                None => self.names.contains(&name) || self.open.is_some_and(|start| name.starts_with(start)),
            };
            differs.then_some((name, entry, variable))
        })
    }
}

/// The variables that one container sets itself.
#[derive(Default)]
pub(crate) struct OwnVariables {
    /// By name.
    list: Vec<OwnVariable>,
    /// The names that the container's `env` leaves out.
    left_out: Vec<&'static str>,
    /// The container's `envFrom`, if it may set one of those.
    env_from: Option<OwnVariable>,
}

/// One way to read the variables of a container: without `envFrom`, or with it.
#[derive(Clone, Copy)]
pub(crate) struct OwnReading<'o> {
    own: &'o OwnVariables,
    env_from: Option<&'o OwnVariable>,
}

/// A variable that a container sets to another value than its declared memory wants, or that the memory leaves out.
pub(crate) struct OwnVariable {
    name: String,
    /// The declared memory, as `Kind "name"`.
    declared: String,
    /// Its entry.
    pub(crate) field: Pointer,
    /// Its value; `None` for one from elsewhere, or that the kubelet expands.
    pub(crate) text: Option<String>,
    /// Where its value comes from.
    from: EndpointSource,
    /// Whether the declared memory has it in a Secret.
    pub(crate) replaces_secret: bool,
}

impl OwnVariables {
    /// Compares the ordinary container of this index, in the pod as it was sent and as it would be stored, with what its
    /// memory wants. `declared` names the memory; without it, variables are named after what they come from.
    pub(crate) fn read(
        index: usize,
        [sent, stored]: [&Pod<'_>; 2],
        wanted: &[Variable<'_>],
        names: MemoryVariableNames<'static>,
        declared: Option<&str>,
    ) -> Self {
        let containers = sent.containers().get(index).zip(stored.containers().get(index));
        let Some((sent, stored)) = containers else { return Self::default() };
        Self::compare(&env::container(index), [sent, stored], wanted, names, declared)
    }

    /// The same for a container at this place, as it was sent and as it would be stored.
    pub(crate) fn compare(
        place: &Pointer,
        [sent, stored]: [&Container<'_>; 2],
        wanted: &[Variable<'_>],
        names: MemoryVariableNames<'static>,
        declared: Option<&str>,
    ) -> Self {
        let sent = ExistingEnv::read(sent, names.prefixes);
        let existing = ExistingEnv::read(stored, names.prefixes);
        let list = place.key("env");
        let first = wanted.first();
        let own = names.differing(&existing, wanted).filter_map(|(name, entry, variable)| {
            let (at, _) = sent.get(name)?;
            let of_origin = || variable.or(first).map(|it| title(&it.origin.resource)).unwrap_or_default();
            let text = entry.literal().filter(|text| !text.contains("$("));
            Some(OwnVariable {
                name: name.to_owned(),
                declared: declared.map_or_else(of_origin, str::to_owned),
                field: list.index(at),
                text: text.map(|text| text.replace("$$", "$")),
                from: source(entry),
                replaces_secret: variable.is_some_and(Variable::is_secret),
            })
        });
        let own = own.collect();
        let left_out = names.names.iter().copied().filter(|name| existing.get(name).is_none());
        let left_out: Vec<&str> = left_out.collect();
        let env_from = stored.env_from.filter(|raw| !matches!(raw.get().trim(), "null" | "[]"));
        let env_from = env_from.filter(|_| !left_out.is_empty()).map(|_| OwnVariable {
            name: ENV_FROM.to_owned(),
            declared: String::new(),
            field: place.key(ENV_FROM),
            text: None,
            from: EndpointSource::Literal,
            replaces_secret: false,
        });
        Self { list: own, left_out, env_from }
    }

    /// Whether the container is as its memory wants it, as far as its `env` tells.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the container has no variable of these names and none from elsewhere.
    pub(crate) fn has_none(&self, names: MemoryVariableNames<'_>) -> bool {
        self.is_empty() && self.env_from.is_none() && self.left_out.len() == names.names.len()
    }

    /// What its memory can read: its `env`, and the same with what `envFrom` may add.
    pub(crate) fn readings(&self) -> impl Iterator<Item = OwnReading<'_>> {
        let with_env_from = self.env_from.as_ref().map(|it| OwnReading { own: self, env_from: Some(it) });
        iter::once(OwnReading { own: self, env_from: None }).chain(with_env_from)
    }

    /// Adds them to the view of their pod.
    pub(crate) fn add_to(self, view: &mut MemoryView) {
        view.own_variables.extend(self.list.into_iter().map(|own| {
            let OwnVariable { name, declared, field, .. } = own;
            OwnVariableView { name, declared, field }
        }));
        view.env_from = view.env_from.take().or_else(|| Some(self.env_from?.field));
    }
}

impl<'o> OwnReading<'o> {
    /// The variable of this name; one that `envFrom` may set is unknown.
    pub(crate) fn get(self, name: &str) -> Option<&'o OwnVariable> {
        let own = self.own.list.iter().find(|own| own.name == name);
        own.or_else(|| self.env_from.filter(|_| self.own.left_out.contains(&name)))
    }

    /// Whether the container has the variable with the value that its memory wants.
    pub(crate) fn is_as_declared(self, name: &str) -> bool {
        !self.own.left_out.contains(&name) && self.own.list.iter().all(|own| own.name != name)
    }

    /// The variables of the pod's own `env`, by name.
    pub(crate) fn iter(self) -> impl Iterator<Item = (&'o str, &'o OwnVariable)> {
        self.own.list.iter().map(|own| (own.name.as_str(), own))
    }

    /// Whether it is as the declared memory wants it.
    pub(crate) fn is_declared(self) -> bool {
        self.own.is_empty() && self.env_from.is_none()
    }

    /// Whether it is the one with `envFrom`.
    pub(crate) const fn has_env_from(self) -> bool {
        self.env_from.is_some()
    }

    /// What tells it from the reading of another container: the names with the values, and what may come from elsewhere.
    pub(crate) fn values(self) -> impl Ord + use<'o> {
        let own = self.own.list.iter();
        let own = own.map(|own| (own.name.as_str(), own.text.as_deref(), own.from, own.replaces_secret));
        (own.collect::<Vec<_>>(), self.env_from.map(|_| self.own.left_out.as_slice()))
    }

    /// The views of a memory that is reached at one of these variables, as the pod sets them: one for each that names an
    /// endpoint, since a program may use any of them.
    pub(crate) fn reached_at(
        self,
        view: MemoryView,
        names: &[&str],
        has_credential: impl Fn(&str) -> bool,
        state: &mut StateReader<'_>,
    ) -> Vec<MemoryView> {
        let mut views = Vec::new();
        for name in names {
            let mut of_this = view.clone();
            if let Some(set) = self.get(name) {
                set.set_endpoint(&mut of_this, &has_credential, state);
            }
            views.push(of_this);
        }
        if views.iter().any(|view| view.endpoint.is_some()) {
            views.retain(|view| view.endpoint.is_some());
        }
        if views.is_empty() { vec![view] } else { views }
    }
}

/// `Kind namespace/name` as `Kind "name"`.
fn title(resource: &str) -> String {
    let (kind, name) = resource.split_once(' ').unwrap_or_default();
    declared(kind, name.rsplit('/').next().unwrap_or_default())
}

/// A declared memory as messages name it.
pub(crate) fn declared(kind: &str, name: &str) -> String {
    format!("{kind} {}", quoted(&excerpt(name)))
}

fn source(entry: &pod::EnvVarView<'_>) -> EndpointSource {
    let from = pod::read::<pod::ValueFromView<'_>>(entry.value_from);
    match from {
        Some(from) if from.secret_key_ref.is_some() => EndpointSource::Secret,
        Some(from) if from.config_map_key_ref.is_some() => EndpointSource::ConfigMap,
        _ => EndpointSource::Literal,
    }
}

impl OwnVariable {
    /// Whether it stands for what `envFrom` may set.
    pub(crate) fn is_env_from(&self) -> bool {
        self.name == ENV_FROM
    }

    /// Why its value is unknown.
    pub(crate) fn why(&self) -> Why {
        Why::SetByPod(self.name.clone())
    }

    /// The value at a path of the view, which is this variable's from now on.
    pub(crate) fn value<T>(
        &self,
        view: &mut MemoryView,
        path: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        view.moved(path, &self.field);
        let value = self.text.as_deref().and_then(read);
        if value.is_none() {
            view.unknown.push((path, self.why()));
        }
        value
    }

    /// A number of which 0 means "without limit", as is a negative one.
    pub(crate) fn number(&self, view: &mut MemoryView, path: &'static str) -> Option<i64> {
        self.value(view, path, |text| text.trim().parse().ok().map(|number: i64| number.max(0)))
    }

    /// Makes it the endpoint of a memory.
    pub(crate) fn set_endpoint(
        &self,
        view: &mut MemoryView,
        has_credential: impl Fn(&str) -> bool,
        state: &mut StateReader<'_>,
    ) {
        view.moved("endpoint", &self.field);
        view.endpoint = match &self.text {
            None => Some(EndpointView::unknown(self.from, self.why())),
            Some(text) if text.trim().is_empty() => None,
            Some(text) => Some(endpoint_view::parse(EndpointSource::Literal, text, &view.namespace, state)),
        };
        let inline = self.text.as_ref().filter(|text| has_credential(text));
        view.inline.extend(inline.map(|text| InlineView::new(self.field.clone(), text)));
    }

    /// Makes it the credential of a memory, in place of the Secret that the memory names at `replaced`.
    pub(crate) fn set_credential(&self, view: &mut MemoryView, replaced: Option<&Pointer>) {
        view.secrets.retain(|secret| Some(&secret.field) != replaced);
        view.moved("secrets", &self.field);
        match &self.text {
            None => view.unknown.push(("secrets", self.why())),
            Some(text) if text.is_empty() => {}
            Some(text) => view.inline.push(InlineView::new(self.field.clone(), text)),
        }
    }

    /// Its text, for a path that holds one.
    pub(crate) fn text(&self, view: &mut MemoryView, path: &'static str) -> Option<String> {
        self.value(view, path, |text| Some(text.to_owned()))
    }
}
