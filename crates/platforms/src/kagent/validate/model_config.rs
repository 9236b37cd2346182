//! Validates a ModelConfig that is an embedder.

use crate::kagent::api::Line;
use crate::kagent::block::pointer;
use crate::kagent::codes::{EMBEDDER_SETTING_IGNORED, ENDPOINT_CREDENTIALS};
use crate::kagent::embedder::Embedder;
use crate::prelude::*;
use crate::url::Endpoint;

use super::users::{self, Users};

/// The findings about a ModelConfig, if an object of the state embeds with it.
pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let users = Users::of(subject, state);
    if users.first().is_none() {
        return Vec::new();
    }
    let embedder = Embedder::new(Line::of(subject.kind), subject.object);
    let flaw = embedder.flaw().map(|flaw| Finding::warn(flaw.code, flaw.pointer, flaw.message));
    let mut findings: Vec<Finding> = flaw.into_iter().collect();
    findings.extend(ignored_settings(&embedder, subject.object));
    findings.extend(credentials(subject.object));
    let mut findings: Vec<Finding> = findings.into_iter().filter_map(|it| users.show_first(it)).collect();
    findings.extend(users::changed(subject, &users));
    findings
}

/// Settings that embedding requests do not use.
fn ignored_settings(embedder: &Embedder<'_>, object: &Tree) -> Vec<Finding> {
    let headers =
        object.at(&["spec", "defaultHeaders"]).is_some_and(|headers| headers.keys().next().is_some());
    let is_older = embedder.line == Line::Older;
    let tls = object.at(&["spec", "tls"]).is_some_and(|tls| !tls.is_empty_object());
    let exchange = object.at(&["spec", "openAI", "tokenExchange"]).is_some();
    let rows = [
        (headers, "/spec/defaultHeaders", "is not sent with embedding requests"),
        (is_older && tls, "/spec/tls", "does not hold for embedding requests in kagent 0.x"),
        (is_older && exchange, "/spec/openAI/tokenExchange", "is not used for embedding requests"),
    ];
    let finding = |(_, field, effect): (bool, &str, &str)| {
        let pointer = Pointer::new(field);
        let message = format!("{} {effect}", pointer.field());
        Finding::warn(&EMBEDDER_SETTING_IGNORED, pointer, message)
    };
    rows.into_iter().filter(|(is_set, ..)| *is_set).map(finding).collect()
}

/// Credentials in an endpoint, also in a section of another provider: they are stored in plain text.
fn credentials(object: &Tree) -> impl Iterator<Item = Finding> {
    const ENDPOINTS: [[&str; 3]; 4] = [
        ["spec", "openAI", "baseUrl"],
        ["spec", "azureOpenAI", "azureEndpoint"],
        ["spec", "ollama", "host"],
        ["spec", "foundry", "endpoint"],
    ];
    let has_credentials =
        |path: &[&str; 3]| object.text_at(path).is_some_and(|text| Endpoint::parse(text).userinfo.is_some());
    ENDPOINTS.into_iter().filter(has_credentials).map(|path| {
        let message = format!("{} contains credentials; use apiKeySecret", path.join("."));
        Finding::warn(&ENDPOINT_CREDENTIALS, pointer(&path), message)
    })
}
