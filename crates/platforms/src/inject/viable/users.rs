//! The user of added containers. An OpenShift SCC chooses it in a range of the namespace, and refuses a pod with any other.

use crate::prelude::*;
use memgate_model::view::SCC;

use super::{Surroundings, at, json};

/// The users that an SCC may choose in a Namespace. Source: OpenShift documentation, managing security context constraints.
const UID_RANGE: &str = "openshift.io/sa.scc.uid-range";

/// The user and the group of added containers and volumes that nothing else chooses: root is not allowed, and a server
/// could not write to a new volume. Source: upstream, issue 49.
const DEFAULT_ID: u32 = 1000;

impl Surroundings<'_> {
    /// The security context of an added container, beside the one of the agent. It passes Pod Security "restricted".
    /// Source: Kubernetes documentation, Pod Security Standards.
    #[expect(clippy::indexing_slicing, reason = "fields of an object are written")]
    pub(crate) fn security_context(&self, agent: &Container<'_>) -> Json {
        let mut context = json!({
            "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        let of_agent = json(agent.security_context);
        if let Some(user) = self.user(at(&of_agent, "/runAsUser")) {
            context["runAsUser"] = user.into();
        }
        // The label of the agent's processes, by which they may use volumes: pods of one level share them.
        for field in ["user", "role", "type", "level"] {
            let text = at(&of_agent, &format!("/seLinuxOptions/{field}"));
            if text.is_string() {
                context["seLinuxOptions"][field] = text.clone();
            }
        }
        context
    }

    /// The user of an added container. `None` where it has that of the pod, or one that an SCC chooses.
    fn user(&self, of_agent: &Json) -> Option<u32> {
        let of_pod = self.parts.security_context().and_then(|context| context.run_as_user);
        if of_pod.is_some_and(|user| user.get() != "0") || self.is_user_chosen() {
            return None;
        }
        // The highest number that an apiserver accepts is that of an i32.
        let of_agent = of_agent.as_i64().and_then(|user| i32::try_from(user).ok());
        let of_agent = of_agent.and_then(|user| u32::try_from(user).ok()).filter(|user| *user != 0);
        Some(of_agent.unwrap_or(DEFAULT_ID))
    }

    /// The group that the volumes of the pod need; `None` where it has one, or an SCC chooses it.
    pub(crate) fn fs_group(&self) -> Option<i64> {
        let is_set = self.parts.security_context().is_some_and(|context| context.fs_group.is_some());
        (!is_set && !self.is_user_chosen()).then_some(DEFAULT_ID.into())
    }

    /// Whether an SCC chooses users and groups in the range of the namespace.
    fn is_user_chosen(&self) -> bool {
        let scc = self.pod.annotation(SCC).unwrap_or_default();
        let starts = |starts: &[&str]| starts.iter().any(|start| scc.starts_with(start));
        let has_range = || {
            let annotations = self.namespace.and_then(|it| it.tree().at(&["metadata", "annotations"]));
            annotations.and_then(|it| it.entry(UID_RANGE)).is_some_and(|range| !range.is_empty())
        };
        let is_free = || starts(&["nonroot"]) || ["anyuid", "privileged", "hostaccess"].contains(&scc);
        starts(&["restricted", "hostnetwork"]) || !is_free() && has_range()
    }
}
