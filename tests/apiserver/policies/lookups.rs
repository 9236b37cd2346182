//! What policies need to know and no watch has shown: it is looked up at the apiserver, and where that is forbidden it
//! is unknown, and nothing worse.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    asked::{Asked, Said, delete, store},
    object,
};
use crate::{
    deploy::renamed::{manifests, text},
    faults::without_apiserver::{address, by_way_of},
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    samples::memory_of,
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Serve, Webhook},
        wire::Wire,
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("policies::services_are_looked_up", services),
        Trial::new("policies::hosts_that_may_be_services_are_looked_up", hosts),
        Trial::new("policies::config_maps_are_looked_up", config_maps),
        Trial::new("policies::namespaces_are_looked_up", namespaces),
        Trial::new("policies::what_may_not_be_looked_up_is_unknown", forbidden),
    ]
}

fn services(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture)?;
    let rules = json!([
        {"id": "there", "references": {"mustExist": ["Service"]}},
        {"id": "port", "endpoint": {"ports": [8080]}},
    ]);
    let policy = scene.policy("of-services", &json!({"namespaces": [scene.namespace]}), &rules)?;
    let memory = ark_memory(&json!({"serviceRef": {"name": "broker", "port": "http"}}));
    let missing = format!("Service \"{}/broker\" not found", scene.namespace);
    scene.until_said("memories", &memory, |said| said.message.contains(&missing))?;

    // Nothing watches Services, and each time there is one lookup, however many ask.
    scene.once("found", || {
        scene.create(&service(9090))?;
        let said = scene.about("memories", &memory)?;
        ensure!(!said.allowed && said.message.contains("endpoint port 9090 is not allowed"), "{said:?}");
        ensure!(!said.message.contains(&missing), "{said:?}");
        Ok(())
    })?;
    scene.cluster.kubectl(&["delete", "service", "broker", "-n", &scene.namespace])?.ok()?;
    scene.once("absent", || {
        let said = scene.about("memories", &memory)?;
        ensure!(!said.allowed && said.message.contains(&missing), "{said:?}");
        Ok(())
    })?;
    scene.create(&service(8080))?;
    let said = scene.about("memories", &memory)?;
    ensure!(said.allowed && !said.codes.contains("policy/"), "{said:?}");
    delete(scene.cluster, &scene.cluster.client(), &policy)
}

/// `NAME.NAMESPACE` may be a Service, and a site of the internet.
fn hosts(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture)?;
    let rules = json!([{"id": "outside", "endpoint": {"inCluster": "forbid"}}]);
    let policy = scene.policy("of-hosts", &json!({"namespaces": [scene.namespace]}), &rules)?;
    let there = scene.cluster.fresh_namespace("there")?;
    let at = |host: &str| {
        let store = json!({"provider": "qdrant", "endpoint": format!("http://{host}:6333")});
        memory_of("vectors", &json!({"backend": "vector-store", "vectorStore": store}))
    };
    scene.until_said("arkmemories", &at("broker"), |said| said.message.contains("is inside the cluster"))?;
    let memory = at(&format!("broker.{there}"));
    let said = scene.about("arkmemories", &memory)?;
    ensure!(said.allowed && !said.codes.contains("/outside"), "{said:?}");
    scene.create_in(&there, &service(6333))?;
    scene.once("found", || {
        let said = scene.about("arkmemories", &memory)?;
        let words = format!("endpoint host \"broker.{there}\" is inside the cluster");
        ensure!(!said.allowed && said.message.contains(&words), "{said:?}");
        Ok(())
    })?;
    delete(scene.cluster, &scene.cluster.client(), &policy)
}

fn config_maps(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture)?;
    let rules = json!([{"id": "host", "endpoint": {"hosts": ["*.example.com"]}}]);
    let policy = scene.policy("of-config-maps", &json!({"namespaces": [scene.namespace]}), &rules)?;
    let memory = ark_memory(&json!({"configMapKeyRef": {"name": "broker", "key": "url"}}));
    // A missing object cannot be judged; the rule itself has not failed.
    let unknown = scene.until_said("memories", &memory, |said| said.codes.contains("/host"))?;
    ensure!(unknown.allowed && !unknown.warnings.contains("/host"), "{unknown:?}");
    for (host, allowed) in [("memory.example.org", false), ("memory.example.com", true)] {
        scene.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "broker"},
            "data": {"url": format!("https://{host}")},
        }))?;
        let said = scene.about("memories", &memory)?;
        ensure!(said.allowed == allowed && !said.warnings.contains("/host"), "{host}: {said:?}");
        let words = format!("endpoint host \"{host}\" is not among the allowed hosts");
        ensure!(allowed || said.message.contains(&words), "{said:?}");
        ensure!(said.codes.contains("/host") != allowed, "{said:?}");
    }
    delete(scene.cluster, &scene.cluster.client(), &policy)
}

