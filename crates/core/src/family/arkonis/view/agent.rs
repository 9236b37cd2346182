//! The view of an agent: what it refers to, and the memory that this is.

use crate::model::family::Subject;
use crate::model::memory_view::{MemoryView, ReferenceView, Role, SourceView};
use crate::model::object::Lookup;
use crate::model::state_reader::StateReader;

use super::super::FAMILY;
use super::super::api::{Dialect, memory_name, memory_ref_pointer, settings_names, settings_pointer};
use super::memory;

/// The view of an agent. A reference without a name refers to nothing.
pub(super) fn view(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> MemoryView {
    let Subject { namespace, name, object, .. } = *subject;
    let mut view = MemoryView::new(FAMILY.name, Role::Referrer, dialect.agent.kind, namespace, name);
    let claim = memory_ref_pointer(dialect);
    if let Some(name) = memory_name(dialect, object).filter(|name| !name.is_empty()) {
        let (field, lookup) = (claim.key("name"), state.get(&dialect.memory, namespace, name));
        if let Lookup::Found(memory) = lookup {
            view.sources =
                vec![SourceView { view: memory::view_of(dialect, memory, state), field: field.clone() }];
        }
        view.references.push(ReferenceView::new(&dialect.memory, (namespace, name), field, lookup));
    }
    for (index, name) in settings_names(dialect, object) {
        let lookup = state.get(&dialect.settings, namespace, name);
        let field = settings_pointer(index);
        view.references.push(ReferenceView::new(&dialect.settings, (namespace, name), field, lookup));
    }
    view.at("references", claim);
    view
}
