//! The lists of a pod besides variables: init containers, volumes and mounts. Reads the existing ones and
//! inserts the wanted ones.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use serde_json::json;
use serde_json::value::RawValue;

use memgate_model::edit::{Edit, Op, Origin, Value};
use memgate_model::pod::{Container, Mount, NamedView, Pod, SPEC};
use memgate_model::view::{Reading, Text, View, view};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::{Path, Pointer};

view! {
    /// A volume.
    in VOLUMES Volume {
        /// The name.
        name: Text<'a> = "name",
        /// The source, if it is a claim.
        claim: ClaimVolumeSource<'a> = "persistentVolumeClaim",
        /// The source, if it is a ConfigMap.
        config_map: NamedView<'a> = "configMap",
        /// The source, if it is a Secret.
        secret: &'a RawValue = "secret",
        /// The source, if it joins several.
        projected: &'a RawValue = "projected",
        /// The source, if it is a directory of the pod.
        empty_dir: &'a RawValue = "emptyDir",
    }

    /// The source of a volume that is a PersistentVolumeClaim.
    ClaimVolumeSource {
        /// The name of the claim.
        name: Text<'a> = "claimName",
    }

    /// The security context of a pod; its values are kept as raw JSON.
    PodSecurityContext {
        /// The group of the files on its volumes.
        fs_group: &'a RawValue = "fsGroup",
        /// The user.
        run_as_user: &'a RawValue = "runAsUser",
    }
}

/// The existing lists of a pod; a list is `None` if it is absent.
#[derive(Debug, Default)]
pub struct ExistingParts<'p> {
    containers: &'p [Container<'p>],
    init_containers: Option<Vec<Container<'p>>>,
    volumes: Option<Vec<Volume<'p>>>,
    security_context: Option<PodSecurityContext<'p>>,
    /// Whether the pod uses the network of its node.
    pub host_network: bool,
    /// The `dnsPolicy`.
    pub dns_policy: Option<&'p str>,
}

impl<'p> ExistingParts<'p> {
    /// Reads the lists of a pod; `None` if one of them is malformed.
    pub(crate) fn read(pod: &'p Pod<'p>, work: &Budget<'_>) -> Option<Self> {
        let Some(spec) = &pod.spec else { return Some(Self::default()) };
        let path = |field| Path::Key(&SPEC, field);
        Some(Self {
            containers: pod.containers(),
            init_containers: read(spec.init_containers, path("initContainers"), work).ok()?,
            volumes: read(spec.volumes, path("volumes"), work).ok()?,
            security_context: read(spec.security_context, path("securityContext"), work).ok()?,
            host_network: spec.host_network.unwrap_or(false),
            dns_policy: spec.dns_policy.as_deref(),
        })
    }

    /// Whether the pod sets a user other than root for its containers.
    pub(crate) fn has_user(&self) -> bool {
        let user = self.security_context.as_ref().and_then(|context| context.run_as_user);
        user.is_some_and(|user| user.get() != "0")
    }

    /// Whether the pod sets the group of its volumes.
    pub(crate) fn has_fs_group(&self) -> bool {
        self.security_context.as_ref().is_some_and(|context| context.fs_group.is_some())
    }

    /// The init containers, native sidecars among them.
    pub(crate) fn init_containers(&self) -> &[Container<'p>] {
        self.init_containers.as_deref().unwrap_or_default()
    }

    /// Whether any container or init container has this name.
    pub(crate) fn has_container(&self, name: &str) -> bool {
        let mut inits = self.init_containers.iter().flatten();
        inits.any(|container| container.name.as_deref() == Some(name))
            || self.containers.iter().any(|container| container.name.as_deref() == Some(name))
    }

    /// The volumes.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = &Volume<'p>> {
        self.volumes.iter().flatten()
    }

    /// The volume of this name, with its index.
    pub(crate) fn volume(&self, name: &str) -> Option<(usize, &Volume<'p>)> {
        let mut volumes = self.volumes.iter().flatten().enumerate();
        volumes.find(|(_, volume)| volume.name.as_deref() == Some(name))
    }
}

/// The existing mounts of a container; `None` for an absent list.
#[derive(Debug, Default)]
pub struct ExistingMounts<'p>(Option<Vec<Mount<'p>>>);

impl<'p> ExistingMounts<'p> {
    /// Reads the mounts of the container at this index; `None` if they are malformed.
    pub(crate) fn read(index: usize, container: &Container<'p>, work: &Budget<'_>) -> Option<Self> {
        let list = Path::Key(&SPEC, "containers");
        let path = Path::Index(&list, index);
        read(container.volume_mounts, Path::Key(&path, "volumeMounts"), work).ok().map(Self)
    }

    /// The mount at this path, with its index.
    pub(crate) fn at(&self, path: &str) -> Option<(usize, &Mount<'p>)> {
        self.iter().enumerate().find(|(_, mount)| mount.clean_path() == path)
    }

    /// All existing mounts.
    pub fn iter(&self) -> impl Iterator<Item = &Mount<'p>> {
        self.0.iter().flatten()
    }
}

