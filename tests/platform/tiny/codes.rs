//! The finding codes of the platform, each with its page.

use memgate_model::finding::{Cause, Code};
use memgate_model::page::Page;

pub(crate) static URL_REQUIRED: Code = Code {
    name: "tiny/url-required",
    cause: Cause::Required,
    page: Page(|| include_str!("codes/url-required.md")),
};
pub(crate) static SCHEMA: Code =
    Code { name: "tiny/schema", cause: Cause::Invalid, page: Page(|| include_str!("codes/schema.md")) };
pub(crate) static UNKNOWN_FIELD: Code = Code {
    name: "tiny/unknown-field",
    cause: Cause::Invalid,
    page: Page(|| include_str!("codes/unknown-field.md")),
};
pub(crate) static NOTEBOOK_NOT_FOUND: Code = Code {
    name: "tiny/notebook-not-found",
    cause: Cause::NotFound,
    page: Page(|| include_str!("codes/notebook-not-found.md")),
};
pub(crate) static CONTINUED_NOT_FOUND: Code = Code {
    name: "tiny/continued-not-found",
    cause: Cause::NotFound,
    page: Page(|| include_str!("codes/continued-not-found.md")),
};
pub(crate) static URL_CONFLICT: Code = Code {
    name: "tiny/url-conflict",
    cause: Cause::Conflict,
    page: Page(|| include_str!("codes/url-conflict.md")),
};
pub(crate) static INJECT_LABEL_UNKNOWN: Code = Code {
    name: "tiny/inject-label-unknown",
    cause: Cause::NotSupported,
    page: Page(|| include_str!("codes/inject-label-unknown.md")),
};

pub(crate) static ALL: [&Code; 7] = [
    &URL_REQUIRED, &SCHEMA, &UNKNOWN_FIELD, &NOTEBOOK_NOT_FOUND, &CONTINUED_NOT_FOUND, &URL_CONFLICT,
    &INJECT_LABEL_UNKNOWN,
];
