//! The row of a platform: everything that the rest of memgate reads about it.
//!
//! A [`Family`] is a `static` in the platform's own folder. It is written without defaults, so a new
//! field does not compile until every platform sets it. The list `family::ALL` holds the rows, and
//! [`Settings`](crate::settings::Settings) selects the enabled ones. Settings can hold rows from
//! elsewhere too, as they do in tests.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::change::{Meaning, meaning_changed};
use crate::edge::Edge;
use crate::edit::Edit;
use crate::event::InvolvedObject;
use crate::finding::{Code, Finding};
use crate::injection::Injection;
use crate::kind::{Kind, SERVICE};
use crate::memory_view::{MemoryView, Role};
use crate::object::index::Index;
use crate::pod::Pod;
use crate::policy::Question;
use crate::policy_field::FieldForm;
use crate::selector::PodSelector;
use crate::state_reader::StateReader;
use crate::tree::Tree;
use crate::view_table::ViewTable;
use memgate_schema::violation::SchemaViolation;

pub use crate::subject::Subject;

/// A platform whose memory resources memgate knows. Two rows are equal if their names are.
pub struct Family {
    /// The name in codes, flags, metrics and annotations.
    pub name: &'static str,
    /// The kinds by what memgate does with them.
    pub kinds: Kinds,
    /// The platform's agent pods.
    pub pods: Pods,
    /// When the platform's resources are validated, and how strictly.
    pub validation: Validation,
    /// The labels and annotations that mean something to the platform, as the spec does. Match conditions, decisions,
    /// and the ratchet read them here.
    pub meanings: &'static [Meaning],
    /// What its objects refer to.
    pub edges: &'static [Edge],
    /// Finds its objects by the memory that they use, with the keys of [`memory_used`](crate::edge::memory_used).
    pub by_memory: &'static Index,
    /// The finding codes.
    pub codes: &'static [&'static Code],
    /// The definitions of the kinds.
    pub definitions: Definitions,
    /// The views of the platform's objects, for policy rules.
    pub views: Views,
    /// The decisions: one function each.
    pub faces: Faces,
}

/// The kinds of a platform. A kind can be in several of these lists.
pub struct Kinds {
    /// The kinds whose objects are validated, in a cluster and outside.
    pub validated: &'static [&'static Kind],
    /// The validated kinds whose objects are skipped unless they have an annotation with this key prefix.
    pub validated_if_annotated: &'static [(&'static Kind, &'static str)],
    /// Kinds in a group that no apiserver serves and that users write by mistake.
    pub misnamed: &'static [&'static Kind],
    /// The kinds for which defaults are written.
    pub defaulted: &'static [&'static Kind],
    /// The memory resources: kinds whose DELETE can leave an agent without memory.
    pub memories: &'static [&'static Kind],
    /// Kinds of which only the DELETE of some objects matters: those for which this CEL on `oldObject` is true.
    pub memories_if: Option<(&'static [&'static Kind], &'static str)>,
    /// The kinds that decisions look up and the server watches.
    pub watched: &'static [&'static Kind],
    /// Built-in kinds that decisions read where files hold their objects: the workloads that serve memory, the settings of
    /// a platform. A server whose settings ask for it watches those with a label selector, which it sends to the
    /// apiserver; it never reads the others.
    pub in_files: &'static [(&'static Kind, Option<&'static str>)],
    /// The kinds that decisions look up one object at a time; RBAC rules allow `get` only.
    pub fetched: &'static [&'static Kind],
    /// The other kinds of the platform's groups, of all versions, older and announced ones too, which are known by name only: a
    /// line for each group, `GROUP: KIND KIND`.
    pub others: &'static str,
}

impl Kinds {
    /// The kinds that memory refers to, or that refer to memory.
    pub fn related(&self) -> impl Iterator<Item = &'static Kind> + use<> {
        self.validated.iter().chain(self.watched).chain(self.fetched).copied()
    }
}

/// Makes the labels of the pods of an object of this kind, namespace and name; `None` if it is not an agent.
pub type LabelsForAgent = fn(&Kind, &str, &str) -> Option<Value>;

