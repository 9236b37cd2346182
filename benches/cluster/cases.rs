//! What the tables of the benchmark with an apiserver are called: it fills them, and the goals look into them.

/// How long the creation of a pod takes.
pub(crate) const CREATION: &str = "Pod creation";

/// What it costs.
pub(crate) const CREATION_CPU: &str = "CPU of a pod's creation";

/// Reviews around what disturbs a server.
pub(crate) const DISTURBANCES: &str = "Disturbances";

/// The servers, as tables call them: what changes the pod, if anything does.
pub(crate) const NOTHING: &str = "nothing";
pub(crate) const MEMGATE: &str = "memgate";
pub(crate) const PEER: &str = "Go peer";
pub(crate) const POLICY: &str = "MutatingAdmissionPolicy";

/// Figures that goals are about.
pub(crate) const P50: &str = "p50, ms";
pub(crate) const P50_ADDED: &str = "p50 added, ms";
pub(crate) const P99_ADDED: &str = "p99 added, ms";
pub(crate) const CALL: &str = "webhook call, mean ms";
pub(crate) const BOTH: &str = "apiserver and webhook, µs";
pub(crate) const SLOWEST: &str = "p99.9, ms";

/// What happens to a server meanwhile.
pub(crate) const QUIET: &str = "nothing";
pub(crate) const LISTED: &str = "all ArkMemories are listed again";
pub(crate) const DRAINED: &str = "it is drained";

/// How many create pods at a time.
pub(crate) const CREATORS: [usize; 3] = [1, 50, 200];

/// So many creators as a case.
pub(crate) fn creators(number: usize) -> String {
    format!("{number} creator{}", if number == 1 { "" } else { "s" })
}
