//! One plain request to the apiserver, and everything in its answer: a client library would turn
//! a refusal into an error of its own and drop the warnings.

use anyhow::{Context, Result, bail, ensure};
use axum::http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use memgate_model::kind::POLICY_KINDS;
use serde_json::Value;

/// What comes before the message of a webhook that refused.
const DENIED_BY: &str = "admission webhook ";

/// An answer of the apiserver.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The texts of the `Warning` headers, as a client would show them.
    pub(crate) warnings: Vec<String>,
    /// Under which id it is in the audit log.
    pub(crate) audit_id: String,
    /// An object, or a `Status`; text that is not JSON is a string.
    pub(crate) body: Value,
}

/// Sends `body`, if any, and takes whatever comes back.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer> {
    let unanswered = || format!("{method} {path} was not answered");
    let request = Request::builder()
        .method(method.clone())
        .uri(path)
        .header("Content-Type", "application/json")
        .body(Body::from(body.map_or_else(Vec::new, |body| body.to_string().into_bytes())))?;
    let answer = client.send(request).await.with_context(unanswered)?;
    let (head, body) = answer.into_parts();
    let body = body.collect().await.with_context(unanswered)?.to_bytes();
    Ok(Answer {
        status: head.status.as_u16(),
        warnings: warnings(&head.headers)?,
        audit_id: head.headers.get("Audit-Id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned())),
    })
}

/// The path of all objects of the kind of `object` in a namespace, or of one of them.
///
/// # Errors
/// When the name of the kind in a path is not known here.
pub(crate) fn path(object: &Value, namespace: &str, name: Option<&str>) -> Result<String> {
    let api_version = object["apiVersion"].as_str().context("an object has no apiVersion")?;
    let kind = object["kind"].as_str().context("an object has no kind")?;
    let (root, group) = match api_version.split_once('/') {
        Some((group, _)) => ("apis", group),
        None => ("api", ""),
    };
    let (plural, namespaced) = match (group, kind) {
        ("", "Pod") => ("pods", true),
        ("apps", "Deployment") => ("deployments", true),
        ("apps", "StatefulSet") => ("statefulsets", true),
        ("apps", "DaemonSet") => ("daemonsets", true),
        ("batch", "Job") => ("jobs", true),
        ("batch", "CronJob") => ("cronjobs", true),
        _ => {
            let validated =
                || memgate_platforms::validated(&memgate_platforms::ALL, group, kind).map(|(_, kind)| kind);
            let of_policies = || POLICY_KINDS.into_iter().find(|known| known.is(group, kind));
            let known = memgate_platforms::state_kind(&memgate_platforms::ALL, group, kind)
                .or_else(validated)
                .or_else(of_policies);
            let known = known.with_context(|| {
                format!("it is not known here how {api_version} {kind} is called in a path")
            })?;
            (known.plural, known.namespaced)
        }
    };
    let scope = if namespaced { format!("namespaces/{namespace}/") } else { String::new() };
    let name = name.map(|name| format!("/{name}")).unwrap_or_default();
    Ok(format!("/{root}/{api_version}/{scope}{plural}{name}"))
}

/// Creates an object in a namespace.
pub(crate) async fn create(client: &Client, namespace: &str, object: &Value, query: &str) -> Result<Answer> {
    let path = path(object, namespace, None)?;
    send(client, Method::POST, &format!("{path}{query}"), Some(object)).await
}

impl Answer {
    /// Whether the request was granted.
    pub(crate) fn granted(&self) -> bool {
        self.status < 300
    }

    /// The object, when the request was granted.
    ///
    /// # Errors
    /// With the apiserver's words when it was not.
    pub(crate) fn object(self) -> Result<Value> {
        if !self.granted() {
            bail!("the apiserver answered {}: {}", self.status, self.message());
        }
        Ok(self.body)
    }

    /// The message of a refusal.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// The message of a webhook that refused; `None` when the apiserver itself did.
    pub(crate) fn webhook_message(&self) -> Option<&str> {
        let (_, message) = self.message().strip_prefix(DENIED_BY)?.split_once(" denied the request: ")?;
        Some(message)
    }
}

fn warnings(headers: &HeaderMap) -> Result<Vec<String>> {
    let values = headers.get_all("Warning").iter();
    values.map(|value| warning(std::str::from_utf8(value.as_bytes())?)).collect()
}

/// From `299 - "text"`, as RFC 9110 wrote it, to the text.
fn warning(header: &str) -> Result<String> {
    let text = header.strip_prefix("299 - \"").and_then(|rest| rest.strip_suffix('"'));
    let text = text.with_context(|| format!("not a warning as Kubernetes writes them: {header}"))?;
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        ensure!(c != '"', "two warnings in one header: {header}");
        plain.push(if c == '\\' { chars.next().context("a backslash at the end")? } else { c });
    }
    Ok(plain)
}
