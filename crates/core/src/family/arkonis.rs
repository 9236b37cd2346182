//! ArkMemory, ArkAgent and ArkSettings of arkonis.dev, their older names and their successor.
//!
//! An ArkMemory says where an agent's memory lives; an ArkAgent of the same namespace names it; the
//! container `agent` of the agent's pods gets environment variables. There is no sidecar, volume or
//! memory server in this family.

pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
pub mod twin;
pub mod validate;
