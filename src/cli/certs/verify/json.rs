//! The result for programs.

use serde_json::{Value, json};

use crate::cli::certs::verify::{Outcome, date, warning};
use crate::server::certs::verify::{CertInfo, TrustVerdict, WebhookReport};

/// One object, and a line end.
pub(super) fn render(outcome: &Outcome<'_>) -> String {
    let entries: Vec<_> = outcome.entries.iter().map(|found| entry(found, outcome.now)).collect();
    let object = json!({"name": outcome.configuration, "good": outcome.is_good(), "entries": entries});
    format!("{object:#}\n")
}

fn entry(entry: &WebhookReport, now: i64) -> Value {
    let (verdict, reason) = match &entry.verdict {
        TrustVerdict::Trusted => ("trusted", None),
        TrustVerdict::Refused(reason) => ("refused", Some(reason)),
        TrustVerdict::Unknown(reason) => ("unknown", Some(reason)),
        TrustVerdict::Unasked(reason) => ("unasked", Some(reason)),
    };
    let all = |facts: &[CertInfo]| facts.iter().map(|one| self::facts(one, now)).collect::<Vec<_>>();
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

fn facts(facts: &CertInfo, now: i64) -> Value {
    json!({
        "subject": facts.subject,
        "issuer": facts.issuer,
        "names": facts.names,
        "notBefore": date(facts.not_before),
        "notAfter": date(facts.not_after),
        "warning": warning(facts, now),
    })
}
