//! Memory and Query of ark.mckinsey.com.
//!
//! Beside the four faces, what they share: [`value`] says which of several given values the platform
//! takes, [`address`] reads URLs, [`service`] finds ports.

pub mod address;
pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
pub mod service;
pub mod twin;
pub mod validate;
pub mod value;
