//! Workloads: objects whose controllers make pods from a template. This module knows the paths to the templates, not the
//! content of pods.

use serde_json::Value;

use memgate_primitives::pointer::Pointer;

/// The Deployment of a ReplicaSet, by the name that the controller gives it; `hash` is the label `pod-template-hash` of the
/// pod.
pub fn deployment_of<'n>(replica_set: &'n str, hash: Option<&str>) -> Option<&'n str> {
    let (deployment, end) = replica_set.rsplit_once('-')?;
    (!deployment.is_empty() && (hash == Some(end) || is_hash(end))).then_some(deployment)
}

/// Whether this is the end of a ReplicaSet's name that a Deployment gives it.
/// Source: `SafeEncodeString` of k8s.io/apimachinery, by which no such end is a word.
fn is_hash(end: &str) -> bool {
    (5..=10).contains(&end.len()) && end.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte))
}

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// The API group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The patterns of the paths to its pod templates, see [`places`].
    pub templates: &'static [&'static str],
}

const fn row(group: &'static str, kind: &'static str, templates: &'static [&'static str]) -> Workload {
    Workload { group, kind, templates }
}

const TEMPLATE: &[&str] = &["/spec/template"];
const POD_TEMPLATE: &[&str] = &["/spec/podTemplate"];
const REPLICAS: &[&str] = &["/spec/*ReplicaSpecs/*/template"];
const RUNTIME: &[&str] = &["/spec/template/spec/replicatedJobs/N/template/spec/template"];

/// Every kind of workload.
pub static ALL: [Workload; 40] = [
    row("apps", "Deployment", TEMPLATE),
    row("apps", "StatefulSet", TEMPLATE),
    row("apps", "DaemonSet", TEMPLATE),
    row("apps", "ReplicaSet", TEMPLATE),
    row("batch", "Job", TEMPLATE),
    row("batch", "CronJob", &["/spec/jobTemplate/spec/template"]),
    row("", "ReplicationController", TEMPLATE),
    row("", "PodTemplate", &["/template"]),
    row("argoproj.io", "Rollout", TEMPLATE),
    row("apps.kruise.io", "CloneSet", TEMPLATE),
    row("apps.kruise.io", "StatefulSet", TEMPLATE),
    row("apps.kruise.io", "DaemonSet", TEMPLATE),
    row("apps.kruise.io", "BroadcastJob", TEMPLATE),
    row(
        "apps.kruise.io",
        "AdvancedCronJob",
        &["/spec/template/jobTemplate/spec/template", "/spec/template/broadcastJobTemplate/spec/template"],
    ),
    row("apps.openshift.io", "DeploymentConfig", TEMPLATE),
    row("jobset.x-k8s.io", "JobSet", &["/spec/replicatedJobs/N/template/spec/template"]),
    row(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        &["/spec/leaderWorkerTemplate/leaderTemplate", "/spec/leaderWorkerTemplate/workerTemplate"],
    ),
    row("ray.io", "RayCluster", &["/spec/headGroupSpec/template", "/spec/workerGroupSpecs/N/template"]),
    row(
        "ray.io",
        "RayJob",
        &[
            "/spec/rayClusterSpec/headGroupSpec/template",
            "/spec/rayClusterSpec/workerGroupSpecs/N/template",
            "/spec/submitterPodTemplate",
        ],
    ),
    row(
        "ray.io",
        "RayService",
        &[
            "/spec/rayClusterConfig/headGroupSpec/template",
            "/spec/rayClusterConfig/workerGroupSpecs/N/template",
        ],
    ),
    row(KNATIVE, "Service", TEMPLATE),
    row(KNATIVE, "Configuration", TEMPLATE),
    row(KNATIVE, "Revision", &[""]),
    row("agents.x-k8s.io", "Sandbox", POD_TEMPLATE),
    row("extensions.agents.x-k8s.io", "SandboxTemplate", POD_TEMPLATE),
    row("batch.volcano.sh", "Job", &["/spec/tasks/N/template"]),
    row("kubeflow.org", "TFJob", REPLICAS),
    row("kubeflow.org", "PyTorchJob", REPLICAS),
    row("kubeflow.org", "MPIJob", REPLICAS),
    row("kubeflow.org", "XGBoostJob", REPLICAS),
    row("kubeflow.org", "PaddleJob", REPLICAS),
    row("kubeflow.org", "JAXJob", REPLICAS),
    row("kubeflow.org", "Notebook", TEMPLATE),
    row("trainer.kubeflow.org", "TrainingRuntime", RUNTIME),
    row("trainer.kubeflow.org", "ClusterTrainingRuntime", RUNTIME),
    row("keda.sh", "ScaledJob", &["/spec/jobTargetRef/template"]),
    row("agones.dev", "GameServer", TEMPLATE),
    row("agones.dev", "Fleet", &["/spec/template/spec/template"]),
    row("agones.dev", "GameServerSet", &["/spec/template/spec/template"]),
    row("actions.github.com", "AutoscalingRunnerSet", TEMPLATE),
];

/// The group of Knative, which gives a container its name.
pub const KNATIVE: &str = "serving.knative.dev";

