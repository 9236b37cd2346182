//! That `check` finds nothing where nothing is wrong, and in generated repositories what was planted, and only that.

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::Scratch;

/// How many repositories are made.
const REPOSITORIES: u32 = 200;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The denials and warnings of a report, each as `code name`.
fn alarms(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings");
    let loud = findings.iter().filter(|finding| finding["severity"] != "note");
    let words = loud.map(|finding| {
        let (code, name) = (&finding["code"], &finding["object"]["name"]);
        format!("{} {}", code.as_str().expect("a code"), name.as_str().unwrap_or_default())
    });
    words.collect()
}

#[test]
fn examples_pass_strictly() {
    let here = Scratch::with(&[]);
    let examples = root().join("examples");
    let choices = root().join(".memgate.yaml");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let mut directories: Vec<PathBuf> =
        memgate_platforms::ALL.iter().map(|family| examples.join(family.name)).collect();
    directories.push(examples);
    for directory in directories {
        let words = ["check", "--strict", "-o", "json", "--project", &path(&choices), &path(&directory)];
        let output = here.run(&words);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(alarms(&report), [""; 0], "{}", directory.display());
        assert_eq!(output.status.code(), Some(0), "{}", directory.display());
    }
}

/// The manifests in the documentation, each block of YAML a file of its own: those with a kind, but for case files,
/// templates, and blocks that are shown with their findings.
fn documented() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut files = vec![root().join("README.md"), root().join("examples/README.md")];
    let docs = fs::read_dir(root().join("docs")).expect("docs");
    files.extend(docs.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()));
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        for (number, block) in text.split("```yaml\n").skip(1).enumerate() {
            let block = block.split("```").next().unwrap_or_default();
            if block.contains("\napiVersion: ") || block.starts_with("apiVersion: ") {
                found.push((format!("{} block {number}", file.display()), block.to_owned()));
            }
        }
    }
    found
}

#[test]
fn documented_manifests_pass() {
    let blocks = documented();
    assert!(!blocks.is_empty());
    for (name, block) in blocks {
        let scratch = Scratch::with(&[("in.yaml", &block)]);
        let report = scratch.json(&["check", "-o", "json", "in.yaml"]);
        assert_eq!(report["summary"]["errors"], 0, "{name}\n{block}");
        assert_eq!(alarms(&report), [""; 0], "{name}\n{block}");
    }
}

/// The kinds of the bundled definitions, each with an object that has what is required, and nothing else.
fn minimal_objects() -> Vec<Value> {
    let mut objects = Vec::new();
    for file in memgate_platforms::ALL.iter().flat_map(|family| family.definitions.crds) {
        for crd in values(&Source::new("a bundled CRD", file()).into(), &mut Vec::new()) {
            let crd = crd.value();
            let version = &crd["spec"]["versions"][0];
            let mut object = minimal(&version["schema"]["openAPIV3Schema"]);
            let group = crd["spec"]["group"].as_str().expect("a group");
            object["apiVersion"] = format!("{group}/{}", version["name"].as_str().expect("a version")).into();
            object["kind"] = crd["spec"]["names"]["kind"].clone();
            object["metadata"] = json!({"name": "default"});
            objects.push(object);
        }
    }
    objects
}

/// The smallest value of a schema. A spec is always there.
fn minimal(schema: &Value) -> Value {
    if let Some(default) = schema.get("default").or_else(|| schema["enum"].as_array()?.first()) {
        return default.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let names: BTreeSet<&str> =
                required.chain(["spec"]).filter(|name| schema["properties"].get(name).is_some()).collect();
            let fields =
                names.into_iter().map(|name| (name.to_owned(), minimal(&schema["properties"][name])));
            fields.collect::<Map<_, _>>().into()
        }
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or_default().max(1);
            (0..least).map(|_| minimal(&schema["items"])).collect()
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        _ => "a1".into(),
    }
}

