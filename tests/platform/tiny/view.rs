//! What rules of policies see of a Notebook and of the pods that use one.

use memgate_model::family::{PolicyField, Subject};
use memgate_model::kind::Kind;
use memgate_model::memory_view::{EndpointSource, MemoryView, Role};
use memgate_model::object::Lookup;
use memgate_model::pod::Pod;
use memgate_model::policy_field::FieldForm;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::view_table::ViewTable;
use memgate_platforms::endpoint_view;
use memgate_primitives::pointer::Pointer;

use super::api::{LABEL, NOTEBOOK};

pub(crate) static VIEWED: [(&Kind, Role); 1] = [(&NOTEBOOK, Role::Memory)];

pub(crate) static TABLES: [ViewTable; 1] =
    [ViewTable { paths: &["ttlSeconds", "endpoint"], ..ViewTable::new(Role::Memory, &[&NOTEBOOK]) }];

pub(crate) static POLICY_FIELDS: [PolicyField; 1] = [PolicyField {
    kind: &NOTEBOOK,
    pointer: "/spec/keepSeconds",
    form: FieldForm::Count,
    fits: |_, _, _| true,
}];

#[expect(clippy::unnecessary_wraps, reason = "the form that a row asks for")]
pub(crate) fn of_object(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    Some(of_notebook(subject.object, (subject.namespace, subject.name), state))
}

pub(crate) fn of_pod(
    [pod, _]: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let name = pod.label(LABEL)?;
    let notebook = match state.get(&NOTEBOOK, namespace, name) {
        Lookup::Found(notebook) => Some(of_notebook(notebook.tree(), (namespace, name), state)),
        Lookup::Absent | Lookup::Unknown(()) => None,
    };
    Some(MemoryView::of_pod(super::FAMILY.name, namespace, notebook))
}

fn of_notebook(notebook: &Tree, (namespace, name): (&str, &str), state: &mut StateReader<'_>) -> MemoryView {
    let mut view = MemoryView::new(super::FAMILY.name, Role::Memory, NOTEBOOK.kind, namespace, name);
    view.at("endpoint", Pointer::new("/spec/url"));
    view.at("ttlSeconds", Pointer::new("/spec/keepSeconds"));
    let url = notebook.at(&["spec", "url"]).and_then(Tree::text);
    view.endpoint = url.map(|url| endpoint_view::parse(EndpointSource::Literal, url, namespace, state));
    view.set("ttlSeconds", notebook.at(&["spec", "keepSeconds"]).and_then(Tree::integer));
    view
}
