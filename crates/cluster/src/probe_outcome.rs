//! Reads from the response to a dry run whether memgate answered. No I/O.

use crate::cluster_state::{elements, text};
use crate::probe::Probe;
use crate::request::Response;
use memgate_model::family::AggregatedServer;
use memgate_primitives::plain_text::plain;

/// The outcome of one dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// memgate refused the object, as it must.
    Answered {
        /// The entry of its webhook configurations, where the apiserver names it.
        webhook: Option<String>,
    },
    /// The apiserver accepted the object, so it does not call memgate for it.
    NotAsked,
    /// The cluster does not serve the kind.
    NotServed,
    /// An API server of the platform's own serves the kind. No dry run was sent.
    Aggregated(AggregatedServer),
    /// Such a server may serve the kind, and the user may not read the APIService. No dry run was sent.
    MaybeAggregated(AggregatedServer),
    /// The user lacks the right to create the object.
    Forbidden(String),
    /// memgate did not answer, or its answer was not seen, for this reason.
    Missing(String),
}

/// Reads the outcome from a response.
pub fn interpret(probe: &Probe, response: &Response) -> ProbeOutcome {
    if response.status < 300 {
        return accepted(probe, response);
    }
    let message = response.message();
    if let Some(denial) = denial(message) {
        return denied(probe, response, denial);
    }
    if let Some(failure) = failure(message) {
        return ProbeOutcome::Missing(failure);
    }
    match response.status {
        401 => {
            ProbeOutcome::Missing("the apiserver does not know you: your credentials are not accepted".into())
        }
        403 if message.contains(" cannot create ") => ProbeOutcome::Forbidden(format!(
            "you may not ask: {}; a dry run needs the right to create",
            plain(message)
        )),
        404 if text(&response.body, "/details/kind") == "namespaces" => {
            ProbeOutcome::Missing(format!("there is no such namespace: {}", plain(message)))
        }
        404 => ProbeOutcome::NotServed,
        429 | 502..=504 => ProbeOutcome::Missing(format!("the apiserver is not ready: {}", plain(message))),
        _ => ProbeOutcome::Missing(format!(
            "the apiserver refuses the dry run before memgate is asked: {}",
            plain(message)
        )),
    }
}

fn accepted(probe: &Probe, response: &Response) -> ProbeOutcome {
    let is_memgates = |warning: &String| warning.starts_with(&*probe.finding.message());
    if !probe.is_refused() && response.warnings.iter().any(is_memgates) {
        return ProbeOutcome::Answered { webhook: None };
    }
    ProbeOutcome::NotAsked
}

/// The webhook that refused, and its message.
fn denial(message: &str) -> Option<(&str, &str)> {
    message.strip_prefix("admission webhook \"")?.split_once('"')
}

fn denied(probe: &Probe, response: &Response, (webhook, message): (&str, &str)) -> ProbeOutcome {
    let (webhook, shown) = (plain(webhook), plain(message.trim_start_matches([':', ' '])));
    if !webhook.ends_with(".memgate.dev") {
        return ProbeOutcome::Missing(format!(
            "another webhook, {webhook}, refuses the dry run before memgate is asked: {shown}"
        ));
    }
    if has_cause(probe, response) {
        return ProbeOutcome::Answered { webhook: Some(webhook.into_owned()) };
    }
    ProbeOutcome::Missing(format!(
        "{webhook} refuses for another reason than {}; is that memgate of another version? It says: {shown}",
        probe.finding.code_name()
    ))
}

/// Whether the response has memgate's own finding.
fn has_cause(probe: &Probe, response: &Response) -> bool {
    let code = probe.finding.code.in_text();
    elements(&response.body, "/details/causes").any(|cause| text(cause, "/message").ends_with(&code))
}

