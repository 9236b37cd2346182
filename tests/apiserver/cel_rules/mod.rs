//! What the policies of memgate refuse and write where no memgate runs.
//!
//! They are installed in a cluster of their own, as `memgate manifests` has them but for two things:
//! each fails when it cannot be evaluated, so that nothing passes by accident, and one user is exempt,
//! who puts what they would refuse into the cluster.
//!
//! ```text
//! parity       every case of tests/cases against memgate itself
//! variants     their objects with parts missing, empty, null or of another type, likewise
//! scenarios    types, stored faults, deletion, defaults
//! ```

mod parity;
mod scenarios;
mod variants;

use std::collections::BTreeSet;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kube::Client;
use memgate_core::admission;
use memgate_install::component::Component;
use memgate_model::finding::Severity;
use memgate_workbench::casefile::Case as Asked;
use memgate_workbench::casefile::request::state;
use serde_json::{Value, json};

use crate::{
    fixture::Trial,
    installed::{documents, exempt_client, install_crds, memgate},
    request::{Answer, path, send},
    support::{control_plane::ControlPlane, release::Release, wait},
};

/// What comes before the message of a policy that refused.
const DENIED_BY: &str = "ValidatingAdmissionPolicy 'memgate-";

/// A cluster with the policies.
pub(crate) struct PolicyCluster {
    cluster: ControlPlane,
    exempt: Client,
    /// Held while an object without a namespace is stored, or asked for under a name that another trial may store.
    cluster_wide: Mutex<()>,
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("cel_rules::refuses_and_admits_what_memgate_does", parity::cases),
        Trial::new("cel_rules::has_an_answer_to_unusual_objects", variants::variants),
        Trial::new("cel_rules::has_an_answer_to_unusual_changes", variants::updates),
        Trial::new("cel_rules::knows_the_types_of_all_kinds", scenarios::knows_types),
        Trial::new("cel_rules::lets_stored_faults_be", scenarios::lets_stored_faults_be),
        Trial::new("cel_rules::costs_little", scenarios::costs_little),
        Trial::new("cel_rules::judges_objects_that_go", scenarios::judges_objects_that_go),
        Trial::new("cel_rules::gives_a_query_its_memory", scenarios::gives_a_query_its_memory)
            .since(Component::Map.min_kubernetes()),
    ]
}

impl PolicyCluster {
    /// Starts a cluster, installs CRDs and policies, and waits until every policy is in force.
    pub(crate) fn start() -> Result<Self> {
        let cluster = ControlPlane::start_with_types()?;
        install_crds(&cluster)?;
        let exempt = exempt_client(&cluster)?;
        let policies = Self { cluster, exempt, cluster_wide: Mutex::new(()) };
        let objects: Vec<String> = objects()?.iter().map(Value::to_string).collect();
        policies.cluster.admin().apply(&objects.join("\n---\n"))?;
        parity::wait_until_in_force(&policies)?;
        Ok(policies)
    }

