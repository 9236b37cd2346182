//! Durable memory of the Tasks of core.orka.ai.

pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
pub mod validate;
