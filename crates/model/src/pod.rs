//! A core/v1 Pod, limited to the fields that decisions read. All other fields are skipped without being stored.

mod owners;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::view::{self, Annotations, Place, Reading, Text, Texts, View, view};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Path;

pub use self::owners::{Controller, Owners};

view! {
    /// A pod.
    Pod {
        /// The metadata.
        metadata: PodMetadata<'a> = "metadata",
        /// The spec.
        spec: PodSpec<'a> = "spec",
    }

    /// The metadata of a pod.
    PodMetadata {
        /// The name; absent when the apiserver generates one from `generate_name`.
        name: Text<'a> = "name",
        /// The prefix of a name that the apiserver generates.
        generate_name: Text<'a> = "generateName",
        /// The namespace; when absent, the namespace of the request counts.
        namespace: Text<'a> = "namespace",
        /// The owners, read when a decision needs them.
        owner_references: Owners<'a> = "ownerReferences",
        /// All labels.
        labels: Texts<'a> = "labels",
        /// The annotations that memgate reads; `None` without such a map.
        annotations: Annotations<'a> = "annotations",
    }

    /// The spec of a pod.
    PodSpec {
        /// The ordinary containers.
        containers: Vec<Container<'a>> = "containers",
        /// The init containers, native sidecars among them; unread, since few families look at them.
        init_containers: &'a RawValue = "initContainers",
        /// The volumes, unread.
        volumes: &'a RawValue = "volumes",
        /// The pod's security context, unread.
        security_context: &'a RawValue = "securityContext",
        /// Whether the pod uses the network of its node.
        host_network: bool = "hostNetwork",
        /// How names are resolved.
        dns_policy: Text<'a> = "dnsPolicy",
        /// The rest of what says how names are resolved, unread.
        dns_config: &'a RawValue = "dnsConfig",
        /// Names that have an address of the pod's own, unread.
        host_aliases: &'a RawValue = "hostAliases",
        /// The operating system, unread.
        os: &'a RawValue = "os",
        /// The labels of nodes on which it may run, unread.
        node_selector: &'a RawValue = "nodeSelector",
        /// More about the nodes on which it may run, unread.
        affinity: &'a RawValue = "affinity",
        /// The class of the programs that run its containers.
        runtime_class: Text<'a> = "runtimeClassName",
        /// Whether containers that end are started again.
        restart_policy: Text<'a> = "restartPolicy",
        /// The Secrets with which images are fetched, unread.
        image_pull_secrets: &'a RawValue = "imagePullSecrets",
        /// Whether the service account's token is mounted.
        automount_service_account_token: bool = "automountServiceAccountToken",
    }

    /// A container.
    in CONTAINERS element Container {
        /// The name.
        name: Text<'a> = "name",
        /// The image, unread.
        image: &'a RawValue = "image",
        /// The environment; `None` without a list, which a patch must distinguish from an
        /// empty one.
        env: Vec<EnvVarView<'a>> = "env",
        /// Where more variables come from; unread.
        env_from: &'a RawValue = "envFrom",
        /// The entry point, unread.
        command: &'a RawValue = "command",
        /// Its arguments, unread.
        args: &'a RawValue = "args",
        /// The mounts, unread.
        volume_mounts: &'a RawValue = "volumeMounts",
        /// The ports on which it listens, unread.
        ports: &'a RawValue = "ports",
        /// Requests and limits, unread.
        resources: &'a RawValue = "resources",
        /// The security context, unread.
        security_context: &'a RawValue = "securityContext",
        /// The probes and hooks, unread.
        startup_probe: &'a RawValue = "startupProbe",
        /// Whether it is ready.
        readiness_probe: &'a RawValue = "readinessProbe",
        /// Whether it still works.
        liveness_probe: &'a RawValue = "livenessProbe",
        /// What is called when it starts and ends.
        lifecycle: &'a RawValue = "lifecycle",
        /// Of an init container: `Always` for a native sidecar.
        restart_policy: Text<'a> = "restartPolicy",
    }

    /// A mount of a container.
    Mount {
        /// The name of the volume.
        name: Text<'a> = "name",
        /// The path.
        path: Text<'a> = "mountPath",
        /// The part of the volume that is mounted; all of it when absent.
        sub_path: Text<'a> = "subPath",
        /// The same as an expression with variables.
        sub_path_expr: Text<'a> = "subPathExpr",
        /// Whether it can only be read.
        read_only: bool = "readOnly",
    }

    /// One environment variable.
    in VARIABLES EnvVarView {
        /// The name.
        name: Text<'a> = "name",
        /// The literal.
        value: Text<'a> = "value",
        /// The reference, unread: most are never looked at.
        value_from: &'a RawValue = "valueFrom",
    }

    /// The `valueFrom` of an environment variable.
    ValueFromView {
        /// A key of a Secret.
        secret_key_ref: KeyRefView<'a> = "secretKeyRef",
        /// A key of a ConfigMap.
        config_map_key_ref: KeyRefView<'a> = "configMapKeyRef",
    }

    /// An object of which only the name is read.
    NamedView {
        /// The name.
        name: Text<'a> = "name",
    }

    /// A key of a Secret or a ConfigMap.
    KeyRefView {
        /// The name of the Secret or ConfigMap.
        name: Text<'a> = "name",
        /// The key in its data.
        key: Text<'a> = "key",
        /// Whether the container starts without it.
        optional: bool = "optional",
    }
}

