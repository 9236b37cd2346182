//! What another webhook left of the parts that make memory work. A name alone is not enough.

use super::Surroundings;
use crate::inject::env;
use crate::inject::parts::{ExistingMounts, init_containers_pointer};
use crate::prelude::*;

/// A memory server that is in the pod already.
pub(crate) struct PresentServer<'p> {
    /// Its place in the pod.
    pub(crate) place: Pointer,
    /// Its index among the init containers; `None` for an ordinary container.
    pub(crate) init: Option<usize>,
    /// The container.
    pub(crate) container: &'p Container<'p>,
    /// Its mounts; `None` if they are malformed.
    pub(crate) mounts: Option<ExistingMounts<'p>>,
    /// Whether the annotation of the pod says that memgate added it.
    pub(crate) is_ours: bool,
}

impl PresentServer<'_> {
    /// The name of the container.
    pub(crate) fn name(&self) -> &str {
        self.container.name.as_deref().unwrap_or_default()
    }

    /// Whether it is an init container that the kubelet waits for until it ends.
    pub(crate) fn blocks(&self) -> bool {
        self.init.is_some() && !self.container.is_native_sidecar()
    }

    /// How many init containers start before it.
    pub(crate) fn after(&self) -> usize {
        self.init.unwrap_or(usize::MAX)
    }
}

impl<'p> Surroundings<'p> {
    /// The first container of each of these names: an apiserver refuses a second one.
    pub(crate) fn servers<const N: usize>(
        &self,
        names: [&str; N],
        work: &Budget<'_>,
    ) -> Vec<PresentServer<'p>> {
        let ordinary = self.pod.containers();
        let mut wanted = names.map(Some);
        let mut servers = Vec::new();
        for (at, container) in ordinary.iter().chain(self.parts.init_containers()).enumerate() {
            let name = container.name.as_deref();
            let Some(found) = wanted.iter_mut().find(|it| it.is_some() && **it == name) else { continue };
            *found = None;
            let init = at.checked_sub(ordinary.len());
            let place =
                init.map_or_else(|| env::container(at), |index| init_containers_pointer().index(index));
            let mounts = ExistingMounts::read_at(Path::Known(place.as_str()), container, work);
            servers.push(PresentServer { place, init, container, mounts, is_ours: false });
        }
        servers
    }
}
