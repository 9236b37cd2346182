//! Which entries of the webhook configurations a pod meets: for every combination of marks of platforms, values of
//! `memgate.dev/inject` and labels of the namespace, in every set of components that changes an entry for pods.
//!
//! Selectors are evaluated here, and match conditions by an interpreter of CEL, so a text that it does not know fails.

#![expect(clippy::indexing_slicing, reason = "a test reads JSON by indexing, where a missing key is null")]

use std::collections::{BTreeMap, BTreeSet};

use cel::{Context, Program};
use memgate_core::family;
use serde_json::{Map, Value, json};

use crate::objects::printed;

/// Labels of pods, each with the values that are tried; an empty one is one that is not there.
const LABELS: [(&str, &[&str]); 9] = [
    ("arkonis.dev/deployment", &["", "x"]),
    ("kubeswarm/deployment", &["", "x"]),
    ("agentops.io/deployment", &["", "x"]),
    ("orloj.dev/component", &["", "agent-job", "other"]),
    ("orka.ai/task", &["", "y"]),
    ("orka.ai/task-type", &["", "ai", "agent"]),
    ("orka.ai/runtime-pool-id", &["", "z"]),
    ("sympozium.ai/component", &["", "agent-run", "other"]),
    ("sympozium.ai/instance", &["", "z"]),
];
const ANNOTATIONS: [&str; 2] = ["", "memgate.dev/ark-memory"];
const INJECT: [&str; 5] = ["", "required", "disabled", "other", " "];
const NAMESPACE_INJECT: [&str; 4] = ["", "disabled", "required", "other"];
const NAMESPACE_POLICY: [&str; 3] = ["", "strict", "other"];

/// Which pods are agents', by their marks alone: what each platform's facts say.
fn is_agents(family: &str, pod: &Pod) -> bool {
    let is = |key: &str, value: &str| pod.labels.get(key).is_some_and(|known| known == value);
    let has = |key: &str| pod.labels.contains_key(key);
    match family {
        "arkonis" => ["arkonis.dev", "kubeswarm", "agentops.io"].iter().any(|of| has(&format!("{of}/deployment"))),
        "ark" => pod.annotated,
        "orloj" => is("orloj.dev/component", "agent-job"),
        // A pod of a pool is no worker of a Task.
        "orka" => has("orka.ai/task") && is("orka.ai/task-type", "ai") && !has("orka.ai/runtime-pool-id"),
        "sympozium" => is("sympozium.ai/component", "agent-run") && has("sympozium.ai/instance"),
        _ => unreachable!("a family without marks here: {family}"),
    }
}

/// The metadata of a pod.
struct Pod {
    labels: BTreeMap<String, String>,
    annotated: bool,
}

impl Pod {
    fn inject(&self) -> &str {
        self.labels.get("memgate.dev/inject").map_or("", String::as_str)
    }

    fn object(&self) -> Value {
        let mut metadata = json!({"name": "pod", "namespace": "team"});
        if !self.labels.is_empty() {
            metadata["labels"] = json!(self.labels);
        }
        if self.annotated {
            metadata["annotations"] = json!({ANNOTATIONS[1]: "notes"});
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    }
}

/// Every combination.
fn pods() -> Vec<Pod> {
    let mut all = vec![BTreeMap::new()];
    let inject = ("memgate.dev/inject", &INJECT[..]);
    for (key, values) in LABELS.into_iter().chain([inject]) {
        let with = |labels: &BTreeMap<String, String>, value: &str| {
            let mut labels = labels.clone();
            if !value.is_empty() {
                labels.insert(key.to_owned(), value.trim().to_owned());
            }
            labels
        };
        all = all.iter().flat_map(|labels| values.iter().map(move |value| with(labels, value))).collect();
    }
    let pod = |labels: &BTreeMap<String, String>, annotated| Pod { labels: labels.clone(), annotated };
    all.iter().flat_map(|labels| [false, true].map(|annotated| pod(labels, annotated))).collect()
}

fn namespaces() -> Vec<BTreeMap<String, String>> {
    let label = |key: &str, value: &str| (!value.is_empty()).then(|| (key.to_owned(), value.to_owned()));
    let labels = |inject: &str, policy: &str| {
        let name = label("kubernetes.io/metadata.name", "team");
        let own = [label("memgate.dev/inject", inject), label("memgate.dev/policy", policy)];
        name.into_iter().chain(own.into_iter().flatten()).collect()
    };
    NAMESPACE_INJECT
        .into_iter()
        .flat_map(|inject| NAMESPACE_POLICY.map(|policy| labels(inject, policy)))
        .collect()
}

/// Whether a selector selects, as an apiserver reads it.
fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let Some(fields) = selector.as_object() else { return true };
    assert!(fields.keys().all(|key| key == "matchExpressions"), "{selector}");
    fields.values().flat_map(|all| all.as_array().expect("a list")).all(|requirement| {
        let value = labels.get(requirement["key"].as_str().expect("a key"));
        let among = || {
            let values = requirement["values"].as_array().expect("values");
            value.is_some_and(|value| values.iter().any(|known| known == value))
        };
        match requirement["operator"].as_str() {
            Some("In") => among(),
            Some("NotIn") => !among(),
            Some("Exists") => value.is_some(),
            Some("DoesNotExist") => value.is_none(),
            _ => panic!("an unknown operator: {requirement}"),
        }
    })
}