/// A watch of Namespaces that has ended shows no new one.
fn namespaces(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture)?;
    let (policy, prod) = scene.policy_for_prod()?;
    scene.may("namespaces", &["get"])?;
    scene.lose_watches();
    for (labels, allowed) in [(&[prod.label()][..], false), (&[], true)] {
        let new = scene.cluster.labelled_namespace("new", labels)?;
        let asked = Asked::new(scene.cluster, &scene.memgate, &new)?;
        let said = asked.about(scene.cluster, "arkmemories", &scratch())?;
        ensure!(said.allowed == allowed && said.codes.contains("/durable") != allowed, "{new}: {said:?}");
    }
    delete(scene.cluster, &scene.cluster.client(), &policy)
}

fn forbidden(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture)?;
    let (of_prod, prod) = scene.policy_for_prod()?;
    let rules = json!([
        {"id": "there", "references": {"mustExist": ["Service"]}},
        {"id": "surely", "references": {"mustExist": ["Service"]}, "onUnknown": "deny", "when": {"backends": ["http"]}},
    ]);
    let here = json!({"namespaces": [scene.namespace], "names": ["strict"]});
    let strictly = scene.policy("strictly", &here, &json!([rules[1]]))?;
    let loosely = scene.policy("loosely", &json!({"namespaces": [scene.namespace]}), &json!([rules[0]]))?;
    let memory = ark_memory(&json!({"serviceRef": {"name": "broker", "port": "http"}}));
    scene.until_said("memories", &memory, |said| said.message.contains("not found"))?;

    for resource in ["services", "configmaps", "namespaces"] {
        scene.may(resource, &[])?;
    }
    scene.lose_watches();
    let failed = scene.lookups("failed")?;
    let said = scene.about("memories", &memory)?;
    ensure!(said.allowed && said.codes.contains("/there") && !said.warnings.contains("/there"), "{said:?}");
    let mut strict = memory;
    strict["metadata"]["name"] = json!("strict");
    let said = scene.about("memories", &strict)?;
    let words = format!("cannot be judged: Service \"{}/broker\" is not known", scene.namespace);
    ensure!(!said.allowed && said.message.contains(&words), "{said:?}");

    // A policy that may be for a Namespace of which nothing is known warns.
    let new = scene.cluster.labelled_namespace("new", &[prod.label()])?;
    let asked = Asked::new(scene.cluster, &scene.memgate, &new)?;
    let said = asked.about(scene.cluster, "arkmemories", &scratch())?;
    ensure!(said.allowed && said.warnings.contains("loses its memory with its process"), "{said:?}");
    ensure!(scene.lookups("failed")? >= failed + 3, "the failed lookups are not counted");
    let ready = scene.memgate.probe("/readyz").context("memgate does not answer probes")?;
    ensure!(ready.0 == 200, "{ready:?}");
    for policy in [of_prod, strictly, loosely] {
        delete(scene.cluster, &scene.cluster.client(), &policy)?;
    }
    Ok(())
}

/// A memgate with rights of its own and a wire to the apiserver.
struct Scene<'c> {
    cluster: &'c ControlPlane,
    namespace: String,
    role: String,
    memgate: Webhook,
    asked: Asked,
    wire: Wire,
}

/// What namespaces are labelled with that one policy is for.
struct Prod(String);

impl Prod {
    fn label(&self) -> (&str, &str) {
        ("test.memgate.dev/prod", &self.0)
    }
}

impl<'c> Scene<'c> {
    fn new(fixture: &'c Fixture) -> Result<Self> {
        let cluster = fixture.cluster()?;
        // The definitions come with it.
        fixture.memgate()?;
        let (home, namespace) = (cluster.fresh_namespace("home")?, cluster.fresh_namespace("looked")?);
        cluster.admin().apply(&text(&manifests(&home, &["--only", "rbac"])?))?;
        let wire = Wire::start(cluster.runtime(), address(&cluster.url())?)?;
        let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate")?;
        let kubeconfig: &Path = &by_way_of(cluster, &kubeconfig, wire.address(), &home)?;
        let memgate = Serve::new(MEMGATE).kubeconfig(kubeconfig).ready()?;
        let asked = Asked::new(cluster, &memgate, &namespace)?;
        Ok(Self { cluster, namespace, role: format!("memgate-{home}"), memgate, asked, wire })
    }

