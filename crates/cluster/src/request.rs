//! Sends a request to the apiserver, and returns the whole response with its warnings.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, DATE, HeaderMap, WARNING};
use axum::http::{Method, Request};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::fmt::rfc2822;
use kube::client::Body;
use serde_json::Value;

use crate::cluster_state::text;

/// How long one request may take, where its caller sets no other limit.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A whole response. The client library would turn a refusal into an error, and drop the warnings.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The texts of the warnings, as kubectl shows them.
    pub warnings: Vec<String>,
    /// The time by the apiserver's clock, in seconds since 1970.
    pub time: Option<i64>,
    /// An object, or a `Status`; null when it is not JSON.
    pub body: Value,
}

impl Response {
    /// The message of a `Status`.
    pub fn message(&self) -> &str {
        text(&self.body, "/message")
    }
}

/// Sends one request and returns the response, whatever its status.
///
/// # Errors
/// When there is no response.
pub async fn send(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response, kube::Error> {
    let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(bytes)).map_err(kube::Error::HttpError)?;
    let (head, body) = client.send(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response {
        status: head.status.as_u16(),
        warnings: warnings(&head.headers),
        time: header_values(&head.headers, &DATE).next().and_then(unix_seconds),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn header_values<'h>(headers: &'h HeaderMap, name: &axum::http::HeaderName) -> impl Iterator<Item = &'h str> {
    headers.get_all(name).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
}

fn unix_seconds(date: &str) -> Option<i64> {
    Some(rfc2822::parse(date).ok()?.timestamp().as_second())
}

/// The texts of warning headers `299 - "text"`. Source: RFC 9110.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let quoted = |header| str::strip_prefix(header, "299 - \"")?.strip_suffix('"');
    header_values(headers, &WARNING).filter_map(quoted).map(unescaped).collect()
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
    fn reads_the_time_and_the_warnings_of_a_response() {
        assert_eq!(unix_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(unix_seconds("yesterday"), None);
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "spec.a: \"b\" is odd""#.parse().unwrap());
        headers.append(WARNING, "299 - \"and so is c\"".parse().unwrap());
        assert_eq!(warnings(&headers), ["spec.a: \"b\" is odd", "and so is c"]);
    }
}