/// The results of match conditions, by their text: for each pod one.
#[derive(Default)]
struct Conditions(BTreeMap<String, Vec<bool>>);

impl Conditions {
    fn of(&mut self, expression: &str, objects: &[Value]) -> &[bool] {
        self.0.entry(expression.to_owned()).or_insert_with(|| {
            let program = Program::compile(expression).expect("it is CEL");
            let request = json!({"userInfo": {"username": "jane", "groups": ["system:authenticated"]}});
            let evaluate = |object: &Value| {
                let mut context = Context::default();
                context.add_variable("object", object).expect("a value");
                context.add_variable("oldObject", Value::Null).expect("a value");
                context.add_variable("request", &request).expect("a value");
                match program.execute(&context) {
                    Ok(cel::Value::Bool(is_true)) => is_true,
                    other => panic!("{expression}: {other:?} for {object}"),
                }
            };
            objects.iter().map(evaluate).collect()
        })
    }
}

/// A set of components, as arguments, and what it promises.
struct Installed {
    arguments: Vec<String>,
    families: Vec<&'static str>,
    /// The families of another installation.
    elsewhere: Vec<&'static str>,
    has_policies: bool,
    is_strict: bool,
}

fn names() -> Vec<&'static str> {
    family::ALL.map(|family| family.name).to_vec()
}

/// Each family alone, with and without the others elsewhere; pairs; and all of them.
fn choices_of_families() -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let names = names();
    let mut all = vec![(names.clone(), Vec::new())];
    for name in &names {
        let others: Vec<_> = names.iter().copied().filter(|other| other != name).collect();
        all.push((vec![name], Vec::new()));
        all.push((vec![name], others.clone()));
        all.push((others, vec![name]));
    }
    all
}

fn installations() -> Vec<Installed> {
    const COMPONENTS: [&[&str]; 8] = [
        &["--no-policies"],
        &[],
        &["--component=policy-strict"],
        &["--component=policy-strict", "--component=ha", "--component=fail-closed"],
        &["--no-policies", "--component=ha", "--component=fail-closed"],
        &["--component=single-node"],
        &["--component=kind-dev", "--component=templates", "--component=vap", "--component=map"],
        &["--component=static-manifest", "--url=https://127.0.0.1:1", "--component=policy-strict"],
    ];
    let mut all = Vec::new();
    for (families, elsewhere) in choices_of_families() {
        for components in COMPONENTS {
            let family = families.iter().map(|name| format!("--family={name}"));
            let others = elsewhere.iter().map(|name| format!("--elsewhere={name}"));
            let components_given = components.iter().map(|&argument| argument.to_owned());
            all.push(Installed {
                arguments: family.chain(others).chain(components_given).collect(),
                families: families.clone(),
                elsewhere: elsewhere.clone(),
                has_policies: !components.contains(&"--no-policies"),
                is_strict: components.contains(&"--component=policy-strict"),
            });
        }
    }
    all
}

/// The entries of the mutating configuration that are about pods, once for each.
fn entries(arguments: &[String]) -> Vec<Value> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut entries = Vec::new();
    for (name, object) in printed(&arguments) {
        if !name.contains("WebhookConfiguration") {
            continue;
        }
        let of_pods = |entry: &&Value| {
            let rules = entry["rules"].as_array().expect("rules");
            rules.iter().any(|rule| rule["resources"].as_array().is_some_and(|all| all.contains(&json!("pods"))))
        };
        entries.extend(object["webhooks"].as_array().expect("entries").iter().filter(of_pods).cloned());
    }
    entries
}

