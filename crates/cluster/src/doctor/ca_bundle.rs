//! Whether the `caBundle` of each entry holds certificates that are valid by the apiserver's clock.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;
use x509_parser::pem::Pem;

use crate::answer::Answer;
use crate::check::Check;
use crate::cluster_state::Installation;
use memgate_primitives::review_path::Phase;

const ID: &str = "ca-bundle";

/// How long before it expires a certificate is warned about, in seconds: a week.
const EXPIRY_WARNING_SECONDS: i64 = 7 * 24 * 3600;

/// How to restore a bundle.
const HELP: &str = "memgate writes it with --certs builtin; otherwise see your CA injector";

/// A check of the bundle of each entry; equal ones behind each other are one. Of a CA that did not sign what memgate presents,
/// the answers tell.
pub(super) fn checks(found: &Installation, answers: &[Answer]) -> Vec<Check> {
    let is_foreign = |answer: &&Answer| answer.check.message.contains("signed by unknown authority");
    if let Some(answer) = answers.iter().find(is_foreign) {
        let what = if found.arguments().any(|flag| flag == "--certs=files") {
            "webhooks --ca ca.crt"
        } else {
            "webhooks"
        };
        let help = if found.arguments().any(|flag| flag.starts_with("--certs=") && flag != "--certs=builtin")
        {
            format!("{} | kubectl apply -f -", found.manifests(&format!("--only {what}")))
        } else {
            format!("kubectl -n {} rollout restart deployment memgate", found.namespace)
        };
        let message = format!(
            "the caBundle is of a CA that did not sign what memgate presents: {}",
            answer.check.message
        );
        return vec![Check::fail(ID, found.own_title(Phase::Mutate), message).help(help)];
    }
    let of_call = |call| {
        let (subject, live) = (found.own_title(call), found.own_entries(call));
        live.iter().map(move |entry| entry_check(&subject, entry, found.apiserver_time))
    };
    let mut checks: Vec<Check> = Phase::ALL.into_iter().flat_map(of_call).collect();
    checks.dedup();
    checks
}

fn entry_check(subject: &str, entry: &MutatingWebhook, now: Option<i64>) -> Check {
    let bundle = entry.client_config.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
    if bundle.is_empty() {
        let message =
            "an entry has no caBundle: the apiserver trusts memgate only if a public CA signed for it";
        return Check::fail(ID, subject, message).help(HELP);
    }
    // As the apiserver reads it: what is not a certificate is passed over.
    let expiries = Pem::iter_from_buffer(bundle).flatten().filter_map(|pem| {
        let certificate = pem.parse_x509().ok()?;
        Some(certificate.validity().not_after.timestamp())
    });
    let expiries: Vec<i64> = expiries.collect();
    let Some(last) = expiries.iter().max() else {
        return Check::fail(ID, subject, "the caBundle holds no certificate in PEM form").help(HELP);
    };
    let Some(now) = now else {
        return Check::unknown(ID, subject, "the apiserver does not report its time");
    };
    match last - now {
        ..0 => Check::fail(ID, subject, "every certificate of the caBundle has expired").help(HELP),
        0..EXPIRY_WARNING_SECONDS => {
            Check::warn(ID, subject, "the caBundle expires within a week").help(HELP)
        }
        left => {
            let (count, days) = (expiries.len(), left / (24 * 3600));
            Check::ok(ID, subject, format!("certificates in the caBundle: {count}, good for {days} days"))
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;
    use crate::check::CheckStatus;
    use crate::cluster_state::Fetched;
    use crate::doctor::inferred::tests::installed;

    /// The first day of 2030.
    const NOW: i64 = 1_893_456_000;

    fn certificate(last_year: i32) -> String {
        let mut params = CertificateParams::new(vec!["memgate".to_owned()]).expect("params");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 3);
        params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").pem()
    }

    fn trusting(bundle: Option<&str>) -> MutatingWebhookConfiguration {
        let mut config = installed(&memgate_platforms::ALL).mutating;
        for webhook in config.webhooks.iter_mut().flatten() {
            webhook.client_config.ca_bundle = bundle.map(|bundle| ByteString(bundle.as_bytes().to_vec()));
        }
        config
    }

    fn checks_of(bundle: Option<&str>) -> (CheckStatus, String) {
        let items = vec![trusting(bundle)];
        let found = Installation {
            name: "memgate".to_owned(),
            apiserver_time: Some(NOW),
            mutating: Fetched::Found(items),
            ..Installation::default()
        };
        match checks(&found, &[]).as_slice() {
            [check] => (check.status, check.message.clone()),
            other => panic!("{other:#?}"),
        }
    }

    #[test]
    fn checks_bundles_by_their_certificates() {
        let (old, new) = (certificate(2029), certificate(2040));
        let both = format!("{old}{new}");
        for (bundle, status, message) in [
            (None, CheckStatus::Fail, "has no caBundle"),
            (Some("nonsense"), CheckStatus::Fail, "no certificate in PEM form"),
            (Some(old.as_str()), CheckStatus::Fail, "every certificate"),
            (Some(new.as_str()), CheckStatus::Ok, "in the caBundle: 1"),
            (Some(both.as_str()), CheckStatus::Ok, "in the caBundle: 2"),
            (Some(certificate(2030).as_str()), CheckStatus::Warn, "within a week"),
        ] {
            let (found, text) = checks_of(bundle);
            assert!(found == status && text.contains(message), "{bundle:?}: {found:?} {text}");
        }
    }

    #[test]
    fn a_ca_that_did_not_sign_is_told_by_the_answers() {
        let message =
            "memgate does not answer (a.memgate.dev: x509: certificate signed by unknown authority)";
        let answers = [Answer { check: Check::fail("answers", "pods", message), is_missing: true }];
        let found = Installation {
            name: "memgate".to_owned(),
            namespace: "home".to_owned(),
            ..Installation::default()
        };
        let checks = checks(&found, &answers);
        assert_eq!(checks.len(), 1, "{checks:?}");
        assert_eq!(checks[0].status, CheckStatus::Fail);
        assert_eq!(checks[0].help.as_deref(), Some("kubectl -n home rollout restart deployment memgate"));
    }

    #[test]
    fn an_entry_without_a_bundle_has_a_check_of_its_own() {
        let mut config = trusting(Some(&certificate(2040)));
        config.webhooks.as_mut().expect("webhooks")[0].client_config.ca_bundle = Some(ByteString(Vec::new()));
        let found = Installation {
            name: "memgate".to_owned(),
            apiserver_time: Some(NOW),
            mutating: Fetched::Found(vec![config]),
            ..Installation::default()
        };
        let statuses: Vec<_> = checks(&found, &[]).iter().map(|check| check.status).collect();
        assert_eq!(statuses, [CheckStatus::Fail, CheckStatus::Ok]);
    }
}
