//! Loads the objects to check, and the state for decisions about them.
//!
//! Every object of the inputs is also state for all others.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::errors::{error_at, error_in};
use crate::exclude::Exclude;
use crate::notices::{Notice, Notices, unreadable_errors};
use crate::objects::UndecidedObject;
use crate::objects::{has_required_annotation, is_checked, object_ref};
use crate::passed_over::{PassedOver, Why, pass_over};
use crate::places::Places;
use crate::places::{Origins, SourceOrigins};
use crate::policy_files::{self, PolicyFiles, PolicyOrigin};
use crate::read::{Collected, Reading, STDIN, Unread, collect_within};
use crate::report::ObjectRef;
use crate::rules::Rules;
use crate::texts::source;
use memgate_core::state::cluster_snapshot::{self, ClusterSnapshot};
use memgate_core::state::makers::add_anything;
use memgate_core::state::{self, AddError, Added, SharedTexts, like};
use memgate_manifest::document::{Document, each_value, fill_type_meta, parse_parts};
use memgate_manifest::error::Error as InputError;
use memgate_manifest::source::Source;
use memgate_model::object::{DEFAULT_NAMESPACE, JsonText};
use memgate_model::recurring_texts::RecurringTexts;
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;
use memgate_platforms::default_settings;
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
    /// The snapshot of a cluster is `-`.
    #[error(
        "--snapshot reads a file, and standard input (-) is none; write the snapshot with memgate snapshot -o FILE"
    )]
    SnapshotFromStdin,
    /// The snapshot of a cluster cannot be used.
    #[error(transparent)]
    Snapshot(#[from] cluster_snapshot::Error),
    /// Nor can it be read.
    #[error(transparent)]
    Unreadable(#[from] InputError),
    /// A number of an object is beyond all bounds.
    #[error("failed to read an object")]
    Object(#[source] serde_json::Error),
    /// The command reads one set of files, and several are chosen.
    #[error(".memgate.yaml has the sets {names}, which are judged apart; choose one with --set NAME")]
    SeveralSets {
        /// Their names.
        names: String,
    },
}

/// Everything that was read.
#[derive(Debug)]
pub struct Inputs {
    /// The texts that hold the objects, in the order of the paths.
    pub sources: Vec<Arc<Source>>,
    /// What is to be checked, in document order.
    pub objects: Vec<UndecidedObject>,
    /// What decisions may look at.
    pub snapshot: Snapshot,
    /// What is not checked, in document order.
    pub passed_over: Vec<PassedOver>,
    /// What there is to say about the files themselves, in document order.
    pub notices: Vec<Notice>,
    /// What could not be read.
    pub errors: Vec<InputError>,
    /// What was passed by in directories and globs.
    pub unread: Unread,
    /// Of what was rendered, the files that it comes from.
    pub origins: Origins,
    /// Where the objects stand that decisions look at.
    pub places: Places,
    /// Where policies and exemptions were read.
    pub policies: PolicyFiles,
}

impl Inputs {
    /// Nothing read yet, with a state that decisions may look at.
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            sources: Vec::new(),
            objects: Vec::new(),
            snapshot,
            passed_over: Vec::new(),
            notices: Vec::new(),
            errors: Vec::new(),
            unread: Unread::default(),
            origins: Origins::default(),
            places: Places::default(),
            policies: PolicyFiles::default(),
        }
    }
}

/// Reads what the plan names.
///
/// # Errors
/// When standard input is named twice, the snapshot cannot be used, or a number is out of bounds. Files that cannot
/// be read are part of the result.
pub fn load(plan: &InputPlan) -> Result<Inputs, Error> {
    if plan.sets.len() > 1 && !plan.checked.is_empty() {
        let names = plan.sets.iter().map(|set| set.name.as_str()).filter(|name| !name.is_empty());
        return Err(Error::SeveralSets { names: names.collect::<Vec<_>>().join(", ") });
    }
    load_paths(plan, &plan.checked, &mut Sources::new())
}

