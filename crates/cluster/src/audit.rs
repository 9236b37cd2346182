//! Judges what a cluster stores, and writes reports and the statuses of policies where they differ.
//!
//! ```text
//! policies ─▶ state ──▶ subjects ─▶ reports ─▶ statuses ──▶ apiserver
//!               └─────▶ missed ──▶ the log
//! ```
//!
//! Every list is read page by page. Of what decisions look up the fields that they read are kept, up to a number of bytes;
//! of what is judged, only counts. A run that ends early has written whole reports and no status that is wrong: the next
//! run goes on from what is stored. Two runs at a time write the same.

pub mod missed;
mod policies;
mod report;
mod reports;
mod state;
mod status;
mod subjects;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{self, Method};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent_pods::Owner;
use crate::cluster_state::Fetched;
use crate::reader::{ClusterReader, fetch, resource};
use crate::request::{Response, send};
use memgate_certs::library_error::explained;
use memgate_model::kind::Kind;
use memgate_model::settings::Settings;

use self::missed::Missed;
use self::policies::Listed;
use self::reports::Reports;
use self::state::State;
use self::status::PolicyCounts;

/// The field manager of the writes.
const FIELD_MANAGER: &str = "memgate";

/// How many objects are read at a time: each may have a megabyte and a half.
const PAGE: u32 = 20;

/// How many owners of pods without their memory are named.
const MAX_OWNERS: usize = 100;

/// After how many failed requests a run ends: the next one comes soon.
const MAX_FAULTS: usize = 10;

/// What an audit is to do.
#[derive(Debug)]
pub struct AuditPlan {
    /// The settings of decisions.
    pub settings: Settings,
    /// The label value that marks the reports of this installation: its namespace.
    pub installation: String,
}

/// What an audit did.
#[derive(Debug, Default)]
pub struct Audited {
    /// Sentences for the log.
    pub said: Vec<String>,
    /// Why it is not complete; empty if it is.
    pub faults: Vec<String>,
}

/// The failed requests of a run.
#[derive(Debug, Default)]
struct Faults {
    count: usize,
    /// Each reason once.
    reasons: Vec<String>,
}

/// So much has failed that the run ends.
#[derive(Debug)]
struct TooManyFaults;

impl Faults {
    const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes that a request has failed.
    fn add(&mut self, why: String) -> Result<(), TooManyFaults> {
        self.count += 1;
        if !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
        if self.count < MAX_FAULTS { Ok(()) } else { Err(TooManyFaults) }
    }
}

/// Judges all stored objects and running agent pods, and writes what it found.
pub async fn audit(client: Client, plan: &AuditPlan) -> Audited {
    let (mut said, mut faults) = (Vec::new(), Faults::default());
    let reader = ClusterReader { client, page_objects: PAGE };
    // The clock of the apiserver counts, not that of the node.
    match send(&reader.client, Method::GET, "/version", None).await {
        Ok(Response { time, .. }) => {
            let time = time.and_then(|time| Timestamp::from_second(time).ok());
            let run = Run { reader: &reader, plan, now: time.unwrap_or_else(Timestamp::now) };
            if run.all(&mut said, &mut faults).await.is_err() {
                faults.reasons.push("the audit ended early; the next one goes on".to_owned());
            }
        }
        Err(error) => faults.reasons.push(format!("the apiserver does not answer: {}", explained(&error))),
    }
    Audited { said, faults: faults.reasons }
}

/// What stands out in a cluster without anything being written.
#[derive(Debug, Default)]
pub struct Looked {
    /// Running agent pods without their memory, by what owns them.
    pub missed: BTreeMap<Owner, Missed>,
    /// The policies that deny every stored object there is, and the command that ends it.
    pub deny_all: Vec<(String, String)>,
    /// How many objects that is.
    pub stored: usize,
    /// What could not be read.
    pub faults: Vec<String>,
}

