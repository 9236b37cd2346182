//! What each replica says of itself: an annotation of a Lease of its own, in memgate's namespace. `serve` writes it, other
//! replicas and `doctor` read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The annotation, JSON.
pub const ANNOTATION: &str = "memgate.dev/replica";

/// The label of these Leases.
pub const LABEL: (&str, &str) = ("app.kubernetes.io/component", "replica");

/// After so many seconds without a new Lease, event, bookmark or list, a replica has lost its apiserver: two bookmarks are
/// missing, also on a new connection.
pub const SILENT_SECONDS: u64 = 120;

/// What a replica knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaReport {
    /// Its version.
    pub version: String,
    /// The address and the port at which it serves health and metrics.
    pub address: String,
    /// Until when it has heard of each kind that it has read, by the apiserver's clock: RFC 3339.
    pub heard_until: String,
    /// Why it is not ready.
    pub not_ready: Vec<String>,
    /// The kinds that it has not read, `apiVersion Kind`, and why.
    pub not_read: BTreeMap<String, String>,
    /// How many entries of each webhook configuration, `mutating` and `validating`, ask about something; empty before they
    /// were read.
    pub entries: BTreeMap<String, i64>,
    /// By how many seconds the clock of its machine is ahead of the apiserver's.
    pub clock_seconds: i64,
}
