//! The view of an Agent: the Memory that it refers to, and what it may do with it.

use crate::model::family::Subject;
use crate::model::memory_view::{MemoryView, OperationView, ReferenceView, Role, SourceView};
use crate::model::object::Lookup;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::FAMILY;
use super::super::api::{AGENT, MEMORY, OPERATIONS, claimed_memory, operation};
use super::super::namespace;
use super::{memory, set_orloj_namespace};

/// The view of an Agent; `None` without `spec.memory`.
pub(super) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let object = subject.object;
    let claim = object.at(&["spec", "memory"]).filter(|claim| claim.is_object())?;
    let mut view = MemoryView::new(FAMILY.name, Role::Referrer, AGENT.kind, subject.namespace, subject.name);
    let home = namespace::effective(object, subject.namespace);
    set_orloj_namespace(&mut view, home);
    let (reference, list) = (Pointer::new("/spec/memory/ref"), Pointer::new("/spec/memory/allow"));
    view.operations = claim.get("allow").and_then(|allow| operations(allow, &list));
    view.at("operations", list);
    view.at("references", reference.clone());
    if let Some(name) = claimed_memory(object) {
        let lookup = namespace::find(&MEMORY, home, name, state);
        if let Lookup::Found(memory) = lookup {
            view.sources =
                vec![SourceView { view: memory::view_of(memory, state), field: reference.clone() }];
        }
        view.references.push(ReferenceView::new(&MEMORY, (home, name), reference, lookup));
    }
    Some(view)
}

/// The operations that a list grants, each once; `None` for what is no list.
fn operations(allow: &Tree, list: &Pointer) -> Option<Vec<OperationView>> {
    let Tree::List(entries) = allow else { return None };
    let mut operations: Vec<OperationView> = Vec::with_capacity(OPERATIONS.len());
    for (index, entry) in entries.iter().enumerate() {
        let operation = operation(entry);
        if let Some(name) = operation.filter(|name| operations.iter().all(|known| known.name != *name)) {
            operations.push(OperationView { name: name.to_owned(), field: list.index(index) });
        }
    }
    Some(operations)
}
