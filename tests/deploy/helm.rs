//! The Helm chart is what `memgate manifests` prints, object by object, and takes no value that it
//! does not know.
//!
//! What both share as a table (the objects that do not depend on platforms, and the entries, rules and rights of
//! families) is printed by memgate into `deploy/helm/memgate/files`; README's table comes from
//! `values.schema.json`. `BLESS=1 cargo test --test deploy helm` writes both again.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic, and reads JSON by indexing, where a missing key is null"
)]

use memgate_install::component::Component;
use memgate_install::install_plan::InstallPart;
use memgate_install::rows::{Need, ROWS, Row};
use memgate_manifest::{document::parse, source::Source};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock};
use std::{env, fs};

use crate::{objects::differ, support::tools};

/// Values, and the arguments of `memgate manifests` that say the same.
const SAME: &[(&[&str], &[&str])] = &[
    (&[], &[]),
    (
        &["families.ark.enabled=false", "families.orka.enabled=false"],
        &["--family=arkonis", "--family=orloj", "--family=sympozium", "--family=kagent"],
    ),
    (
        &[
            "families.arkonis.enabled=false",
            "families.ark.enabled=false",
            "families.orloj.enabled=false",
            "families.sympozium.enabled=false",
            "families.kagent.enabled=false",
        ],
        &["--family=orka"],
    ),
    (&["policies.enabled=false"], &["--without=policies"]),
    (&["policies.arkBrokers=true"], &["--component=ark-brokers"]),
    (&["audit.enabled=false"], &["--without=audit"]),
    (&["policies.strict=true"], &["--component=policy-strict"]),
    (
        &["policies.strict=true", "families.ark.enabled=false", "families.orka.enabled=false"],
        &[
            "--component=policy-strict", "--family=arkonis", "--family=orloj", "--family=sympozium",
            "--family=kagent",
        ],
    ),
    (&["certs.mode=cert-manager"], &["--component=cert-manager"]),
    (&["certs.mode=csi"], &["--component=csi-driver"]),
    (&["certs.mode=files"], &["--component=cert-files"]),
    (&["mtls.enabled=true"], &["--component=mtls"]),
    (&["events.enabled=false"], &["--without=events"]),
    (&["networkPolicy.enabled=true"], &["--component=network-policy"]),
    (&["hostNetwork.enabled=true"], &["--component=host-network"]),
    (&["monitoring.enabled=true"], &["--component=monitoring"]),
    (&["ha.enabled=true"], &["--component=ha"]),
    (&["gitops.enabled=true"], &["--component=gitops"]),
    (
        &["monitoring.enabled=true", "monitoring.runbookUrl=https://wiki.example.com/memgate/"],
        &["--component=monitoring", "--runbook-url=https://wiki.example.com/memgate/"],
    ),
    (
        &[
            "settings.policies.excludeNamespaces={lab,sandbox}",
            "settings.policies.clusterDomain=example.internal",
            "settings.ark.sidecars={logger,agent-*}",
            "settings.orloj.jobNamespaces={agents,jobs}",
            "settings.sympozium.wait=never",
            "settings.sympozium.resources.server.limits.memory=1Gi",
            "settings.maxBodyBytes=8388608",
            "settings.drain=50",
            "settings.referenceGrace=0",
        ],
        &[
            r#"--settings={"sympozium": {"wait": "never", "resources": {"server": {"limits": {"memory": "1Gi"}}}},
            "policies": {"excludeNamespaces": ["lab", "sandbox"], "clusterDomain": "example.internal"},
            "ark": {"sidecars": ["logger", "agent-*"]}, "orloj": {"jobNamespaces": ["agents", "jobs"]},
            "maxBodyBytes": 8388608, "drain": 50, "referenceGrace": 0}"#,
        ],
    ),
    (&["clusterName=blue"], &["--name=blue"]),
    (&["image.tag=v1"], &["--image=registry.example.com/memgate:v1"]),
    (
        &["webhookPort=9443", "hostNetwork.enabled=true", "networkPolicy.enabled=true"],
        &["--webhook-port=9443", "--component=host-network", "--component=network-policy"],
    ),
];

/// Values that the schema must refuse.
const REFUSED: &[&str] = &[
    "replicas=3",
    "clusterName=Blue",
    "clusterName=blue.",
    "clusterName=a'b",
    "image.tags=1",
    "families.arkonis.enable=false",
    "families.openai.enabled=true",
    "webhooks.pods.failurePolicy=Sometimes",
    "webhooks.resources.timeoutSeconds=31",
    "certs.mode=magic",
    "serviceLabels.app\\.kubernetes\\.io/name=other",
    "settings.leafValidity=1",
    "settings.keyAlgorithm=p256",
    "settings.families={ark}",
    "certs.tls.key=secret",
    "settings.orloj.sharedSecrets={Shared}",
    "settings.sympozium.wait=always",
    "settings.sympozium.resources.wait.limits.memory=64MB",
    "settings.sympozium.resources.wait.limits.gpu=1",
    "replicaCount=0",
    "webhookPort=443",
    "enabled=maybe",
    "service.ipFamilies={IPv5}",
    "monitoring.interval=soon",
    "extraObjects[0]=1",
    "settings.timeoutIdle=1",
    "policies.strict=perhaps",
    "policies.crds.enabled=true",
    "referenceGrace=30s",
    "networkPolicy.apiServerCIDRs={10.0.0.1}",
    "commonLabels.app\\.kubernetes\\.io/name=other",
    "podLabels.app\\.kubernetes\\.io/name=other",
];

