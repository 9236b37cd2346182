//! The nodes on which a pod may run: what memgate adds exists for Linux only.

use memgate_model::pod::{NamedView, read};
use memgate_primitives::pointer::Pointer;

use super::Surroundings;

impl Surroundings<'_> {
    /// The field that makes the pod one of Windows.
    pub(crate) fn windows(&self) -> Option<Pointer> {
        let spec = self.pod.spec.as_ref()?;
        let os = read::<NamedView<'_>>(spec.os).and_then(|os| os.name);
        (os.as_deref() == Some("windows")).then(|| Pointer::new("/spec/os/name"))
    }
}
