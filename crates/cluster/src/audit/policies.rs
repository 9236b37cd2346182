//! Lists policies and exemptions with their generation and status, which decisions do not read.

use serde_json::{Value, json};

use crate::reader::ClusterReader;
use memgate_model::finding::Finding;
use memgate_model::kind::{Kind, MEMORY_POLICY, POLICY_KINDS};
use memgate_model::policy::{Policies, Policy};
use memgate_policy::never_applies::never_applies;
use memgate_policy::put;

use super::state::{Pages, Stored};
use super::{Faults, TooManyFaults, given, without_nulls};

/// All policies and exemptions of a cluster.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Ready to judge.
    pub(super) policies: Policies,
    /// Their metadata and status.
    pub(super) heads: Vec<Head>,
}

/// The metadata and the status of a policy or an exemption.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) kind: &'static Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) generation: i64,
    /// The first fault of its spec.
    pub(super) fault: Option<String>,
    /// The warnings about its spec.
    pub(super) doubts: Vec<Finding>,
    /// The stored status.
    pub(super) status: Value,
}

/// Lists all policies and exemptions; none if their definitions are not installed. `None` if they cannot be listed: every
/// report would be deleted.
pub(super) async fn list(
    reader: &ClusterReader,
    faults: &mut Faults,
) -> Result<Option<Listed>, TooManyFaults> {
    let mut listed = Listed::default();
    for kind in POLICY_KINDS {
        let mut pages = Pages::new(reader, kind, None);
        loop {
            match pages.next().await {
                Ok(Some(page)) => page.into_iter().for_each(|stored| listed.add(stored)),
                Ok(None) => break,
                Err(why) => {
                    faults.add(why)?;
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(listed))
}

/// The command after which a policy only warns; where a rule has an action of its own, it goes.
pub(super) fn lifted(policy: &Policy) -> String {
    let name = &policy.name;
    if policy.rules.iter().any(|rule| rule.action.admission.is_some()) {
        return format!("kubectl delete memorypolicy {name}");
    }
    let warns = r#"{"spec": {"promote": null, "actions": {"admission": "warn"}}}"#;
    format!("kubectl patch memorypolicy {name} --type=merge -p '{warns}'")
}

impl Listed {
    fn add(&mut self, Stored { kind, namespace, name, text, .. }: Stored) {
        let mut object: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut field = |name: &str| object.get_mut(name).map(Value::take).unwrap_or_default();
        let (spec, status, metadata) = (field("spec"), field("status"), field("metadata"));
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        let metadata = without_nulls(json!({"name": name, "namespace": given(&namespace)}));
        let manifest =
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
        let faults = put(&mut self.policies, &memgate_platforms::ALL, kind, &manifest);
        let fault = faults.into_iter().next().map(|fault| fault.message().into_owned());
        let doubts = self.policies.get(&name).filter(|_| *kind == MEMORY_POLICY);
        let doubts = doubts.map(|policy| never_applies(policy, &memgate_platforms::ALL)).unwrap_or_default();
        self.heads.push(Head { kind, namespace, name, generation, fault, doubts, status });
    }
}
