//! Where the private memory of an agent runs, as far as its pods do not say it: a mode that is asked for, else the
//! one of the settings, else what the SkillPack has.

use crate::model::object::{Lookup, Object};
use crate::model::platform_settings::MemoryMode;
use crate::model::state_reader::StateReader;

use super::api::agent::sidecar_image;
use super::lookup;

/// Where the private memory runs whose pods do not say it.
pub(super) enum PackMode<'s> {
    /// In a Deployment of its own.
    Service,
    /// In a native sidecar, configured by its SkillPack if there is one.
    Sidecar(Option<&'s Object>),
    /// It is not known whether there is a SkillPack.
    Unknown,
}

/// Where the private memory runs, as this mode has it.
pub(super) fn of_pack<'s>(mode: MemoryMode, namespace: &str, state: &mut StateReader<'s>) -> PackMode<'s> {
    if mode == MemoryMode::Service {
        return PackMode::Service;
    }
    match lookup::memory_pack(namespace, state) {
        Lookup::Found(pack) if mode == MemoryMode::Sidecar || sidecar_image(&pack.tree).is_some() => {
            PackMode::Sidecar(Some(pack))
        }
        Lookup::Found(_) => PackMode::Service,
        Lookup::Absent => PackMode::Sidecar(None),
        Lookup::Unknown => PackMode::Unknown,
    }
}

/// The mode that an annotation asks for.
pub(super) fn asked(annotation: &str) -> Option<MemoryMode> {
    match annotation {
        "service" => Some(MemoryMode::Service),
        "sidecar" => Some(MemoryMode::Sidecar),
        // The pack decides, whatever the settings say.
        "auto" => Some(MemoryMode::Auto),
        _ => None,
    }
}
