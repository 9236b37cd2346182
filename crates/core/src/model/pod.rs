//! A core/v1 Pod, as far as decisions read it. Everything else in it is skipped, so that a pod costs no
//! more than what is asked of it.

use serde_json::value::RawValue;

use crate::model::view::{Annotations, Text, Texts, view};

view! {
    /// A pod.
    Pod {
        /// Who it is.
        metadata: PodMetadata<'a> = "metadata",
        /// What it runs.
        spec: PodSpec<'a> = "spec",
    }
}

view! {
    /// Who a pod is.
    PodMetadata {
        /// The name; absent when the apiserver makes one from `generate_name`.
        name: Text<'a> = "name",
        /// The start of a name that the apiserver makes.
        generate_name: Text<'a> = "generateName",
        /// The namespace; the request's counts when this is absent.
        namespace: Text<'a> = "namespace",
        /// The owners, unread.
        owner_references: &'a RawValue = "ownerReferences",
        /// All labels.
        labels: Texts<'a> = "labels",
        /// The annotations that memgate reads; `None` when there is no such map at all.
        annotations: Annotations<'a> = "annotations",
    }
}

view! {
    /// What a pod runs.
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
        /// Whether the service account's token is mounted.
        automount_service_account_token: bool = "automountServiceAccountToken",
    }
}

view! {
    /// A container.
    element Container {
        /// The name.
        name: Text<'a> = "name",
        /// The environment; `None` when there is no list at all, which a patch must tell from an
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
    }
}

view! {
    /// An owner of a pod.
    Owner {
        /// Its API group and version.
        api_version: Text<'a> = "apiVersion",
        /// Its kind.
        kind: Text<'a> = "kind",
        /// Its name.
        name: Text<'a> = "name",
        /// Its uid.
        uid: Text<'a> = "uid",
        /// Whether it is the one that made the pod.
        controller: bool = "controller",
    }
}

view! {
    /// A mount of a container.
    Mount {
        /// The name of the volume.
        name: Text<'a> = "name",
        /// Where.
        path: Text<'a> = "mountPath",
    }
}

view! {
    /// One environment variable.
    EnvVarView {
        /// The name.
        name: Text<'a> = "name",
        /// The literal.
        value: Text<'a> = "value",
        /// The reference, unread: most are never looked at.
        value_from: &'a RawValue = "valueFrom",
    }
}

view! {
    /// The `valueFrom` of an environment variable.
    ValueFromView {
        /// A key of a Secret.
        secret_key_ref: KeyRefView<'a> = "secretKeyRef",
        /// A key of a ConfigMap.
        config_map_key_ref: KeyRefView<'a> = "configMapKeyRef",
    }
}

view! {
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
    /// Of category `Data` when a field that is read has another JSON type than a pod's; of
    /// category `Syntax` when a string that is read cannot be Unicode text.
    pub fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.labels.as_ref()?.get(key)
    }

    /// The value of one of the annotations that memgate reads.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.annotations.as_ref()?.get(key)
    }

    /// The ordinary containers; none when the list is absent.
    #[must_use]
    pub fn containers(&self) -> &[Container<'a>] {
        self.spec.as_ref().and_then(|spec| spec.containers.as_deref()).unwrap_or_default()
    }
}

impl<'a> Container<'a> {
    /// The variable of this name that counts, with its index: of several the last one, as for the
    /// kubelet.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<(usize, &EnvVarView<'a>)> {
        let env = self.env.as_deref().unwrap_or_default();
        env.iter().enumerate().rev().find(|(_, variable)| variable.name.as_deref() == Some(name))
    }
}

impl EnvVarView<'_> {
    /// The literal; empty when the entry has neither literal nor reference, and `None` when the value
    /// comes from elsewhere.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        self.value_from.is_none().then(|| self.value.as_deref().unwrap_or_default())
    }

    /// The Secret and key that the value comes from; `None` for a literal or another reference.
    #[must_use]
    pub fn secret_key_ref(&self) -> Option<(String, String)> {
        let reference = read::<ValueFromView<'_>>(self.value_from)?.secret_key_ref?;
        let text = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned()).unwrap_or_default();
        Some((text(reference.name), text(reference.key)))
    }
}

/// Reads a part of a pod that was left unread; `None` when it is absent or of another form.
#[must_use]
pub fn read<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}
