//! The older memory: a ConfigMap that the agent has mounted.

use crate::inject::parts::mounts_pointer;
use crate::sympozium::inject::origin;
use crate::sympozium::prelude::*;
use crate::sympozium::variables::LEGACY;

use super::{WantedBuilder, part};

const VOLUME: &str = "memory";
const PATH: &str = "/memory";

impl WantedBuilder<'_, '_> {
    pub(super) fn legacy(&mut self) {
        let Some((object, field)) = self.found.legacy else { return };
        let origin = origin(object, field);
        // It has the name of the server.
        let config_map = private_server(&self.found.instance);
        if let Some(conflict) = self.volume_conflict(&config_map) {
            self.warnings.push(conflict);
            return;
        }
        self.add_variable(LEGACY, "true", &origin);
        if self.pod.around.parts.volume(VOLUME).is_none() {
            let tree = json!({"name": VOLUME, "configMap": {"name": config_map, "optional": true}});
            self.parts.volumes.push(part(VOLUME, tree, &origin));
        }
        if self.pod.mounts.at(PATH).is_none() {
            let tree = json!({"name": VOLUME, "mountPath": PATH, "readOnly": true});
            self.mounts.push(part(PATH, tree, &origin));
        }
    }

    /// The finding about another volume or mount in place of the ConfigMap.
    fn volume_conflict(&self, config_map: &str) -> Option<Finding> {
        if let Some((index, volume)) = self.pod.around.parts.volume(VOLUME)
            && volume.config_map.as_ref().and_then(|map| map.name.as_deref()) != Some(config_map)
        {
            let text = "volume \"memory\" should be ConfigMap {}; MEMORY_ENABLED is not set";
            let at = Pointer::new("/spec/volumes").index(index);
            return Some(warning(&POD_VOLUME_CONFLICT, at, text, [config_map]));
        }
        let (index, mount) = self.pod.mounts.at(PATH)?;
        let name = mount.name.as_deref().unwrap_or_default();
        let text = "/memory is volume {} instead of ConfigMap {}; MEMORY_ENABLED is not set";
        let at = mounts_pointer(self.pod.index).index(index);
        (name != VOLUME).then(|| warning(&POD_VOLUME_CONFLICT, at, text, [name, config_map]))
    }
}
