//! Changes of objects as JSON patches (RFC 6902), a line for each object.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::ObjectRef;

/// What changes in one object.
#[derive(Debug)]
pub struct ObjectPatch<'r, P> {
    /// The object.
    pub object_ref: &'r ObjectRef,
    /// The file as the user named it.
    pub file: &'r str,
    /// The line in which the object begins, from 1.
    pub line: usize,
    /// The operations, against the object alone: of an item of a List from that item on.
    pub patch: P,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'r, P> {
    api_version: &'r str,
    kind: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'r str,
    name: &'r str,
    file: &'r str,
    line: usize,
    patch: &'r P,
}

/// Writes each patch as one JSON object: what it is about, where that stands, and `patch`.
///
/// # Errors
/// Those of the writer.
pub fn write<'r, P: Serialize + 'r>(
    patches: impl IntoIterator<Item = ObjectPatch<'r, P>>,
    out: &mut impl Write,
) -> io::Result<()> {
    for ObjectPatch { object_ref, file, line, patch } in patches {
        let ObjectRef { api_version, kind, namespace, name } = object_ref;
        let entry = Entry { api_version, kind, namespace, name, file, line, patch: &patch };
        serde_json::to_writer(&mut *out, &entry)?;
        writeln!(out)?;
    }
    Ok(())
}
