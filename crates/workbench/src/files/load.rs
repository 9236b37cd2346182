//! Loads the objects to check, and the state for decisions about them: each text is read, parsed, and added to both.
//!
//! Every object of the inputs is also state for all others.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::build::assignments::Assignment;
use crate::build::judged_by::Standings;
use crate::build::layout::shown;
use crate::build::object_name::{is_of_no_namespace, object_ref};
use crate::build::ours::Ours;
use crate::build::plan::{CLUSTER, Plan};
use crate::build::rendered::Rendered;
use crate::build::texts::may_be_manifest;
use crate::build::unit::Unit;
use crate::build::units::{UnitTexts, Units, build_all, is_definition_or_policy};
use crate::files::errors::error_in;
use crate::files::inputs::Inputs;
use crate::files::names;
use crate::files::notices::Notices;
use crate::files::objects::{Filled, UndecidedObject, is_checked, json_to_check};
use crate::files::passed_over::{PassedOver, Why, pass_over};
use crate::files::places::DocumentValue;
use crate::files::policy_files::PolicyOrigin;
use crate::files::read::{ReadTexts, STDIN, read};
use crate::files::state::{FileObject, Loading};
use crate::in_order;
use crate::paths::{normal, root_around};
use crate::report::ObjectRef;
use memgate_core::state::cluster_snapshot::ClusterSnapshot;
use memgate_core::state::makers::add_anything;
use memgate_core::state::{AddError, SharedTexts, empty, like};
use memgate_manifest::document::{Document, Parsed, each_value, parse_parts};
use memgate_manifest::error::Error as InputError;
use memgate_manifest::later::{Given as Value, Later, is_of_template, lines_of, may_hold};
use memgate_manifest::source::Source;
use memgate_model::kind::NAMESPACE;
use memgate_model::object::JsonText;
use memgate_model::recurring_texts::RecurringTexts;
use memgate_model::state_uses::StateUses;
use memgate_model::workload;
use memgate_primitives::pointer::Pointer;

/// A file without a Kubernetes object, at a path that comes with a change. Its text is not shown.
const NOT_A_MANIFEST: &str = "this file cannot be read as YAML or JSON, and nothing in it looks like a Kubernetes \
                              object; to see why, name it on the command line";