#[test]
fn no_agent_pod_slips_between_the_entries() {
    let (pods, namespaces) = (pods(), namespaces());
    let objects: Vec<Value> = pods.iter().map(Pod::object).collect();
    let mut conditions = Conditions::default();
    let mut known: BTreeMap<String, ()> = BTreeMap::new();
    for installed in installations() {
        let entries = entries(&installed.arguments);
        // Other components do not change them: the same entries make the same promises.
        let short: Vec<Value> = entries.iter().map(selection).collect();
        let promise = (installed.has_policies, installed.is_strict, &installed.families);
        if known.insert(format!("{promise:?} {short:?}"), ()).is_some() {
            continue;
        }
        let within: Vec<Vec<bool>> = entries
            .iter()
            .map(|entry| namespaces.iter().map(|labels| selects(&entry["namespaceSelector"], labels)).collect())
            .collect();
        let mut met: Vec<Vec<usize>> = vec![Vec::new(); pods.len()];
        for (index, entry) in entries.iter().enumerate() {
            let texts: Vec<&str> = entry["matchConditions"]
                .as_array()
                .expect("conditions")
                .iter()
                .map(|condition| condition["expression"].as_str().expect("a text"))
                .collect();
            let holds: Vec<Vec<bool>> =
                texts.iter().map(|text| conditions.of(text, &objects).to_vec()).collect();
            for (at, pod) in pods.iter().enumerate() {
                if selects(&entry["objectSelector"], &pod.labels) && holds.iter().all(|all| all[at]) {
                    met[at].push(index);
                }
            }
        }
        for (at, pod) in pods.iter().enumerate() {
            for (number, namespace) in namespaces.iter().enumerate() {
                let called: Vec<&Value> =
                    met[at].iter().filter(|index| within[**index][number]).map(|index| &entries[*index]).collect();
                let wrong = judge(&installed, pod, namespace, &called);
                assert!(
                    wrong.is_none(),
                    "{:?}: {} in {namespace:?}: {wrong:?}: {:?}",
                    installed.arguments,
                    objects[at],
                    called.iter().map(|entry| &entry["name"]).collect::<Vec<_>>()
                );
            }
        }
    }
}

/// The parts of an entry that say when and how it is called.
fn selection(entry: &Value) -> Value {
    let keys = ["name", "objectSelector", "namespaceSelector", "matchConditions", "failurePolicy"];
    Value::Object(keys.into_iter().map(|key| (key.to_owned(), entry[key].clone())).collect::<Map<_, _>>())
}

/// What is wrong with the entries that a pod meets.
fn judge(
    installed: &Installed,
    pod: &Pod,
    namespace: &BTreeMap<String, String>,
    called: &[&Value],
) -> Option<&'static str> {
    let of = |families: &[&str]| families.iter().any(|family| is_agents(family, pod));
    let is = |key: &str, value: &str| namespace.get(key).is_some_and(|known| known == value);
    let closed = called.iter().any(|entry| entry["failurePolicy"] == "Fail");
    let is_ours = of(&installed.families);
    let is_required = pod.inject() == "required";
    let opts_out = pod.inject() == "disabled" || is("memgate.dev/inject", "disabled");
    let purposes: Vec<&str> = called.iter().filter_map(|entry| entry["name"].as_str()).collect();
    let distinct: BTreeSet<&str> = purposes.iter().map(|name| name.trim_start_matches("strict.")).collect();
    if is_ours && is_required && !closed {
        Some("it requires its memory, and no entry fails closed")
    } else if is_ours && installed.is_strict && is("memgate.dev/policy", "strict") && !closed {
        Some("its namespace is strict, and no entry fails closed")
    } else if is_ours && (installed.has_policies || !opts_out) && called.is_empty() {
        Some("no entry is for it")
    } else if is_required && !of(&names()) && called.is_empty() && !has_mark_of(&installed.elsewhere, pod) {
        Some("it requires memory that no platform gives it, and is not refused")
    } else if is_required && called.len() > 1 {
        Some("more than the entry for pods that require their memory is called")
    } else if !is_ours && !is_required && !called.is_empty() {
        Some("it is no agent's, and is asked about")
    } else if !is_ours && of(&installed.elsewhere) && !called.is_empty() {
        Some("it is of another installation")
    } else if !installed.has_policies && !is_required && opts_out && !called.is_empty() {
        Some("it opted out")
    } else if distinct.len() < purposes.len() {
        Some("two entries of one purpose are called")
    } else {
        None
    }
}

/// Whether a pod has the first mark of one of these platforms, by which its own installation may know it.
fn has_mark_of(families: &[&str], pod: &Pod) -> bool {
    families.iter().any(|family| match *family {
        "orka" => pod.labels.contains_key("orka.ai/task"),
        "sympozium" => pod.labels.get("sympozium.ai/component").is_some_and(|value| value == "agent-run"),
        other => is_agents(other, pod),
    })
}
