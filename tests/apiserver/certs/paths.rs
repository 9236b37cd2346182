//! The paths of reviews, which memgate writes and strangers do not know.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    certs::installation::{CONFIGURATIONS, Installation},
    faults::calls::Caller,
    fixture::Fixture,
    installed::documents,
    support::{
        wait,
        webhook::{Endpoint, Webhook},
    },
};

/// The key of the tokens in the Secret.
const TOKENS: &str = "path-tokens";

const DAY: i64 = 24 * 60 * 60;

/// From nothing to reviews under a path that memgate has written, through its renewal, and back from damage.
pub(super) fn paths(fixture: &Fixture) -> Result<()> {
    let installation = Installation::new(fixture.cluster()?, "paths")?;
    let mut memgate = installation.serve().live()?;
    register_service(&installation, &memgate)?;
    memgate.wait_until_ready()?;
    installation.wait_until_asked()?;
    let first = one_path(&installation)?;
    strangers_get_one_answer(&installation, &memgate, &first)?;

    // A day later.
    let tokens = installation.secret(TOKENS)?;
    let aged: String =
        tokens.lines().map(|line| Ok(made_earlier(line, DAY)? + "\n")).collect::<Result<_>>()?;
    installation.write_secret(&[(TOKENS, &aged)])?;
    let second = wait::until("another path", || {
        ensure!(installation.is_asked()?, "the apiserver got no answer while the path was renewed");
        Ok(one_path(&installation).ok().filter(|path| *path != first))
    })?;
    ensure!(installation.secret(TOKENS)?.contains(token(&first)?), "the old one is gone");
    for path in [&first, &second] {
        ensure!(status(&installation, &memgate, path)? == 200, "{path} is not served");
    }

    // Another tool puts a path of its own into one entry.
    for (kind, call) in CONFIGURATIONS.into_iter().zip(["/mutate", "/validate"]) {
        let path = "/webhooks/0/clientConfig/service/path";
        installation.patch(kind, &json!([{"op": "add", "path": path, "value": call}]))?;
    }
    wait::until("the path to be written again", || {
        Ok(one_path(&installation).ok().filter(|path| *path == second).map(|_| ()))
    })?;
    installation.wait_until_asked()?;
    let (log, shown) = (memgate.log(), [token(&first)?, token(&second)?]);
    ensure!(shown.iter().all(|token| !log.contains(token)), "the log shows a token:\n{log}");
    Ok(())
}

/// Registers memgate as an installation does: behind a Service, without `caBundle` and without a path. The Service is
/// an alias of this machine, since nothing here forwards the addresses of others.
pub(super) fn register_service(installation: &Installation<'_>, memgate: &Webhook) -> Result<()> {
    let (cluster, home) = (installation.cluster, installation.home.as_str());
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "memgate", "namespace": home},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    cluster.admin().apply(&service.to_string())?;
    let port = memgate.addresses().listen.port();
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [home]});
    let printed = crate::installed::memgate(&["manifests", "-n", home, "--only", "webhooks"])?;
    for mut configuration in documents(&printed) {
        configuration["metadata"]["name"] = json!(home);
        for webhook in configuration["webhooks"].as_array_mut().context("there are no entries")? {
            let service = &webhook["clientConfig"]["service"];
            ensure!(service["path"].is_null(), "a path is rendered: {service}");
            webhook["clientConfig"]["service"]["port"] = json!(port);
            // A namespace selector does not apply to cluster-wide objects, and other trials have some.
            if let Some(rules) = webhook["rules"].as_array_mut() {
                rules.retain(|rule| rule["scope"] != "Cluster");
            }
            // Instead of all but memgate's own namespace, which is the one of the trial.
            webhook["namespaceSelector"]["matchExpressions"] = json!([only]);
        }
        cluster.admin().apply(&configuration.to_string())?;
    }
    Ok(())
}

/// The mutating path that all entries of both configurations share but for the call.
pub(super) fn one_path(installation: &Installation<'_>) -> Result<String> {
    let mut paths = BTreeSet::new();
    for (kind, call) in CONFIGURATIONS.into_iter().zip(["/mutate/", "/validate/"]) {
        let configuration = installation.configuration(kind)?;
        for entry in configuration["webhooks"].as_array().context("there are no entries")? {
            let path = entry["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
            paths.insert(path.strip_prefix(call).with_context(|| format!("{kind}: {path:?}"))?.to_owned());
        }
    }
    ensure!(paths.len() == 1, "{} paths", paths.len());
    Ok(format!("/mutate/{}", paths.pop_first().unwrap_or_default()))
}

fn token(path: &str) -> Result<&str> {
    let token = path.rsplit('/').next().filter(|token| token.len() == 43);
    token.with_context(|| format!("{path} has no token"))
}

/// A line of the Secret, of a token that was made so many seconds before.
fn made_earlier(line: &str, seconds: i64) -> Result<String> {
    let (token, made) = line.split_once(' ').with_context(|| format!("not a token: {line}"))?;
    Ok(format!("{token} {}", made.parse::<i64>()? - seconds))
}

fn strangers_get_one_answer(installation: &Installation<'_>, memgate: &Webhook, known: &str) -> Result<()> {
    ensure!(status(installation, memgate, known)? == 200, "{known} is not served");
    let wrong = "a".repeat(43);
    for path in ["/", "/mutate", "/validate", "/mutate/", "/metrics", "/readyz"] {
        ensure!(status(installation, memgate, path)? == 503, "{path}");
    }
    for path in [format!("/mutate/{wrong}"), format!("{known}x"), known.to_uppercase()] {
        ensure!(status(installation, memgate, &path)? == 503, "{path}");
    }
    Ok(())
}

/// The status of memgate's answer to a review that is posted to this path.
pub(super) fn status(installation: &Installation<'_>, memgate: &Webhook, path: &str) -> Result<u16> {
    let cluster = installation.cluster;
    let trusting = Endpoint::new(memgate.addresses().listen, &installation.secret("bundle.crt")?);
    let caller = Caller::new(cluster, &trusting, &installation.home)?;
    Ok(cluster.block_on(caller.send(Method::POST, path, &review(&installation.home)))?.status)
}

fn review(namespace: &str) -> Value {
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let object =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": namespace}});
    let request =
        json!({"uid": "1", "kind": kind, "namespace": namespace, "operation": "CREATE", "object": object});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}
