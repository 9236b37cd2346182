//! What only a chart has: the labels of a release, the notes after an installation, values for typical ones (`ci/`, where
//! chart-testing looks for them), and what catalogues read in `Chart.yaml`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic, and reads JSON by indexing, where a missing key is null"
)]

use std::fs;
use std::process::Output;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use memgate_model::kind::POLICY_KINDS;
use serde_json::{Value, json};

use crate::helm::{OF_A_RELEASE, chart, helm, objects, rendered, template_of};

fn read(file: &str) -> String {
    fs::read_to_string(chart().join(file)).expect("text")
}

fn install(namespace: &str, args: &[&str]) -> Output {
    let (chart, namespace) = (chart().display().to_string(), format!("--namespace={namespace}"));
    helm(&[&["install", "gate", &chart, &namespace, "--dry-run=client"], args].concat())
}

/// The notes that a user sees after an installation with these arguments.
fn notes(namespace: &str, args: &[&str]) -> String {
    let output =
        install(namespace, &[&["--set=image.repository=registry.example.com/memgate"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_once("NOTES:\n").expect("there are notes").1.to_owned()
}

#[test]
#[ignore = "needs Go, for Helm"]
fn everything_says_whose_it_is() {
    let values = ["networkPolicy.enabled=true", "monitoring.enabled=true", "certs.mode=cert-manager"];
    let sets: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    let all = String::from_utf8(template_of(&chart(), &sets).stdout).expect("text");
    let all = objects(&all);
    assert!(all.len() > 20, "{} objects", all.len());
    for object in &all {
        let (name, labels) =
            (format!("{} {}", object["kind"], object["metadata"]["name"]), &object["metadata"]["labels"]);
        for label in OF_A_RELEASE {
            assert!(labels[label].as_str().is_some_and(|value| !value.is_empty()), "{name} has no {label}");
        }
        assert!(labels["app.kubernetes.io/name"].is_string(), "{name}");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "Helm", "{name}");
        assert_eq!(labels["app.kubernetes.io/instance"], "memgate", "{name}");
        assert_eq!(labels["helm.sh/chart"], concat!("memgate-", env!("CARGO_PKG_VERSION")), "{name}");
    }
    let deployment = all.iter().find(|object| object["kind"] == "Deployment").expect("a Deployment");
    let pod = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(pod["app.kubernetes.io/instance"], "memgate");
    assert!(pod["helm.sh/chart"].is_null(), "a chart of another version would restart the pods");
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!({"app.kubernetes.io/name": "memgate"}));
}

#[test]
#[ignore = "needs Go, for Helm"]
fn labels_of_ones_own_win() {
    let objects = rendered(&[
        "commonLabels.app\\.kubernetes\\.io/part-of=platform",
        "podLabels.app\\.kubernetes\\.io/component=gate",
    ]);
    for object in &objects {
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/part-of"], "platform", "{object}");
    }
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("a Deployment");
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"], "gate");
}

#[test]
#[ignore = "needs Go, for Helm"]
fn values_for_typical_installations_work() {
    let plain: Vec<Value> = rendered(&[]);
    let mut count = 0;
    for file in fs::read_dir(chart().join("ci")).expect("a folder") {
        let path = file.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.ends_with("-values.yaml"), "chart-testing does not see {name}");
        let values = format!("--values={}", path.display());
        let lint = helm(&["lint", "--strict", &values, &chart().display().to_string()]);
        assert!(lint.status.success(), "{name}: {}", String::from_utf8_lossy(&lint.stdout));
        let output = template_of(&chart(), &["--skip-tests", &values]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        let objects = objects(&text);
        let has = |kind: &str| objects.iter().any(|object| object["kind"] == kind);
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("a Deployment");
        let pod = &deployment["spec"]["template"]["spec"];
        let image = pod["containers"][0]["image"].as_str().expect("an image");
        assert!(image.starts_with("registry.example.com/memgate"), "{name}: {image}");
        match name.trim_end_matches("-values.yaml") {
            "default" => assert_eq!(objects.len(), plain.len()),
            "ha" => {
                assert_eq!(deployment["spec"]["replicas"], 3);
                assert_eq!(pod["topologySpreadConstraints"][1]["whenUnsatisfiable"], "DoNotSchedule");
                assert!(image.contains("@sha256:") && has("PodDisruptionBudget"));
            }
            "cert-manager" => assert!(has("Certificate") && !has("Issuer")),
            "minimal" => {
                assert!(objects.len() < plain.len() && !has("PodDisruptionBudget"));
                assert!(!has("CustomResourceDefinition"));
            }
            "hardened" => {
                assert!(has("NetworkPolicy") && text.contains("name: strict."));
                assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry"}]));
                // What the level restricted asks for.
                let security = &pod["containers"][0]["securityContext"];
                assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
                assert_eq!(security["allowPrivilegeEscalation"], false);
                assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
                assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            }
            "monitoring" => assert!(has("ServiceMonitor") && has("PrometheusRule") && has("ConfigMap")),
            other => panic!("nothing is known of {other}"),
        }
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
#[ignore = "needs Go, for Helm"]
fn is_not_installed_without_an_image() {
    let unset = install("memgate-system", &[]);
    let stderr = String::from_utf8_lossy(&unset.stderr);
    assert!(!unset.status.success() && stderr.contains("set image.repository"), "{stderr}");
    let set = notes("memgate-system", &[]);
    assert!(set.starts_with("memgate 0.1.0 is installed"), "{set}");
    assert!(set.contains("with the image registry.example.com/memgate:0.1.0"), "{set}");
}

/// Names and namespaces are those of the release, and what is off is not offered.
#[test]
#[ignore = "needs Go, for Helm"]
fn notes_follow_the_values() {
    let values = ["--set=fullnameOverride=door,webhooks.namePrefix=zz-,hooks.namespace=lab,replicaCount=1"];
    let text = notes("team-a", &values);
    for line in [
        "  kubectl --namespace team-a rollout status deployment/door --timeout=180s",
        "  helm test gate --namespace team-a",
        "  memgate wait --namespace lab",
        "  memgate doctor --namespace team-a",
        "    kubectl label namespace team-a --overwrite pod-security.kubernetes.io/enforce=restricted",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    assert!(text.contains("There is one replica") && text.contains("docs/policy.md"), "{text}");
    let off = [
        "--set=webhooks.required.enabled=false,policies.enabled=false,hostNetwork.enabled=true,certs.mode=files",
    ];
    let text = notes("team-a", &off);
    for word in ["helm test", "memgate wait", "docs/policy.md", "pod-security", "one replica"] {
        assert!(!text.contains(word), "{word} is in\n{text}");
    }
    assert!(text.contains("the Secret memgate-tls is there"), "{text}");
    // Every command of memgate's takes the flags that it is given.
    for command in ["wait", "doctor"] {
        let mut memgate = std::process::Command::new(env!("CARGO_BIN_EXE_memgate"));
        let memgate = memgate.args([command, "--namespace", "a"]).arg("--help");
        assert!(memgate.output().expect("memgate starts").status.success(), "{command}");
    }
}

#[test]
fn catalogues_read_what_is_true() {
    let [about]: [Value; 1] = objects_of(&read("Chart.yaml")).try_into().expect("one document");
    let icon = about["icon"].as_str().and_then(|icon| icon.strip_prefix("data:image/svg+xml;base64,"));
    let icon = BASE64_STANDARD.decode(icon.expect("a picture")).expect("base64");
    assert_eq!(String::from_utf8(icon).expect("text"), read("icon.svg"));
    let annotations = &about["annotations"];
    assert_eq!(annotations["artifacthub.io/license"], env!("CARGO_PKG_LICENSE"));
    assert!(annotations["artifacthub.io/images"].is_null(), "none is published");
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
    let [crds]: [Value; 1] =
        objects_of(annotations["artifacthub.io/crds"].as_str().expect("text")).try_into().expect("one list");
    let listed: Vec<_> =
        crds.as_array().expect("a list").iter().map(|crd| (&crd["name"], &crd["version"])).collect();
    assert_eq!(listed.len(), POLICY_KINDS.len());
    for kind in &POLICY_KINDS {
        let name = json!(format!("{}.{}", kind.plural, kind.group));
        assert!(listed.contains(&(&name, &json!(kind.version))), "{name}");
    }
}

fn objects_of(text: &str) -> Vec<Value> {
    let source = std::sync::Arc::new(memgate_manifest::source::Source::new("Chart.yaml", text));
    let documents = memgate_manifest::document::values(&source, &mut Vec::new());
    documents.iter().map(|document| document.value().clone()).collect()
}
