//! The bundled CRDs, as far as this needs them.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use memgate::{
    family,
    manifest::{document::parse, source::Source},
};
use serde_json::Value;

/// A kind and the schema of its newest version.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) schema: Value,
}

/// All kinds that memgate judges.
pub(super) fn all() -> Result<Vec<Definition>> {
    let files = family::ALL.iter().flat_map(|family| family.crds);
    let mut all = Vec::new();
    for file in files {
        let parsed = parse(&Arc::new(Source::new("a bundled CRD", *file)));
        ensure!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        for document in parsed.documents {
            all.extend(definition(document.value())?);
        }
    }
    ensure!(!all.is_empty(), "there are no CRDs");
    Ok(all)
}

fn definition(crd: &Value) -> Result<Option<Definition>> {
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a CRD without a name");
    let (group, kind) = (text(&spec["group"])?, text(&spec["names"]["kind"])?);
    if family::validated(&family::ALL, &group, &kind).is_none() {
        return Ok(None);
    }
    let version = &spec["versions"][0];
    Ok(Some(Definition {
        api_version: format!("{group}/{}", text(&version["name"])?),
        kind,
        schema: version["schema"]["openAPIV3Schema"].clone(),
    }))
}