    /// What the apiserver says of the types in a policy once it has checked them; null when all is well.
    fn type_warnings(&self, name: &str) -> Result<Value> {
        let path = format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}");
        let status = wait::until(&format!("the types of {name} to be checked"), || {
            let policy = self.send(Method::GET, &path, None)?.object()?;
            let done = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
            Ok(done.then(|| policy["status"].clone()))
        })?;
        ensure!(status["typeChecking"].is_object(), "{name}: {status}");
        Ok(status["typeChecking"]["expressionWarnings"].clone())
    }

    /// The same of a policy that this cluster does not have, without a binding.
    pub(crate) fn type_warnings_of(&self, policy: &Value) -> Result<Value> {
        let name = policy["metadata"]["name"].as_str().context("a policy has a name")?;
        let kept = json!({
            "apiVersion": policy["apiVersion"], "kind": policy["kind"],
            "metadata": {"name": name}, "spec": policy["spec"],
        });
        self.cluster.admin().apply(&kept.to_string())?;
        let warnings = self.type_warnings(name);
        self.cluster.kubectl(&["delete", "validatingadmissionpolicy", name, "--wait=false"])?.ok()?;
        warnings
    }

    /// Sends a request as a user whom the policies are for.
    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer> {
        self.cluster.block_on(send(&self.cluster.client(), method, path, body))
    }

    /// Sends a request as the user who is exempt.
    fn send_exempt(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer> {
        self.cluster.block_on(send(&self.exempt, method, path, body))
    }

    /// Asks whether an object could be created.
    fn create(&self, namespace: &str, object: &Value) -> Result<Answer> {
        self.send(Method::POST, &format!("{}?dryRun=All", path(object, namespace, None)?), Some(object))
    }

    /// Stores an object, whatever the policies say of it.
    fn store(&self, namespace: &str, object: &Value) -> Result<Answer> {
        self.send_exempt(Method::POST, &path(object, namespace, None)?, Some(object))
    }

    /// Asks whether a stored object could be changed into this one.
    fn update(&self, namespace: &str, stored: &Value, object: &Value) -> Result<Answer> {
        let (path, object) = changed(namespace, stored, object)?;
        self.send(Method::PUT, &path, Some(&object))
    }

    /// The same, unseen by the policies.
    fn update_unseen(&self, namespace: &str, stored: &Value, object: &Value) -> Result<Answer> {
        let (path, object) = changed(namespace, stored, object)?;
        self.send_exempt(Method::PUT, &path, Some(&object))
    }

    /// Removes a stored object.
    fn remove(&self, namespace: &str, stored: &Value) -> Result<()> {
        let name = stored["metadata"]["name"].as_str().context("a stored object has a name")?;
        self.send_exempt(Method::DELETE, &path(stored, namespace, Some(name))?, None)?.object()?;
        Ok(())
    }
}

/// Where to ask for a change, and for what.
fn changed(namespace: &str, stored: &Value, object: &Value) -> Result<(String, Value)> {
    let name = stored["metadata"]["name"].as_str().context("a stored object has a name")?;
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    Ok((format!("{}?dryRun=All", path(&object, namespace, Some(name))?), object))
}

/// The policies and their bindings; none that is about memgate's own account.
fn objects() -> Result<Vec<Value>> {
    let mut command = vec!["manifests", "--only", "policies", "--component", "vap"];
    if Release::from_environment()?.number() >= Component::Map.min_kubernetes() {
        command.extend(["--component", "map"]);
    }
    let text = memgate(&command)?;
    let mut objects = documents(&text);
    objects.retain(|object| object["metadata"]["name"] != "memgate-self-guard");
    for object in &mut objects {
        if let Some(conditions) = object["spec"]["matchConditions"].as_array_mut() {
            conditions.push(json!({
                "name": "not-exempt", "expression": "request.userInfo.username != 'exempt'",
            }));
            object["spec"]["failurePolicy"] = json!("Fail");
        }
    }
    Ok(objects)
}

/// The code under which a policy refused; `None` when it was not a policy that did.
///
/// # Errors
/// When a policy refused because it could not be evaluated.
fn refused_for(answer: &Answer) -> Result<Option<String>> {
    let Some((_, message)) = answer.message().split_once(DENIED_BY) else {
        ensure!(!answer.message().contains("resulted in error"), "{}", answer.message());
        return Ok(None);
    };
    let code = message.strip_suffix(')').and_then(|message| message.rsplit_once(" (memgate "));
    let (_, code) = code.with_context(|| format!("no rule of a policy refuses it: {}", answer.message()))?;
    ensure!(answer.status == 422, "the status of a refusal is {}", answer.status);
    Ok(Some(code.to_owned()))
}

/// The codes, with their messages, under which memgate itself would refuse a request.
fn denials(asked: &Asked) -> Result<Vec<(&'static str, String)>> {
    let body = memgate_workbench::casefile::request::review(asked).to_string();
    let review = admission::parse(&body)?;
    let admitted = admission::admit(&review.request, &state(asked)?)?;
    let findings = admitted.decision.findings.into_iter();
    let denials = findings.filter(|finding| finding.severity == Severity::Deny);
    Ok(denials.map(|finding| (finding.code.name, finding.message().into_owned())).collect())
}

/// The codes of all rules.
fn codes_with_rules() -> BTreeSet<&'static str> {
    let tables = memgate_platforms::ALL.into_iter().flat_map(|family| family.in_cel.tables);
    tables.flat_map(|table| table.rules).map(|rule| rule.code.name).collect()
}
