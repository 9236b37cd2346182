//! Which apiserver a command asks, and one plain request to it, with all that its answer holds.

use std::path::PathBuf;

use axum::http::header::{CONTENT_TYPE, DATE, HeaderMap, WARNING};
use axum::http::{Method, Request};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::fmt::rfc2822;
use kube::client::Body;
use serde_json::Value;

use crate::cli::cluster::Cluster;

/// Which cluster a command asks.
#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
    /// The kubeconfig; without it KUBECONFIG, ~/.kube/config, or the service account
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// A client of the cluster; nothing is called yet.
    ///
    /// # Errors
    /// When there is no cluster, or what leads to it is no good.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        let cluster = Cluster { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        cluster.client().await
    }
}

/// What went wrong with a request, for people: the apiserver's words, or the causes in one line.
#[must_use]
pub fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Service(error) => chain(error.as_ref()),
        kube::Error::HyperError(error) => chain(error),
        other => chain(other),
    }
}

/// An error and its causes, each said once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

/// All that the apiserver answered. A client library would make an error of a refusal, and drop
/// the warnings.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The texts of the warnings, as kubectl shows them.
    pub warnings: Vec<String>,
    /// What time the apiserver has, in seconds since 1970.
    pub time: Option<i64>,
    /// An object, or a `Status`; null when it is no JSON.
    pub body: Value,
}

impl Answer {
    /// What is said in a refusal.
    #[must_use]
    pub fn message(&self) -> &str {
        self.body.get("message").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Sends one request and takes whatever comes back.
///
/// # Errors
/// When nobody answers.
pub async fn ask(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer, kube::Error> {
    let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(bytes)).map_err(kube::Error::HttpError)?;
    let (head, body) = client.send(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Answer {
        status: head.status.as_u16(),
        warnings: warnings(&head.headers),
        time: text(&head.headers, &DATE).next().and_then(seconds),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn text<'h>(headers: &'h HeaderMap, name: &axum::http::HeaderName) -> impl Iterator<Item = &'h str> {
    headers.get_all(name).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
}

fn seconds(date: &str) -> Option<i64> {
    Some(rfc2822::parse(date).ok()?.timestamp().as_second())
}

/// From `299 - "text"`, as RFC 9110 has it, to the text.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let quoted = |header| str::strip_prefix(header, "299 - \"")?.strip_suffix('"');
    text(headers, &WARNING).filter_map(quoted).map(unescaped).collect()
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_and_the_warnings_of_an_answer() {
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("yesterday"), None);
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "spec.a: \"b\" is odd""#.parse().unwrap());
        headers.append(WARNING, "299 - \"and so is c\"".parse().unwrap());
        assert_eq!(warnings(&headers), ["spec.a: \"b\" is odd", "and so is c"]);
    }
}