impl<'a> Pod<'a> {
    /// Reads a pod.
    ///
    /// # Errors
    /// Category `Data` if a field that is read does not have the JSON type of a pod's field; category `Syntax` if a
    /// string that is read cannot be Unicode text.
    pub fn parse(text: &'a str) -> serde_json::Result<Self> {
        view::read(text)
    }

    /// The same within the limits of a decision. If a list or map reaches a limit, the rest of it is left out,
    /// and `budget` has ended.
    ///
    /// # Errors
    /// Those of [`Pod::parse`].
    pub fn parse_within(text: &'a str, budget: &Budget<'_>) -> serde_json::Result<Self> {
        Reading::within(budget).strictly().read(text, Path::Root)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.labels.as_ref()?.get(key)
    }

    /// The value of one of the annotations that memgate reads.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.annotations.as_ref()?.get(key)
    }

    /// The ordinary containers; none when the list is absent.
    pub fn containers(&self) -> &[Container<'a>] {
        self.spec.as_ref().and_then(|spec| spec.containers.as_deref()).unwrap_or_default()
    }
}

impl<'a> Container<'a> {
    /// Whether an init container is a native sidecar, which runs as long as the pod.
    pub fn is_native_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// The variable of this name, with its index. The last of several counts, as for the kubelet.
    pub fn variable(&self, name: &str) -> Option<(usize, &EnvVarView<'a>)> {
        let env = self.env.as_deref().unwrap_or_default();
        env.iter().enumerate().rev().find(|(_, variable)| variable.name.as_deref() == Some(name))
    }
}

impl Mount<'_> {
    /// The path as the kubelet reads it: absolute, without `.`, `..` and empty parts. Empty for the root and for
    /// a missing path.
    pub fn clean_path(&self) -> String {
        let mut parts = Vec::new();
        for part in self.path.as_deref().unwrap_or_default().split('/') {
            match part {
                "" | "." => {}
                ".." => _ = parts.pop(),
                name => parts.push(name),
            }
        }
        parts.iter().flat_map(|part| ["/", part]).collect()
    }

    /// Whether only a part of the volume is mounted.
    pub fn is_partial(&self) -> bool {
        [&self.sub_path, &self.sub_path_expr].into_iter().flatten().any(|path| !path.is_empty())
    }
}

impl<'a> EnvVarView<'a> {
    /// The literal; empty when the entry has neither literal nor reference, and `None` when the value
    /// comes from elsewhere.
    pub fn literal(&self) -> Option<&str> {
        self.value_from.is_none().then(|| self.value.as_deref().unwrap_or_default())
    }

    /// The reference; an empty one if it is absent or malformed.
    pub fn reference(&self) -> ValueFromView<'a> {
        read(self.value_from).unwrap_or_default()
    }
}

/// The fields of a pod's spec.
pub const SPEC: Path<'_> = Path::Key(&Path::Root, "spec");

/// Reads a part of a pod that was left unread; `None` if it is absent or malformed. For parts without lists.
pub fn read<'a, T: View<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    view::read(raw?.get()).ok()
}

/// The same for a list at this path, within the limits of a decision.
pub fn read_list<'a, T: View<'a>>(
    raw: Option<&'a RawValue>,
    path: Path<'_>,
    budget: &Budget<'_>,
) -> Option<Vec<T>> {
    Reading::within(budget).read(raw?.get(), path).ok()
}

/// Calls `visit` with each element of a list that was left unread, and keeps none of them. `None` if the list is
/// absent or malformed; `visit` may already have been called for some elements then.
pub fn visit_elements<'a, T: View<'a>>(raw: Option<&'a RawValue>, visit: impl FnMut(T)) -> Option<()> {
    let mut deserializer = serde_json::Deserializer::from_str(raw?.get());
    deserializer.deserialize_seq(Elements(visit, PhantomData)).ok()
}

struct Elements<F, T>(F, PhantomData<T>);

impl<'de, T: View<'de>, F: FnMut(T)> Visitor<'de> for Elements<F, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let reading = Reading::default();
        let place = Place::root(&reading);
        while let Some(element) = list.next_element_seed(view::Element::at(&place))? {
            (self.0)(element);
        }
        Ok(())
    }
}
