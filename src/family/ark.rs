//! Memory and Query of ark.mckinsey.com.

pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
pub mod validate;
