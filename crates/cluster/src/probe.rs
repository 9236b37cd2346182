//! Dry runs that show whether memgate answers: the smallest object that memgate refuses, for each of
//! its calls. The schemas of the kinds accept these objects, so that only memgate can refuse them.

use serde_json::{Value, json};

use crate::reader;
use memgate_core::decide::decide;
use memgate_core::state;
use memgate_model::family::{AggregatedServer, Family};
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::Kind;
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::settings::Settings;
use memgate_platforms::inject::INJECT_LABEL;

/// One dry run, and what memgate finds.
#[derive(Debug)]
pub struct Probe {
    /// Its subject: `pods`, or a family and one of its kinds.
    pub name: String,
    /// The API server of the platform's own that may serve the kind.
    pub aggregated_server: Option<AggregatedServer>,
    api_version: String,
    plural: &'static str,
    /// The object.
    pub object: Value,
    /// What memgate finds wrong with it.
    pub finding: Finding,
}

impl Probe {
    /// The URL path of the dry run.
    pub fn path(&self, namespace: &str) -> String {
        let path = reader::path(&self.api_version, namespace, self.plural);
        format!("{path}?dryRun=All&fieldManager=memgate-wait")
    }

    /// Whether memgate refuses the object; it warns otherwise.
    pub fn is_refused(&self) -> bool {
        self.finding.severity == Severity::Deny
    }
}

/// The dry runs for these families: a pod that no family recognises, and each memory resource.
pub fn probes(families: &[&'static Family]) -> Vec<Probe> {
    let pod = probe("pods".to_owned(), families, ("", "v1", "Pod", "pods"), pod()).into_iter();
    let resources = families.iter().flat_map(|family| {
        let probe = |(kind, spec): &(&'static Kind, &str)| {
            let names = (kind.group, kind.version, kind.kind, kind.plural);
            let object = json!({
                "apiVersion": kind.api_version(),
                "kind": kind.kind,
                "metadata": {"name": "memgate-wait"},
                "spec": serde_json::from_str::<Value>(spec).unwrap_or_default(),
            });
            let name = format!("{} {}.{}", family.name, kind.plural, kind.group);
            let aggregated_server = family.definitions.aggregated_server;
            Some(Probe { aggregated_server, ..probe(name, &[*family], names, object)? })
        };
        family.definitions.wait_probes.iter().filter_map(probe)
    });
    pod.chain(resources).collect()
}

/// One dry run; none when `decide` has nothing to say about the object.
fn probe(
    name: String,
    families: &[&'static Family],
    (group, version, kind, plural): (&'static str, &str, &str, &'static str),
    object: Value,
) -> Option<Probe> {
    let text = object.to_string();
    let request = Request {
        operation: Operation::Create,
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        subresource: "".into(),
        namespace: "default".into(),
        name: "".into(),
        object: Some(&text),
        old_object: None,
        occasion: Occasion::default(),
        cancelled: None,
    };
    let settings = Settings { families: families.to_vec(), ..memgate_platforms::default_settings() };
    let mut findings = decide(&request, &state::empty(settings)).findings;
    findings.sort_by_key(|finding| finding.severity == Severity::Warn);
    let finding = findings.into_iter().next()?;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(Probe { name, aggregated_server: None, api_version, plural, object, finding })
}

/// A pod that only memgate refuses: clusters admit it, since it meets Pod Security "restricted" and asks for as little as a
/// quota can count.
fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "memgate-wait", "labels": {INJECT_LABEL: "required"}},
        "spec": {
            "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "wait",
                "image": "memgate.dev/none",
                "resources": {
                    "requests": {"cpu": "1m", "memory": "1Mi"},
                    "limits": {"cpu": "1m", "memory": "1Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_of_each_family_has_a_code_to_wait_for() {
        let probes = probes(&memgate_platforms::ALL);
        let codes: Vec<_> =
            probes.iter().map(|probe| (probe.name.as_str(), probe.finding.code.name)).collect();
        assert_eq!(
            codes,
            [
                ("pods", "memgate/pod-not-recognised"),
                ("arkonis arkmemories.arkonis.dev", "arkonis/redis-required"),
                ("arkonis arkonismemories.arkonis.dev", "arkonis/redis-required"),
                ("arkonis swarmmemories.kubeswarm.io", "arkonis/redis-required"),
                ("arkonis agentmemories.agentops.agentops.io", "arkonis/redis-required"),
                ("ark memories.ark.mckinsey.com", "ark/memory-address-required"),
                ("orloj memories.orloj.dev", "orloj/http-endpoint-required"),
                ("orka tasks.core.orka.ai", "orka/env-limit"),
                ("sympozium ensembles.sympozium.ai", "sympozium/storage-size-invalid"),
                ("kagent agents.kagent.dev", "kagent/memory-model-required"),
                ("kagent harnesses.api.kagent.dev", "kagent/ttl-days"),
            ]
        );
        let warned: Vec<_> = probes.iter().filter(|probe| !probe.is_refused()).collect();
        assert!(matches!(warned.as_slice(), [orka] if orka.name.starts_with("orka ")), "{warned:?}");
    }

    #[test]
    fn asks_where_the_objects_are_created() {
        let probes = probes(&[&memgate_platforms::orloj::FAMILY]);
        let paths: Vec<_> = probes.iter().map(|probe| probe.path("team-a")).collect();
        assert_eq!(
            paths,
            [
                "/api/v1/namespaces/team-a/pods?dryRun=All&fieldManager=memgate-wait",
                "/apis/orloj.dev/v1/namespaces/team-a/memories?dryRun=All&fieldManager=memgate-wait",
            ]
        );
    }
}
