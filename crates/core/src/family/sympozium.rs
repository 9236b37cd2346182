//! Persistent and shared memory of sympozium.ai.

pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
mod lookup;
pub mod twin;
pub mod validate;
