//! Memory and Agent of orloj.dev.

pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
pub mod validate;
