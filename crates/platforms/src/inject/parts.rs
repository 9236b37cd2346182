//! The lists of a pod besides variables: init containers, volumes and mounts. Reads the existing ones and
//! inserts the wanted ones.

use crate::prelude::*;
use memgate_model::edit::Value;
use memgate_model::pod::{Mount, NamedView, SPEC, visit_elements};
use memgate_model::view::{Reading, View};

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
    unread_volumes: Option<&'p RawValue>,
    security_context: Option<PodSecurityContext<'p>>,
    /// Whether the pod uses the network of its node.
    pub host_network: bool,
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
            unread_volumes: spec.volumes,
            security_context: read(spec.security_context, path("securityContext"), work).ok()?,
            host_network: spec.host_network.unwrap_or(false),
        })
    }

    /// The security context of the pod.
    pub(super) const fn security_context(&self) -> Option<&PodSecurityContext<'p>> {
        self.security_context.as_ref()
    }

    /// The init containers, native sidecars among them.
    pub(crate) fn init_containers(&self) -> &[Container<'p>] {
        self.init_containers.as_deref().unwrap_or_default()
    }

    /// Whether any container or init container has this name.
    pub(crate) fn has_container(&self, name: &str) -> bool {
        self.container(name).is_some()
    }

    /// The container or init container of this name.
    pub(crate) fn container(&self, name: &str) -> Option<&Container<'p>> {
        let mut all = self.init_containers.iter().flatten().chain(self.containers);
        all.find(|container| container.name.as_deref() == Some(name))
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

    /// What keeps the volume of this index from being written: its source, or that it is `read-only`.
    pub(crate) fn read_only(&self, index: usize) -> Option<&'static str> {
        let (mut at, mut volume) = (0, None);
        visit_elements(self.unread_volumes, |raw: &RawValue| {
            volume = if at == index { Some(raw) } else { volume };
            at += 1;
        });
        let sources: Json = serde_json::from_str(volume?.get()).ok()?;
        sources.as_object()?.iter().find_map(|(key, source)| {
            let written = READ_ONLY_SOURCES.iter().find(|(of, _)| of == key && !source.is_null());
            let is_read_only = source.get("readOnly") == Some(&Json::Bool(true));
            written.map(|(_, name)| *name).or_else(|| is_read_only.then_some("read-only"))
        })
    }
}

/// The sources of volumes that the kubelet fills, and that containers only read.
const READ_ONLY_SOURCES: [(&str, &str); 5] = [
    ("configMap", "a ConfigMap"),
    ("secret", "a Secret"),
    ("downwardAPI", "a downward API volume"),
    ("projected", "a projected volume"),
    ("image", "an image"),
];

/// The existing mounts of a container; `None` for an absent list.
#[derive(Debug, Default)]
pub struct ExistingMounts<'p>(Option<Vec<Mount<'p>>>);

impl<'p> ExistingMounts<'p> {
    /// Reads the mounts of the container at this index; `None` if they are malformed.
    pub(crate) fn read(index: usize, container: &Container<'p>, work: &Budget<'_>) -> Option<Self> {
        let list = Path::Key(&SPEC, "containers");
        Self::read_at(Path::Index(&list, index), container, work)
    }

    /// The same for the container at this path.
    pub(crate) fn read_at(path: Path<'_>, container: &Container<'p>, work: &Budget<'_>) -> Option<Self> {
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
    /// The indices of existing init containers that memgate added and that cannot succeed any more, with why they are taken
    /// out.
    pub taken_out: BTreeMap<usize, &'static str>,
    /// Whether a native sidecar that memgate added is in the pod already.
    pub keeps_sidecar: bool,
    /// Init containers and native sidecars, each before the existing one of this index, in the order of the indices.
    pub init_containers: Vec<(usize, WantedPart)>,
    /// Volumes, after the others.
    pub volumes: Vec<WantedPart>,
    /// Volumes that memgate added and that another webhook dropped, after those.
    pub restored: Vec<WantedPart>,
    /// The edits that put back other parts, inside existing containers.
    pub mended: Vec<Edit>,
    /// The Secrets with which images are pulled, and how many the pod has, if it has the list.
    pub pull_secrets: (Vec<WantedPart>, Option<usize>),
    /// The group of the files on the pod's volumes, and why.
    pub fs_group: Option<(i64, &'static str)>,
}

/// The edits that append mounts to the existing ones of a container, whose list is at this place.
pub(crate) fn add_mounts(
    list: &Pointer,
    existing: &ExistingMounts<'_>,
    mounts: Vec<WantedPart>,
) -> Vec<Edit> {
    append(list, existing.0.as_ref().map(Vec::len), mounts)
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
    let mut edits = wanted.mended;
    edits.extend(take_out(&wanted.taken_out));
    edits.extend(init_containers(existing, &wanted.taken_out, wanted.init_containers));
    let existing_volumes = existing.volumes.as_ref().map(Vec::len);
    let volumes = wanted.volumes.into_iter().chain(wanted.restored);
    edits.extend(append(&Pointer::new("/spec/volumes"), existing_volumes, volumes));
    let (secrets, named) = wanted.pull_secrets;
    edits.extend(append(&Pointer::new("/spec/imagePullSecrets"), named, secrets));
    edits.extend(wanted.fs_group.map(|group| fs_group(existing.security_context.is_some(), group)));
    edits
}

/// The pointer to the init containers.
pub(crate) fn init_containers_pointer() -> Pointer {
    Pointer::new("/spec/initContainers")
}

/// The edits that take init containers out, from the last one on, so that no index shifts before it is used.
fn take_out(taken_out: &BTreeMap<usize, &'static str>) -> Vec<Edit> {
    let remove = |(index, rule): (&usize, &&'static str)| {
        let origins = vec![Origin { resource: "".into(), field: "".into(), rule }];
        Edit {
            op: Op::Remove,
            pointer: init_containers_pointer().index(*index),
            value: Value::Nothing,
            origins,
        }
    };
    taken_out.iter().rev().map(remove).collect()
}

fn init_containers(
    existing: &ExistingParts<'_>,
    taken_out: &BTreeMap<usize, &'static str>,
    wanted: Vec<(usize, WantedPart)>,
) -> Vec<Edit> {
    let pointer = init_containers_pointer();
    if existing.init_containers.is_none() {
        return append(&pointer, None, wanted.into_iter().map(|(_, part)| part));
    }
    // Each insert shifts the existing init containers behind it, and those that were taken out have shifted them back.
    let place = |before: usize, index: usize| index + before - taken_out.range(..index).count();
    let parts = wanted.into_iter().enumerate();
    parts.flat_map(|(before, (index, part))| insert(&pointer, place(before, index), [part])).collect()
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