/// The texts of files by name, which sets share.
pub(crate) type Sources = BTreeMap<String, Arc<Source>>;

/// The same for some of the paths to check. A file among `known` has the text that was read before.
pub(crate) fn load_paths(plan: &InputPlan, checked: &[String], known: &mut Sources) -> Result<Inputs, Error> {
    let InputPlan { state, policies, .. } = plan;
    if checked.iter().chain(state).chain(policies).filter(|path| *path == "-").count() > 1 {
        return Err(Error::StdinTwice);
    }
    let stdin: &mut dyn Read = match &plan.stdin {
        Some(text) => &mut text.as_bytes(),
        None => &mut io::stdin(),
    };
    let inputs = Inputs::new(state::empty(plan.settings.clone()));
    let (notices, texts) = (Notices::default(), RecurringTexts::default());
    let mut loader = Loader { reading: &plan.reading, stdin, known, inputs, notices, texts };
    if let Some(path) = &plan.snapshot {
        loader.snapshot(path, plan.checks_snapshot)?;
    }
    policies.iter().try_for_each(|path| loader.policies(path))?;
    state.iter().try_for_each(|path| loader.state(path))?;
    loader.checked(checked, plan.within.as_deref())?;
    let Loader { mut inputs, notices, .. } = loader;
    inputs.unread.is_narrow = plan.reading.is_narrow;
    if !plan.reading.is_narrow {
        inputs.unread.unused_excludes = plan.reading.exclude.unused();
    }
    inputs.unread.switched_off.clone_from(&plan.switched_off);
    inputs.unread.switched_off.extend(plan.reading.exclude.left_out_by_file());
    inputs.unread.unreadable_state = notices.unreadable;
    inputs.notices = notices.finish();
    if plan.reading.checks_only_open {
        inputs.unread.is_partial = true;
        inputs.notices.retain(|notice| !plan.reading.is_state(notice.source.name()));
    }
    if plan.ignores_policies {
        inputs.snapshot.policies = Arc::default();
    }
    Ok(inputs)
}

/// Reads the inputs, one kind of path after the other.
struct Loader<'l> {
    reading: &'l Reading,
    stdin: &'l mut dyn Read,
    known: &'l mut Sources,
    inputs: Inputs,
    notices: Notices,
    /// The texts that objects share.
    texts: RecurringTexts,
}