/// The agent pods of a platform.
pub struct Pods {
    /// Selects the agent pods by their metadata, before memgate reads them.
    pub selectors: &'static [PodSelector],
    /// Whether a pod with `memgate.dev/inject: required` is refused if it cannot get its memory.
    pub honour_required: bool,
    /// The code for an unsupported value of the inject label; `None` without agent pods.
    pub inject_label_unknown: Option<&'static Code>,
    /// Whether a pod belongs to the platform although `inject` does not recognise it. Such a pod is never refused.
    /// `None` if every pod of the platform is an agent pod.
    pub known_otherwise: Option<fn(&Pod<'_>) -> bool>,
    /// Reads the namespace that a pod declares in its own spec, for manifests without a namespace. `None` if the
    /// platform's pods do not declare one.
    pub declared_namespace: Option<for<'p> fn(&'p Pod<'_>) -> Option<&'p str>>,
    /// The labels of the pods that the platform creates, with a container `agent`, for an agent of this kind, namespace and
    /// name; `None` for an object that is not an agent. Editors show what such a pod gets. `memgate doctor` sends
    /// such pods as a dry run in namespaces without an agent pod, if memgate adds containers: where a quota refuses every
    /// pod, only a made-up pod shows that. `None` if labels are not all that makes a pod one of an agent.
    pub labels_for_agent: Option<LabelsForAgent>,
    /// Whether memgate adds containers to the pods. Only such pods have containers that serve memory.
    pub adds_containers: bool,
}

impl Pods {
    /// For a platform whose pods get nothing from memgate.
    pub const NONE: Self = Self {
        selectors: &[],
        honour_required: false,
        inject_label_unknown: None,
        known_otherwise: None,
        declared_namespace: None,
        labels_for_agent: None,
        adds_containers: false,
    };
}

/// When the resources of a platform are validated, and how strictly.
pub struct Validation {
    /// Whether the apiserver admits the resources when memgate does not answer. True where findings are mostly
    /// advice.
    pub fails_open: bool,
    /// The kinds that fail open although the others do not: runs, and what controllers make for them. An outage of memgate
    /// must not stop a run.
    pub open_kinds: &'static [&'static Kind],
    /// Whether an update skips validation if it leaves the spec and memgate's annotations unchanged. True if
    /// controllers write to running objects all the time.
    pub changes_only: bool,
    /// Whether `validate` itself turns denials that an update does not cause into warnings. If not, the caller
    /// compares the denials with those of the stored object.
    pub ratchets: bool,
    /// The codes of findings that only say that another object, the first one elsewhere, is denied.
    pub follows: &'static [&'static Code],
    /// The fields that findings read besides the one at which they stand: a line for each code, `CODE: FIELD FIELD`, such as
    /// `spec.agentConfigs[].name`. Where a later step fills in one of them, in a file, such a finding is not known.
    pub reads: &'static str,
    /// The settings that findings read in releases of the platform's chart, in files: the name of the chart, and the path
    /// of a value.
    pub chart_settings: &'static [(&'static str, &'static str)],
}

impl Validation {
    /// Validation whose findings stop a request, on every request, with nothing else known of them.
    pub const STRICT: Self = Self {
        fails_open: false,
        open_kinds: &[],
        changes_only: false,
        ratchets: false,
        follows: &[],
        reads: "",
        chart_settings: &[],
    };
}

/// The definitions of a platform's kinds.
pub struct Definitions {
    /// The files with the CustomResourceDefinitions, in YAML. The program holds them compressed.
    pub crds: &'static [fn() -> Cow<'static, str>],
    /// What users write for fields that those definitions lack, in YAML; `memgate_platforms::spellings` says in which form.
    pub spellings: &'static str,
    /// References without a finding, in YAML; `memgate_platforms::other_references` says in which form.
    pub references: &'static str,
    /// The use of those definitions for files, in place of an apiserver.
    pub stand_in: SchemaStandIn,
    /// An API server of the platform's own that can take the place of these definitions.
    pub aggregated_server: Option<AggregatedServer>,
    /// For `memgate wait`: a spec in JSON for each memory resource that the CRD accepts and memgate
    /// reports on. It is sent as a dry run.
    pub wait_probes: &'static [(&'static Kind, &'static str)],
}