/// The workloads of Kubernetes itself.
pub fn built_in() -> impl Iterator<Item = &'static Workload> {
    ALL.iter().filter(|workload| workload.is_built_in())
}

/// The values at the places that a pattern fits, with their pointers. A token `N` is every element of a list, and a token
/// that begins with `*` every key of a mapping with the end behind it.
pub fn places<'v>(object: &'v Value, pattern: &str) -> Vec<(Pointer, &'v Value)> {
    let step = |(at, value): (Pointer, &'v Value), token: &str| match (token, token.strip_prefix('*'), value)
    {
        ("N", _, Value::Array(list)) => {
            list.iter().enumerate().map(|(index, element)| (at.index(index), element)).collect()
        }
        (_, Some(end), Value::Object(fields)) => {
            let fits = fields.iter().filter(|(key, _)| key.ends_with(end));
            fits.map(|(key, below)| (at.key(key), below)).collect()
        }
        _ => value.get(token).map(|below| (at.key(token), below)).into_iter().collect::<Vec<_>>(),
    };
    let root = vec![(Pointer::root(), object)];
    pattern
        .split('/')
        .skip(1)
        .fold(root, |places, token| places.into_iter().flat_map(|place| step(place, token)).collect())
}

/// The kinds that select pods by labels: group, kind, and the path to the labels, as a JSON pointer.
pub const SELECTORS: [(&str, &str, &str); 5] = [
    ("apps", "Deployment", "/spec/selector/matchLabels"),
    ("apps", "StatefulSet", "/spec/selector/matchLabels"),
    ("apps", "DaemonSet", "/spec/selector/matchLabels"),
    ("apps", "ReplicaSet", "/spec/selector/matchLabels"),
    ("", "Service", "/spec/selector"),
];

/// The workload of this group and kind.
pub fn find(group: &str, kind: &str) -> Option<&'static Workload> {
    ALL.iter().find(|workload| workload.group == group && workload.kind == kind)
}

impl Workload {
    /// Whether it is one of Kubernetes' own, of which every object is checked.
    pub fn is_built_in(&self) -> bool {
        ["apps", "batch"].contains(&self.group)
    }

    /// The path to the one template of a kind of Kubernetes' own, as a JSON pointer.
    pub fn template(&self) -> &'static str {
        self.templates.first().copied().unwrap_or_default()
    }

    /// The pod templates of an object of this kind, with their pointers. A Rollout may refer to that of a Deployment
    /// instead.
    pub fn templates_in<'v>(&self, object: &'v Value) -> Vec<(Pointer, &'v Value)> {
        if self.kind == "Rollout" && object.pointer("/spec/workloadRef").is_some_and(|it| !it.is_null()) {
            return Vec::new();
        }
        let all = self.templates.iter().flat_map(|pattern| places(object, pattern));
        all.filter(|(_, template)| template.is_object()).collect()
    }

    /// Whether its pods have claims besides the volumes of the template.
    pub fn has_claims(&self) -> bool {
        ["StatefulSet", "Sandbox"].contains(&self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An object in which this value is at a place that a pattern fits.
    fn object(pattern: &str, value: Value) -> Value {
        pattern.rsplit('/').filter(|token| !token.is_empty()).fold(value, |below, token| match token {
            "N" => json!([null, below]),
            token => json!({ token.replace('*', "x"): below }),
        })
    }

    #[test]
    fn finds_the_templates_where_the_patterns_say() {
        for workload in &ALL {
            for pattern in workload.templates {
                let value = object(pattern, json!({"kind": "Pod"}));
                let found = workload.templates_in(&value);
                let [(pointer, template)] = found.as_slice() else { panic!("{workload:?}: {found:?}") };
                assert_eq!(value.pointer(pointer.as_str()), Some(*template));
                assert_eq!(**template, json!({"kind": "Pod"}), "{workload:?}");
            }
        }
        assert_eq!(built_in().count(), 6);
    }

    #[test]
    fn a_rollout_may_have_the_template_of_another_workload() {
        let rollout = find("argoproj.io", "Rollout").expect("known");
        for (workload_ref, count) in [(json!(null), 1), (json!({"kind": "Deployment", "name": "a"}), 0)] {
            let value = json!({"spec": {"template": {}, "workloadRef": workload_ref}});
            assert_eq!(rollout.templates_in(&value).len(), count);
        }
    }

    #[test]
    fn a_pattern_fits_every_element_and_key() {
        let value = json!({"a": [{"b": 1}, 2, {"b": {"c": 3}}], "xEnd": {"p": 4, "q": 5}, "End": 6});
        let fits = |pattern| places(&value, pattern).into_iter().map(|(at, _)| at.as_str().to_owned());
        assert_eq!(fits("/a/N/b").collect::<Vec<_>>(), ["/a/0/b", "/a/2/b"]);
        assert_eq!(fits("/*End/*").collect::<Vec<_>>(), ["/xEnd/p", "/xEnd/q"]);
        assert_eq!(fits("").collect::<Vec<_>>(), [""]);
    }
}
