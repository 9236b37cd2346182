//! Reads from the response to a dry run whether memgate answered. No I/O.

use crate::check::Check;
use crate::cluster_state::{elements, text};
use crate::probe::Probe;
use crate::request::Response;
use memgate_primitives::plain_text::plain;

/// The name of the check.
const ID: &str = "answers";

/// What one dry run has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The probe and the result in words.
    pub check: Check,
    /// Whether memgate has not answered and should have.
    pub is_missing: bool,
}

impl Answer {
    /// No answer that memgate had to give, for this reason.
    pub(super) fn missing(probe: &Probe, why: impl Into<String>) -> Self {
        let check = Check::fail(ID, &*probe.name, why).help("memgate explain runbook/no-answer");
        Self { check, is_missing: true }
    }

    /// An API server of the platform's own serves the kind: no dry run was sent.
    pub(super) fn aggregated(probe: &Probe, api_service: &str, help: &str) -> Self {
        let message = format!(
            "not asked: an API server of the platform serves it (APIService {api_service}) and may not call webhooks"
        );
        Self { check: Check::warn(ID, &*probe.name, message).help(help), is_missing: false }
    }

    /// Whether such a server serves the kind is not known: no dry run was sent.
    pub(super) fn maybe_aggregated(probe: &Probe, api_service: &str) -> Self {
        let message = format!(
            "not asked: you may not get the APIService {api_service}, which shows whether a dry run is safe"
        );
        Self { check: Check::unknown(ID, &*probe.name, message), is_missing: false }
    }

    fn answered(probe: &Probe, by: &str) -> Self {
        let message = format!("answered{by} ({})", probe.finding.code_name());
        Self { check: Check::ok(ID, &*probe.name, message), is_missing: false }
    }
}

/// Reads the answer from a response; none for a kind that the cluster does not serve.
pub(super) fn interpret(probe: &Probe, response: &Response) -> Option<Answer> {
    if response.status < 300 {
        return Some(accepted(probe, response));
    }
    let message = response.message();
    if let Some(denial) = denial(message) {
        return Some(denied(probe, response, denial));
    }
    if let Some(failure) = failure(message) {
        return Some(Answer::missing(probe, failure));
    }
    let shown = plain(message);
    let why = match response.status {
        401 => "the apiserver does not know you: your credentials are not accepted".to_owned(),
        403 if message.contains(" cannot create ") => {
            let why = format!("you may not ask: {shown}; a dry run needs the right to create");
            return Some(Answer { check: Check::unknown(ID, &*probe.name, why), is_missing: true });
        }
        404 if text(&response.body, "/details/kind") == "namespaces" => {
            format!("there is no such namespace: {shown}")
        }
        404 => return None,
        429 | 502..=504 => format!("the apiserver is not ready: {shown}"),
        _ => format!("the apiserver refuses the dry run before memgate is asked: {shown}"),
    };
    Some(Answer::missing(probe, why))
}

fn accepted(probe: &Probe, response: &Response) -> Answer {
    let is_memgates = |warning: &String| warning.starts_with(&*probe.finding.message());
    if !probe.is_refused() && response.warnings.iter().any(is_memgates) {
        return Answer::answered(probe, "");
    }
    Answer::missing(probe, "the apiserver does not ask memgate")
}

/// The webhook that refused, and its message.
fn denial(message: &str) -> Option<(&str, &str)> {
    message.strip_prefix("admission webhook \"")?.split_once('"')
}

fn denied(probe: &Probe, response: &Response, (webhook, message): (&str, &str)) -> Answer {
    let (webhook, shown) = (plain(webhook), plain(message.trim_start_matches([':', ' '])));
    if !webhook.ends_with(".memgate.dev") {
        let why = format!("another webhook, {webhook}, refuses the dry run before memgate is asked: {shown}");
        return Answer::missing(probe, why);
    }
    let code = probe.finding.code.in_text();
    let mut causes = elements(&response.body, "/details/causes");
    if causes.any(|cause| text(cause, "/message").ends_with(&code)) {
        return Answer::answered(probe, &format!(" by {webhook}"));
    }
    let code = probe.finding.code_name();
    Answer::missing(
        probe,
        format!(
            "{webhook} refuses for another reason than {code}; is that memgate of another version? It says: {shown}"
        ),
    )
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
    use crate::check::CheckStatus;
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
        let answer = interpret(&probe("pods"), response).expect("pods are served");
        assert!(answer.is_missing, "{answer:?}");
        answer.check.message
    }

    fn message(probe: &Probe, response: &Response) -> Option<(CheckStatus, String)> {
        interpret(probe, response).map(|answer| (answer.check.status, answer.check.message))
    }

    #[test]
    fn knows_memgates_own_refusal() {
        let webhook = "required.pods.memgate.dev";
        let mut response = status(422, &format!("admission webhook \"{webhook}\" denied the request: no"));
        let cause = "it has no memory (memgate memgate/pod-not-recognised)";
        response.body["details"] = json!({"causes": [{"message": cause}]});
        let answered = "answered by required.pods.memgate.dev (memgate/pod-not-recognised)".to_owned();
        assert_eq!(message(&probe("pods"), &response), Some((CheckStatus::Ok, answered)));
        response.body["details"] = json!({"causes": [{"message": "no (memgate memgate/schema)"}]});
        assert!(missing(&response).contains("another reason than memgate/pod-not-recognised"));
    }

    #[test]
    fn knows_memgates_own_warning() {
        let orka = probe("orka");
        let mut response = Response { status: 201, ..Response::default() };
        let not_asked = Some((CheckStatus::Fail, "the apiserver does not ask memgate".to_owned()));
        assert_eq!(message(&orka, &response), not_asked);
        response.warnings = vec![format!("{}; more", orka.finding.message())];
        let answered = Some((CheckStatus::Ok, "answered (orka/env-limit)".to_owned()));
        assert_eq!(message(&orka, &response), answered);
        assert_eq!(message(&probe("ark "), &response), not_asked);
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
        assert_eq!(interpret(&probe("ark "), &response), None);
        response.body["details"] = json!({"kind": "namespaces", "name": "nowhere"});
        assert!(missing(&response).contains("no such namespace"));
    }
}