/// The views of a platform's objects, for policy rules, and the fields that policies may fill.
pub struct Views {
    /// The kinds that have a view, with the role of their objects. A kind of several roles is listed once for each, in a
    /// row.
    pub kinds: &'static [(&'static Kind, Role)],
    /// What the views hold; each viewed kind is in one table for each of its roles.
    pub tables: &'static [ViewTable],
    /// The viewed kinds whose objects run once and end. Policies judge them when they are created, and audits skip
    /// them.
    pub transient: &'static [&'static Kind],
    /// The view of an object of one of these kinds; `None` for one that has nothing to do with memory. The caller
    /// adds the object's own labels and name; the labels of the memory that it uses are set here.
    pub of_object: fn(&Subject<'_>, &mut StateReader<'_>) -> Option<MemoryView>,
    /// The view of an agent pod of this namespace, as it was sent and as it would be stored, whether it opts out of
    /// injection or not; `None` if the family does not know the pod. The caller adds the containers that serve memory.
    pub of_pod: fn([&Pod<'_>; 2], &str, &mut StateReader<'_>) -> Option<MemoryView>,
    /// The path of views that holds the namespace in the platform's own sense. `None` where that is always the
    /// Kubernetes namespace.
    pub own_namespace_path: Option<&'static str>,
    /// The namespace in the platform's own sense of an object in this Kubernetes namespace.
    pub own_namespace: for<'t> fn(&'t Tree, &'t str) -> &'t str,
    /// The fields that policies may fill.
    pub policy_fields: &'static [PolicyField],
}

/// A field that a policy may fill. The definition of its kind must not have a default for it: with one, the field is
/// never absent in a cluster.
#[derive(Debug, Clone, Copy)]
pub struct PolicyField {
    /// The kind that has the field.
    pub kind: &'static Kind,
    /// The field, as a JSON pointer.
    pub pointer: &'static str,
    /// The values that a policy may write.
    pub form: FieldForm,
    /// Whether a value makes sense in an object that lacks the field.
    pub fits: fn(&Value, &Subject<'_>, &mut StateReader<'_>) -> bool,
}

/// The decisions about the objects and pods of a platform.
pub struct Faces {
    /// All findings about an object of one of the family's kinds besides those about its references, in any order; for a
    /// DELETE, what its absence would break.
    pub validate: fn(&Subject<'_>, &mut StateReader<'_>) -> Vec<Finding>,
    /// Leaves what an update causes, and all findings about another request.
    pub keep: fn(&Subject<'_>, Vec<Finding>) -> Vec<Finding>,
    /// The defaults that an object of one of the family's kinds lacks.
    pub default: fn(&Subject<'_>, &mut StateReader<'_>) -> Vec<Edit>,
    /// What to add to a pod of this namespace for its memory; `None` if the pod is not an agent pod of the
    /// family.
    pub inject: fn(&Pod<'_>, &str, &mut StateReader<'_>) -> Option<Injection>,
    /// The object on whose behalf a pod of this namespace runs, as far as it is known; the `regarding` object of
    /// Events. `None` if the memory belongs to another namespace: an Event must not reveal anything about that
    /// namespace.
    pub involved_object: fn(&Pod<'_>, &str, &StateReader<'_>) -> Option<InvolvedObject>,
}

/// How violations of the schemas are reported where no apiserver checks them.
#[derive(Debug, Clone, Copy)]
pub struct SchemaStandIn {
    /// The code of a violation that only the schema refuses.
    pub code: &'static Code,
    /// The code of a value of the wrong JSON type, in a field that memgate reads.
    pub wrong_type: &'static Code,
    /// The codes of denials whose violation the schema refuses too, besides these two.
    pub repeated: &'static [&'static Code],
    /// The code of fields that the schema does not have.
    pub unknown_field: &'static Code,
    /// The source of the bundled definition of a kind, in words that follow "not in": `the CRD of arkonis 0.5.7`.
    pub as_of: fn(&Kind) -> &'static str,
    /// The kinds that are not released yet: their definitions count only if they are among the inputs.
    pub unreleased: &'static [&'static Kind],
    /// The kind whose definition holds for objects of this kind and version, if it is another one: the platform has moved
    /// the version to another group. Definitions of the kind among the inputs win.
    pub moved: fn(&Kind, &str) -> Option<&'static Kind>,
    /// The kinds whose status is checked too, although an apiserver ignores what users write there.
    pub with_status: &'static [&'static Kind],
    /// Whether a violation is accepted on purpose in an object of this kind, given the object as it was written.
    pub tolerates: fn(&Kind, &Tree, &SchemaViolation<'_>) -> bool,
    /// What is said instead of a violation of the bundled definition, if another release of the platform that is in use
    /// takes the value: a warning. A definition among the inputs speaks for itself.
    pub other_release: fn(&Kind, &SchemaViolation<'_>) -> Option<Finding>,
    /// The fields of older releases, which users still write and no definition has any more, with `[]` for the elements of
    /// a list (`spec.tools[].name`): rules of the family speak of them, or nothing does.
    pub old_fields: &'static [(&'static Kind, &'static str)],
    /// The violations with a code of their own.
    pub words: &'static [Words],
}

impl SchemaStandIn {
    /// One that reports every violation, values of the wrong type with the same code.
    pub const fn new(
        code: &'static Code,
        unknown_field: &'static Code,
        as_of: fn(&Kind) -> &'static str,
    ) -> Self {
        Self {
            code,
            wrong_type: code,
            repeated: &[],
            unknown_field,
            as_of,
            unreleased: &[],
            moved: |_, _| None,
            with_status: &[],
            tolerates: |_, _, _| false,
            other_release: |_, _| None,
            old_fields: &[],
            words: &[],
        }
    }
}

/// What a family says of a violation of a definition.
#[derive(Debug)]
pub struct Words {
    /// The kinds that have the field.
    pub kinds: &'static [&'static Kind],
    /// The field, with `[]` for the elements of a list.
    pub field: &'static str,
    /// The code, which counts for violations of its cause.
    pub code: &'static Code,
    /// What to do, unless the violation itself says it.
    pub help: Option<&'static str>,
}