static HELM: LazyLock<PathBuf> = LazyLock::new(|| tools::helm().expect("a Helm"));

pub(crate) fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/helm/memgate")
}

pub(crate) fn helm(args: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(&*HELM);
    command.args(args).env_clear().env("HOME", home.path()).output().expect("Helm starts")
}

pub(crate) fn template(values: &[&str]) -> Output {
    let sets: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    template_of(&chart(), &[&["--skip-tests"], &sets[..]].concat())
}

pub(crate) fn template_of(chart: &Path, args: &[&str]) -> Output {
    let image = format!("--values={}", chart.join("ci/default-values.yaml").display());
    let chart = chart.display().to_string();
    helm(&[&["template", "memgate", &chart, "--namespace=memgate-system", &image], args].concat())
}

/// What is rendered with a file of values.
fn rendered_with(file: &str) -> BTreeMap<String, Value> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("values.yaml");
    fs::write(&path, file).expect("can be written");
    let output = template_of(&chart(), &["--values", &path.display().to_string()]);
    assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    by_name(objects(&String::from_utf8(output.stdout).expect("text")))
}

pub(crate) fn rendered(values: &[&str]) -> Vec<Value> {
    let output = template(values);
    assert!(output.status.success(), "{values:?}: {}", String::from_utf8_lossy(&output.stderr));
    objects(&String::from_utf8(output.stdout).expect("text"))
}

fn printed(args: &[&str]) -> Vec<Value> {
    let has_image = args.iter().any(|argument| argument.starts_with("--image="));
    let output = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .arg("manifests")
        .args((!has_image).then_some("--image=registry.example.com/memgate:0.1.0"))
        .args(args)
        .output()
        .expect("memgate starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    objects(&String::from_utf8(output.stdout).expect("text"))
}

pub(crate) fn objects(text: &str) -> Vec<Value> {
    let parsed = parse(&Arc::new(Source::new("manifests", text)));
    parsed.documents.iter().map(|document| document.value().clone()).collect()
}

/// The labels by which a chart says whose an object is; `memgate manifests` knows no release.
pub(crate) const OF_A_RELEASE: [&str; 6] = [
    "app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of", "app.kubernetes.io/version", "helm.sh/chart",
];

/// By kind and name, without what only a release has.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let named = |mut object: Value| {
        let of_pods = "/spec/template/metadata/labels";
        let of_jobs = format!("/spec/jobTemplate{of_pods}");
        for labels in ["/metadata/labels", of_pods, &of_jobs] {
            if let Some(labels) = object.pointer_mut(labels).and_then(Value::as_object_mut) {
                labels.retain(|label, _| !OF_A_RELEASE.contains(&label.as_str()));
            }
        }
        if object["kind"] == "CustomResourceDefinition"
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            // What only Helm has to know.
            metadata.remove("annotations");
        }
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        (format!("{} {} {}", text("/apiVersion"), text("/kind"), text("/metadata/name")), object)
    };
    objects.into_iter().map(named).collect()
}

#[test]
#[ignore = "needs Go, for Helm"]
fn is_what_memgate_prints() {
    for (values, args) in SAME {
        let mut wanted = by_name(printed(args));
        // Helm makes the namespace of a release, or finds that it is there.
        wanted.retain(|name, _| name != "v1 Namespace memgate-system");
        let got = by_name(rendered(values));
        let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&got), names(&wanted), "{values:?}");
        for (name, wanted) in wanted {
            let got = &got[&name];
            let mut differences = Vec::new();
            differ(&name, &wanted, got, &mut differences);
            assert!(*got == wanted, "{values:?}:\n{}", differences.join("\n"));
        }
    }
}

/// Two releases, or a release and what `memgate manifests` prints for another namespace, have no object in common but
/// the definitions of MemoryPolicies.
#[test]
#[ignore = "needs Go, for Helm"]
fn names_follow_the_namespace() {
    for (values, args) in [
        (&[][..], &[][..]),
        (&["certs.mode=cert-manager"], &["--component=cert-manager"]),
        (&["certs.mode=csi"], &["--component=csi-driver"]),
        (&["clusterName=blue"], &["--name=blue"]),
    ] {
        let sets: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
        let output = template_of(&chart(), &[&["--skip-tests", "--namespace=team-a"], &sets[..]].concat());
        let got = by_name(objects(&String::from_utf8(output.stdout).expect("text")));
        let mut wanted = by_name(printed(&[&["--namespace=team-a"], args].concat()));
        wanted.retain(|name, _| name != "v1 Namespace team-a");
        let mut differences = Vec::new();
        for (name, wanted) in &wanted {
            differ(name, wanted, got.get(name).unwrap_or(&Value::Null), &mut differences);
        }
        assert_eq!(got.len(), wanted.len(), "{values:?}: {:?}", got.keys());
        assert!(differences.is_empty(), "{values:?}:\n{}", differences.join("\n"));
        let usual = by_name(rendered(values));
        let is_cluster_wide = |object: &Value| object["metadata"]["namespace"].is_null();
        let shared = got.iter().filter(|(name, object)| is_cluster_wide(object) && usual.contains_key(*name));
        let others: Vec<_> = shared
            .map(|(name, _)| name)
            .filter(|name| !name.contains(" CustomResourceDefinition "))
            .collect();
        assert!(values.contains(&"clusterName=blue") || others.is_empty(), "{values:?}: {others:?}");
    }
}

