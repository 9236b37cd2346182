//! The variables of its memory that a pod sets itself, in the containers where the platform's program reads them.
//!
//! What the declared memory wants is asked of the pod as it was sent; what it gets is read from the pod as it would be
//! stored, so that memgate's own rewrites do not count. Where it is open what the program uses, there is a view for
//! each possibility, so that a pod cannot hide one behind another.

use std::cell::LazyCell;
use std::iter;

use crate::prelude::*;
use memgate_model::memory_view::OwnVariableView;
use memgate_model::pod::{self, read_list};

use super::env::{self, ExistingEnv, Variable};

/// The field of a container whose variables memgate does not read.
const ENV_FROM: &str = "envFrom";

/// The field of a pod's spec with its init containers.
const INIT_CONTAINERS: &str = "initContainers";

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
        // Nearly all pods set none of these variables.
        let wanted = if existing.is_empty() { &[] } else { wanted };
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
    /// Stands for the variable of this name, which tells what the others mean and is left out.
    chooser: Option<(&'static str, OwnVariable)>,
}

/// One way to read the variables of a container: without `envFrom`, or with it.
#[derive(Clone, Copy)]
pub(crate) struct OwnReading<'o> {
    own: &'o OwnVariables,
    env_from: Option<&'o OwnVariable>,
}

/// A variable that a container sets to another value than its declared memory wants, or that the memory leaves out.
#[derive(Clone)]
pub(crate) struct OwnVariable {
    name: String,
    /// The declared memory, as `Kind "name"`.
    declared: String,
    /// Its entry.
    pub(crate) field: Pointer,
    /// Its value; `None` for one from elsewhere, or that the kubelet expands.
    pub(crate) text: Option<String>,
    /// Where its value comes from.
    pub(super) from: EndpointSource,
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
        let sent = LazyCell::new(|| ExistingEnv::read(sent, names.prefixes));
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
        Self { list: own, left_out, env_from, chooser: None }
    }

    /// The same for each container of a pod that memgate does not inject, init containers included: a program in any of
    /// them, which may be a native sidecar, reads its variables too.
    pub(crate) fn of_others(
        pod: &Pod<'_>,
        wanted: &[Variable<'_>],
        names: MemoryVariableNames<'static>,
        declared: Option<&str>,
        (is_injected, work): (impl Fn(usize) -> bool, &Budget<'_>),
    ) -> Vec<Self> {
        let inits = init_containers(pod, work);
        let steps = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        let ordinary = pod.containers().len();
        let others = places(pod, &inits).enumerate();
        let others = others.filter(|(index, _)| *index >= ordinary || !is_injected(*index));
        let others = others.take_while(|_| work.steps(steps)).map(|(_, other)| other);
        others
            .map(|(place, container)| Self::compare(&place, [container; 2], wanted, names, declared))
            .collect()
    }

    /// Those of all containers of a pod without a declared memory that set any. `chooser` is the variable that tells what
    /// the others mean.
    pub(crate) fn undeclared(
        pod: &Pod<'_>,
        names: MemoryVariableNames<'static>,
        chooser: Option<&'static str>,
        work: &Budget<'_>,
    ) -> Vec<Self> {
        let mut all = Self::of_others(pod, &[], names, Some(""), (|_| false, work));
        all.retain(|own| !own.is_empty());
        for own in &mut all {
            let open = chooser.filter(|name| own.left_out.contains(name)).zip(own.list.first());
            own.chooser = open.map(|(name, first)| (name, first.of_unknown_value()));
        }
        all
    }

    /// The view of a memory that this container names, and no object declares, before its variables are read.
    pub(crate) fn undeclared_view(&self, family: &'static str, namespace: &str) -> MemoryView {
        let mut view = MemoryView::new(family, Role::Memory, "Pod", namespace, "");
        if let Some(first) = self.list.first() {
            view.at("backend", first.field.clone());
        }
        view
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
        let own = own.or_else(|| self.env_from.filter(|_| self.own.left_out.contains(&name)));
        own.or_else(|| self.own.chooser.as_ref().filter(|(chooser, _)| *chooser == name).map(|(_, it)| it))
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
    match entry.reference() {
        from if from.secret_key_ref.is_some() => EndpointSource::Secret,
        from if from.config_map_key_ref.is_some() => EndpointSource::ConfigMap,
        _ => EndpointSource::Literal,
    }
}

/// The init containers of a pod; none if they are malformed.
pub(crate) fn init_containers<'p>(pod: &'p Pod<'_>, work: &Budget<'_>) -> Vec<Container<'p>> {
    let list = pod.spec.as_ref().and_then(|spec| spec.init_containers);
    read_list(list, Path::Key(&pod::SPEC, INIT_CONTAINERS), work).unwrap_or_default()
}

/// The containers of a pod and then its init containers, with their places.
pub(crate) fn places<'p>(
    pod: &'p Pod<'p>,
    inits: &'p [Container<'p>],
) -> impl Iterator<Item = (Pointer, &'p Container<'p>)> {
    let ordinary = pod.containers().iter().enumerate();
    let ordinary = ordinary.map(|(index, container)| (env::container(index), container));
    let list = Pointer::new("/spec").key(INIT_CONTAINERS);
    let of_init = inits.iter().enumerate();
    ordinary.chain(of_init.map(move |(index, container)| (list.index(index), container)))
}

/// The distinct readings of containers, within the steps for a view of each: what several share counts at the first.
pub(crate) fn distinct<'o, 'd>(
    own: &'o [OwnVariables],
    declared: impl IntoIterator<Item = &'d MemoryView>,
    work: &Budget<'_>,
) -> Vec<(&'o OwnVariables, OwnReading<'o>)> {
    let mut known = BTreeSet::new();
    let entries = declared.into_iter().map(MemoryView::entries).sum::<usize>();
    let steps = u32::try_from(entries).unwrap_or(u32::MAX);
    let all = own.iter().flat_map(|own| own.readings().map(move |reading| (own, reading)));
    let new = all.filter(|(_, reading)| !reading.is_declared() && known.insert(reading.values()));
    new.take_while(|_| work.steps(steps)).collect()
}

impl OwnVariable {
    /// The same with a value that is not known.
    fn of_unknown_value(&self) -> Self {
        Self { text: None, from: EndpointSource::Literal, replaces_secret: false, ..self.clone() }
    }

    /// Whether it stands for what `envFrom` may set.
    pub(crate) fn is_env_from(&self) -> bool {
        self.name == ENV_FROM
    }

    /// Why its value is unknown.
    pub(crate) fn why(&self) -> Why {
        Why::SetByPod(self.name.clone())
    }
}