/// Why a webhook could not be called.
fn failure(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("failed calling webhook \"")?;
    let (webhook, cause) = rest.split_once("\": ")?;
    let cause = cause.trim_start_matches("failed to call webhook: ");
    let (webhook, shown) = (plain(webhook), plain(cause));
    if !webhook.ends_with(".memgate.dev") {
        return Some(format!("another webhook, {webhook}, does not answer: {shown}"));
    }
    Some(format!("memgate does not answer ({webhook}: {shown})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::probe::probes;

    fn probe(name: &str) -> Probe {
        probes(&memgate_platforms::ALL)
            .into_iter()
            .find(|probe| probe.name.starts_with(name))
            .expect("a probe")
    }

    fn status(code: u16, message: &str) -> Response {
        Response { status: code, body: json!({"kind": "Status", "message": message}), ..Response::default() }
    }

    fn missing(response: &Response) -> String {
        match interpret(&probe("pods"), response) {
            ProbeOutcome::Missing(why) | ProbeOutcome::Forbidden(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn knows_memgates_own_refusal() {
        let webhook = "required.pods.memgate.dev";
        let mut response = status(422, &format!("admission webhook \"{webhook}\" denied the request: no"));
        let message = "it has no memory (memgate memgate/pod-not-recognised)";
        response.body["details"] = json!({"causes": [{"message": message}]});
        let answered = ProbeOutcome::Answered { webhook: Some(webhook.to_owned()) };
        assert_eq!(interpret(&probe("pods"), &response), answered);
        response.body["details"] = json!({"causes": [{"message": "no (memgate memgate/schema)"}]});
        assert!(missing(&response).contains("another reason than memgate/pod-not-recognised"));
    }

    #[test]
    fn knows_memgates_own_warning() {
        let orka = probe("orka");
        let mut response = Response { status: 201, ..Response::default() };
        assert_eq!(interpret(&orka, &response), ProbeOutcome::NotAsked);
        response.warnings = vec![format!("{}; more", orka.finding.message())];
        assert_eq!(interpret(&orka, &response), ProbeOutcome::Answered { webhook: None });
        assert_eq!(interpret(&probe("ark "), &response), ProbeOutcome::NotAsked);
    }

    #[test]
    fn says_what_is_missing() {
        let call = |cause: &str| {
            format!(
                "Internal error occurred: failed calling webhook \"required.pods.memgate.dev\": \
                 failed to call webhook: Post \"https://memgate.memgate-system.svc:443/mutate?timeout=5s\": {cause}"
            )
        };
        for (code, message, expected) in [
            (
                500,
                call("dial tcp 127.0.0.1:1: connect: connection refused"),
                "memgate does not answer (required.pods.memgate.dev: Post",
            ),
            (
                500,
                "Internal error occurred: failed calling webhook \"a.example.com\": no".to_owned(),
                "another webhook, a.example.com, does not answer: no",
            ),
            (
                403,
                "admission webhook \"a.example.com\" denied the request: no pods today".to_owned(),
                "another webhook, a.example.com, refuses",
            ),
            (
                403,
                "pods is forbidden: User \"eve\" cannot create resource \"pods\" in API group".to_owned(),
                "a dry run needs the right to create",
            ),
            (403, "pods \"memgate-wait\" is forbidden: exceeded quota".to_owned(), "before memgate is asked"),
            (401, "Unauthorized".to_owned(), "credentials"),
            (503, "starting".to_owned(), "the apiserver is not ready"),
        ] {
            let why = missing(&status(code, &message));
            assert!(why.contains(expected), "{message}\n{why}");
        }
    }

    #[test]
    fn reports_a_kind_that_is_not_served_from_a_namespace_that_is_not_there() {
        let mut response = status(404, "the server could not find the requested resource");
        assert_eq!(interpret(&probe("ark "), &response), ProbeOutcome::NotServed);
        response.body["details"] = json!({"kind": "namespaces", "name": "nowhere"});
        assert!(missing(&response).contains("no such namespace"));
    }
}