impl Loader<'_> {
    /// Reads the snapshot of a cluster, below everything else. With `checks`, its objects are checked too; their places
    /// are those in the file.
    fn snapshot(&mut self, path: &Path, checks: bool) -> Result<(), Error> {
        let name = path.display().to_string();
        if name == "-" {
            return Err(Error::SnapshotFromStdin);
        }
        let text = match self.reading.instead.get(&name) {
            Some(text) => Source::new(&name, text.as_str()),
            None => source(&name, File::open(path), self.reading.max_bytes)?,
        };
        let snapshot = &mut self.inputs.snapshot;
        self.inputs.unread.assumed = Some(ClusterSnapshot::parse(&name, text.text())?.put(&name, snapshot)?);
        if !checks {
            return Ok(());
        }
        snapshot.crds = None;
        let families = snapshot.settings.families.clone();
        let source = Arc::new(Source::new(&name, cluster_snapshot::as_list(text.text())));
        for document in parse_parts(&source).flat_map(|parsed| parsed.documents) {
            let names = self.names(&document);
            let json = Self::json(&document)?;
            self.add_document(&document, names, json)?;
        }
        // An apiserver has accepted these objects.
        self.notices = Notices::default();
        self.inputs.sources.push(source);
        pass_over(&mut self.inputs.objects, &mut self.inputs.passed_over, &families, false);
        Ok(())
    }

    /// Reads policies and exemptions. Other objects in their files are ignored.
    fn policies(&mut self, path: &String) -> Result<(), Error> {
        let exclude = Arc::new(self.reading.exclude.of_flags());
        if let Some(first) = self.unused(PolicyOrigin::Policies, path, &exclude)? {
            let message = format!("{path} holds no MemoryPolicy and no MemoryPolicyExemption");
            self.inputs.errors.push(error_in(&first, message));
        }
        Ok(())
    }

    /// Reads state that is not checked.
    fn state(&mut self, path: &String) -> Result<(), Error> {
        if let Some(first) = self.unused(PolicyOrigin::State, path, &self.reading.exclude)? {
            self.notices.unused_state(path, &first);
        }
        Ok(())
    }

    /// Adds the objects of a path that are not checked. Returns the first file if decisions look at none of them.
    fn unused(
        &mut self,
        origin: PolicyOrigin,
        path: &String,
        exclude: &Arc<Exclude>,
    ) -> Result<Option<Arc<Source>>, Error> {
        let (mut is_used, errors) = (false, self.inputs.errors.len());
        let sources = self.read(std::slice::from_ref(path), None, exclude);
        for document in sources.iter().flat_map(each_value) {
            match document {
                Ok(document)
                    if origin == PolicyOrigin::State && document.kind() == cluster_snapshot::KIND =>
                {
                    let message = "this is a file of memgate snapshot; give it with --snapshot, \
                                   which check, mutate, view, review, explain-pod, what-if, audit and map have";
                    let error = error_at(document.place(), &Pointer::root(), message.to_owned());
                    self.inputs.errors.push(error);
                }
                Ok(document) => is_used |= self.add(origin, &document, &Pointer::root(), document.value())?,
                Err(error) => self.inputs.errors.push(error),
            }
        }
        // With errors, the content of the files is not known.
        let is_unused = !is_used && self.inputs.errors.len() == errors;
        Ok(sources.into_iter().next().filter(|_| is_unused))
    }

    /// Reads the objects to check.
    fn checked(&mut self, paths: &[String], within: Option<&Path>) -> Result<(), Error> {
        let reading = self.reading;
        let errors_before = self.inputs.errors.len();
        for source in self.read(paths, within, &self.reading.exclude) {
            let source = Arc::clone(self.known.entry(source.name().to_owned()).or_insert(source));
            let is_state = reading.is_state(source.name());
            let is_named = source.name() == STDIN || paths.iter().any(|path| path == source.name());
            let is_named = is_named && within.is_none();
            let is_hidden = within.is_some() && !names_an_object(source.text());
            let mut origins = SourceOrigins::new(&source);
            let mut is_manifest = within.is_none();
            for parsed in parse_parts(&source) {
                if is_hidden && !parsed.errors.is_empty() {
                    self.inputs.errors.push(InputError::of_input(source.name(), NOT_A_MANIFEST));
                    break;
                }
                self.inputs.errors.extend(parsed.errors);
                for other in parsed.non_objects.into_iter().filter(|_| !is_state) {
                    // Many files in a directory are not meant to be manifests.
                    if is_named || other.is_likely_object {
                        self.notices.not_an_object(&source, &other);
                    }
                    self.inputs.passed_over.push(PassedOver::non_object(&source, &other));
                }
                for document in parsed.documents {
                    // A kubeconfig has a kind too.
                    let value = document.value();
                    is_manifest |= ["metadata", "items"].iter().any(|field| value.get(field).is_some());
                    origins.add(&document);
                    let names = self.names(&document);
                    let json = if is_state { None } else { Self::json(&document)? };
                    // Of a workload, the state keeps little.
                    let shared =
                        json.as_ref().filter(|_| workload::find(document.group(), document.kind()).is_none());
                    let (origin, root) = (PolicyOrigin::Checked, Pointer::root());
                    self.add_object(origin, &document, &root, document.value(), &names, shared)?;
                    if is_state {
                        // It may be repeated in a file that is checked.
                        self.notices.object(&document, &names, &self.inputs.snapshot.settings);
                    } else {
                        self.add_document(&document, names, json)?;
                    }
                }
            }
            self.inputs.origins.add(origins);
            // mutate prints every source.
            if is_manifest && !is_state {
                self.inputs.sources.push(source);
            }
        }
        if !reading.open.is_empty() {
            // An editor shows those of the other files at these. What the user named must be there.
            let errors = self.inputs.errors.split_off(errors_before);
            let is_named = |path: &str| within.is_none() && paths.iter().any(|named| named == path);
            let is_shown = |path: &str| reading.is_open(path) || is_named(path);
            let is_own = |error: &InputError| error.place().is_some_and(|(path, _)| is_shown(path));
            self.inputs.errors.extend(errors.into_iter().filter(is_own));
        }
        Ok(())
    }

    fn read(&mut self, paths: &[String], within: Option<&Path>, exclude: &Arc<Exclude>) -> Vec<Arc<Source>> {
        let Collected { sources, errors, unread, rendered } =
            collect_within(paths, within, exclude, self.reading, self.stdin);
        self.inputs.errors.extend(errors);
        if unread.unrendered.iter().any(|unrendered| unrendered.unit.generates) {
            add_anything(&mut self.inputs.snapshot);
        }
        self.inputs.unread.extend(unread);
        self.inputs.origins.rendered.extend(rendered);
        sources.into_iter().map(Arc::new).collect()
    }

    /// Adds the object at `within` in a document, or each object of a List or of a plain list. Returns whether decisions
    /// look at any of them.
    fn add(
        &mut self,
        origin: PolicyOrigin,
        document: &Document,
        within: &Pointer,
        value: &Value,
    ) -> Result<bool, Error> {
        let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let items = match value {
            Value::Array(items) => Some((items, within.clone())),
            _ => {
                let items = value.get("items").filter(|_| kind.ends_with("List")).and_then(Value::as_array);
                items.map(|items| (items, within.key("items")))
            }
        };
        let Some((items, list)) = items else {
            return self.add_object(origin, document, within, value, &ObjectRef::default(), None);
        };
        let mut is_used = false;
        for (index, mut item) in items.iter().cloned().enumerate() {
            fill_type_meta(&mut item, api_version, kind);
            is_used |= self.add(origin, document, &list.index(index), &item)?;
        }
        Ok(is_used)
    }

    /// Adds one object, which shares its names and JSON if it is checked too.
    fn add_object(
        &mut self,
        origin: PolicyOrigin,
        document: &Document,
        within: &Pointer,
        value: &Value,
        names: &ObjectRef,
        json: Option<&Arc<JsonText>>,
    ) -> Result<bool, Error> {
        let Self { reading, inputs, notices, .. } = self;
        let settings = &inputs.snapshot.settings;
        let is_policy = policy_files::is_policy(value);
        if origin == PolicyOrigin::Policies && !is_policy {
            return Ok(false);
        }
        let errors = &mut inputs.errors;
        let faults = state::unreadable(settings, value);
        if !faults.is_empty() {
            if is_policy {
                errors.extend(unreadable_errors(document, within, value, settings));
                return Ok(true);
            }
            let (group, kind) = state::group_and_kind(value);
            let is_checked = is_checked(group, kind) && has_required_annotation(group, kind, value);
            // One that is checked is denied instead. Without a name, it is none of those that others name.
            if origin != PolicyOrigin::Checked || !is_checked {
                notices.unreadable(document, within, value, settings);
            } else if faults.iter().all(|(_, fault)| *fault == state::NAME_REQUIRED) {
                return Ok(true);
            }
        }
        if is_policy && inputs.policies.is_repeated(document, within, value, origin, settings, errors) {
            return Ok(true);
        }
        if is_policy && origin != PolicyOrigin::Checked {
            notices.policy(document, within, value, &inputs.snapshot.settings);
        }
        if reading.keeps_places {
            inputs.places.add(document, within, value, &inputs.snapshot.settings);
        }
        let is_definition = notices.definition(value);
        let ObjectRef { namespace, name, .. } = names;
        let texts = json.map(|json| SharedTexts { json, namespace, name });
        match state::add_shared(&mut inputs.snapshot, value, texts.as_ref()) {
            Ok(Added { is_used, faults }) => {
                // A policy that is checked is denied instead.
                if origin != PolicyOrigin::Checked {
                    inputs.errors.extend(policy_files::errors(document, within, faults));
                }
                Ok(is_used || is_definition)
            }
            Err(AddError::Number(error)) => Err(Error::Object(error)),
            Err(error @ AddError::Definition(_)) => {
                inputs.errors.push(error_at(document.place(), &Pointer::root(), error.to_string()));
                Ok(true)
            }
        }
    }

    /// The name of a document's object in reports.
    fn names(&mut self, document: &Document) -> ObjectRef {
        let chosen = self.inputs.snapshot.settings.namespace.as_deref();
        object_ref(document, chosen.unwrap_or(DEFAULT_NAMESPACE), &mut self.texts)
    }

    /// The JSON of an object to check; `None` for one that is passed over.
    fn json(document: &Document) -> Result<Option<Arc<JsonText>>, Error> {
        let (group, kind, value) = (document.group(), document.kind(), document.value());
        if !is_checked(group, kind) || !has_required_annotation(group, kind, value) {
            return Ok(None);
        }
        let json = serde_json::to_string(value).map_err(Error::Object)?;
        Ok(Some(Arc::new(JsonText(json.into()))))
    }

    /// Adds a document to the objects to check, or to those that are passed over if it has no JSON.
    fn add_document(
        &mut self,
        document: &Document,
        object_ref: ObjectRef,
        json: Option<Arc<JsonText>>,
    ) -> Result<(), Error> {
        let Self { inputs, notices, .. } = self;
        notices.object(document, &object_ref, &inputs.snapshot.settings);
        let Some(json) = json else {
            let is_checked = is_checked(document.group(), document.kind());
            let why = if is_checked { Why::NotAnnotated } else { Why::OtherKind };
            inputs.passed_over.push(PassedOver::object(document.place(), object_ref, why));
            return Ok(());
        };
        let chosen = inputs.snapshot.settings.namespace.as_deref();
        let namespace = like(document.namespace().or(chosen).unwrap_or_default(), &object_ref.namespace);
        let object = UndecidedObject::of(document, object_ref, namespace, json).map_err(Error::Object)?;
        inputs.objects.push(object);
        Ok(())
    }
}

