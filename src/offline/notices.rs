//! What there is to say about files rather than about an object in them: what looks as if it was to be checked
//! and is not. Nothing in here decides about an object.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::family::suggest::nearest;
use crate::family::{self, common};
use crate::manifest::document::{Document, NonObject};
use crate::manifest::source::{Source, Span};
use crate::model::crd::Crds;
use crate::model::finding::{Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::snapshot::Snapshot;
use crate::model::workload;
use crate::report::ObjectRef;

/// A finding about a place in a file.
#[derive(Debug)]
pub struct Notice {
    /// What there is to say; the pointer is that in the document.
    pub finding: Finding,
    /// The object, or nothing.
    pub object_ref: ObjectRef,
    /// The text.
    pub source: Arc<Source>,
    /// Where in it.
    pub span: Span,
    /// Another place, perhaps in another text, and what is there.
    pub related: Option<(Arc<Source>, Span, &'static str)>,
}

/// Makes notices of what is read.
#[derive(Debug, Default)]
pub(super) struct Notices {
    made: Vec<Notice>,
    /// What is likely misspelt, if no definition among the inputs says otherwise: its group and kind.
    misspelt: Vec<([String; 2], Notice)>,
    /// Where each object stands first, by group, kind, namespace and name.
    objects: BTreeMap<[String; 4], (Arc<Source>, Span)>,
}

impl Notices {
    /// A document that is no object.
    pub(super) fn not_an_object(&mut self, source: &Arc<Source>, document: &NonObject) {
        let message = format!("this {}, so nothing is checked here", document.reason);
        let finding = Finding::warn(&common::NOT_AN_OBJECT, Pointer::root(), message)
            .help("write apiVersion and kind, or keep the file out of what is checked");
        let source = Arc::clone(source);
        let object_ref = ObjectRef::default();
        self.made.push(Notice { finding, object_ref, source, span: document.span, related: None });
    }

    /// A file of state at which no decision looks.
    pub(super) fn unused_state(&mut self, source: &Arc<Source>) {
        let message = format!("{}: holds no object at which decisions look", source.name());
        let finding = Finding::warn(&common::STATE_UNUSED, Pointer::root(), message)
            .help("leave it out, or give the file that was meant to --with");
        let (source, span) = (Arc::clone(source), source.span(0, 0));
        self.made.push(Notice { finding, object_ref: ObjectRef::default(), source, span, related: None });
    }

    /// An object, whether it is checked or not.
    pub(super) fn object(&mut self, document: &Document, object_ref: &ObjectRef) {
        let (group, kind) = (document.group(), document.kind());
        if let Some((pointer, message)) = misspelt(group, kind).filter(|_| !is_known(group, kind)) {
            let finding = Finding::warn(&common::KIND_MISSPELT, Pointer::new(pointer), message);
            let span = document.locate(&finding.pointer).caret;
            let (source, object_ref) = (Arc::clone(document.source()), object_ref.clone());
            let notice = Notice { finding, object_ref, source, span, related: None };
            self.misspelt.push(([group, kind].map(str::to_owned), notice));
        }
        if document.name().is_empty() {
            return;
        }
        let ObjectRef { namespace, name, .. } = object_ref;
        let key = [document.group(), document.kind(), namespace, name].map(str::to_owned);
        match self.objects.entry(key) {
            Entry::Vacant(first) => {
                first.insert((Arc::clone(document.source()), name_of(document)));
            }
            Entry::Occupied(first) => {
                let (source, span) = first.get().clone();
                let message = format!("{} stands twice; of two, the later one counts", object_ref.title());
                let finding =
                    Finding::warn(&common::OBJECT_REPEATED, Pointer::new("/metadata/name"), message)
                        .help("remove one of them, or check the two in runs of their own");
                self.made.push(Notice {
                    finding,
                    object_ref: object_ref.clone(),
                    source: Arc::clone(document.source()),
                    span: name_of(document),
                    related: Some((source, span, "here it stands first")),
                });
            }
        }
    }

    /// All notices.
    pub(super) fn finish(self, snapshot: &Snapshot) -> Vec<Notice> {
        let Self { made: mut notices, misspelt, .. } = self;
        let is_defined = |group: &str, kind: &str| {
            let find =
                |crds: &Crds| family::ALL.into_iter().any(|family| crds.get(family, group, kind).is_some());
            snapshot.crds.as_ref().is_some_and(find)
        };
        let misspelt = misspelt.into_iter().filter(|([group, kind], _)| !is_defined(group, kind));
        notices.extend(misspelt.map(|(_, notice)| notice));
        notices
    }
}

fn name_of(document: &Document) -> Span {
    document.locate(&Pointer::new("/metadata/name")).caret
}

/// The groups and kinds that are checked.
fn checked_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let families = family::ALL.into_iter().flat_map(|family| family.validated.iter().chain(family.misnamed));
    let workloads = workload::ALL.iter().map(|workload| (workload.group, workload.kind));
    families.map(|kind| (kind.group, kind.kind)).chain(workloads).chain([("", "Pod")])
}

/// Whether a kind is checked, or looked at.
fn is_known(group: &str, kind: &str) -> bool {
    checked_kinds().any(|known| known == (group, kind))
        || family::state_kind(&family::ALL, group, kind).is_some()
}

/// Where a kind is written that nobody checks and one that is checked was likely meant, and what to say of it.
fn misspelt(group: &str, kind: &str) -> Option<(&'static str, String)> {
    let kinds_of_group = checked_kinds().filter(|(known, _)| *known == group).map(|(_, kind)| kind);
    if let Some(meant) = nearest(kind, kinds_of_group) {
        let message = format!("kind {} is checked by nobody; did you mean \"{meant}\"?", quoted(kind));
        return Some(("/kind", message));
    }
    let groups_of_kind = || checked_kinds().filter(|(group, known)| *known == kind && !group.is_empty());
    let near = nearest(group, groups_of_kind().map(|(group, _)| group));
    let meant = near.or_else(|| {
        groups_of_kind()
            .map(|(known, _)| known)
            .find(|known| known != &group && is_same_but_for_its_end(known, group))
    })?;
    let message = format!("group {} is checked by nobody; did you mean \"{meant}\"?", quoted(group));
    Some(("/apiVersion", message))
}

/// Whether two groups differ in the last part of the host name only: `arkonis.io` for `arkonis.dev`.
fn is_same_but_for_its_end(left: &str, right: &str) -> bool {
    let start = |group: &str| group.rsplit_once('.').map(|(start, _)| start.to_owned());
    start(left).is_some_and(|left| start(right) == Some(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_kind_that_was_meant() {
        for (group, kind, expected) in [
            (
                "arkonis.dev",
                "ArkMemry",
                Some("kind \"ArkMemry\" is checked by nobody; did you mean \"ArkMemory\"?"),
            ),
            (
                "arkonis.io",
                "ArkMemory",
                Some("group \"arkonis.io\" is checked by nobody; did you mean \"arkonis.dev\"?"),
            ),
            (
                "ark.mckinsy.com",
                "Memory",
                Some("group \"ark.mckinsy.com\" is checked by nobody; did you mean \"ark.mckinsey.com\"?"),
            ),
            (
                "apps",
                "Deploymnt",
                Some("kind \"Deploymnt\" is checked by nobody; did you mean \"Deployment\"?"),
            ),
            ("", "pod", Some("kind \"pod\" is checked by nobody; did you mean \"Pod\"?")),
            ("kagent.dev", "Agent", None),
            ("", "ConfigMap", None),
            ("", "Node", None),
            ("networking.k8s.io", "Ingress", None),
        ] {
            let found = misspelt(group, kind);
            assert_eq!(found.as_ref().map(|(_, message)| message.as_str()), expected, "{group} {kind}");
        }
    }
}