    /// A policy that denies.
    fn policy(&self, name: &str, matching: &Value, rules: &Value) -> Result<Value> {
        let spec = json!({"match": matching, "actions": {"admission": "deny"}, "rules": rules});
        let name = format!("{name}-{}", self.namespace);
        let policy = object("MemoryPolicy", &json!({"name": name}), &spec);
        store(self.cluster, &self.cluster.client(), &policy)?.object()?;
        Ok(policy)
    }

    /// A policy for namespaces with a label that no other trial uses, once it is in force.
    fn policy_for_prod(&self) -> Result<(Value, Prod)> {
        let prod = Prod(self.namespace.clone());
        let (key, value) = prod.label();
        let matching = json!({"namespaceSelector": {"matchLabels": {key: value}}});
        let rules = json!([{"id": "durable", "backends": {"durable": true}}]);
        let policy = self.policy("prod", &matching, &rules)?;
        let label = format!("{key}={value}");
        self.cluster.kubectl(&["label", "namespace", &self.namespace, &label])?.ok()?;
        self.until_said("arkmemories", &scratch(), |said| !said.allowed)?;
        Ok((policy, prod))
    }

    fn about(&self, plural: &str, object: &Value) -> Result<Said> {
        self.asked.about(self.cluster, plural, object)
    }

    fn until_said(&self, plural: &str, object: &Value, enough: impl Fn(&Said) -> bool) -> Result<Said> {
        wait::until("a policy to be in force", || {
            Ok(Some(self.about(plural, object)?).filter(|said| enough(said)))
        })
    }

    fn create(&self, object: &Value) -> Result<()> {
        self.create_in(&self.namespace, object)
    }

    fn create_in(&self, namespace: &str, object: &Value) -> Result<()> {
        let arguments = ["create", "-n", namespace, "-f", "-"];
        self.cluster.admin().run_with_input(&arguments, &object.to_string())?.ok()?;
        Ok(())
    }

    fn apply(&self, object: &Value) -> Result<()> {
        let arguments = ["apply", "-n", &self.namespace, "-f", "-"];
        self.cluster.admin().run_with_input(&arguments, &object.to_string())?.ok()?;
        Ok(())
    }

    /// How many lookups ended so.
    fn lookups(&self, result: &str) -> Result<u64> {
        let (_, metrics) = self.memgate.probe("/metrics").context("memgate has no metrics")?;
        let series = format!("memgate_reference_lookups_total{{result=\"{result}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(series.as_str()));
        Ok(count.map_or(Ok(0), str::parse)?)
    }

    /// That something causes exactly one lookup that ends so.
    fn once(&self, result: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.lookups(result)?;
        act()?;
        let count = self.lookups(result)? - before;
        ensure!(count == 1, "{count} lookups, and not one, ended as {result}");
        Ok(())
    }

    /// Leaves memgate these rights for a core resource, and waits until the apiserver goes by them.
    fn may(&self, resource: &str, verbs: &[&str]) -> Result<()> {
        let role = ["get", "clusterrole", &self.role, "--output=json"];
        let mut role: Value = serde_json::from_str(&self.cluster.kubectl(&role)?.ok()?.stdout)?;
        let rules = role["rules"].as_array_mut().context("a role has rules")?;
        for resources in rules.iter_mut().filter(|rule| rule["apiGroups"] == json!([""])) {
            let resources = resources["resources"].as_array_mut().context("a rule has resources")?;
            resources.retain(|known| known != resource);
        }
        rules.retain(|rule| rule["resources"] != json!([]));
        if !verbs.is_empty() {
            rules.push(json!({"apiGroups": [""], "resources": [resource], "verbs": verbs}));
        }
        self.cluster.admin().run_with_input(&["replace", "-f", "-"], &role.to_string())?.ok()?;
        let home = self.role.strip_prefix("memgate-").context("a role has the name of its home")?;
        let account = format!("--as=system:serviceaccount:{home}:memgate");
        for verb in ["get", "list", "watch"] {
            let expected = if verbs.contains(&verb) { "yes" } else { "no" };
            wait::until("rights to change", || {
                let asked = ["auth", "can-i", verb, resource, "--all-namespaces", &account];
                Ok((self.cluster.kubectl(&asked)?.stdout.trim() == expected).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Ends all watches; those that may not be begun again stay ended.
    fn lose_watches(&self) {
        self.wire.hang_up();
        self.wire.mend();
    }
}

fn service(port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "broker"},
        "spec": {"ports": [{"name": "http", "port": port}]},
    })
}

/// A Memory of Ark with an address from somewhere.
fn ark_memory(value_from: &Value) -> Value {
    json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "remote"},
        "spec": {"address": {"valueFrom": value_from}},
    })
}

fn scratch() -> Value {
    memory_of("scratch", &json!({"backend": "in-context"}))
}