/// Whether a text has a line with the key of an object's version or kind.
fn names_an_object(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start_matches(['\u{feff}', ' ', '-', '{', '"', '\'']);
        let key = line.split(':').next().filter(|key| key.len() < line.len()).unwrap_or_default();
        ["apiVersion", "kind"].contains(&key.trim_end_matches([' ', '"', '\'']))
    })
}

/// What [`load`] reads, and how. A path is a file, a directory, a glob or `-`.
#[derive(Debug, Clone)]
pub struct InputPlan {
    /// The paths of the objects to check.
    pub checked: Vec<String>,
    /// The directory below which these must lead, when a file that comes with a change names them. Nothing is shown of
    /// files there that are not manifests.
    pub within: Option<PathBuf>,
    /// Groups of these paths that are judged apart; empty if all are judged together.
    pub sets: Vec<InputSet>,
    /// The severities that the repository gives to findings.
    pub rules: Rules,
    /// What the file with the choices of the repository switches off.
    pub switched_off: Vec<String>,
    /// The paths of objects that decisions may look at and that are not checked.
    pub state: Vec<String>,
    /// The paths of policies and exemptions. Other objects in these files are ignored.
    pub policies: Vec<String>,
    /// Whether policies are ignored, wherever they were read.
    pub ignores_policies: bool,
    /// A file of `memgate snapshot`. Objects at the other paths replace objects of the same name in it.
    pub snapshot: Option<PathBuf>,
    /// Whether the objects of the snapshot are checked too. An apiserver has accepted them, so only policies and
    /// families judge them.
    pub checks_snapshot: bool,
    /// What directories and globs leave out, the size limit, and how charts are rendered.
    pub reading: Reading,
    /// The settings of all decisions.
    pub settings: Settings,
    /// A text in place of standard input, for tests.
    pub stdin: Option<String>,
    /// Whether the inputs are also read for the page of `-o html`.
    pub wants_page: bool,
}

