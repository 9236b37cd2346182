//! What the tables of the benchmark with an apiserver are called: it fills them, and the goals look into them.

pub(crate) use crate::{MEMGATE, PEER};

/// How long the creation of a pod takes.
pub(crate) const CREATION: &str = "Pod creation";

/// What it costs.
pub(crate) const CREATION_CPU: &str = "CPU of a pod's creation";

/// Reviews around what disturbs a server.
pub(crate) const DISTURBANCES: &str = "Disturbances";

/// The servers, as tables call them: what changes the pod, if anything does.
pub(crate) const NOTHING: &str = "nothing";
pub(crate) const CONSTANT: &str = "constant answer";
pub(crate) const POLICY: &str = "MutatingAdmissionPolicy";

/// Figures that goals are about.
pub(crate) const P50: &str = "p50, ms";
pub(crate) const P50_ADDED: &str = "p50 added, ms";
pub(crate) const P99_ADDED: &str = "p99 added, ms";
pub(crate) const CALL: &str = "webhook call, mean ms";
pub(crate) const BOTH: &str = "apiserver and webhook, µs";
pub(crate) const SLOWEST: &str = "p99.9, ms";
pub(crate) const REFUSED: &str = "refused, %";

/// What happens to a server meanwhile.
pub(crate) const QUIET: &str = "nothing";
pub(crate) const LISTED: &str = "all ArkMemories are listed again";
pub(crate) const DRAINED: &str = "it is drained";

/// Who creates pods.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// How many do so at a time.
    pub(crate) creators: u32,
    /// How many pods all of them create in a second; without it each creates the next pod when the last one is there.
    pub(crate) per_second: Option<u32>,
}

/// All loads. The machine is busy with nothing else in those without a rate, so in the last one it is not.
pub(crate) const LOADS: [Load; 4] = [
    Load { creators: 1, per_second: None },
    Load { creators: 50, per_second: None },
    Load { creators: 200, per_second: None },
    Load { creators: 200, per_second: Some(200) },
];

impl Load {
    /// As a case of tables.
    pub(crate) fn case(self) -> String {
        let Self { creators, per_second } = self;
        let pace = per_second.map(|rate| format!(", {rate} pods/s")).unwrap_or_default();
        format!("{creators} creator{}{pace}", if creators == 1 { "" } else { "s" })
    }
}