/// Looks for agent pods without their memory, and for policies that deny everything.
pub async fn look(reader: &ClusterReader, settings: &Settings) -> Looked {
    let (mut looked, mut faults) = (Looked::default(), Faults::default());
    let reader = ClusterReader { client: reader.client.clone(), page_objects: PAGE };
    let plan = AuditPlan { settings: settings.clone(), installation: String::new() };
    let run = Run { reader: &reader, plan: &plan, now: Timestamp::now() };
    if run.look(&mut looked, &mut faults).await.is_err() {
        faults.reasons.push("too much could not be read; no agent pod was looked at".to_owned());
    }
    Looked { faults: faults.reasons, ..looked }
}

/// One run.
struct Run<'r> {
    reader: &'r ClusterReader,
    plan: &'r AuditPlan,
    now: Timestamp,
}

impl Run<'_> {
    async fn look(&self, looked: &mut Looked, faults: &mut Faults) -> Result<(), TooManyFaults> {
        let listed = policies::list(self.reader, faults).await?.unwrap_or_default();
        let policies = Arc::new(listed.policies);
        let mut state = State::read(self.reader, &self.plan.settings, faults).await?;
        state.snapshot.policies = Arc::clone(&policies);
        let found = subjects::judge(self, &mut state, None, faults).await?;
        let stored = found.subjects - found.namespaces;
        looked.stored = stored;
        let denies_all = |counts: &PolicyCounts| stored > 0 && counts.denied >= stored;
        let names = found.policies.iter().filter(|(_, counts)| denies_all(counts)).map(|(name, _)| name);
        looked.deny_all =
            names.filter_map(|name| Some((name.clone(), policies::lifted(policies.get(name)?)))).collect();
        state.snapshot.policies = Arc::default();
        looked.missed = missed::count(&mut state, faults).await?;
        Ok(())
    }

    async fn all(&self, said: &mut Vec<String>, faults: &mut Faults) -> Result<(), TooManyFaults> {
        let Self { reader, plan, .. } = self;
        let Some(Listed { policies, heads }) = policies::list(reader, faults).await? else { return Ok(()) };
        let policies = Arc::new(policies);
        let mut state = State::read(reader, &plan.settings, faults).await?;
        let is_read = faults.is_empty();
        let mut reports = Reports::list(reader, &plan.installation, said, faults).await?;
        state.snapshot.policies = Arc::clone(&policies);
        let found = subjects::judge(self, &mut state, Some(&mut reports), faults).await?;
        reports.delete_others(faults).await?;
        said.extend(reports.said(found.subjects));
        // A status counts all objects.
        if is_read && found.is_whole {
            status::write_all(self, &heads, &policies, &found, faults).await?;
        }
        state.snapshot.policies = Arc::default();
        let missed = missed::count(&mut state, faults).await?;
        said.extend(missed.iter().take(MAX_OWNERS).map(|(owner, missed)| missed.sentence(owner)));
        let more = missed.len().saturating_sub(MAX_OWNERS);
        said.extend((more > 0).then(|| format!("{more} more own pods without their memory")));
        Ok(())
    }
}

/// Sends a write. It finds whether something was written: not where another client was first, the namespace is ending, or
/// its quota is used up, which are its owner's doing and end no audit.
async fn write(
    reader: &ClusterReader,
    verb: &str,
    kind: &Kind,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Fetched<bool> {
    let sent = async {
        match reader.client.request::<Box<RawValue>>(request.map_err(kube::Error::BuildRequest)?).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 || is_of_namespace(&status) => Ok(false),
            Err(error) => Err(error),
        }
    };
    fetch(verb, &resource(kind), sent).await
}

/// Whether a write is refused because its namespace is being deleted, or by a ResourceQuota of it.
fn is_of_namespace(status: &kube::core::Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "NamespaceTerminating") || status.message.contains("exceeded quota")
}

/// Removes null fields from an object: the apiserver does not treat them as absent.
fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// A namespace, unless it is empty.
fn given(namespace: &str) -> Option<&str> {
    Some(namespace).filter(|namespace| !namespace.is_empty())
}

/// The beginning of a text, at most so many bytes long.
fn truncate(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