/// No hook is owned by a release, so two of one name would take each other's.
#[test]
#[ignore = "needs Go, for Helm"]
fn what_its_test_makes_elsewhere_has_a_name_of_its_own() {
    let output = template_of(&chart(), &["--namespace=team-a"]);
    let objects = by_name(objects(&String::from_utf8(output.stdout).expect("text")));
    let role = &objects["rbac.authorization.k8s.io/v1 Role memgate-team-a-test"];
    assert_eq!(role["metadata"]["namespace"], "default");
    let binding = &objects["rbac.authorization.k8s.io/v1 RoleBinding memgate-team-a-test"];
    assert_eq!(binding["roleRef"]["name"], "memgate-team-a-test");
    assert_eq!(binding["subjects"][0]["name"], "memgate-test");
    assert_eq!(objects["v1 Pod memgate-test"]["metadata"]["namespace"], "team-a");
}

#[test]
#[ignore = "needs Go, for Helm"]
fn refuses_values_that_it_does_not_know() {
    for value in REFUSED {
        let output = template(&[value]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{value} is taken");
        assert!(stderr.contains("values don't meet the specifications of the schema"), "{value}: {stderr}");
    }
}

#[test]
#[ignore = "needs Go, for Helm"]
fn has_no_complaint_from_the_linter() {
    let output = helm(&["lint", "--strict", &chart().display().to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "needs Go, for Helm"]
fn renders_neither_certificates_nor_a_ca_bundle() {
    for (values, _) in SAME {
        let text = String::from_utf8(template(values).stdout).expect("text");
        for word in ["caBundle:", "BEGIN", "tls.key:", "kind: Secret\n"] {
            assert!(!text.contains(word), "{values:?}: {word}");
        }
    }
    for name in ["genCA", "genSelfSignedCert", "genSignedCert", "lookup", "randAlpha"] {
        for entry in fs::read_dir(chart().join("templates")).expect("the templates") {
            let path = entry.expect("an entry").path();
            let text = if path.is_file() { fs::read_to_string(&path).expect("text") } else { continue };
            assert!(!text.contains(name), "{} uses {name}", path.display());
        }
    }
}

/// What the chart does with values that `memgate manifests` has no argument for.
#[test]
#[ignore = "needs Go, for Helm"]
fn passes_on_what_is_set() {
    let values = [
        "fullnameOverride=gate",
        "webhooks.namePrefix=zz-",
        "settings.leafValidity=24h",
        "audit.schedule=0 * * * *",
        "log.format=json",
        "extraArgs={--log=debug}",
        "webhooks.pods.failurePolicy=Fail",
        "webhooks.pods.objectSelector[0].key=team",
        "webhooks.pods.objectSelector[0].operator=Exists",
        "webhooks.required.enabled=false",
        "podDisruptionBudget.enabled=false",
        "commonLabels.team=platform",
    ];
    let objects = by_name(rendered(&values));
    let deployment = &objects["apps/v1 Deployment gate"];
    let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    for flag in [
        "--service=gate",
        "--webhook-configuration=zz-gate",
        "--ca-secret=gate-ca",
        r#"--settings={\"leafValidity\":\"24h\"}"#,
        "--log-format=json",
        "--log=debug",
    ] {
        assert!(args.contains(&format!("\"{flag}\"")), "{flag} is not in {args}");
    }
    assert_eq!(objects["batch/v1 CronJob gate-audit"]["spec"]["schedule"], "0 * * * *");
    assert_eq!(deployment["metadata"]["labels"]["team"], "platform");
    let entries =
        &objects["admissionregistration.k8s.io/v1 MutatingWebhookConfiguration zz-gate"]["webhooks"];
    let pods: Vec<&Value> =
        entries.as_array().expect("entries").iter().filter(|entry| is_for_pods(entry)).collect();
    assert!(!pods.is_empty());
    for entry in pods {
        assert_eq!(entry["failurePolicy"], "Fail");
        assert_eq!(entry["clientConfig"]["service"]["name"], "gate");
        let selector = entry["objectSelector"]["matchExpressions"].to_string();
        assert!(selector.contains(r#"{"key":"team","operator":"Exists"}"#), "{selector}");
    }
    assert!(!entries.to_string().contains("required.pods"), "{entries}");
    let self_guard = &objects["admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy gate-self-guard"];
    let condition = self_guard["spec"]["matchConditions"][0]["expression"].as_str().expect("a condition");
    assert!(condition.contains("system:serviceaccount:memgate-system:gate"), "{condition}");
    assert!(!objects.keys().any(|name| name.contains("PodDisruptionBudget")));
}

/// What the values say of pods holds for the pods of audits, too.
#[test]
#[ignore = "needs Go, for Helm"]
fn the_audit_gets_what_the_values_say_of_pods() {
    let values = "fullnameOverride: gate\npodAnnotations: {team: a}\nnetworkPolicy: {enabled: true}\n\
                  monitoring: {enabled: true}\nextraVolumes: [{name: ca, emptyDir: {}}]\n\
                  extraVolumeMounts: [{name: ca, mountPath: /ca}]\n\
                  serviceAccount: {create: false, name: mine}\naudit: {serviceAccountName: auditor}\n";
    let objects = rendered_with(values);
    let template = &objects["batch/v1 CronJob gate-audit"]["spec"]["jobTemplate"]["spec"]["template"];
    let pod = &template["spec"];
    assert_eq!(template["metadata"]["annotations"], json!({"team": "a"}));
    assert_eq!(pod["volumes"][1], json!({"name": "ca", "emptyDir": {}}));
    assert_eq!(pod["containers"][0]["volumeMounts"][1], json!({"name": "ca", "mountPath": "/ca"}));
    assert_eq!(pod["serviceAccountName"], "auditor");
    let binding = &objects["rbac.authorization.k8s.io/v1 ClusterRoleBinding gate-audit"];
    assert_eq!(binding["subjects"][0]["name"], "auditor");
    assert!(!objects.contains_key("v1 ServiceAccount gate-audit"), "{:?}", objects.keys());
    let policy = &objects["networking.k8s.io/v1 NetworkPolicy gate-audit"]["spec"];
    assert_eq!(policy["podSelector"]["matchLabels"], template_labels(template));
    let alerts = objects["monitoring.coreos.com/v1 PrometheusRule gate"].to_string();
    assert!(alerts.contains(r#"{cronjob=~\"gate-audit\"}"#), "{alerts}");

    let unnamed = template_of_values(&["serviceAccount.create=false", "serviceAccount.name=mine"]);
    assert!(unnamed.contains("audit.serviceAccountName is needed"), "{unnamed}");
    rendered(&["serviceAccount.create=false", "serviceAccount.name=mine", "audit.enabled=false"]);
    let without = by_name(rendered(&["networkPolicy.enabled=true", "audit.enabled=false"]));
    assert!(!without.keys().any(|name| name.contains("memgate-audit")), "{:?}", without.keys());
}

/// Addresses of the apiserver limit the calls to and from the apiserver, and no other traffic; further variables come beside
/// those that a replica needs.
#[test]
#[ignore = "needs Go, for Helm"]
fn values_add_to_the_network_policy_and_to_variables() {
    let values = &["networkPolicy.enabled=true", "extraEnv[0].name=A"];
    let open = by_name(rendered(values));
    let narrow = by_name(rendered(&[&values[..], &["networkPolicy.apiServerCIDRs={10.0.0.0/8}"]].concat()));
    let blocks = json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}]);
    for name in ["memgate", "memgate-audit"] {
        let name = format!("networking.k8s.io/v1 NetworkPolicy {name}");
        let (mut wanted, got) = (open[&name].clone(), &narrow[&name]);
        wanted["spec"]["egress"][0]["to"] = blocks.clone();
        if let Some(reviews) = wanted.pointer_mut("/spec/ingress/0") {
            reviews["from"] = blocks.clone();
        }
        assert_eq!(*got, wanted);
        assert_eq!(got["spec"]["egress"][0]["ports"][1]["port"], 6443);
    }
    let env = &open["apps/v1 Deployment memgate"]["spec"]["template"]["spec"]["containers"][0]["env"];
    let names: Vec<_> = env.as_array().expect("variables").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["POD_NAME", "POD_UID", "POD_IP", "A"]);
}

/// The label of pods by which policies select them.
fn template_labels(template: &Value) -> Value {
    json!({"app.kubernetes.io/name": template["metadata"]["labels"]["app.kubernetes.io/name"]})
}

/// Why values are refused.
fn template_of_values(values: &[&str]) -> String {
    let output = template(values);
    assert!(!output.status.success(), "{values:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// Whether an entry is for agent pods, and may refuse them.
fn is_for_pods(entry: &Value) -> bool {
    let others = ["required.pods.memgate.dev", "orka.pods.memgate.dev"];
    entry["name"].as_str().is_some_and(|name| name.ends_with(".pods.memgate.dev") && !others.contains(&name))
}

/// As a part of another chart it can be switched off, and then asks for nothing.
#[test]
#[ignore = "needs Go, for Helm"]
fn renders_nothing_when_it_is_switched_off() {
    let chart_of_its_own = &[
        "enabled=false",
        "monitoring.enabled=true",
        "networkPolicy.enabled=true",
        "certs.mode=cert-manager",
        "policies.strict=true",
        "replicaCount=1",
        "image.repository=",
        "extraObjects[0].kind=ConfigMap",
    ];
    assert_eq!(rendered(chart_of_its_own), Vec::<Value>::new());
    let directory = tempfile::tempdir().expect("a directory");
    let parent = directory.path();
    fs::create_dir(parent.join("charts")).expect("a directory");
    let copied = Command::new("cp").arg("-r").arg(chart()).arg(parent.join("charts/memgate")).status();
    assert!(copied.expect("cp starts").success());
    fs::write(parent.join("Chart.yaml"), "apiVersion: v2\nname: umbrella\nversion: 1.0.0\n").expect("a file");
    let count = |enabled: bool| {
        let path = parent.display().to_string();
        let set = format!("--set=memgate.enabled={enabled},memgate.image.repository=example.com/memgate");
        let output = helm(&["template", "umbrella", &path, &set]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        objects(&String::from_utf8(output.stdout).expect("text")).len()
    };
    assert_eq!(count(false), 0);
    assert!(count(true) > 10);
}

#[test]
#[ignore = "needs Go, for Helm"]
fn renders_what_a_cluster_wants_besides() {
    let objects = rendered_with(
        "service: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}\n\
         monitoring: {enabled: true, interval: 1m30s, relabelings: [{targetLabel: cluster, replacement: blue}]}\n\
         extraObjects:\n\
         - {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: '{{ .Release.Namespace }}'}}\n\
         - |\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: '{{ include \"memgate.name\" . }}-two'}\n",
    );
    let service = &objects["v1 Service memgate"]["spec"];
    assert_eq!(
        (&service["ipFamilies"], &service["ipFamilyPolicy"]),
        (&json!(["IPv6", "IPv4"]), &json!("PreferDualStack"))
    );
    let endpoint = json!({
        "port": "metrics", "path": "/metrics", "honorLabels": true, "interval": "1m30s",
        "relabelings": [{"targetLabel": "cluster", "replacement": "blue"}],
    });
    assert_eq!(
        objects["monitoring.coreos.com/v1 ServiceMonitor memgate"]["spec"]["endpoints"],
        json!([endpoint])
    );
    assert_eq!(objects["v1 ConfigMap one"]["metadata"]["namespace"], "memgate-system");
    assert!(objects.contains_key("v1 ConfigMap memgate-two"), "{:?}", objects.keys());
}

/// A budget of one replica would block every drain.
#[test]
#[ignore = "needs Go, for Helm"]
fn one_replica_has_no_disruption_budget() {
    let has_budget =
        |values: &[&str]| rendered(values).iter().any(|object| object["kind"] == "PodDisruptionBudget");
    assert!(has_budget(&[]) && has_budget(&["replicaCount=3"]) && has_budget(&["ha.enabled=true"]));
    assert!(!has_budget(&["replicaCount=1"]) && !has_budget(&["podDisruptionBudget.enabled=false"]));
}

#[test]
#[ignore = "needs Go, for Helm"]
fn refuses_one_port_for_two_purposes() {
    for values in [&["webhookPort=8081"][..], &["webhookPort=10261", "hostNetwork.enabled=true"]] {
        let output = template(values);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains("is the port of probes and metrics"),
            "{values:?}: {stderr}"
        );
    }
}

/// Helm reads the numbers of a file as fractions, and would write large ones as powers of ten.
#[test]
#[ignore = "needs Go, for Helm"]
fn writes_whole_numbers_from_a_file_of_values() {
    let objects = rendered_with(
        "replicaCount: 1000000\nminReadySeconds: 2000000\nservice: {port: 8443}\n\
         settings: {maxBodyBytes: 8388608, maxState: 67108864, drain: 4000000}\n",
    );
    let deployment = &objects["apps/v1 Deployment memgate"]["spec"];
    let pod = &deployment["template"]["spec"];
    assert_eq!(deployment["replicas"], json!(1_000_000));
    assert_eq!(deployment["minReadySeconds"], json!(2_000_000));
    assert_eq!(pod["terminationGracePeriodSeconds"], json!(4_000_020));
    assert_eq!(objects["v1 Service memgate"]["spec"]["ports"][0]["port"], json!(8443));
    let settings = r#"--settings={"drain":4000000,"maxBodyBytes":8388608,"maxState":67108864}"#;
    let args = pod["containers"][0]["args"].as_array().expect("a list");
    assert!(args.contains(&json!(settings)), "{args:?}");
}

#[test]
#[ignore = "needs Go, for Helm"]
fn takes_zero_for_a_value() {
    let objects = rendered_with("settings: {drain: 0}\n");
    let pod = &objects["apps/v1 Deployment memgate"]["spec"]["template"]["spec"];
    assert!(
        pod["containers"][0]["args"]
            .as_array()
            .expect("a list")
            .contains(&json!(r#"--settings={"drain":0}"#))
    );
    assert_eq!(pod["terminationGracePeriodSeconds"], json!(20));
}

/// Orka's entries are never fail-closed, whatever the values say of the others.
#[test]
#[ignore = "needs Go, for Helm"]
fn leaves_orka_open_when_others_fail_closed() {
    let values = ["webhooks.pods.failurePolicy=Fail", "webhooks.resources.failurePolicy=Fail"];
    let policies = |values: &[&str]| {
        let objects = rendered(values);
        let entries = objects.iter().filter_map(|object| object["webhooks"].as_array()).flatten();
        let policy = |entry: &Value| {
            (entry["name"].as_str().expect("a name").to_owned(), entry["failurePolicy"].to_string())
        };
        entries.map(policy).collect::<BTreeMap<_, _>>()
    };
    let got = policies(&values);
    for name in ["orka.advice.memgate.dev", "orka.namespaces.memgate.dev", "orka.pods.memgate.dev"] {
        assert_eq!(got[name], "\"Ignore\"", "{name}");
    }
    for name in ["resources.memgate.dev", "ark.pods.memgate.dev", "arkonis-kubeswarm.pods.memgate.dev"] {
        assert_eq!(got[name], "\"Fail\"", "{name}");
    }
    assert_eq!(policies(&["webhooks.advice.failurePolicy=Fail"])["orka.advice.memgate.dev"], "\"Fail\"");
}

#[test]
#[ignore = "needs Go, for Helm"]
fn asks_in_its_test_about_what_is_on() {
    let objects = rendered_with(
        "fullnameOverride: gate\nwebhooks: {namePrefix: zz-, resources: {enabled: false}}\n\
         families: {ark: {enabled: false}}\ncommonLabels: {team: platform}\n\
         image: {pullPolicy: Always, pullSecrets: [{name: registry}]}\n\
         nodeSelector: {disk: fast}\ntolerations: [{operator: Exists}]\n",
    );
    let pod = &objects["v1 Pod gate-test"];
    let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
    let args: Vec<&str> =
        container["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(args, ["wait", "--namespace=default", "--timeout=60s", "--family=orka", "--family=kagent",]);
    let known = Command::new(env!("CARGO_BIN_EXE_memgate")).args(args).arg("--help").output();
    assert!(known.expect("memgate starts").status.success());
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(spec["nodeSelector"], json!({"kubernetes.io/os": "linux", "disk": "fast"}));
    assert_eq!(spec["tolerations"], json!([{"operator": "Exists"}]));
    // The Service and the Deployment select by this label.
    let labels = json!({"app.kubernetes.io/name": "gate-test", "team": "platform"});
    assert_eq!(pod["metadata"]["labels"], labels);
    let role = objects["rbac.authorization.k8s.io/v1 Role gate-test"].to_string();
    assert!(role.contains("core.orka.ai") && !role.contains("arkonis"), "{role}");

    let without = rendered_with("webhooks: {required: {enabled: false}}\n");
    assert!(!without.keys().any(|name| name.ends_with("-test")), "{:?}", without.keys());
}

#[test]
#[ignore = "needs Go, for Helm"]
fn puts_common_labels_on_every_object() {
    let objects = rendered_with(
        "commonLabels: {team: platform}\nnetworkPolicy: {enabled: true}\nmonitoring: {enabled: true}\n",
    );
    for (name, object) in objects {
        assert_eq!(object["metadata"]["labels"]["team"], "platform", "{name}");
    }
}

#[test]
#[ignore = "needs Go, for Helm"]
fn wants_to_know_whom_callers_trust() {
    let values = ["certs.mode=csi", "certs.issuerRef.name=corporate", "certs.issuerRef.kind=ClusterIssuer"];
    let output = template(&values);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("certs.injectCaFrom is needed"), "{stderr}");
    let from = [&values[..], &["certs.injectCaFrom=pki/root"]].concat();
    let text = String::from_utf8(template(&from).stdout).expect("text");
    assert_eq!(text.matches("cert-manager.io/inject-ca-from: pki/root").count(), 2, "{text}");
}

#[test]
#[ignore = "needs Go, for Helm"]
fn renders_nothing_when_a_file_of_it_is_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("memgate");
    let copied = Command::new("cp").arg("-r").arg(chart()).arg(&copy).status();
    assert!(copied.expect("cp starts").success());
    for entry in fs::read_dir(chart().join("files")).expect("the files") {
        let name = entry.expect("an entry").file_name();
        let path = copy.join("files").join(&name);
        let text = fs::read(&path).expect("can be read");
        fs::write(&path, "").expect("can be written");
        let output = template_of(&copy, &["--set=monitoring.enabled=true"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{} may be empty", name.display());
        assert!(stderr.contains(&format!("files/{} is missing or empty", name.display())), "{stderr}");
        fs::write(&path, text).expect("can be written");
    }
}

#[test]
fn serve_takes_every_flag_that_it_can_pass() {
    let help = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(["serve", "--help"])
        .output()
        .expect("memgate starts");
    let help = String::from_utf8(help.stdout).expect("text");
    let text = fs::read_to_string(chart().join("templates/_pod.tpl")).expect("the template");
    let args = text.split("define \"memgate.arguments\"").nth(1).expect("the arguments");
    let literal = args.match_indices("- --").map(|(at, _)| &args[at + 2..]);
    let mut flags: Vec<String> = literal
        .map(|rest| rest.split(['=', '\n', ' ']).next().unwrap_or_default().to_owned())
        .filter(|flag| !flag.contains('{') && !flag.ends_with('-'))
        .collect();
    let listed = args.split("dict ").skip(1).filter_map(|rest| rest.split(" }}").next());
    flags
        .extend(listed.flat_map(|pairs| pairs.split('"').skip(1).step_by(2)).map(|name| format!("--{name}")));
    assert!(flags.len() > 15, "{flags:?}");
    for flag in flags {
        assert!(help.contains(&flag), "memgate serve has no {flag}");
    }
}

#[test]
fn the_tables_are_memgates() {
    let mut families = Vec::new();
    for family in memgate_platforms::ALL {
        families.push(table(family.name));
    }
    let all = printed(&[]);
    let without = printed(&["--without=policies"]);
    let entry_of = |objects: &[Value], kind: &str, name: &str| {
        let configuration = objects.iter().find(|object| object["kind"] == kind).expect("a configuration");
        let entries = configuration["webhooks"].as_array().expect("entries");
        entries.iter().find(|entry| entry["name"] == name).cloned().expect("an entry")
    };
    let entry = |kind: &str, name: &str| entry_of(&all, kind, name);
    let rights = |objects: &[Value]| {
        let role = objects.iter().find(|object| object["kind"] == "ClusterRole").expect("a role");
        role["rules"].as_array().cloned().expect("rules")
    };
    let (mutating, validating) = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration");
    let required = short(&entry(mutating, "required.pods.memgate.dev"));
    let shared = |kind: &str, name: &str| {
        let mut entry = short(&entry(kind, name));
        entry["rules"] = json!([]);
        entry
    };
    let pods = entry_of(&without, mutating, "arkonis.pods.memgate.dev");
    let last = |entry: &Value| {
        entry["namespaceSelector"]["matchExpressions"].as_array().and_then(|all| all.last()).cloned()
    };
    let table = json!({
        "required": required,
        "defaults": shared(mutating, "defaults.resources.memgate.dev"),
        "resources": shared(validating, "resources.memgate.dev"),
        "deletions": shared(validating, "deletions.memgate.dev"),
        "policies": short(&entry(validating, "policies.memgate.dev")),
        "policyRights": rights(&all)[rights(&without).len()..],
        "auditRights": audit_rights(&[]).1,
        "inject": required["objects"][0]["key"],
        "notDisabled": last(&pods),
        "families": families,
    });
    bless("files/families.json", &table);

    let definitions: Vec<&Value> =
        all.iter().filter(|object| object["kind"] == "CustomResourceDefinition").collect();
    assert_eq!(definitions.len(), 2);
    bless("files/policy-crds.json", &json!({"objects": definitions}));
}

/// The objects that do not depend on platforms are rows, as `memgate manifests` has them.
#[test]
fn the_objects_are_memgates() {
    let name = |component: &Component| {
        let (name, _) = Component::ALL.into_iter().find(|(_, it)| it == component).expect("a component");
        name
    };
    let row = |row: &Row| {
        let needs = match row.need {
            Need::Always => vec!["always"],
            Need::OwnCertificates => vec!["own-certificates"],
            Need::Policies => vec!["policies"],
            Need::Components(components) => components.iter().map(name).collect(),
        };
        let (part, _) = InstallPart::ALL.into_iter().find(|(_, part)| *part == row.part).expect("a part");
        json!({"part": part, "needs": needs, "objects": objects(row.text)})
    };
    // Helm makes the namespace of a release.
    let rows = ROWS.iter().filter(|row| row.part != InstallPart::Namespace);
    bless("files/objects.json", &json!({"rows": rows.map(row).collect::<Vec<_>>()}));
}

#[test]
fn alerts_and_the_dashboard_are_memgates() {
    let all = printed(&["--component=monitoring"]);
    let find = |kind: &str| all.iter().find(|object| object["kind"] == kind).expect("an object");
    bless("files/alerts.json", &find("PrometheusRule")["spec"]);
    bless("files/dashboard.json", &find("ConfigMap")["data"]);
}

/// What one family adds, and what policies change of it.
/// What the account of audits may do: first what each family adds, then the rest.
fn audit_rights(arguments: &[&str]) -> (Vec<Value>, Vec<Value>) {
    let objects = printed(&[arguments, &["--without=events"]].concat());
    let is_role = |it: &&Value| it["kind"] == "ClusterRole" && it["metadata"]["name"] == "memgate-audit";
    let rules = objects.iter().find(is_role).and_then(|role| role["rules"].as_array()).expect("rules");
    // Namespaces, policies, their status, reports and pods.
    let (of_families, rest) = rules.split_at(rules.len() - 5);
    (of_families.to_vec(), rest.to_vec())
}

fn table(family: &str) -> Value {
    let objects = printed(&[&format!("--family={family}"), "--without=policies"]);
    let judged = printed(&[&format!("--family={family}")]);
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).expect("an object");
    let judged = judged.iter().find(|object| object["kind"] == "MutatingWebhookConfiguration");
    let judged = judged.and_then(|object| object["webhooks"].as_array()).expect("entries");
    let entries = |kind: &str| of(kind)["webhooks"].as_array().cloned().expect("entries");
    // Those for Events and for the configurations are not of a family.
    let is_of_family = |rule: &&Value| {
        let shared = ["events.k8s.io", "admissionregistration.k8s.io"];
        shared.iter().all(|group| rule["apiGroups"][0] != *group)
    };
    let rights = of("ClusterRole")["rules"].as_array().expect("rules").iter();
    let rights: Vec<_> = rights.filter(is_of_family).collect();
    let row = memgate_platforms::ALL.into_iter().find(|row| row.name == family).expect("a family");
    let stays_open = !row.pods.honour_required;
    let (mut pods, mut runs, mut policy_mutating) = (Vec::new(), Vec::new(), Vec::new());
    let (mut defaults, mut policy_defaults) = (json!([]), json!([]));
    let known = entries("MutatingWebhookConfiguration");
    for entry in judged {
        let old = known.iter().find(|old| old["name"] == entry["name"]);
        match (entry["name"].as_str().expect("a name"), old) {
            ("required.pods.memgate.dev", _) => {}
            ("defaults.resources.memgate.dev", Some(old)) => {
                let count = old["rules"].as_array().expect("rules").len();
                defaults = old["rules"].clone();
                policy_defaults = json!(entry["rules"].as_array().expect("rules")[count..]);
            }
            (name, Some(old)) if name == format!("defaults.{family}.runs.memgate.dev") => {
                assert_eq!(old["rules"], entry["rules"], "policies have no further defaults for runs");
                runs.push(short(old));
            }
            (_, Some(old)) => {
                let mut of_pods = short(old);
                of_pods["judged"] = short(entry)["objects"].clone();
                pods.push(of_pods);
            }
            (_, None) => policy_mutating.push(short(entry)),
        }
    }
    let (mut validated, mut memories, mut validating) = (json!([]), json!([]), Vec::new());
    for entry in entries("ValidatingWebhookConfiguration") {
        match entry["name"].as_str().expect("a name") {
            "deletions.memgate.dev" => memories = entry["rules"].clone(),
            "resources.memgate.dev" => validated = entry["rules"].clone(),
            name => {
                let mut own = short(&entry);
                let is_deletions = name == format!("{family}.deletions.memgate.dev");
                let is_runs = name == format!("{family}.runs.memgate.dev");
                let is_open = entry["failurePolicy"] == "Ignore";
                own["set"] = json!(if is_deletions {
                    "deletions"
                } else if is_runs {
                    "runs"
                } else if is_open {
                    "advice"
                } else {
                    "resources"
                });
                validating.push(own);
            }
        }
    }
    // Of which kinds `memgate wait` asks, and the value that switches their entry.
    let is_asked = |entry: &&Value| entry["name"] == format!("{family}.advice.memgate.dev");
    let asked = if validated == json!([]) { validating.iter().find(is_asked) } else { None };
    let asked = asked.map_or(("resources", &validated), |entry| ("advice", &entry["rules"]));
    json!({
        "name": family, "rights": rights, "auditRights": audit_rights(&[&format!("--family={family}")]).0, "staysOpen": stays_open, "pods": pods, "runs": runs,
        "asked": {"set": asked.0, "rules": asked.1},
        "defaults": defaults, "policyDefaults": policy_defaults, "policyMutating": policy_mutating,
        "validated": validated, "memories": memories, "validating": validating,
    })
}

/// An entry without what the chart says itself.
fn short(entry: &Value) -> Value {
    let mut short = Map::new();
    for key in ["name", "rules", "matchConditions", "failurePolicy", "timeoutSeconds"] {
        if let Some(value) = entry.get(key) {
            short.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(selector) = entry.pointer("/objectSelector/matchExpressions") {
        short.insert("objects".to_owned(), selector.clone());
    }
    Value::Object(short)
}

fn bless(file: &str, value: &Value) {
    held(file, &format!("{value:#}\n"));
}

/// That a file of the chart says just this; or that it does from now on.
fn held(file: &str, text: &str) {
    let path = chart().join(file);
    if env::var_os("BLESS").is_some() {
        fs::write(&path, text).expect("can be written");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{} is not up to date; BLESS=1 cargo test --test deploy helm writes it anew",
        path.display()
    );
}

#[test]
fn the_readme_lists_every_value() {
    let read = |file: &str| fs::read_to_string(chart().join(file)).expect("text");
    let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("JSON");
    let values = objects_of_values(&read("values.yaml"));
    bless("values.schema.json", &with_settings(schema.clone()));
    let mut rows = String::new();
    list(&schema, &values, "", &mut rows);
    let readme = read("README.md");
    let (head, rest) = readme.split_once("<!-- values -->\n").expect("a mark");
    let (_, tail) = rest.split_once("<!-- end of values -->").expect("a mark");
    let table = "| value | default | what it is |\n|---|---|---|\n";
    held("README.md", &format!("{head}<!-- values -->\n{table}{rows}<!-- end of values -->{tail}"));
}

/// The schema of values with the settings as `memgate schema settings` describes them, but for the families.
fn with_settings(mut schema: Value) -> Value {
    let described = Command::new(env!("CARGO_BIN_EXE_memgate")).args(["schema", "settings"]).output();
    let mut settings: Value =
        serde_json::from_slice(&described.expect("memgate starts").stdout).expect("JSON");
    settings["properties"].as_object_mut().expect("keys").remove("families");
    schema["properties"]["settings"]["properties"] = settings["properties"].take();
    for (name, definition) in settings["definitions"].as_object().expect("definitions") {
        schema["definitions"][name] = definition.clone();
    }
    schema
}

fn objects_of_values(text: &str) -> Value {
    let mut errors = Vec::new();
    let documents =
        memgate_manifest::document::values(&Arc::new(Source::new("values.yaml", text)), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    documents[0].value().clone()
}

/// A row for each value that is not an object with values of its own, and the other way round: each value
/// of `values.yaml` is in the schema.
fn list(schema: &Value, values: &Value, path: &str, rows: &mut String) {
    let properties = schema["properties"].as_object().expect("an object with properties");
    assert_eq!(schema["additionalProperties"], json!(false), "{path} takes unknown keys");
    for key in values.as_object().into_iter().flat_map(Map::keys) {
        assert!(properties.contains_key(key), "{path}{key} is not in the schema");
    }
    for (key, schema) in properties {
        let (path, value) = (format!("{path}{key}"), &values[key]);
        if key == "global" {
            continue;
        }
        assert!(
            values.get(key).is_some() || path.starts_with("certs.issuerRef"),
            "{path} is not in values.yaml"
        );
        let text = schema["description"].as_str().expect("a description");
        if schema.get("properties").is_some() && !["certs.issuerRef", "settings"].contains(&&*path) {
            list(schema, value, &format!("{path}."), rows);
        } else {
            writeln!(rows, "| `{path}` | `{value}` | {} |", text.replace('|', "\\|")).expect("fits");
        }
    }
}
