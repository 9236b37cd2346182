//! The constant answer: memgate's listener, TLS and connections, with a service that gives each pod the patch that memgate
//! gave one, and decides nothing.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::creators::{NAMESPACE, pod};
use crate::common::review;
use crate::limit;
use crate::load::request;
use crate::support::control_plane::ControlPlane;
use crate::support::https::Caller;
use crate::support::webhook::Webhook;

/// The file with the answer, beside the certificate.
const ANSWER: &str = "answer.json";

/// What comes before the uid of a review, and of an answer. An apiserver writes it before all other uids.
const BEFORE_UID: &[u8] = br#""uid":""#;

/// How long a uid is.
const UID_BYTES: usize = 36;

/// Serves at this address until it is killed.
pub(crate) fn serve(listen: SocketAddr, folder: &Path) -> Result<()> {
    let answer = fs::read(folder.join(ANSWER))?;
    let (before, rest) = answer.split_at(uid_at(&answer).context("the answer has no uid")?);
    let parts = Arc::new((before.to_vec(), rest[UID_BYTES..].to_vec()));
    let routes = Router::new().fallback(move |body: Bytes| {
        let (before, after) = &*parts;
        let uid = uid_at(&body).map(|start| &body[start..start + UID_BYTES]);
        let answer = uid.map(|uid| Bytes::from([before, uid, after].concat()));
        std::future::ready(answer.map_or_else(
            || StatusCode::BAD_REQUEST.into_response(),
            |answer| ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        ))
    });
    limit::serve(listen, folder, routes)
}

/// Where the first whole uid begins.
fn uid_at(text: &[u8]) -> Option<usize> {
    let start = text.windows(BEFORE_UID.len()).position(|part| part == BEFORE_UID)? + BEFORE_UID.len();
    (text.len() >= start + UID_BYTES).then_some(start)
}

/// Writes what memgate answers about a pod of the creators, with another annotation instead of memgate's own.
pub(crate) fn write_answer(
    cluster: &ControlPlane,
    memgate: &Webhook,
    (annotation, other): (&str, &str),
    folder: &Path,
) -> Result<()> {
    let mut review: Value = serde_json::from_str(&review("arkonis.dev/deployment", 20, 600, false))?;
    review["request"]["namespace"] = json!(NAMESPACE);
    review["request"]["object"] = pod("0")?;
    let caller = Caller::new(memgate.addresses().listen, memgate.ca())?;
    let request = request(&review.to_string());
    let answer = cluster.block_on(async { caller.connect().await?.exchange(&request).await })?;
    let text = String::from_utf8(answer.body)?;
    ensure!(answer.status == 200, "{}: {text}", answer.status);
    let parsed: Value = serde_json::from_str(&text)?;
    let patch = parsed["response"]["patch"].as_str().context("memgate changes nothing")?;
    let operations = String::from_utf8(BASE64_STANDARD.decode(patch)?)?;
    ensure!(operations.contains(annotation), "{annotation} is not in {operations}");
    let changed = BASE64_STANDARD.encode(operations.replace(annotation, other));
    Ok(fs::write(folder.join(ANSWER), text.replace(patch, &changed))?)
}
