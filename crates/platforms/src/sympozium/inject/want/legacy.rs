//! The older memory: a ConfigMap that the agent has mounted.

use serde_json::json;

use crate::inject::{field_origin, resource_name};
use crate::message::fit_names;
use memgate_model::edit::Origin;
use memgate_model::finding::Finding;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::super::codes::POD_VOLUME_CONFLICT;
use super::super::super::variables::LEGACY;
use super::WantedBuilder;
use crate::inject::parts::{WantedPart, mounts_pointer};

const VOLUME: &str = "memory";
const PATH: &str = "/memory";

impl WantedBuilder<'_, '_> {
    pub(super) fn legacy(&mut self) {
        let Some(origin) = self.legacy_origin() else { return };
        let config_map = format!("{}-memory", self.found.instance);
        if let Some(conflict) = self.volume_conflict(&config_map) {
            self.warnings.push(conflict);
            return;
        }
        self.add_variable(LEGACY, "true", &origin);
        if self.pod.parts.volume(VOLUME).is_none() {
            let tree = json!({"name": VOLUME, "configMap": {"name": config_map, "optional": true}});
            self.parts.volumes.push(WantedPart { name: VOLUME.to_owned(), tree, origin: origin.clone() });
        }
        if self.pod.mounts.at(PATH).is_none() {
            let tree = json!({"name": VOLUME, "mountPath": PATH, "readOnly": true});
            self.mounts.push(WantedPart { name: PATH.to_owned(), tree, origin });
        }
    }

    /// The object that turns the ConfigMap on: the Agent, or the Ensemble that will make it.
    fn legacy_origin(&self) -> Option<Origin> {
        let made_by = self.found.ensemble.filter(|_| self.found.made_from.is_some());
        let (kind, object, field) = match (self.found.agent, made_by) {
            (Some(agent), _) => ("Agent", agent, "spec.memory.enabled"),
            (None, Some(ensemble)) => ("Ensemble", ensemble, "spec.agentConfigs"),
            (None, None) => return None,
        };
        self.found.legacy.then(|| field_origin(&resource_name(kind, object), field))
    }

    /// The finding about another volume or mount in place of the ConfigMap.
    fn volume_conflict(&self, config_map: &str) -> Option<Finding> {
        if let Some((index, volume)) = self.pod.parts.volume(VOLUME) {
            let config_map_name = volume.config_map.as_ref().and_then(|map| map.name.as_deref());
            if config_map_name != Some(config_map) {
                let message = fit_names([config_map], |[name]| {
                    format!("volume \"{VOLUME}\" should be ConfigMap {}; {LEGACY} is not set", quoted(name))
                });
                let at = Pointer::new("/spec/volumes").index(index);
                return Some(Finding::warn(&POD_VOLUME_CONFLICT, at, message));
            }
        }
        let (index, mount) = self.pod.mounts.at(PATH)?;
        let name = mount.name.as_deref().unwrap_or_default();
        let message = fit_names([name, config_map], |[name, config_map]| {
            let (name, config_map) = (quoted(name), quoted(config_map));
            format!("{PATH} is volume {name} instead of ConfigMap {config_map}; {LEGACY} is not set")
        });
        let list = mounts_pointer(self.pod.index);
        (name != VOLUME).then(|| Finding::warn(&POD_VOLUME_CONFLICT, list.index(index), message))
    }
}
