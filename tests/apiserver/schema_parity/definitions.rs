//! The bundled CRDs, as far as this needs them.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use memgate_manifest::document::parse;
use memgate_manifest::source::Source;
use serde_json::Value;

/// A kind and the schema of its newest version.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(super) schema: Value,
}

/// All kinds that memgate judges.
pub(crate) fn all() -> Result<Vec<Definition>> {
    let read = crds()?.iter().map(definition).collect::<Result<Vec<_>>>()?;
    let all: Vec<Definition> = read.into_iter().flatten().collect();
    ensure!(!all.is_empty(), "there are no CRDs");
    Ok(all)
}

fn crds() -> Result<Vec<Value>> {
    let mut crds = Vec::new();
    for file in memgate_platforms::ALL.iter().flat_map(|family| family.definitions.crds) {
        let parsed = parse(&Arc::new(Source::new("a bundled CRD", file())));
        ensure!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        crds.extend(parsed.documents.iter().map(|document| document.value().clone()));
    }
    Ok(crds)
}

fn definition(crd: &Value) -> Result<Option<Definition>> {
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a CRD without a name");
    let (group, kind) = (text(&spec["group"])?, text(&spec["names"]["kind"])?);
    if memgate_platforms::validated(&memgate_platforms::ALL, &group, &kind).is_none() {
        return Ok(None);
    }
    let version = &spec["versions"][0];
    Ok(Some(Definition {
        api_version: format!("{group}/{}", text(&version["name"])?),
        kind,
        schema: version["schema"]["openAPIV3Schema"].clone(),
    }))
}
