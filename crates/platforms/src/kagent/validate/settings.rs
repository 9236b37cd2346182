//! Reads the settings of kagent that are among the files. In a cluster nothing reads them: it takes a right to all
//! ConfigMaps.

use std::borrow::Cow;

use super::super::block::Block;
use super::super::codes::VECTORS_OFF;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::kind::CONFIG_MAP;
use memgate_model::object::Object;
use memgate_model::object::index::Index;
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

/// The setting of 0.x and of 1.0. Only beside [`CONTROLLER`] it is one of kagent.
const VECTORS: &str = "DATABASE_VECTOR_ENABLED";
/// A setting that every controller of kagent has.
const CONTROLLER: &str = "KAGENT_CONTROLLER_NAME";
/// The setting of later releases.
const LATER_VECTORS: &str = "KAGENT_DATABASE_VECTOR_ENABLED";
/// The values that the controller reads as false.
const FALSE: [&str; 6] = ["false", "False", "FALSE", "f", "F", "0"];

const ON: &str = "on";
const OFF: &str = "off";

/// Finds settings of kagent by whether they switch vectors on or off.
static BY_VECTORS: Index = Index {
    place: 1,
    keys: |object| {
        let key = vectors(object).map(|(_, value)| if FALSE.contains(&value) { OFF } else { ON });
        key.map(Cow::Borrowed).into_iter().collect()
    },
};

/// The setting in a ConfigMap, with its key.
fn vectors(object: &Object) -> Option<(&'static str, &str)> {
    let data = object.tree().get("data")?;
    let older = || data.entry(VECTORS).filter(|_| data.has_key(CONTROLLER)).map(|value| (VECTORS, value));
    data.entry(LATER_VECTORS).map(|value| (LATER_VECTORS, value)).or_else(older)
}

/// Warns if the settings switch vectors off. Settings that differ are those of several installations.
pub(super) fn findings(subject: &Subject<'_>, state: &StateReader<'_>) -> Option<Finding> {
    let block = Block::of(subject.kind, subject.object).filter(|block| !block.is_ignored)?;
    let first = |key| state.peek_indexed(&CONFIG_MAP, &BY_VECTORS, key).next();
    if !state.of_files() || first(ON).is_some() {
        return None;
    }
    let settings = first(OFF)?;
    let name = quoted(&format!("{}/{}", settings.namespace, settings.name));
    let message = format!("ConfigMap {name} turns vectors off; kagent cannot store memories");
    let (key, _) = vectors(settings)?;
    let at = Pointer::new("/data").key(key);
    Some(
        Finding::warn(&VECTORS_OFF, block.pointer(), message).elsewhere(settings, at, "vectors are off here"),
    )
}