#[test]
fn minimal_objects_pass() {
    /// What rules ask of the smallest object beyond what the schema requires, those in CEL too; and the size of a
    /// WorkspaceSession is not a quantity.
    const EXPECTED: [&str; 10] = [
        "Agent kagent/schema",
        "ArkAgent arkonis/schema",
        "Harness kagent/schema",
        "Memory ark/memory-address-required",
        "Memory kagent/memory-kind-unread",
        "MemoryBackend orka/backend-endpoint",
        "ModelEndpoint orloj/modelendpoint-model-required",
        "SandboxAgent kagent/schema",
        "SwarmAgent arkonis/schema",
        "WorkspaceSession sympozium/schema",
    ];
    let mut found = BTreeSet::new();
    let objects = minimal_objects();
    assert!(objects.len() > 15, "{} objects", objects.len());
    for object in objects {
        let scratch = Scratch::with(&[("in.json", &object.to_string())]);
        let report = scratch.json(&["check", "-o", "json", "in.json"]);
        let kind = object["kind"].as_str().expect("a kind");
        let alarms = alarms(&report).into_iter();
        found.extend(alarms.map(|alarm| format!("{kind} {}", alarm.trim_end_matches(" default"))));
    }
    let expected: BTreeSet<String> = EXPECTED.iter().map(|&it| it.to_owned()).collect();
    assert_eq!(found, expected);
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    /// One below a bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A repository of files, and what is wrong in them.
#[derive(Default)]
struct Repository {
    files: Vec<(String, String)>,
    planted: Vec<String>,
}

impl Repository {
    /// Adds objects in one file.
    fn add(&mut self, name: &str, text: &str) {
        let path = format!("file-{}-{name}.yaml", self.files.len());
        self.files.push((path, text.to_owned()));
    }

    /// Makes a repository with one to four teams, each with some of the platforms, and plants up to three faults.
    fn generate(seed: u64) -> Self {
        let (mut numbers, mut made) = (Numbers(seed), Self::default());
        for team in 0..=numbers.below(4) {
            let namespace = format!("team-{team}");
            made.add(
                "namespace",
                &format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}\n"),
            );
            for face in FACES {
                if numbers.below(3) > 0 {
                    made.add("objects", &face.replace("NS", &namespace));
                }
            }
        }
        for _ in 0..numbers.below(4) {
            let (fault, codes) = FAULTS[usize::try_from(numbers.below(FAULTS.len() as u64)).expect("fits")];
            let name = format!("planted-{}", made.files.len());
            made.add("fault", &fault.replace("NAME", &name));
            made.planted.extend(codes.iter().map(|code| format!("{code} {name}")));
        }
        made
    }
}

/// What teams have, without a fault. `NS` stands for the namespace.
const FACES: [&str; 7] = [
    "apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: NS}
spec: {backend: redis, redis: {secretRef: {name: made-by-vault}}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: NS}
spec: {model: llama3.2, systemPrompt: You scout for facts., memoryRef: {name: notes}}
---
{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: NS}}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: redis, namespace: NS}
spec: {target: {name: made-by-vault}}
",
    "apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: default, namespace: NS}
spec: {address: {valueFrom: {secretKeyRef: {name: sealed, key: url}}}}
---
apiVersion: ark.mckinsey.com/v1alpha1
kind: Query
metadata: {name: ask, namespace: NS}
spec: {input: What is new?, target: {type: agent, name: scout}, memory: {name: default}}
---
{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: sealed, namespace: NS}}
---
{apiVersion: v1, kind: Secret, metadata: {name: unused, namespace: NS}}
",
    "apiVersion: sympozium.ai/v1alpha1
kind: Agent
metadata: {name: triage, namespace: NS}
spec: {agents: {default: {model: gpt-4o}}, skills: [{skillPackRef: memory}]}
---
apiVersion: sympozium.ai/v1alpha1
kind: Ensemble
metadata: {name: newsroom, namespace: NS}
spec: {agentConfigs: [{name: scout, systemPrompt: Look., skills: [memory]}]}
",
    "apiVersion: orloj.dev/v1
kind: Agent
metadata: {name: scribe, namespace: NS}
spec: {model_ref: gpt, prompt: Write., memory: {ref: elsewhere, allow: [read]}}
",
    // Kinds that memgate never judges, twice each.
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shared}, spec: {template: {spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: shared}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: web}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shared}}
",
    // Kinds of other projects with the names of ours.
    "{apiVersion: agents.example.com/v1alpha2, kind: Memory, metadata: {name: a, namespace: NS}, spec: {}}
