//! What most files of this folder use: its kinds with their fields, its codes, the engine of injections, and
//! the words of all platforms.

pub(super) use super::api::*;
pub(super) use super::codes::*;
pub(super) use crate::inject::*;
pub(super) use crate::prelude::*;
