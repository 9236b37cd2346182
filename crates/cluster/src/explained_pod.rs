//! Reads a pod and the state that explains memgate's additions to it: the objects of its namespace, and the objects of
//! other namespaces that the decision refers to.

use crate::agents::{created, look_up};
use crate::cluster_state::{AgentPod, Created, Fetched};
use crate::listed_state::{Beyond, read_state};
use crate::reader::ClusterReader;
use crate::replay::replay_one;
use memgate_core::decide::origins::origins;
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, kinds};
use memgate_core::state::empty;
use memgate_model::kind::POD;
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;

/// A pod with the state around it.
#[derive(Debug)]
pub struct ExplainedPod {
    /// The pod, as the apiserver has it.
    pub pod: AgentPod,
    /// The state.
    pub snapshot: Snapshot,
    /// When its objects were created.
    pub created: Created,
    /// What could not be read, a sentence each.
    pub incomplete: Vec<String>,
}

/// Reads a pod and the state that decisions about it use.
///
/// # Errors
/// The reason, when the pod cannot be read.
pub async fn explained_pod(
    reader: &ClusterReader,
    settings: Settings,
    namespace: &str,
    name: &str,
) -> Result<ExplainedPod, String> {
    let pod = match reader.get_kind(&POD, namespace, name).await {
        Fetched::Found(json) => AgentPod { json },
        Fetched::Absent => return Err(format!("there is no Pod {namespace}/{name}")),
        Fetched::Unknown(why) => return Err(why),
    };
    let families = settings.families.clone();
    let mut file = ClusterSnapshot::new(String::new(), Some([namespace.to_owned()].into()));
    read_state(reader, &kinds(&families), Beyond { times: true, ..Beyond::default() }, &mut file).await?;
    let mut snapshot = empty(settings);
    file.put("the cluster", &mut snapshot).map_err(|error| error.to_string())?;
    let mut incomplete = Vec::new();
    let unknown = |state: &Snapshot| {
        let mut unknown = origins(&pod.json, namespace, state).unknown;
        unknown.extend(replay_one(&pod, state).into_iter().flat_map(|replayed| replayed.decision.unknown));
        unknown
    };
    look_up(reader, &mut snapshot, &mut incomplete, unknown).await;
    Ok(ExplainedPod { pod, snapshot, created: created(&file.items), incomplete })
}