/// Why nothing was loaded at all.
#[derive(Debug, Error)]
pub enum Error {
    /// Two inputs are `-`.
    #[error("standard input (-) can be read only once")]
    StdinTwice,
    /// An object of a cluster is out of bounds.
    #[error("{CLUSTER}: {0}")]
    Cluster(AddError),
    /// Nor can it be read.
    #[error(transparent)]
    Unreadable(#[from] InputError),
    /// A number of an object is beyond all bounds.
    #[error("failed to read an object")]
    Object(#[from] serde_json::Error),
}

/// A core parses at least so many files: with fewer, another thread costs more than it saves.
const FILES_OF_A_CORE: usize = 16;
/// Of a larger text, in bytes, one part after the other is parsed: all of its objects would take ten times as much memory.
const WHOLE_BYTES: usize = 256 << 10;

/// The parts of a text, parsed.
type ParsedParts = Box<dyn Iterator<Item = Parsed> + Send>;

/// A text with its parts, which are parsed now unless the text is large.
fn parsed(source: Arc<Source>) -> (Arc<Source>, ParsedParts) {
    let parts = parse_parts(&source);
    let parts: ParsedParts = if source.text().len() > WHOLE_BYTES {
        Box::new(parts)
    } else {
        Box::new(parts.collect::<Vec<_>>().into_iter())
    };
    (source, parts)
}

/// Reads what the plan names: the plain manifests, without what is built.
///
/// # Errors
/// When standard input is named twice, the snapshot cannot be used, or a number is out of bounds. Files that cannot
/// be read are part of the result.
pub fn load(plan: &Plan) -> Result<Inputs, Error> {
    let unbuilt = Plan { builder: None, ..plan.clone() };
    Ok(load_plain(&unbuilt)?.0)
}

/// Loads the units of a plan, and returns what `make` makes of the plain manifests and of each other unit.
///
/// # Errors
/// Those of [`load`].
pub fn each_unit<T>(plan: &Plan, mut make: impl FnMut(Inputs) -> T) -> Result<(T, Vec<T>), Error> {
    if !plan.open.is_empty() {
        return Ok((make(load(plan)?), Vec::new()));
    }
    let (first, given, units) = load_plain(plan)?;
    let neighbours = Arc::new(units.neighbours(&first.sources, &first.snapshot.settings));
    let first = make(Inputs { neighbours: Arc::clone(&neighbours), ..first });
    let mut others = Vec::with_capacity(units.all.len());
    for (number, of_unit) in units.all.into_iter().enumerate() {
        let inputs = load_unit(plan, &given, of_unit, |other| neighbours.are_apart(number + 1, other))?;
        others.push(make(Inputs { neighbours: Arc::clone(&neighbours), number: number + 1, ..inputs }));
    }
    Ok((first, others))
}

/// What units share: the state that is given, and the documents of plain manifests that count in all of a cluster.
#[derive(Debug)]
pub(crate) struct Given {
    inputs: Inputs,
    shared: Vec<(usize, Document)>,
    /// The namespaces of what was not built.
    unknown: Vec<String>,
}

/// Loads the plain manifests in their order, and builds the units.
pub(crate) fn load_plain(plan: &Plan) -> Result<(Inputs, Given, Units), Error> {
    let Plan { checked, state, policies, .. } = plan;
    if checked.iter().chain(state).chain(policies).filter(|path| *path == "-").count() > 1 {
        return Err(Error::StdinTwice);
    }
    let stdin: &mut dyn Read = match &plan.stdin {
        Some(bytes) => &mut bytes.as_slice(),
        None => &mut io::stdin(),
    };
    let inputs = Inputs::new(empty(plan.settings.clone()));
    let mut loading = Loading::new(plan, stdin, inputs, Standings::new(&plan.judged_by, ""));
    loading.add_given()?;
    loading.standings.note_given(&loading.inputs.snapshot);
    loading.inputs.places.settle();
    let mut given = Given { inputs: loading.inputs.given(), shared: Vec::new(), unknown: Vec::new() };
    let errors = loading.inputs.errors.len();
    let ReadTexts { mut sources, layout, files, parts } = loading.read_checked();
    loading.inputs.parts = parts;
    let mut units = if plan.open.is_empty() && plan.cluster.is_none() {
        build_all(plan, layout, &files, &mut sources)
    } else {
        Units::default()
    };
    let is_of_cluster = |document: &Document| is_shared(document.group(), document.kind());
    if !units.all.is_empty() {
        let documents = sources.iter().flat_map(parse_parts).flat_map(|parsed| parsed.documents);
        given.shared.extend(documents.filter(is_of_cluster).map(|document| (0, document)));
        given.shared.extend(units.shared());
    }
    for (_, document) in given.shared.iter().filter(|(unit, _)| *unit > 0) {
        let names = loading.names(document);
        loading.add_as_state(document, &names, (None, false))?;
    }
    loading.add_sources_dir(&sources);
    loading.add_texts(sources)?;
    loading.leave_out_errors(errors);
    let Inputs { not_built, unreached, tools, .. } = &mut loading.inputs;
    not_built.append(&mut units.not_built);
    unreached.append(&mut units.unreached);
    tools.append(&mut units.tools);
    loading.inputs.errors.append(&mut units.errors);
    let of_names = names::notices(&units, &loading.inputs.sources, plan);
    loading.inputs.notices.extend(of_names);
    let installers = units.installations(&loading.inputs.snapshot.settings);
    loading.inputs.installers.extend(installers);
    loading.inputs.left = units.left();
    given.inputs.left.clone_from(&loading.inputs.left);
    given.unknown = units.unknown.iter().cloned().collect();
    loading.make_unknown(&given.unknown);
    given.inputs.installers.clone_from(&loading.inputs.installers);
    let inputs = loading.finish();
    Ok((inputs, given, units))
}

/// Whether objects of this kind count in all units: they are of a cluster, and not of what is applied together.
fn is_shared(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == NAMESPACE.kind || is_definition_or_policy(group, kind)
}

/// Loads a unit with a state of its own.
pub(crate) fn load_unit(
    plan: &Plan,
    given: &Given,
    of_unit: UnitTexts,
    is_apart: impl Fn(usize) -> bool,
) -> Result<Inputs, Error> {
    let UnitTexts { unit, sources, rendered } = of_unit;
    let mut nothing = io::empty();
    let standings = Standings::new(&plan.judged_by, &unit.name);
    let mut loading = Loading::new(plan, &mut nothing, given.inputs.given(), standings);
    loading.standings.note_given(&loading.inputs.snapshot);
    for (_, document) in given.shared.iter().filter(|(unit, _)| is_apart(*unit)) {
        let names = loading.names(document);
        loading.add_as_state(document, &names, (None, false))?;
    }
    // They are told where they stand.
    (loading.notices, loading.inputs.errors) = (Notices::default(), Vec::new());
    loading.inputs.unit.clone_from(&unit.name);
    loading.inputs.assignment.clone_from(&unit.assignment);
    loading.inputs.fallback = unit.fallback().map(str::to_owned);
    loading.inputs.origins.rendered.extend(rendered.into_iter().map(|it| (it.source.name().to_owned(), it)));
    loading.add_texts(sources)?;
    loading.make_unknown(&given.unknown);
    Ok(loading.finish())
}

impl<'p> Loading<'p> {
    fn new(plan: &'p Plan, stdin: &'p mut dyn Read, inputs: Inputs, standings: Standings) -> Self {
        let (notices, texts) = (Notices::default(), RecurringTexts::default());
        Self { plan, stdin, inputs, notices, texts, standings, files: plan.files() }
    }

    /// Reads what is given besides the objects to check.
    fn add_given(&mut self) -> Result<(), Error> {
        let plan = self.plan;
        if let Some(cluster) = &plan.cluster {
            self.add_cluster(cluster)?;
        }
        for path in &plan.policies {
            let first = self.add_unchecked(PolicyOrigin::Policies, path)?;
            let message = || format!("{path} holds no MemoryPolicy and no MemoryPolicyExemption");
            self.inputs.errors.extend(first.map(|first| error_in(&first, message())));
        }
        for path in &plan.state {
            self.add_unchecked(PolicyOrigin::State, path)?;
        }
        Ok(())
    }

    /// Reads the objects of a cluster, below everything else.
    fn add_cluster(&mut self, cluster: &ClusterSnapshot) -> Result<(), Error> {
        self.inputs.assumed = Some(cluster.put(&mut self.inputs.snapshot).map_err(Error::Cluster)?);
        self.inputs.snapshot.crds = None;
        let source = Arc::new(Source::new(CLUSTER, cluster.list()));
        for document in parse_parts(&source).flat_map(|parsed| parsed.documents) {
            let names = self.names(&document);
            // An apiserver has accepted these objects, so there are no notices about them.
            let json = json_to_check(&document)?;
            self.add_object(Filled::of(document), names, json)?;
        }
        let Inputs { sources, snapshot, objects, passed_over, .. } = &mut self.inputs;
        sources.push(source);
        pass_over(objects, passed_over, snapshot, false);
        Ok(())
    }

    /// Adds the objects of a path that are not checked; of a path of policies only these and exemptions. Returns the first file
    /// if decisions look at none of them.
    fn add_unchecked(&mut self, origin: PolicyOrigin, path: &String) -> Result<Option<Arc<Source>>, Error> {
        let Self { plan, stdin, inputs, .. } = self;
        let (mut is_used, errors) = (false, inputs.errors.len());
        let exclude = match origin {
            PolicyOrigin::Policies => Arc::new(plan.exclude.of_flags()),
            PolicyOrigin::State | PolicyOrigin::Checked => Arc::clone(&plan.exclude),
        };
        let sources = read(std::slice::from_ref(path), None, &exclude, plan, *stdin, (inputs, true)).sources;
        let (templates, sources): (Vec<_>, Vec<_>) =
            sources.into_iter().partition(|source| source.name() != path && is_template(source));
        for source in &templates {
            pass_over_template(source, false, inputs);
        }
        let is_meant = |source: &Source| source.name() == path || may_be_manifest(source.text().as_bytes());
        let is_kept = &|it: &Result<_, _>, source: &Source| it.is_ok() || is_meant(source);
        let documents = sources.iter().flat_map(|it| each_value(it).filter(move |of| is_kept(of, it)));
        let documents = documents.map(|document| Ok(fill_in(document?, None, None)));
        for filled in documents {
            match filled {
                Ok(Filled { document, later }) => {
                    let is_later = !later.unknown.is_empty();
                    let part = DocumentValue {
                        document: &document,
                        within: &Pointer::root(),
                        value: document.value(),
                    };
                    is_used |= self.add(&FileObject { origin, part, is_later, shared: None })?;
                }
                Err(error) => self.inputs.errors.push(error),
            }
        }
        // With errors, the content of the files is not known.
        let is_unused = !is_used && self.inputs.errors.len() == errors;
        Ok(sources.into_iter().next().filter(|_| is_unused))
    }

    /// Reads the objects to check.
    fn read_checked(&mut self) -> ReadTexts {
        let Self { plan, stdin, inputs, .. } = self;
        read(&plan.checked, plan.within.as_deref(), &plan.exclude, plan, *stdin, (inputs, false))
    }

    /// Lets findings about what was built and piped in stand in the files of the directory that the user names.
    fn add_sources_dir(&mut self, sources: &[Arc<Source>]) {
        let plan = self.plan;
        let Some(directory) = &plan.sources else { return };
        for source in sources.iter().filter(|source| source.name() == STDIN) {
            let unit = Arc::new(Unit::of_directory(directory, &plan.exclude));
            let rendered = Arc::new(Rendered::of(&unit, source, None));
            self.inputs.origins.rendered.insert(source.name().to_owned(), rendered);
        }
    }

    /// Adds the texts of objects to check.
    fn add_texts(&mut self, sources: Vec<Arc<Source>>) -> Result<(), Error> {
        let plan = self.plan;
        in_order::each(sources, FILES_OF_A_CORE, parsed, |(source, parts)| {
            let is_manifest = self.add_text(&source, parts)?;
            // mutate prints every source.
            if is_manifest && !plan.is_state(source.name()) {
                self.inputs.sources.push(source);
            }
            Ok(())
        })
    }

    /// Leaves out the errors of files that an editor does not show, behind this many. What the user named must be there.
    fn leave_out_errors(&mut self, before: usize) {
        let plan = self.plan;
        if plan.open.is_empty() {
            return;
        }
        // An editor shows those of the other files at these.
        let errors = self.inputs.errors.split_off(before);
        let is_named = |path: &str| plan.within.is_none() && plan.checked.iter().any(|named| named == path);
        let is_shown = |path: &str| plan.is_open(path) || is_named(path);
        let is_own = |error: &InputError| error.place().is_some_and(|(path, _)| is_shown(path));
        self.inputs.errors.extend(errors.into_iter().filter(is_own));
    }

    /// Adds the documents of a text. Returns whether it is that of a manifest.
    fn add_text(&mut self, source: &Arc<Source>, parts: ParsedParts) -> Result<bool, Error> {
        let plan = self.plan;
        let (is_given, is_state) = (plan.within.is_none(), plan.is_state(source.name()));
        let is_named = source.name() == STDIN || plan.checked.iter().any(|path| path == source.name());
        let is_built = self.inputs.origins.rendered.contains_key(source.name());
        let may_be_manifest = LazyCell::new(|| is_built || may_be_manifest(source.text().as_bytes()));
        let is_template = is_template(source);
        if is_template && pass_over_template(source, is_given && is_named, &mut self.inputs) {
            self.inputs.passed_over.push(PassedOver::template(source));
        }
        let mut is_manifest = is_given && !is_template;
        for mut parsed in parts {
            if is_template {
                // The documents that can be read are judged; of the others nothing is known.
                (parsed.errors, parsed.non_objects) = (Vec::new(), Vec::new());
            }
            if !is_given && is_named && !parsed.errors.is_empty() && !*may_be_manifest {
                self.inputs.errors.push(InputError::of_input(source.name(), NOT_A_MANIFEST));
                break;
            }
            // Many files in a directory are not meant to be manifests. All that is built is.
            self.inputs.errors.extend(parsed.errors.into_iter().filter(|_| is_named || *may_be_manifest));
            for other in parsed.non_objects.into_iter().filter(|_| !is_state) {
                self.notices.not_an_object(&other, &self.inputs.snapshot.settings);
                self.inputs.passed_over.push(PassedOver::non_object(source, &other));
            }
            for document in parsed.documents {
                // A kubeconfig has a kind too.
                is_manifest |=
                    ["metadata", "items"].iter().any(|field| document.value().get(field).is_some());
                let Inputs { assignment, fallback, .. } = &self.inputs;
                let filled = fill_in(document, assignment.as_ref(), fallback.as_deref());
                let names = self.names(&filled.document);
                self.add_filled(filled, names, is_state)?;
            }
        }
        Ok(is_manifest)
    }

    /// Adds a document with these names.
    fn add_filled(&mut self, filled: Filled, names: ObjectRef, is_state: bool) -> Result<(), Error> {
        let document = &filled.document;
        let json = if is_state { None } else { json_to_check(document)? };
        self.add_as_state(document, &names, (json.as_ref(), !filled.later.unknown.is_empty()))?;
        // State may be repeated in a file that is checked.
        self.notices.object(document, &names, &self.inputs.snapshot.settings);
        if is_state {
            return Ok(());
        }
        let has_chosen = self.inputs.snapshot.settings.namespace.is_some();
        self.notices.unread_templates(document, &names, has_chosen);
        self.add_object(filled, names, json)
    }

    /// The names of a document in reports.
    fn names(&mut self, document: &Document) -> ObjectRef {
        object_ref(document, self.inputs.snapshot.settings.namespace.as_deref(), &mut self.texts)
    }

    /// Adds a document to the state. An object to check shares its names and JSON.
    fn add_as_state(
        &mut self,
        document: &Document,
        names: &ObjectRef,
        (json, is_later): (Option<&Arc<JsonText>>, bool),
    ) -> Result<bool, Error> {
        // Of a workload, the state keeps little.
        let shared = json.filter(|_| workload::find(document.group(), document.kind()).is_none());
        let shared = shared.map(|json| SharedTexts { json, namespace: &names.namespace, name: &names.name });
        let part = DocumentValue { document, within: &Pointer::root(), value: document.value() };
        Ok(self.add_one(&FileObject { origin: PolicyOrigin::Checked, part, is_later, shared })?)
    }

    /// Adds a document to the objects to check, or to those that are passed over if it has no JSON.
    fn add_object(
        &mut self,
        filled: Filled,
        object_ref: ObjectRef,
        json: Option<Arc<JsonText>>,
    ) -> Result<(), Error> {
        let inputs = &mut self.inputs;
        let document = &filled.document;
        let Some(json) = json else {
            let is_checked = is_checked(document.group(), document.kind());
            let why = if is_checked { Why::NotAnnotated } else { Why::OtherKind };
            inputs.passed_over.push(PassedOver::object(document.place(), object_ref, why));
            return Ok(());
        };
        let chosen = inputs.snapshot.settings.namespace.as_deref();
        // What a manifest of a cluster-scoped kind says of a namespace means nothing.
        let own = document.namespace().filter(|_| !object_ref.namespace.is_empty());
        let namespace = like(own.or(chosen).unwrap_or_default(), &object_ref.namespace);
        inputs.objects.extend(UndecidedObject::of(filled, &object_ref, &namespace, &json)?);
        Ok(())
    }

    /// Makes unknown what the objects install that is not among the inputs, and what may be in these namespaces.
    fn make_unknown(&mut self, namespaces: &[String]) {
        let Inputs { installers, snapshot, left, .. } = &mut self.inputs;
        let is_elsewhere = |file: &Path, path: &Option<String>| {
            let is_here = |path: &String| {
                let fixed = path.split(['*', '{', '$']).next().unwrap_or_default();
                let there = normal(&root_around(file).join(fixed.trim_start_matches('/')));
                there.exists() && !left.iter().any(|left| left.starts_with(&there))
            };
            !path.as_ref().is_some_and(is_here)
        };
        let installers = installers.iter().filter(|(file, it)| is_elsewhere(file, &it.path));
        let installed = installers.map(|(_, it)| it.namespace.as_deref());
        let all: BTreeSet<_> = installed.chain(namespaces.iter().map(|it| Some(it.as_str()))).collect();
        for namespace in all {
            add_anything(snapshot, namespace);
        }
    }

    /// Adds what is known once everything was read.
    fn finish(self) -> Inputs {
        let Self { plan, mut notices, mut inputs, standings, .. } = self;
        inputs.of_read = std::mem::take(&mut notices.repeated);
        let repeated = inputs.of_read.iter().map(|(object, _)| object.clone());
        let is_any = !inputs.of_read.is_empty();
        inputs.snapshot.uses = is_any.then(|| Arc::new(StateUses::of(repeated)));
        (inputs.standing, inputs.changes) = standings.finish(&mut inputs.snapshot);
        inputs.changes.later.extend(plan.later.iter().cloned());
        inputs.is_narrow = plan.is_narrow;
        if let Some(crds) = &mut inputs.snapshot.crds {
            crds.share_among(inputs.objects.len());
        }
        inputs.switched_off.clone_from(&plan.switched_off);
        inputs.unreadable_state = notices.unreadable;
        let mut all = notices.finish();
        all.append(&mut inputs.notices);
        inputs.notices = all;
        let Inputs { errors, origins, .. } = &mut inputs;
        for error in errors {
            if let Some(rendered) = error.place().and_then(|(name, _)| origins.rendered.get(name)) {
                *error = unreadable(rendered, error);
            }
        }
        if plan.checks_only_open {
            inputs.is_partial = true;
            inputs.notices.retain(|notice| !plan.is_state(notice.source.name()));
        }
        if plan.ignores_policies {
            inputs.snapshot.policies = Arc::default();
        }
        inputs
    }
}

/// The objects of a text that was read, with what is put in and what a later step fills in.
pub fn objects_in(source: &Arc<Source>, inputs: &Inputs) -> impl Iterator<Item = (Document, Later)> {
    let documents = parse_parts(source).flat_map(|parsed| parsed.documents);
    let (assignment, fallback) = (inputs.assignment.clone(), inputs.fallback.clone());
    documents.map(move |document| {
        let Filled { document, later } = fill_in(document, assignment.as_ref(), fallback.as_deref());
        (document, later)
    })
}

/// A document with what a Kustomization puts into it, in this namespace if it has none.
pub(crate) fn fill_in(
    mut document: Document,
    by: Option<&Arc<Assignment>>,
    fallback: Option<&str>,
) -> Filled {
    let is_namespaced = !is_of_no_namespace(document.group(), document.kind());
    if let Some(namespace) = by.and_then(|by| by.namespace.as_deref()).filter(|_| is_namespaced) {
        document.set_namespace(namespace);
    }
    if let Some(namespace) = fallback.filter(|_| is_namespaced && document.namespace().is_none()) {
        document.set_namespace(namespace);
    }
    let value_of = |name: &str| by.map_or(Value::Nothing, |by| by.get(name));
    let later = if by.is_some() || may_hold(lines_of(document.source(), document.span())) {
        document.fill_in(&value_of, by.is_some_and(|by| by.has_post_build))
    } else {
        Later::default()
    };
    Filled { document, later }
}

/// The error of what a tool printed: at the template that printed it, if it says which one, else at the unit.
fn unreadable(rendered: &Rendered, error: &InputError) -> InputError {
    let line = error.place().and_then(|(_, line)| line).unwrap_or(1);
    let why = error.syntax_error().map_or_else(|| error.to_string(), |error| error.message.clone());
    let message = format!("what {} becomes cannot be read at line {line}: {why}", rendered.unit.name);
    let file = rendered.file_at_line(line);
    InputError::of_input(
        file.map_or_else(|| rendered.unit.marker.to_string_lossy().into_owned(), |file| shown(&file)),
        message,
    )
}

/// Notes a text that is not read: a program makes objects of it. Returns whether that may be ours.
fn pass_over_template(source: &Source, is_named: bool, inputs: &mut Inputs) -> bool {
    let help =
        if is_named { "; to check what it becomes: helm template CHART | memgate check -" } else { "" };
    let name = source.name();
    let is_told = is_named || Ours::new(&inputs.snapshot.settings).is_in(source.text());
    if is_told {
        inputs.skipped.push(format!("{name} (a template; only documents without such lines are read{help})"));
    }
    add_anything(&mut inputs.snapshot, None);
    is_told
}

/// Whether a text is a template: it cannot be read, at a line which a program fills in, or right behind one.
fn is_template(source: &Arc<Source>) -> bool {
    if !may_hold(source.text()) || !source.text().lines().any(is_of_template) {
        return false;
    }
    let is_at_such = |error: InputError| {
        let (_, line) = error.place()?;
        let mut lines = source.text().lines().skip(line?.saturating_sub(2)).take(2);
        lines.any(is_of_template).then_some(())
    };
    each_value(source).find_map(Result::err).and_then(is_at_such).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::object::Lookup;
    use memgate_model::state_reader::StateReader;
    use memgate_platforms::common::STATE_UNREADABLE;
    use memgate_primitives::budget::Budget;

    fn as_state(text: &str) -> Inputs {
        let plan = Plan { checked: Vec::new(), state: vec!["-".to_owned()], ..Plan::of_text(text) };
        load(&plan).expect("loads")
    }

    fn messages(inputs: &Inputs) -> Vec<String> {
        let unreadable = inputs.notices.iter().filter(|it| it.finding.code == &STATE_UNREADABLE);
        unreadable.map(|it| it.finding.message().into_owned()).collect()
    }

    #[test]
    fn state_without_a_name_that_can_be_read_is_reported() {
        let kinds = [
            ("arkonis.dev/v1alpha1", "ArkMemory"),
            ("arkonis.dev/v1alpha1", "ArkSettings"),
            ("kubeswarm.io/v1alpha1", "SwarmAgent"),
            ("ark.mckinsey.com/v1alpha1", "Memory"),
            ("orloj.dev/v1", "Memory"),
            ("core.orka.ai/v1alpha1", "Agent"),
            ("sympozium.ai/v1alpha1", "SkillPack"),
            ("v1", "Secret"),
            ("v1", "ConfigMap"),
            ("v1", "Service"),
            ("v1", "Namespace"),
            ("apps/v1", "DaemonSet"),
            ("apps/v1", "Deployment"),
            ("apps/v1", "ReplicaSet"),
            ("apps/v1", "StatefulSet"),
        ];
        let wrong = ["y", "n", "no", "off", "true", "0x10", "1e3", "07", "1.5", "[~]", "{}"];
        for (api_version, kind) in kinds {
            let head = format!("{{apiVersion: {api_version}, kind: {kind}, metadata: ");
            let told = |metadata: &str| messages(&as_state(&format!("{head}{metadata}}}\n")));
            for value in wrong {
                let of = |field: &str| {
                    vec![format!("metadata.{field} must be a string; this {kind} is not looked at")]
                };
                assert_eq!(told(&format!("{{name: {value}}}")), of("name"), "{value}");
                assert_eq!(told(&format!("{{name: a, namespace: {value}}}")), of("namespace"), "{value}");
                let both: Vec<_> = of("name").into_iter().chain(of("namespace")).collect();
                assert_eq!(told(&format!("{{name: {value}, namespace: {value}}}")), both, "{value}");
                assert_eq!(told(&format!("{{name: '{value}', namespace: \"{value}\"}}")), [""; 0], "{value}");
            }
            for metadata in ["{}", "~", "{name: ~}", "{name: ''}", "{generateName: ''}", "{namespace: a}"] {
                let required = format!("metadata.name is required; this {kind} is not looked at");
                assert_eq!(told(metadata), [required], "{metadata}");
            }
            for metadata in ["[]", "[{name: a}]", "a", "no", "1"] {
                let required = format!("metadata must be an object; this {kind} is not looked at");
                assert_eq!(told(metadata), [required], "{metadata}");
            }
            assert_eq!(told("{name: a, namespace: ~}"), [""; 0]);
            assert_eq!(told("{generateName: a-, namespace: a}"), [""; 0]);
        }
        for other in ["batch/v1, kind: Job", "v1, kind: Node", "example.com/v1, kind: ArkMemory"] {
            assert_eq!(
                messages(&as_state(&format!("{{apiVersion: {other}, metadata: {{name: y}}}}\n"))),
                [""; 0]
            );
        }
    }

    #[test]
    fn a_kind_with_an_unreadable_object_is_unknown() {
        let text = "\
{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: a, namespace: t}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: t}}
";
        let bad =
            "---\n{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: n, namespace: t}}
---\n{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: no}}\n";
        let families = memgate_platforms::ALL;
        for (text, expected) in
            [(text.to_owned(), Lookup::Absent), (format!("{text}{bad}"), Lookup::Unknown(()))]
        {
            let snapshot = as_state(&text).snapshot;
            for (group, kind) in [("arkonis.dev", "ArkMemory"), ("", "Secret")] {
                let kind = memgate_platforms::state_kind(&families, group, kind).expect("a kind");
                let budget = Budget::default();
                let mut reader = StateReader::new(&snapshot, &budget);
                assert_eq!(reader.get(kind, "t", "b"), expected, "{}", kind.kind);
                assert!(reader.get(kind, "t", "a").found().is_some(), "{}", kind.kind);
                assert_eq!(reader.get_if_known(kind, "t", "b"), expected, "{}", kind.kind);
            }
        }
    }

    #[test]
    fn a_checked_object_makes_its_kind_unknown_unless_it_only_lacks_a_name() {
        let memory = |metadata: &str| {
            format!("---\n{{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {metadata}}}\n")
        };
        let rows = [
            ("{name: n, namespace: t}", Lookup::Unknown(())),
            ("{name: 1, namespace: t}", Lookup::Unknown(())),
            ("{name: b, namespace: no}", Lookup::Unknown(())),
            ("{generateName: b-, namespace: no}", Lookup::Unknown(())),
            ("[]", Lookup::Unknown(())),
            ("{namespace: t}", Lookup::Absent),
            ("{name: ~, namespace: t}", Lookup::Absent),
            ("{generateName: b-, namespace: t}", Lookup::Absent),
            ("{name: 'n', namespace: t}", Lookup::Absent),
        ];
        let kind = memgate_platforms::state_kind(&memgate_platforms::ALL, "arkonis.dev", "ArkMemory");
        let kind = kind.expect("a kind");
        for (metadata, expected) in rows {
            let text = memory("{name: a, namespace: t}") + &memory(metadata);
            let budget = Budget::default();
            let checked = load(&Plan::of_text(&text)).expect("loads");
            let mut reader = StateReader::new(&checked.snapshot, &budget);
            assert_eq!(reader.get(kind, "t", "b"), expected, "{metadata}");
            // One that is to be named tells nothing as state either.
            if metadata.contains("generateName: b-, namespace: t") {
                let inputs = as_state(&text);
                let mut reader = StateReader::new(&inputs.snapshot, &budget);
                assert_eq!((reader.get(kind, "t", "b"), messages(&inputs).len()), (expected, 0));
            }
        }
    }

    #[test]
    fn of_very_many_unreadable_objects_fifty_are_reported() {
        let mut text = "apiVersion: v1\nkind: List\nitems:\n".to_owned();
        for _ in 0..10_000 {
            text.push_str("- {apiVersion: v1, kind: Secret, metadata: {name: y, namespace: n}}\n");
        }
        let inputs = as_state(&text);
        assert_eq!((messages(&inputs).len(), inputs.unreadable_state), (50, 10_000));
    }

    #[test]
    fn a_policy_without_a_name_that_can_be_read_is_an_error() {
        let head =
            "{apiVersion: policy.memgate.dev/v1alpha1, kind: MemoryPolicyExemption, spec: {}, metadata: ";
        for (metadata, expected) in
            [("{name: y, namespace: no}", 2), ("{name: a, namespace: no}", 1), ("[]", 1)]
        {
            let text = format!("{head}{metadata}}}\n");
            for inputs in [as_state(&text), load(&Plan::of_text(&text)).expect("loads")] {
                assert_eq!((inputs.errors.len(), inputs.unreadable_state), (expected, 0), "{metadata}");
                assert!(inputs.snapshot.policies.exemptions().next().is_none(), "{metadata}");
            }
        }
    }

    #[test]
    fn an_object_that_is_checked_is_not_reported_here() {
        for metadata in ["{name: y}", "{name: a, namespace: no}", "{generateName: a-}", "{}"] {
            let text =
                format!("{{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {metadata}}}\n");
            let inputs = load(&Plan::of_text(&text)).expect("loads");
            assert_eq!((messages(&inputs).len(), inputs.objects.len()), (0, 1), "{metadata}");
        }
    }
}
