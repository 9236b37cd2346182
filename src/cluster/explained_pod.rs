//! A pod, and the state that says where what was added to it comes from: that of its namespace, and what is referred to
//! elsewhere.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::agents::POD;
use crate::cluster::cluster_state::Fetched;
use crate::cluster::listed_state::read_state;
use crate::cluster::reader::ClusterReader;
use crate::decide::origins::origins;
use crate::model::kind::SECRET;
use crate::model::object::{Object, Reference};
use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::state::cluster_snapshot::{ClusterSnapshot, kinds};
use crate::state::empty;

/// How many rounds of lookups there are: an agent refers to a memory, which refers to other objects.
const MAX_LOOKUP_ROUNDS: usize = 3;

/// How many objects are looked up one by one, in all rounds.
const MAX_LOOKUPS: usize = 200;

/// A pod with the state around it.
#[derive(Debug)]
pub struct ExplainedPod {
    /// The pod, as the apiserver has it.
    pub pod: Value,
    /// The state.
    pub snapshot: Snapshot,
    /// What could not be read, a sentence each.
    pub incomplete: BTreeSet<String>,
}

/// Reads a pod, and the state that decisions about it look at.
///
/// # Errors
/// When the pod cannot be read, and why.
pub async fn explained_pod(
    reader: &ClusterReader,
    settings: Settings,
    namespace: &str,
    name: &str,
) -> Result<ExplainedPod, String> {
    let pod = match reader.get_kind(&POD, namespace, name).await {
        Fetched::Found(pod) => pod,
        Fetched::NotFound => return Err(format!("there is no Pod {namespace}/{name}")),
        Fetched::Unknown(why) => return Err(why),
    };
    let families = settings.families.clone();
    let mut file = ClusterSnapshot::new(String::new(), Some([namespace.to_owned()].into()));
    read_state(reader, &kinds(&families), false, &mut file).await?;
    let mut snapshot = empty(settings);
    file.put("the cluster", &mut snapshot).map_err(|error| error.to_string())?;
    let mut incomplete = BTreeSet::new();
    let snapshot = look_up(reader, &pod, namespace, snapshot, &mut incomplete).await;
    Ok(ExplainedPod { pod, snapshot, incomplete })
}

/// Gets, one by one, what the decision refers to in other namespaces.
async fn look_up(
    reader: &ClusterReader,
    pod: &Value,
    namespace: &str,
    mut snapshot: Snapshot,
    incomplete: &mut BTreeSet<String>,
) -> Snapshot {
    let mut looked_up: BTreeSet<Reference> = BTreeSet::new();
    for _ in 0..MAX_LOOKUP_ROUNDS {
        let room = MAX_LOOKUPS.saturating_sub(looked_up.len());
        let unknown = origins(pod, namespace, &snapshot).unknown.into_iter();
        let new = unknown.filter(|it| *it.kind != SECRET && it.is_possible() && !looked_up.contains(it));
        let new: Vec<Reference> = new.take(room).collect();
        looked_up.extend(new.iter().cloned());
        if new.is_empty() {
            break;
        }
        let mut answers = Vec::new();
        for reference in new {
            match reader.get_kind(reference.kind, &reference.namespace, &reference.name).await {
                Fetched::Found(object) => {
                    let object = Object::read(reference.kind, &object).ok().flatten();
                    answers.extend(object.map(|object| (reference, Some(object))));
                }
                Fetched::NotFound => answers.push((reference, None)),
                Fetched::Unknown(why) => {
                    incomplete.insert(why);
                }
            }
        }
        snapshot = snapshot.overlaid(answers);
    }
    snapshot
}
