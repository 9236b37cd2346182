//! Validates the default Memory of the ArkConfig.

use crate::model::budget::Budget;
use crate::model::finding::Finding;
use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

use super::super::codes::{CONFIG_DEFAULT_MEMORY_NAME, CONFIG_DEFAULT_MEMORY_NAMESPACE};
use super::denial;

pub(super) fn findings(object: &Tree, work: &Budget<'_>) -> Vec<Finding> {
    let Some(memory) = object.at(&["spec", "defaultMemory"]).filter(|memory| memory.is_object()) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let here = Pointer::new("/spec/defaultMemory");
    if memory.get("name").is_none_or(|name| name.text() == Some("")) {
        let message = "spec.defaultMemory.name is required when spec.defaultMemory is set";
        findings.push(denial(work, &CONFIG_DEFAULT_MEMORY_NAME, here.key("name"), || message.to_owned()));
    }
    if memory.get("namespace").and_then(Tree::text).is_some_and(|namespace| !namespace.is_empty()) {
        let message = "spec.defaultMemory.namespace must be empty";
        findings.push(denial(work, &CONFIG_DEFAULT_MEMORY_NAMESPACE, here.key("namespace"), || {
            message.to_owned()
        }));
    }
    findings
}