---
{apiVersion: tekton.dev/v1, kind: Task, metadata: {name: a, namespace: NS}, spec: {}}
---
{apiVersion: agent.k8s.elastic.co/v1alpha1, kind: Agent, metadata: {name: a, namespace: NS}, spec: {}}
",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {a: b}}
---
{apiVersion: v1, kind: Service, metadata: {name: broker, namespace: NS}, spec: {ports: [{port: 80}]}}
",
];

/// What is planted, each with the codes of its findings. `NAME` stands for a name of its own.
const FAULTS: [(&str, &[&str]); 10] = [
    (
        "{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: NAME, namespace: x}, spec: {backend: reddis}}",
        &["arkonis/backend-unknown"],
    ),
    (
        "{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: NAME, namespace: x}, spec: {backend: redis}}",
        &["arkonis/redis-required"],
    ),
    (
        "{apiVersion: arkonis.io/v1alpha1, kind: ArkMemory, metadata: {name: NAME, namespace: x}, spec: {backend: redis}}",
        &["memgate/kind-misspelt"],
    ),
    (
        "{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemry, metadata: {name: NAME, namespace: x}, spec: {backend: redis}}",
        &["memgate/kind-misspelt"],
    ),
    (
        "{apiVersion: arkonis.dev/v9, kind: ArkMemory, metadata: {name: NAME, namespace: x}, spec: {backend: in-context}}",
        &["memgate/version-unknown"],
    ),
    (
        "{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: NAME, namespace: x}, spec: {backend: in-context}}
---
{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: NAME, namespace: x}, spec: {backend: in-context}}
---
{apiVersion: arkonis.dev/v1alpha1, kind: ArkAgent, metadata: {name: NAME, namespace: x}, spec: {model: m, systemPrompt: s, memoryRef: {name: absent}}}",
        &["memgate/object-repeated", "arkonis/memory-not-found"],
    ),
    (
        "{apiVersion: ark.mckinsey.com/v1alpha1, kind: Query, metadata: {name: NAME, namespace: x}, spec: {target: {type: agent, name: a}}}",
        &["ark/schema"],
    ),
    (
        "{apiVersion: ark.mckinsey.com/v1alpha1, kind: Query, metadata: {name: NAME, namespace: x}, spec: {input: a, target: {type: robot, name: a}}}",
        &["ark/schema"],
    ),
    (
        "{apiVersion: sympozium.ai/v1alpha1, kind: Agent, metadata: {name: NAME, namespace: x}, spec: {}}",
        &["sympozium/crd-required"],
    ),
    (
        "{apiVersion: kubeswarm/v1alpha1, kind: SwarmMemory, metadata: {name: NAME, namespace: x}, spec: {backend: redis}}",
        &["arkonis/api-version-not-served"],
    ),
];

/// A part of them.
#[test]
fn generated_repositories_have_the_planted_faults_alone() {
    repositories_have_the_planted_faults_alone(REPOSITORIES / 5);
}

#[test]
#[ignore = "needs minutes"]
fn all_generated_repositories_have_the_planted_faults_alone() {
    repositories_have_the_planted_faults_alone(REPOSITORIES);
}

fn repositories_have_the_planted_faults_alone(count: u32) {
    let (mut planted, mut clean, mut wrong) = (0, 0, String::new());
    for seed in 0..count {
        let Repository { files, planted: mut expected } = Repository::generate(seed.into());
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let mut found = alarms(&Scratch::with(&files).json(&["check", "-o", "json", "."]));
        expected.sort();
        found.sort();
        if found != expected {
            let _ = writeln!(wrong, "seed {seed}: {found:?}, not {expected:?}");
        }
        planted += expected.len();
        clean += usize::from(expected.is_empty());
    }
    assert!(wrong.is_empty(), "{wrong}");
    let count = count as usize;
    assert!(planted > count && clean > count / 10, "{planted} faults, {clean} clean");
}
