//! `memgate certs verify`: checks chain and expiry of the certificate, and whether the caBundle trusts it.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::output::ResultFormat;
use crate::cli::terminal::Terminal;
use memgate_certs::clock::{Clock, date};
use memgate_certs::verify::{CertInfo, TrustVerdict, VerifyOptions, WebhookReport, verify};
use memgate_cluster::certificates::Verification;

/// Check whether the webhook configurations trust memgate's certificate
///
/// Reads both configurations, and the certificate from the server of each entry, from --url, or from
/// a file. A Service can be reached only inside the cluster: without --url or --cert its server is not
/// contacted, and only its caBundle is checked. No Secret is read.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes:
  0  all certificates are trusted; without a certificate, every caBundle holds a
     valid CA and all entries trust the same (expiry within days is a warning)
  1  one is not trusted or has expired, or a caBundle holds no valid CA
  2  a server does not answer, its entries differ, or nothing could be read",
    after_long_help = "\
Examples:
  memgate certs verify
  kubectl -n memgate-system port-forward deploy/memgate 10250 &
  memgate certs verify --url localhost:10250
  memgate certs verify --cert tls.crt -o json"
)]
pub(super) struct Verify {
    /// Name of both webhook configurations
    #[arg(long, value_name = "NAME", default_value = "memgate")]
    webhook_configuration: String,

    /// Server to connect to, for all entries
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "cert")]
    url: Option<String>,

    /// Certificate with its chain, PEM, in place of the server's
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,

    /// Format of the result
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: ResultFormat,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
pub(super) fn run(args: &Verify, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let question = VerifyOptions {
        configuration: &args.webhook_configuration,
        address: args.url.as_deref(),
        chain: args.cert.as_deref(),
        now: Clock::default().unix_now(),
    };
    let entries = block_on(async { Ok(verify(&args.cluster.client().await?, &question).await?) })?;
    let verification = Verification { entries, now: question.now };
    anyhow::ensure!(
        !verification.entries.is_empty(),
        "found no webhook configuration named {}; give --webhook-configuration",
        args.webhook_configuration
    );
    let text = match args.output {
        ResultFormat::Text => text(&args.webhook_configuration, &verification),
        ResultFormat::Json => to_json(&args.webhook_configuration, &verification),
    };
    terminal.out(text.as_bytes())?;
    Ok(status(&verification))
}

/// Unknown trust is a fault only if a server was contacted.
fn status(verification: &Verification) -> ExitStatus {
    match verification.is_trusted() {
        Some(false) => ExitStatus::Denied,
        None if verification.has_unknown() => ExitStatus::Failed,
        _ => ExitStatus::Clean,
    }
}

/// The whole text.
fn text(name: &str, verification: &Verification) -> String {
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

/// An object and a line end.
fn to_json(configuration: &str, verification: &Verification) -> String {
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
    let all = |all: &[CertInfo]| all.iter().map(|one| facts(one, verification)).collect::<Vec<_>>();
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

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_certs::verify::{CertInfo, TrustVerdict, WebhookReport};

    fn facts(subject: &str, not_after: i64) -> CertInfo {
        CertInfo {
            subject: subject.to_owned(),
            issuer: "CN=memgate CA 1".to_owned(),
            names: vec!["memgate.memgate-system.svc".to_owned()],
            not_before: 1_700_000_000,
            not_after,
        }
    }

    fn found() -> Verification {
        let now = 1_800_000_000;
        let entry = |name: &str, chain, verdict| WebhookReport {
            configuration: "mutating",
            name: name.to_owned(),
            asks_for: "memgate.memgate-system.svc".to_owned(),
            bundle: vec![facts("CN=memgate CA 1", now + 365 * 24 * 3600)],
            chain,
            verdict,
        };
        let entries = vec![
            entry("a.memgate.dev", vec![facts("CN=memgate", now + 3600)], TrustVerdict::Trusted),
            entry("b.memgate.dev", vec![facts("CN=memgate", now + 3600)], TrustVerdict::Trusted),
            entry("c.memgate.dev", Vec::new(), TrustVerdict::Unknown("no answer".to_owned())),
            entry(
                "d.memgate.dev",
                vec![facts("CN=memgate", now)],
                TrustVerdict::Refused("it has expired".to_owned()),
            ),
        ];
        Verification { entries, now }
    }

    #[test]
    fn writes_text() {
        let expected = "\
mutating memgate
  a.memgate.dev, b.memgate.dev: trusted
    asked for  memgate.memgate-system.svc
    served     CN=memgate, until 2027-01-15T09:00:00Z (expires soon)
               signed by CN=memgate CA 1, for memgate.memgate-system.svc
    caBundle   CN=memgate CA 1, until 2028-01-15T08:00:00Z
  c.memgate.dev: unknown: no answer
    asked for  memgate.memgate-system.svc
    caBundle   CN=memgate CA 1, until 2028-01-15T08:00:00Z
  d.memgate.dev: NOT TRUSTED: it has expired
    asked for  memgate.memgate-system.svc
    served     CN=memgate, until 2027-01-15T08:00:00Z (expired)
               signed by CN=memgate CA 1, for memgate.memgate-system.svc
    caBundle   CN=memgate CA 1, until 2028-01-15T08:00:00Z
";
        assert_eq!(text("memgate", &found()), expected);
    }

    #[test]
    fn is_good_only_if_all_certificates_are() {
        let (unknown, refused) = (TrustVerdict::Unknown(String::new()), TrustVerdict::Refused(String::new()));
        let unasked = TrustVerdict::Unasked(String::new());
        for (verdicts, trusted, expected) in [
            (vec![TrustVerdict::Trusted, TrustVerdict::Trusted], Some(true), ExitStatus::Clean),
            (vec![TrustVerdict::Trusted, unasked.clone()], None, ExitStatus::Clean),
            (vec![unasked.clone()], None, ExitStatus::Clean),
            (vec![TrustVerdict::Trusted, unknown.clone(), unasked.clone()], None, ExitStatus::Failed),
            (vec![unknown.clone()], None, ExitStatus::Failed),
            (vec![unknown, unasked, refused], Some(false), ExitStatus::Denied),
        ] {
            let mut found = found();
            let entry = found.entries[0].clone();
            found.entries = verdicts
                .iter()
                .map(|verdict| WebhookReport { verdict: verdict.clone(), ..entry.clone() })
                .collect();
            assert_eq!((found.is_trusted(), status(&found)), (trusted, expected), "{verdicts:?}");
        }
    }

    #[test]
    fn writes_json() {
        let json: Value = serde_json::from_str(&to_json("memgate", &found())).expect("JSON");
        assert_eq!(json["good"], false);
        assert_eq!(json["entries"][0]["verdict"], "trusted");
        assert_eq!(json["entries"][0]["served"][0]["notAfter"], "2027-01-15T09:00:00Z");
        assert_eq!(json["entries"][0]["served"][0]["warning"], "expires soon");
        assert_eq!(json["entries"][2]["verdict"], "unknown");
        assert_eq!(json["entries"][3]["reason"], "it has expired");
    }
}
