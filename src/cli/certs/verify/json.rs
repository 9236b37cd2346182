//! The result as JSON.

use serde_json::{Value, json};

use crate::cli::certs::verify::date;
use crate::cluster::certificates::Verification;
use memgate_server::server::certs::verify::{CertInfo, TrustVerdict, WebhookReport};

/// An object and a line end.
pub(super) fn render(configuration: &str, verification: &Verification) -> String {
    let entries: Vec<_> = verification.entries.iter().map(|found| entry(found, verification)).collect();
    let object = json!({"name": configuration, "good": verification.is_trusted(), "entries": entries});
    format!("{object:#}\n")
}

fn entry(entry: &WebhookReport, verification: &Verification) -> Value {
    let (verdict, reason) = match &entry.verdict {
        TrustVerdict::Trusted => ("trusted", None),
        TrustVerdict::Refused(reason) => ("refused", Some(reason)),
        TrustVerdict::Unknown(reason) => ("unknown", Some(reason)),
        TrustVerdict::Unasked(reason) => ("unasked", Some(reason)),
    };
    let all = |facts: &[CertInfo]| facts.iter().map(|one| self::facts(one, verification)).collect::<Vec<_>>();
    json!({
        "configuration": entry.configuration,
        "entry": entry.name,
        "asksFor": entry.asks_for,
        "verdict": verdict,
        "reason": reason,
        "served": all(&entry.chain),
        "caBundle": all(&entry.bundle),
    })
}

fn facts(facts: &CertInfo, verification: &Verification) -> Value {
    json!({
        "subject": facts.subject,
        "issuer": facts.issuer,
        "names": facts.names,
        "notBefore": date(facts.not_before),
        "notAfter": date(facts.not_after),
        "warning": verification.warning(facts),
    })
}
