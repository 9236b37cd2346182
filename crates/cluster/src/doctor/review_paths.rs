//! Whether memgate answers every caller that reaches its port, or only callers with the path token or a certificate.

use crate::cluster_state::Installation;
use crate::doctor::check::Check;
use crate::webhook_entry::WebhookEntry;
use memgate_primitives::review_path;
use memgate_primitives::review_path::Phase;

const ID: &str = "review-path";

/// The form of the path in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathForm {
    /// The path ends in a token.
    Token,
    /// `/mutate` or `/validate`.
    Plain,
    /// A path that memgate does not serve, or no path.
    Other,
}

/// A check for each configuration that calls a Service, about its worst entry.
pub fn checks(found: &Installation) -> Vec<Check> {
    let is_guarded = found.arguments().any(|argument| argument.starts_with("--client-ca="));
    let check = |call| {
        let forms = found.own_entries(call).into_iter().flatten().filter_map(|entry| form(&entry, call));
        Some(verdict(&found.own_title(call), call, forms.max()?, is_guarded))
    };
    Phase::ALL.into_iter().filter_map(check).collect()
}

fn form(entry: &WebhookEntry, call: Phase) -> Option<PathForm> {
    let path = entry.client.service.as_ref()?.path.as_deref().unwrap_or_default();
    Some(match review_path::token_call(path) {
        _ if path == review_path::plain(call) => PathForm::Plain,
        Some((of, _)) if of == call => PathForm::Token,
        _ => PathForm::Other,
    })
}

fn verdict(subject: &str, call: Phase, form: PathForm, is_guarded: bool) -> Check {
    let call = review_path::plain(call);
    match form {
        PathForm::Token => {
            Check::ok(ID, subject, format!("{call}/… ends in a token that only the apiserver knows"))
        }
        PathForm::Plain if is_guarded => {
            Check::ok(ID, subject, "only callers with a certificate of the client CA are answered")
        }
        PathForm::Plain => {
            let message = format!("reviews go to {call}: memgate answers every caller that reaches its port");
            let help = "with --certs builtin memgate writes a path with a secret token; with other \
                        certificates add the component mtls or network-policy";
            Check::warn(ID, subject, message).help(help)
        }
        PathForm::Other => {
            let message = "an entry has a path that memgate does not serve: its calls fail until memgate \
                           has written another one";
            let help = "memgate writes it with --certs builtin; its log says why it does not; with other \
                        certificates the path is /mutate or /validate";
            Check::fail(ID, subject, message).help(help)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster_state::Fetched;
    use crate::doctor::check::CheckStatus;
    use crate::doctor::inferred::tests::installed;
    use memgate_primitives::review_path::TOKEN_CHARS;

    /// What is found when all entries have this path.
    fn found(path: Option<&str>, arguments: &[&str]) -> Installation {
        let mut config = installed(&memgate_platforms::ALL).mutating;
        for webhook in config.webhooks.iter_mut().flatten() {
            let service = webhook.client_config.service.as_mut().expect("a Service");
            service.path = path.map(str::to_owned);
        }
        let container = json!({"name": "memgate", "args": arguments});
        let spec = json!({"selector": {}, "template": {"spec": {"containers": [container]}}});
        Installation {
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![config]),
            deployment: Fetched::Found(json!({"spec": spec})),
            ..Installation::default()
        }
    }

    fn status(path: Option<&str>, arguments: &[&str]) -> CheckStatus {
        match checks(&found(path, arguments)).as_slice() {
            [check] => check.status,
            other => panic!("{other:#?}"),
        }
    }

    #[test]
    fn a_plain_path_is_reported() {
        let token = format!("/mutate/{}", "a".repeat(TOKEN_CHARS));
        assert_eq!(status(Some(&token), &[]), CheckStatus::Ok);
        assert_eq!(status(Some("/mutate"), &["--certs=cert-manager"]), CheckStatus::Warn);
        assert_eq!(status(Some("/mutate"), &["--client-ca=/ca.crt"]), CheckStatus::Ok);
        let short = format!("/mutate/{}", "a".repeat(TOKEN_CHARS - 1));
        for other in [None, Some(""), Some("/"), Some("/validate"), Some("/mutates"), Some(&*short)] {
            assert_eq!(status(other, &["--client-ca=/ca.crt"]), CheckStatus::Fail, "{other:?}");
        }
    }

    #[test]
    fn the_token_is_not_shown() {
        let token = "t0k3n".repeat(9)[..TOKEN_CHARS].to_owned();
        let checks = checks(&found(Some(&format!("/mutate/{token}")), &[]));
        assert!(!format!("{checks:?}").contains(&token), "{checks:?}");
    }

    #[test]
    fn one_entry_that_differs_is_what_counts() {
        let token = format!("/mutate/{}", "a".repeat(TOKEN_CHARS));
        let mut found = found(Some(&token), &[]);
        let Fetched::Found(listing) = &mut found.mutating else { panic!("was found") };
        let entry = listing[0].webhooks.as_mut().expect("entries").last_mut().expect("one");
        entry.client_config.service.as_mut().expect("a Service").path = None;
        assert_eq!(checks(&found)[0].status, CheckStatus::Fail);
    }

    #[test]
    fn what_calls_a_url_has_no_check() {
        let mut found = found(None, &[]);
        let Fetched::Found(listing) = &mut found.mutating else { panic!("was found") };
        for entry in listing[0].webhooks.iter_mut().flatten() {
            entry.client_config.service = None;
        }
        assert_eq!(checks(&found), []);
    }
}
