//! Reads the state that decisions use: all objects of the kinds in some namespaces or in all, a page
//! at a time. Of each object only the fields that decisions read are kept.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use kube::api::ListParams;
use serde_json::Value;

use crate::cluster_state::{Fetched, ServedResources};
use crate::installation::served_resources;
use crate::reader::{ClusterReader, path, resource, with_kind};
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, kept};
use memgate_model::kind::{Kind, NAMESPACE, SECRET};

/// How many kinds are read at a time.
const MAX_CONCURRENT_KINDS: usize = 8;

/// Reads all of these kinds but Secrets into `snapshot`, in the namespaces that it names, several kinds at a time.
///
/// # Errors
/// The reason, when the apiserver does not answer or one of the namespaces does not exist.
pub async fn read_state(
    reader: &ClusterReader,
    kinds: &BTreeSet<&'static Kind>,
    snapshot: &mut ClusterSnapshot,
) -> Result<(), String> {
    let served = match served_resources(reader).await {
        Fetched::Found(served) => served,
        Fetched::Absent => return Err("the apiserver serves no list of its API groups".to_owned()),
        Fetched::Unknown(why) => return Err(why),
    };
    let (served, names) = (&served, snapshot.namespaces.clone());
    let names = names.as_ref();
    let reads = stream::iter(kinds.iter().copied()).map(|kind| async move {
        let read = match served_version(served, kind) {
            _ if *kind == SECRET => (Vec::new(), Fetched::Unknown("memgate reads no Secret".to_owned())),
            None => (Vec::new(), Fetched::Absent),
            Some(version) => match names {
                Some(names) if *kind == NAMESPACE => namespaces(reader, names).await?,
                names => objects(reader, (kind, &version), names).await,
            },
        };
        Ok::<_, String>((kind, read))
    });
    let mut reads = reads.buffered(MAX_CONCURRENT_KINDS);
    while let Some(read) = reads.next().await {
        let (kind, (objects, read)) = read?;
        if read == Fetched::Found(()) {
            snapshot.items.extend(objects);
        }
        snapshot.add_entry(kind.api_version(), kind.kind, read);
    }
    Ok(())
}

/// The version in which the cluster serves a kind: the one that memgate watches, if it is served, else the last.
fn served_version(served: &ServedResources, kind: &Kind) -> Option<String> {
    if kind.group.is_empty() {
        return Some(kind.version.to_owned());
    }
    let serving = |((group, version), plurals): (&(String, String), &BTreeSet<String>)| {
        (group == kind.group && plurals.contains(kind.plural)).then(|| version.clone())
    };
    let versions: Vec<String> = served.iter().filter_map(serving).collect();
    versions.iter().find(|version| *version == kind.version).or_else(|| versions.last()).cloned()
}

/// The Namespaces of these names.
async fn namespaces(
    reader: &ClusterReader,
    names: &BTreeSet<String>,
) -> Result<(Vec<Value>, Fetched<()>), String> {
    let mut all = Vec::new();
    for name in names {
        match reader.get_kind(&NAMESPACE, "", name).await {
            Fetched::Found(namespace) => all.push(kept(&NAMESPACE, &namespace)),
            Fetched::Absent => return Err(format!("there is no namespace {name}")),
            Fetched::Unknown(why) => return Ok((all, Fetched::Unknown(why))),
        }
    }
    Ok((all, Fetched::Found(())))
}

/// The objects of a kind. After a failed request the objects that were read before do not count.
async fn objects(
    reader: &ClusterReader,
    (kind, version): (&Kind, &str),
    namespaces: Option<&BTreeSet<String>>,
) -> (Vec<Value>, Fetched<()>) {
    let mut all = Vec::new();
    let everywhere = BTreeSet::from([String::new()]);
    let api_version = match kind.group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    for namespace in namespaces.filter(|_| kind.namespaced).unwrap_or(&everywhere) {
        let take = |page: Vec<Value>| all.extend(page.into_iter().map(|it| kept(kind, &with_kind(kind, it))));
        let path = path(&api_version, namespace, kind.plural);
        match reader.pages(&resource(kind), &path, ListParams::default(), take).await {
            Fetched::Found(()) => {}
            other => return (all, other),
        }
    }
    (all, Fetched::Found(()))
}
