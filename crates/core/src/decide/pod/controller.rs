//! The controller of a pod, and whether it creates a refused pod again.

use memgate_model::pod::Pod;
use memgate_platforms::inject::controller_of;

/// The built-in controllers that try again when their pod is refused. The behaviour of other controllers is not known.
const RETRYING_CONTROLLERS: [(&str, &[&str]); 2] =
    [("apps", &["ReplicaSet", "StatefulSet", "DaemonSet"]), ("batch", &["Job"])];

/// Whether one of these made the pod.
pub(super) fn is_from_controller(pod: &Pod<'_>, namespace: &str) -> bool {
    controller_of(pod, namespace).is_some_and(|controller| {
        let group = controller.api_version.split_once('/').map_or("", |(group, _)| group);
        let is = |(of, kinds): &(&str, &[&str])| *of == group && kinds.contains(&controller.kind.as_ref());
        RETRYING_CONTROLLERS.iter().any(is)
    })
}
