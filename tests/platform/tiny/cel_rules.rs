//! The rule that an apiserver can check by itself.

use memgate_model::cel::{CelRule, CelTable};

use super::api::NOTEBOOK;
use super::codes::URL_REQUIRED;

pub(crate) static TABLES: [CelTable; 1] = [CelTable {
    name: "tiny-notebooks",
    kinds: &[&NOTEBOOK],
    lets: &[],
    rules: &[CelRule {
        code: &URL_REQUIRED,
        faults: "has(self.spec) && has(self.spec.url) && self.spec.url != '' ? [] : ['']",
        message: "spec.url is required",
    }],
}];