/// `None` for an absent value.
fn read<'p, T: View<'p>>(
    raw: Option<&'p RawValue>,
    path: Path<'_>,
    work: &Budget<'_>,
) -> serde_json::Result<Option<T>> {
    raw.map(|raw| Reading::within(work).read(raw.get(), path)).transpose()
}

/// A container, volume or mount to be added.
#[derive(Debug, Clone)]
pub struct WantedPart {
    /// Its name in the marker annotation; for a mount, the path.
    pub name: String,
    /// Its JSON, as it is added to the pod.
    pub tree: Json,
    /// Where it comes from.
    pub origin: Origin,
}

/// The missing parts of a pod, besides variables and mounts.
#[derive(Debug, Default)]
pub struct WantedParts {
    /// Init containers and native sidecars, each before the existing one of this index, in the order of the indices.
    pub init_containers: Vec<(usize, WantedPart)>,
    /// Volumes, after the others.
    pub volumes: Vec<WantedPart>,
    /// The Secrets with which images are pulled, and how many the pod has, if it has the list.
    pub pull_secrets: (Vec<WantedPart>, Option<usize>),
    /// The group of the files on the pod's volumes, and why.
    pub fs_group: Option<(i64, &'static str)>,
}

/// The edits that append mounts to the container at this index.
pub(super) fn add_mounts(
    container: usize,
    existing: &ExistingMounts<'_>,
    mounts: Vec<WantedPart>,
) -> Vec<Edit> {
    append(&mounts_pointer(container), existing.0.as_ref().map(Vec::len), mounts)
}

/// The Secrets of these names that the pod does not have yet, and how many it has. None where its list is malformed.
pub(crate) fn pull_secrets(
    pod: &Pod<'_>,
    names: &[String],
    origin: &Origin,
    work: &Budget<'_>,
) -> (Vec<WantedPart>, Option<usize>) {
    let raw = pod.spec.as_ref().and_then(|spec| spec.image_pull_secrets);
    let existing: Result<Option<Vec<NamedView<'_>>>, _> =
        read(raw, Path::Key(&SPEC, "imagePullSecrets"), work);
    let Ok(existing) = existing else { return (Vec::new(), None) };
    let known = existing.iter().flatten().filter_map(|secret| secret.name.as_deref());
    let mut known: BTreeSet<&str> = known.collect();
    let missing = names.iter().filter(|name| known.insert(name)).map(|name| WantedPart {
        name: name.clone(),
        tree: json!({ "name": name }),
        origin: origin.clone(),
    });
    (missing.collect(), existing.as_ref().map(Vec::len))
}

/// The pointer to the mounts of the container of this index.
pub(crate) fn mounts_pointer(container: usize) -> Pointer {
    Pointer::new(format!("/spec/containers/{container}/volumeMounts"))
}

/// The edits that add parts to a pod.
pub(super) fn add_parts(existing: &ExistingParts<'_>, wanted: WantedParts) -> Vec<Edit> {
    let mut edits = init_containers(existing, wanted.init_containers);
    let volumes = existing.volumes.as_ref().map(Vec::len);
    edits.extend(append(&Pointer::new("/spec/volumes"), volumes, wanted.volumes));
    let (secrets, named) = wanted.pull_secrets;
    edits.extend(append(&Pointer::new("/spec/imagePullSecrets"), named, secrets));
    edits.extend(wanted.fs_group.map(|group| fs_group(existing.security_context.is_some(), group)));
    edits
}

fn init_containers(existing: &ExistingParts<'_>, wanted: Vec<(usize, WantedPart)>) -> Vec<Edit> {
    let pointer = Pointer::new("/spec/initContainers");
    if existing.init_containers.is_none() {
        return append(&pointer, None, wanted.into_iter().map(|(_, part)| part));
    }
    // Each insert shifts the existing init containers behind it.
    let parts = wanted.into_iter().enumerate();
    parts.flat_map(|(before, (index, part))| insert(&pointer, index + before, [part])).collect()
}

fn append(list: &Pointer, existing: Option<usize>, parts: impl IntoIterator<Item = WantedPart>) -> Vec<Edit> {
    if let Some(end) = existing {
        return insert(list, end, parts);
    }
    let (trees, origins): (Vec<_>, Vec<_>) = parts.into_iter().map(|part| (part.tree, part.origin)).unzip();
    let value = Value::Tree(Json::Array(trees));
    let whole = Edit { op: Op::Add, pointer: list.clone(), value, origins };
    if whole.origins.is_empty() { Vec::new() } else { vec![whole] }
}

/// One `add` for each part, before the element of index `start`.
fn insert(list: &Pointer, start: usize, parts: impl IntoIterator<Item = WantedPart>) -> Vec<Edit> {
    let parts = (start..).zip(parts);
    parts.map(|(index, part)| Edit::add(list.index(index), Value::Tree(part.tree), part.origin)).collect()
}

fn fs_group(has_context: bool, (group, rule): (i64, &'static str)) -> Edit {
    let context = Pointer::new("/spec/securityContext");
    let (pointer, value) = if has_context {
        (context.key("fsGroup"), Value::Integer(group))
    } else {
        (context, Value::Tree(json!({"fsGroup": group})))
    };
    Edit::add(pointer, value, Origin { resource: "".into(), field: "".into(), rule })
}