/// An aggregated API server of the platform. The cluster's apiserver forwards requests for its kinds to it, without
/// calling webhooks or evaluating policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AggregatedServer {
    /// The name of its `APIService`. CustomResourceDefinitions have one too, but without a Service.
    pub api_service: &'static str,
    /// The parts of memgate that work with it, and the settings for the rest.
    pub help: &'static str,
}

impl Family {
    /// Whether views of memory have values from objects that no apiserver sends.
    pub fn reads_unseen(&self) -> bool {
        self.kinds.fetched.contains(&&SERVICE)
    }

    /// The fields that findings of a code read besides the one at which they stand; `None` if they read no other.
    pub fn read_besides(&self, code: &Code) -> Option<impl Iterator<Item = &'static str> + use<>> {
        let mut rows = self.validation.reads.lines().filter_map(|line| line.split_once(": "));
        rows.find(|(name, _)| *name == code.name).map(|(_, fields)| fields.split(' '))
    }

    /// What decisions about its pods ask policies.
    pub fn question_of_pods(&self) -> Question {
        if self.reads_unseen() { Question::PodWithUnseen } else { Question::Pod }
    }

    /// The kinds whose stored objects policies judge: the viewed kinds that are not transient.
    pub fn audited(&self) -> impl Iterator<Item = &'static Kind> {
        let mut viewed: Vec<_> = self.views.kinds.iter().map(|(kind, _)| *kind).collect();
        viewed.dedup();
        viewed.into_iter().filter(|kind| !self.views.transient.contains(kind))
    }

    /// The other kinds of the platform's groups, each with its group.
    pub fn other_kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let groups = self.kinds.others.lines().filter_map(|line| line.split_once(": "));
        groups.flat_map(|(group, kinds)| kinds.split_whitespace().map(move |kind| (group, kind)))
    }

    /// Whether two versions of an object of this kind, in JSON, differ in their spec, or in a label or annotation that
    /// means something to the platform.
    pub fn meaning_changed(&self, kind: &str, new: &str, old: &str) -> bool {
        meaning_changed(kind, self.meanings, new, old)
    }

    /// Whether the apiserver admits objects of this kind when memgate does not answer.
    pub fn fails_open(&self, kind: &Kind) -> bool {
        self.validation.fails_open || self.validation.open_kinds.contains(&kind)
    }

    /// Whether policies may fill a field of this kind.
    pub fn has_policy_fields(&self, kind: &Kind) -> bool {
        self.views.policy_fields.iter().any(|field| field.kind == kind)
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Family {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Family {}

impl PartialOrd for Family {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Family {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}
