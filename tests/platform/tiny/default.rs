//! The default of a Notebook.

use memgate_model::edit::{Edit, Op, Origin, Value};
use memgate_model::family::Subject;
use memgate_model::state_reader::StateReader;
use memgate_primitives::pointer::Pointer;

use super::api::PAGES_DEFAULT;

pub(crate) fn default(subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Edit> {
    let lacks_pages = subject.object.at(&["spec"]).is_some_and(|spec| spec.get("pages").is_none());
    let edit = || Edit {
        op: Op::Add,
        pointer: Pointer::new("/spec/pages"),
        value: Value::Integer(PAGES_DEFAULT),
        origins: vec![Origin { resource: "".into(), field: "spec.pages".into(), rule: "default of the CRD" }],
    };
    lacks_pages.then(edit).into_iter().collect()
}
