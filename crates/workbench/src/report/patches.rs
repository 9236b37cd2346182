//! Changes of objects as JSON patches (RFC 6902), a line for each object.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::report::ObjectRef;
use crate::report::json::without_nulls;

/// The changes of one object.
#[derive(Debug)]
pub struct ObjectPatch<'r> {
    /// The object.
    pub object_ref: &'r ObjectRef,
    /// The file as the user named it.
    pub file: &'r str,
    /// The line at which the object begins, from 1.
    pub line: usize,
    /// The operations. Their pointers begin at the object, also for an item of a List.
    pub patch: Value,
}

/// Writes each patch as one JSON object with the names and place of its object.
///
/// # Errors
/// Those of the writer.
pub fn write<'r>(patches: impl IntoIterator<Item = ObjectPatch<'r>>, out: &mut impl Write) -> io::Result<()> {
    for ObjectPatch { object_ref, file, line, patch } in patches {
        let [kind, namespace, name] = object_ref.shown();
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let object = without_nulls(json!({
            "apiVersion": *object_ref.api_version, "kind": kind, "namespace": namespace, "name": name,
            "file": file, "line": line, "patch": patch,
        }));
        serde_json::to_writer(&mut *out, &object)?;
        writeln!(out)?;
    }
    Ok(())
}
