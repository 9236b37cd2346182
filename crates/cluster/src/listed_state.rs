//! Reads the state that decisions use, for a file: all objects of the kinds in some namespaces or in all, a page
//! at a time. Of each object only the fields that decisions read are kept.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::cluster_state::{Fetched, ServedResources, text};
use crate::installation::served_resources;
use crate::reader::{ClusterReader, path, truncated, with_kind};
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, DEFINITION, DEFINITION_API, kept};
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE, SECRET};
use memgate_model::schema::Schema;

/// The definitions of kinds, each read by its name.
static DEFINITIONS: Kind =
    Kind::new(("apiextensions.k8s.io", "v1"), DEFINITION, "customresourcedefinitions", Schema::Any)
        .of_cluster();

/// How many kinds are read at a time.
const MAX_CONCURRENT_KINDS: usize = 8;

/// What is read beyond the fields that decisions read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Beyond {
    /// Secrets, and of them only names and keys.
    pub secrets: bool,
    /// When each object was created.
    pub times: bool,
}

/// Reads all of these kinds into `file`, in the namespaces that it names, several kinds at a time.
///
/// # Errors
/// The reason, when the apiserver does not answer or one of the namespaces does not exist.
pub async fn read_state(
    reader: &ClusterReader,
    kinds: &BTreeSet<&'static Kind>,
    beyond: Beyond,
    file: &mut ClusterSnapshot,
) -> Result<(), String> {
    let served = match served_resources(reader).await {
        Fetched::Found(served) => served,
        Fetched::Absent => return Err("the apiserver serves no list of its API groups".to_owned()),
        Fetched::Unknown(why) => return Err(why),
    };
    let (served, names) = (&served, file.namespaces.clone());
    let names = names.as_ref();
    let reads = stream::iter(kinds.iter().copied()).map(|kind| async move {
        let read = match served_version(served, kind) {
            _ if *kind == SECRET && !beyond.secrets => {
                (Vec::new(), Fetched::Unknown("not asked for; --secrets takes names and keys".to_owned()))
            }
            None => (Vec::new(), Fetched::Absent),
            Some(version) => match names {
                Some(names) if *kind == NAMESPACE => namespaces(reader, names).await?,
                names => objects(reader, (kind, &version), names, beyond).await,
            },
        };
        Ok::<_, String>((kind, read))
    });
    let mut reads = reads.buffered(MAX_CONCURRENT_KINDS);
    while let Some(read) = reads.next().await {
        let (kind, (objects, read)) = read?;
        if read == Fetched::Found(()) {
            file.items.extend(objects);
        }
        file.add_entry(kind.api_version(), kind.kind, read);
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
    beyond: Beyond,
) -> (Vec<Value>, Fetched<()>) {
    let mut all = Vec::new();
    let everywhere = BTreeSet::from([String::new()]);
    for namespace in namespaces.filter(|_| kind.namespaced).unwrap_or(&everywhere) {
        match list(reader, (kind, version), namespace, beyond, &mut all).await {
            Fetched::Found(()) => {}
            other => return (all, other),
        }
    }
    (all, Fetched::Found(()))
}

async fn list(
    reader: &ClusterReader,
    (kind, version): (&Kind, &str),
    namespace: &str,
    beyond: Beyond,
    all: &mut Vec<Value>,
) -> Fetched<()> {
    let (params, resource) = (ListParams::default(), resource(kind));
    let api_version = match kind.group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let path = path(&api_version, namespace, kind.plural);
    let read = if *kind == SECRET {
        let take = |page: Vec<SecretKeys>| {
            all.extend(page.iter().map(|secret| kept(kind, &secret.json())));
            all.len() < reader.max_objects
        };
        reader.pages(&resource, &path, params, take).await
    } else {
        let take = |page: Vec<Value>| {
            all.extend(page.into_iter().map(|object| {
                let object = with_kind(kind, object);
                let mut read = kept(kind, &object);
                if let (true, Some(Value::Object(metadata))) = (beyond.times, read.get_mut("metadata")) {
                    let created = text(&object, "/metadata/creationTimestamp");
                    metadata.insert("creationTimestamp".to_owned(), created.into());
                }
                read
            }));
            all.len() < reader.max_objects
        };
        reader.pages(&resource, &path, params, take).await
    };
    let whole =
        |is_whole| if is_whole { Fetched::Found(()) } else { Fetched::Unknown(truncated(kind.plural)) };
    read.and_then(whole)
}

/// The plural name with its group: several platforms have agents.
fn resource(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.plural.to_owned() } else { format!("{}.{}", kind.plural, kind.group) }
}

/// Adds the cluster's definitions of the families' kinds: with them, objects from files are validated as the
/// apiserver would do it.
pub async fn add_definitions(
    reader: &ClusterReader,
    families: &[&'static Family],
    file: &mut ClusterSnapshot,
) {
    let kinds: BTreeSet<&'static Kind> =
        families.iter().flat_map(|family| family.kinds.validated).copied().collect();
    let (mut read, mut found) = (Fetched::Found(()), Vec::new());
    for kind in kinds {
        let name = format!("{}.{}", kind.plural, kind.group);
        match reader.get_kind(&DEFINITIONS, "", &name).await {
            Fetched::Found(definition) => found.push(kept_definition(&definition)),
            Fetched::Absent => {}
            Fetched::Unknown(why) => {
                read = Fetched::Unknown(why);
                found.clear();
                break;
            }
        }
    }
    file.add_entry(DEFINITION_API.to_owned(), DEFINITION, read);
    file.items.extend(found);
}

/// A definition without its status and its conversion.
fn kept_definition(definition: &Value) -> Value {
    let text = |pointer| definition.pointer(pointer).cloned().unwrap_or_default();
    let mut versions = text("/spec/versions");
    for version in versions.as_array_mut().into_iter().flatten() {
        if let Some(schema) = version.get_mut("schema") {
            drop_descriptions(schema);
        }
    }
    json!({
        "apiVersion": DEFINITION_API,
        "kind": DEFINITION,
        "metadata": {"name": text("/metadata/name")},
        "spec": {
            "group": text("/spec/group"),
            "names": text("/spec/names"),
            "scope": text("/spec/scope"),
            "versions": versions,
        },
    })
}

/// Drops the descriptions of a schema. The recursion is bounded: the JSON parser has a depth limit.
fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|key, value| !(key == "description" && value.is_string()));
            let values =
                fields.iter_mut().filter(|(key, _)| !["default", "enum", "example"].contains(&key.as_str()));
            values.for_each(|(_, value)| drop_descriptions(value));
        }
        Value::Array(elements) => elements.iter_mut().for_each(drop_descriptions),
        _ => {}
    }
}

/// A Secret whose values were skipped while it was read.
#[derive(Debug, Clone, Deserialize)]
#[expect(clippy::zero_sized_map_values, reason = "a set cannot be read from a map")]
struct SecretKeys {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Option<BTreeMap<String, IgnoredAny>>,
}

impl SecretKeys {
    fn json(&self) -> Value {
        let data = self.data.iter().flatten();
        let keys: Map<String, Value> = data.map(|(key, _)| (key.clone(), "".into())).collect();
        json!({"metadata": {"name": self.metadata.name, "namespace": self.metadata.namespace}, "data": keys})
    }
}
