//! Reads the state that decisions look at, for a file: all objects of the kinds in some namespaces or in all, a page
//! at a time, and of each only what decisions read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Resource};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::cluster::agents::{POD, agent_pods};
use crate::cluster::cluster_state::{Fetched, ServedResources};
use crate::cluster::installation::served_resources;
use crate::cluster::reader::{self, ClusterReader, pages};
use crate::model::family::Family;
use crate::model::kind::{Kind, NAMESPACE, SECRET};
use crate::model::schema::Schema;
use crate::state::cluster_snapshot::{ClusterSnapshot, DEFINITION, DEFINITION_API, Known, kept};

/// The definitions of kinds, each read by its name.
static DEFINITIONS: Kind = Kind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: DEFINITION,
    plural: "customresourcedefinitions",
    namespaced: false,
    schema: Schema::Any,
};

/// Reads all of these kinds into `file`, in the namespaces that it names. Secrets are read if `with_secrets`, and of
/// them only names and keys are kept.
///
/// # Errors
/// When the apiserver does not answer at all, and why, or one of the namespaces is not there.
pub async fn read_state(
    reader: &ClusterReader,
    kinds: &BTreeSet<&'static Kind>,
    with_secrets: bool,
    file: &mut ClusterSnapshot,
) -> Result<(), String> {
    let served = match served_resources(reader).await {
        Fetched::Found(served) => served,
        Fetched::NotFound => return Err("the apiserver serves no list of its API groups".to_owned()),
        Fetched::Unknown(why) => return Err(why),
    };
    for &kind in kinds {
        let (objects, read) = match served_version(&served, kind) {
            _ if *kind == SECRET && !with_secrets => {
                (Vec::new(), Fetched::Unknown("not asked for; --secrets takes names and keys".to_owned()))
            }
            None => (Vec::new(), Fetched::NotFound),
            Some(version) => match &file.namespaces {
                Some(names) if *kind == NAMESPACE => namespaces(reader, names).await?,
                names => objects(reader, kind, &version, names.as_ref()).await,
            },
        };
        let (state, why) = match read {
            Fetched::Found(()) => (Known::Known, None),
            Fetched::NotFound => (Known::NotServed, None),
            Fetched::Unknown(why) => (Known::Unknown, Some(why)),
        };
        file.add_entry(kind.api_version(), kind.kind, state, why);
        if state == Known::Known {
            file.items.extend(objects);
        }
    }
    Ok(())
}

/// Adds the pods that families know, whole, for those who judge them.
pub async fn add_agent_pods(
    reader: &ClusterReader,
    families: &[&'static Family],
    file: &mut ClusterSnapshot,
) {
    let everywhere = BTreeSet::from([String::new()]);
    let namespaces = file.namespaces.clone().unwrap_or(everywhere);
    let (pods, incomplete) = agent_pods(reader, families, &namespaces).await;
    file.items.extend(pods.into_iter().map(|pod| pod.json));
    if let Some(why) = incomplete.into_iter().next() {
        file.add_entry(POD.api_version(), POD.kind, Known::Unknown, Some(why));
    }
}

/// The version in which the cluster serves a kind: the one that memgate watches, if that is among them.
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
            Fetched::NotFound => return Err(format!("there is no namespace {name}")),
            Fetched::Unknown(why) => return Ok((all, Fetched::Unknown(why))),
        }
    }
    Ok((all, Fetched::Found(())))
}

/// The objects of a kind; what was read before something failed does not count.
async fn objects(
    reader: &ClusterReader,
    kind: &Kind,
    version: &str,
    namespaces: Option<&BTreeSet<String>>,
) -> (Vec<Value>, Fetched<()>) {
    let mut all = Vec::new();
    let everywhere = BTreeSet::from([String::new()]);
    for namespace in namespaces.filter(|_| kind.namespaced).unwrap_or(&everywhere) {
        match list(reader, (kind, version), namespace, &mut all).await {
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
    all: &mut Vec<Value>,
) -> Fetched<()> {
    let params = ListParams::default();
    let resource = resource(kind);
    let read = if *kind == SECRET {
        let api: Api<SecretKeys> = if namespace.is_empty() {
            Api::all(reader.client.clone())
        } else {
            Api::namespaced(reader.client.clone(), namespace)
        };
        let take = |page: Vec<SecretKeys>| {
            all.extend(page.iter().map(|secret| kept(kind, &secret.json())));
            true
        };
        pages(&resource, api, params, take).await
    } else {
        let take = |page: Vec<_>| {
            all.extend(page.iter().map(|object| kept(kind, &reader::json(kind, object))));
            true
        };
        pages(&resource, reader.kind_api(kind, version, namespace), params, take).await
    };
    read.map(|_| ())
}

/// The plural name with its group: several platforms have agents.
fn resource(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.plural.to_owned() } else { format!("{}.{}", kind.plural, kind.group) }
}

/// Adds the definitions of the families' kinds, as the cluster has them, for those who judge objects that no apiserver
/// has seen.
pub async fn add_definitions(
    reader: &ClusterReader,
    families: &[&'static Family],
    file: &mut ClusterSnapshot,
) {
    let kinds: BTreeSet<&'static Kind> =
        families.iter().flat_map(|family| family.kinds.validated).copied().collect();
    let (mut state, mut why, mut found) = (Known::Known, None, Vec::new());
    for kind in kinds {
        let name = format!("{}.{}", kind.plural, kind.group);
        match reader.get_kind(&DEFINITIONS, "", &name).await {
            Fetched::Found(definition) => found.push(kept_definition(&definition)),
            Fetched::NotFound => {}
            Fetched::Unknown(reason) => {
                (state, why) = (Known::Unknown, Some(reason));
                found.clear();
                break;
            }
        }
    }
    file.add_entry(DEFINITION_API.to_owned(), DEFINITION, state, why);
    file.items.extend(found);
}

/// What a definition says of its kind; neither status nor conversion.
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

/// Drops what a schema says for people. The recursion is bounded: what an apiserver sends was parsed with a limit.
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

/// A Secret of which the values were skipped while it was read.
#[derive(Debug, Clone, Deserialize)]
struct SecretKeys {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Keys,
}

impl Resource for SecretKeys {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        SECRET.kind.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        SECRET.group.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        SECRET.version.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        SECRET.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl SecretKeys {
    fn json(&self) -> Value {
        let keys: Map<String, Value> = self.data.0.iter().map(|key| (key.clone(), "".into())).collect();
        json!({"metadata": {"name": self.metadata.name, "namespace": self.metadata.namespace}, "data": keys})
    }
}

/// The keys of an object; its values are never kept.
#[derive(Debug, Clone, Default)]
struct Keys(BTreeSet<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the data of a Secret")
    }

    fn visit_none<E>(self) -> Result<Keys, E> {
        Ok(Keys::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Keys, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            keys.insert(key);
        }
        Ok(Keys(keys))
    }
}
