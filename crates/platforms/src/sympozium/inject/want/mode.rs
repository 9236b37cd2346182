//! Decides where the private memory runs: the pod's content first, then annotations, then settings.

use crate::url::Endpoint;
use memgate_model::elsewhere::Elsewhere;
use memgate_model::finding::Finding;
use memgate_model::platform_settings::MemoryMode;
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;

use super::super::super::api::{MEMORY_SERVER, MODE_ANNOTATION};
use super::super::super::codes::{MEMORY_MODE_UNKNOWN, SIDECAR_MODE_IGNORED};
use super::super::super::lookup::{self, PackMode};
use super::super::super::validate::skill_pack_missing;
use super::super::super::variables::PRIVATE_URL;
use super::super::recognise::instance_label;
use super::WantedBuilder;
use crate::inject::annotation_pointer;
use crate::message::fit_names;

/// Upstream's name for the sidecar of a SkillPack.
pub(in super::super) const PACK_SIDECAR: &str = "skill-memory";

/// Whether the pod already has a memory server, and does not set the URL of another one.
pub(super) fn has_server(builder: &WantedBuilder<'_, '_>) -> bool {
    let url = builder.existing.get(PRIVATE_URL).map(|(_, entry)| entry);
    let is_local = url.is_none_or(|entry| entry.literal().is_some_and(is_loopback));
    is_local && [MEMORY_SERVER, PACK_SIDECAR].iter().any(|name| builder.pod.parts.has_container(name))
}

/// Where the private memory runs.
pub(super) fn private_mode<'s>(
    builder: &mut WantedBuilder<'_, 's>,
    state: &mut StateReader<'s>,
) -> PackMode<'s> {
    if builder.existing.get(PRIVATE_URL).is_some() {
        if requested_mode(builder) == Some("sidecar") {
            let message = format!("sidecar mode ignored: {PRIVATE_URL} is already set");
            let at = builder.env_entry(PRIVATE_URL);
            builder.warnings.push(Finding::warn(&SIDECAR_MODE_IGNORED, at, message));
        }
        return PackMode::Service;
    }
    let chosen = requested_by_annotation(builder).unwrap_or_else(|| state.settings().sympozium.memory_mode);
    let mode = lookup::pack_mode(chosen, builder.pod.namespace, state);
    if matches!(mode, PackMode::Sidecar(None)) && chosen != MemoryMode::Sidecar {
        builder.warnings.push(skill_pack_missing(builder.pod.namespace, instance_label()));
    }
    mode
}

/// Whether a URL points at the pod itself.
pub(in super::super) fn is_loopback(url: &str) -> bool {
    let host = Endpoint::parse(url).host.to_ascii_lowercase();
    let is_v4 = || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    host == "localhost" || host == "::1" || is_v4()
}

/// The value of the mode annotation of the pod, or else of the Agent.
fn requested_mode<'a>(builder: &'a WantedBuilder<'_, '_>) -> Option<&'a str> {
    let agent_annotation =
        || builder.found.agent?.tree().text_at(&["metadata", "annotations", MODE_ANNOTATION]);
    builder.pod.pod.annotation(MODE_ANNOTATION).or_else(agent_annotation)
}

/// The mode that an annotation requests; an unsupported value only warns.
fn requested_by_annotation(builder: &mut WantedBuilder<'_, '_>) -> Option<MemoryMode> {
    let value = requested_mode(builder)?;
    if let Some(mode) = lookup::asked_mode(value) {
        return Some(mode);
    }
    let of_pod = builder.pod.pod.annotation(MODE_ANNOTATION).is_some();
    let message = fit_names([value, &builder.found.instance], |[value, agent]| {
        let owner = if of_pod { String::new() } else { format!(" of Agent {}", quoted(agent)) };
        let value = quoted(value);
        format!(
            "annotation {MODE_ANNOTATION}{owner}: unsupported value {value}; use \"service\" or \"sidecar\""
        )
    });
    let at = if of_pod { annotation_pointer(MODE_ANNOTATION) } else { instance_label() };
    let agent = builder.found.agent.filter(|_| !of_pod);
    let warning = Finding::warn(&MEMORY_MODE_UNKNOWN, at, message).and_elsewhere(|| {
        Some(Elsewhere::of(agent?, annotation_pointer(MODE_ANNOTATION), "the annotation of the Agent"))
    });
    builder.warnings.push(warning);
    None
}
