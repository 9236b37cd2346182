//! The view of a Query: the Memory that it refers to.

use crate::model::family::Subject;
use crate::model::memory_view::{MemoryView, ReferenceView, Role, SourceView};
use crate::model::object::Lookup;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;

use super::super::FAMILY;
use super::super::api::{MEMORY, QUERY};
use super::{endpoint, memory};

/// The view of a Query. The Memory that it uses by default is written into it before.
pub(super) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let mut view = MemoryView::new(FAMILY.name, Role::Referrer, QUERY.kind, subject.namespace, subject.name);
    let place = Pointer::new("/spec/memory");
    view.at("references", place.clone());
    let Some((home, name)) = memory_ref(subject) else { return view };
    let (lookup, field) = (state.get_if_known(&MEMORY, home, name), place.key("name"));
    if let Lookup::Found(memory) = lookup {
        view.sources = vec![SourceView { view: memory::view_of(memory, home, state), field: field.clone() }];
    }
    let named = (endpoint::home(home, subject.namespace, lookup, state), name);
    view.references.push(ReferenceView::new(&MEMORY, named, field, lookup));
    view
}

/// The namespace and the name of the Memory; `None` where one of them has the wrong type, or there is no name.
fn memory_ref<'t>(subject: &Subject<'t>) -> Option<(&'t str, &'t str)> {
    let reference = subject.object.at(&["spec", "memory"])?;
    let name = reference.get("name")?.text().filter(|name| !name.is_empty())?;
    let home = match reference.get("namespace") {
        None => subject.namespace,
        Some(namespace) => match namespace.text()? {
            "" => subject.namespace,
            namespace => namespace,
        },
    };
    Some((home, name))
}