/// Files that are judged together, and apart from others.
#[derive(Debug, Clone)]
pub struct InputSet {
    /// The name; empty for files of no set.
    pub name: String,
    /// The paths.
    pub paths: Vec<String>,
}

impl Default for InputPlan {
    /// Reads nothing, with default settings.
    fn default() -> Self {
        Self {
            checked: Vec::new(),
            within: None,
            sets: Vec::new(),
            rules: Rules::default(),
            switched_off: Vec::new(),
            state: Vec::new(),
            policies: Vec::new(),
            ignores_policies: false,
            snapshot: None,
            checks_snapshot: false,
            reading: Reading::default(),
            settings: default_settings(),
            stdin: None,
            wants_page: false,
        }
    }
}

impl InputPlan {
    /// Checks a text as if it came from standard input, with default settings.
    pub fn of_text(text: &str) -> Self {
        Self { checked: vec!["-".to_owned()], stdin: Some(text.to_owned()), ..Self::default() }
    }

    /// Whether standard input is among the objects and the state.
    pub fn reads_stdin(&self) -> bool {
        self.reading.open.iter().any(|file| file.text.is_none())
            || self.checked.iter().chain(&self.state).any(|path| path == "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::object::Lookup;
    use memgate_model::state_reader::StateReader;
    use memgate_platforms::common::STATE_UNREADABLE;
    use memgate_primitives::budget::Budget;

    fn as_state(text: &str) -> Inputs {
        let plan = InputPlan { checked: Vec::new(), state: vec!["-".to_owned()], ..InputPlan::of_text(text) };
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
        for (text, expected) in [(text.to_owned(), Lookup::Absent), (format!("{text}{bad}"), Lookup::Unknown)]
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
            ("{name: n, namespace: t}", Lookup::Unknown),
            ("{name: 1, namespace: t}", Lookup::Unknown),
            ("{name: b, namespace: no}", Lookup::Unknown),
            ("{generateName: b-, namespace: no}", Lookup::Unknown),
            ("[]", Lookup::Unknown),
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
            let checked = load(&InputPlan::of_text(&text)).expect("loads");
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
        assert_eq!((messages(&inputs).len(), inputs.unread.unreadable_state), (50, 10_000));
    }

    #[test]
    fn a_policy_without_a_name_that_can_be_read_is_an_error() {
        let head =
            "{apiVersion: policy.memgate.dev/v1alpha1, kind: MemoryPolicyExemption, spec: {}, metadata: ";
        for (metadata, expected) in
            [("{name: y, namespace: no}", 2), ("{name: a, namespace: no}", 1), ("[]", 1)]
        {
            let text = format!("{head}{metadata}}}\n");
            for inputs in [as_state(&text), load(&InputPlan::of_text(&text)).expect("loads")] {
                assert_eq!(
                    (inputs.errors.len(), inputs.unread.unreadable_state),
                    (expected, 0),
                    "{metadata}"
                );
                assert!(inputs.snapshot.policies.exemptions().next().is_none(), "{metadata}");
            }
        }
    }

    #[test]
    fn an_object_that_is_checked_is_not_reported_here() {
        for metadata in ["{name: y}", "{name: a, namespace: no}", "{generateName: a-}", "{}"] {
            let text =
                format!("{{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {metadata}}}\n");
            let inputs = load(&InputPlan::of_text(&text)).expect("loads");
            assert_eq!((messages(&inputs).len(), inputs.objects.len()), (0, 1), "{metadata}");
        }
    }
}
