//! `memgate certs rotate`: has memgate make a new CA.

use std::time::Duration;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::duration;
use crate::cli::terminal::Terminal;
use memgate_certs::clock::Clock;
use memgate_cluster::rotation::{RotationTarget, Stage, ask, follow};
use memgate_install::metadata::{DEFAULT_NAMESPACE, default_name};

/// Have memgate make a new CA now, and wait until it is in use
///
/// For certificates that memgate makes itself. The command writes a request, an annotation, on the
/// Secret of the CA, and waits. The replicas make the CA, add it to caBundle of both webhook
/// configurations, and sign with it once every apiserver had time to read it, so that no call fails.
/// No key is read. Progress goes to standard error. If the command ends early, the replicas continue,
/// and a second run waits for the same request.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 the new CA is in use, 1 it is not in time, 2 wrong usage or a
fault, such as no Secret.",
    after_long_help = "\
Examples:
  memgate certs rotate
  memgate certs rotate --revoke
  memgate certs rotate -n memgate-system --context staging --timeout 5m

It takes the rights to get and patch the Secret, and to get both webhook configurations."
)]
pub(super) struct Rotate {
    /// Revoke every other CA, after a key has leaked
    ///
    /// Within a minute both webhook configurations trust only the new CA, and the previous paths of reviews are
    /// invalid.
    #[arg(long)]
    revoke: bool,

    /// Time limit, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "2m")]
    timeout: Duration,

    /// Namespace of memgate
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// Secret that holds the CA
    #[arg(long, value_name = "NAME", default_value = "memgate-ca")]
    ca_secret: String,

    /// Name of both webhook configurations [default: memgate, or memgate-NAMESPACE in another namespace]
    #[arg(long, value_name = "NAME")]
    webhook_configuration: Option<String>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Rotate {
    /// The name of both webhook configurations.
    fn configuration(&self) -> String {
        self.webhook_configuration.clone().unwrap_or_else(|| default_name(&self.namespace))
    }
}

/// Runs the command.
pub(super) fn run(args: &Rotate, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let stage = block_on(rotate(args, terminal))?;
    if let Some(missing) = stage.missing() {
        terminal.error(&anyhow::anyhow!("the new CA is not in use after {:?}: {missing}", args.timeout));
        return Ok(ExitStatus::Denied);
    }
    terminal.out(text(&args.configuration(), &stage).as_bytes())?;
    Ok(ExitStatus::Clean)
}

async fn rotate(args: &Rotate, terminal: Terminal) -> anyhow::Result<Stage> {
    let client = args.cluster.client().await?;
    let target = RotationTarget {
        namespace: &args.namespace,
        secret: &args.ca_secret,
        configuration: &args.configuration(),
    };
    let asked = ask(&client, target, args.revoke, Clock::default().unix_now()).await?;
    let is_new = if asked.joined { "a new CA was requested already" } else { "requested a new CA" };
    terminal.note(&format!("{is_new}, as {}", asked.request));
    Ok(follow(&client, target, args.timeout, |line| terminal.note(line)).await)
}

fn text(configuration: &str, stage: &Stage) -> String {
    let Stage::Done { ca, entries } = stage else { return String::new() };
    let others = if ca.request.revoke {
        "No entry trusts any other CA. The previous keys and paths in the Secret are invalid."
    } else {
        "The previous CA stays trusted until it expires; `memgate certs rotate --revoke` revokes it."
    };
    format!(
        "The CA with the SHA-256 {} signs memgate's certificates.\nAll {entries} entries of both webhook configurations \
         {configuration} trust it.\n{others}\n",
        ca.sha256
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_certs::rotation::{MadeCa, RotationRequest};

    #[test]
    fn names_the_trusted_cas() {
        for (revoke, end) in [(false, "revokes it."), (true, "are invalid.")] {
            let ca = MadeCa { sha256: "ab".to_owned(), request: RotationRequest::new(0, revoke) };
            let text = text("memgate", &Stage::Done { ca, entries: 9 });
            assert!(
                text.starts_with("The CA with the SHA-256 ab signs memgate's certificates.\nAll 9"),
                "{text}"
            );
            assert!(text.trim_end().ends_with(end), "{text}");
        }
    }
}
