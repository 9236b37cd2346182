//! The result as text. Entries that differ only in their names share their lines.

use std::fmt::Write as _;

use crate::cli::certs::verify::date;
use crate::cluster::certificates::Verification;
use memgate_server::server::certs::verify::{CertInfo, TrustVerdict, WebhookReport};

/// The whole text.
pub(super) fn render(name: &str, verification: &Verification) -> String {
    let mut text = String::new();
    let mut left: Vec<&WebhookReport> = verification.entries.iter().collect();
    let mut configuration = "";
    while let Some(first) = left.first().copied() {
        let (alike, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|entry| is_alike(first, entry));
        left = others;
        let mut line = |line: String| {
            let _infallible = writeln!(text, "{line}");
        };
        if configuration != first.configuration {
            configuration = first.configuration;
            line(format!("{configuration} {name}"));
        }
        let names: Vec<_> = alike.iter().map(|entry| entry.name.as_str()).collect();
        line(format!("  {}: {}", names.join(", "), verdict(&first.verdict)));
        line(format!("    asked for  {}", first.asks_for));
        for facts in &first.chain {
            line(format!("    served     {}", dated(facts, verification)));
            line(format!("               signed by {}{}", facts.issuer, names_of(facts)));
        }
        for facts in &first.bundle {
            line(format!("    caBundle   {}", dated(facts, verification)));
        }
    }
    text
}

/// Whether two entries differ in their name only.
fn is_alike(left: &WebhookReport, right: &WebhookReport) -> bool {
    WebhookReport { name: right.name.clone(), ..left.clone() } == *right
}

fn verdict(verdict: &TrustVerdict) -> String {
    match verdict {
        TrustVerdict::Trusted => "trusted".to_owned(),
        TrustVerdict::Refused(reason) => format!("NOT TRUSTED: {reason}"),
        TrustVerdict::Unknown(reason) => format!("unknown: {reason}"),
        TrustVerdict::Unasked(reason) => {
            format!("caBundle is in order; the server was not contacted: {reason}")
        }
    }
}

fn dated(facts: &CertInfo, verification: &Verification) -> String {
    let warning = verification.warning(facts).map(|warning| format!(" ({warning})")).unwrap_or_default();
    format!("{}, until {}{warning}", facts.subject, date(facts.not_after))
}

fn names_of(facts: &CertInfo) -> String {
    if facts.names.is_empty() { String::new() } else { format!(", for {}", facts.names.join(", ")) }
}
