//! The view of a Memory: where its service is, and the Secrets and credentials of its address and headers.

use crate::family::inline_credential::in_url;
use crate::model::memory_view::{InlineView, MemoryView, Role, SecretView};
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::FAMILY;
use super::super::api::{MEMORY, is_credential_header};
use super::super::value::{EffectiveValue, ValueOrSource, ValueSource};
use super::endpoint;

/// The only backend: the platform knows memory as a service.
const BACKEND: &str = "http";

/// The view of a Memory of the state, which was looked for in this namespace.
pub(super) fn view_of(memory: &Object, namespace: &str, state: &mut StateReader<'_>) -> MemoryView {
    view(&memory.tree, (namespace, &memory.name), state).labelled(&memory.tree)
}

/// The view of a Memory of this namespace and name.
pub(super) fn view(
    object: &Tree,
    (namespace, name): (&str, &str),
    state: &mut StateReader<'_>,
) -> MemoryView {
    let mut view = MemoryView::new(FAMILY.name, Role::Memory, MEMORY.kind, namespace, name);
    view.backend = Some(BACKEND.to_owned());
    let place = Pointer::new("/spec/address");
    for path in ["backend", "inline"] {
        view.at(path, place.clone());
    }
    view.at("secrets", place.key("valueFrom").key("secretKeyRef"));
    view.at("references", place.key("valueFrom").key("serviceRef"));
    let address = object.at(&["spec", "address"]).map(ValueOrSource::read_address);
    let value = address.as_ref().map_or(EffectiveValue::Nothing, ValueOrSource::effective);
    endpoint::add(&mut view, value, &place, state);
    match value {
        EffectiveValue::Literal(literal) => {
            let url = literal.text().and_then(|text| in_url(text, place.key("value")));
            view.inline.extend(url);
        }
        EffectiveValue::Source(source) => add_secret(&mut view, &source, &place),
        EffectiveValue::Nothing => {}
    }
    let headers = object.at(&["spec", "headers"]).map(Tree::elements).unwrap_or_default();
    let list = Pointer::new("/spec/headers");
    for (index, header) in headers.iter().enumerate() {
        if let Some(value) = header.get("value") {
            let name = header.get("name").and_then(Tree::text).unwrap_or_default();
            add_header(&mut view, name, value, || list.index(index).key("value"));
        }
    }
    view
}

/// Adds the Secret of a header, or the credential that stands in it. A literal is stored in clear text even where a
/// source overrides it.
fn add_header(view: &mut MemoryView, name: &str, value: &Tree, place: impl Fn() -> Pointer) {
    let value = ValueOrSource::read_header(value);
    if let Some(text) = value.literal.and_then(Tree::text).filter(|_| is_credential_header(name)) {
        view.inline.push(InlineView::new(place().key("value"), text));
    }
    if let EffectiveValue::Source(source) = value.effective() {
        add_secret(view, &source, &place());
    }
}

/// Adds the Secret that a value at this place comes from, if it comes from one.
fn add_secret(view: &mut MemoryView, source: &ValueSource<'_>, place: &Pointer) {
    let Some(name) = source.text("name").filter(|_| source.field == "secretKeyRef") else { return };
    let field = place.key("valueFrom").key(source.field).key("name");
    let (namespace, key) = (view.namespace.clone(), source.text("key").map(str::to_owned));
    view.secrets.push(SecretView { name: name.to_owned(), namespace, key, field });
}
