//! `memgate certs rotate`: a new CA, now.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;

use crate::cli::ExitStatus;
use crate::cli::cluster::ClusterArgs;
use crate::cli::duration;
use crate::cli::terminal::Terminal;
use crate::cluster::rotation::{RotationTarget, Stage, ask, follow};
use crate::deploy::metadata::{DEFAULT_NAMESPACE, default_name};
use crate::server::clock::Clock;

/// Have memgate make a new CA now, and wait until it is in use
///
/// For certificates that memgate makes itself. Writes a request, an annotation, on the Secret of the
/// CA, and waits. The replicas make the CA, write it into caBundle of both webhook configurations
/// beside the old one, and sign with it once every apiserver has had time to learn of it, so that no
/// call is lost. No key is read. What happens goes to standard error. When this command ends early
/// the replicas go on; run again meanwhile it waits for the same request.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate certs rotate
  memgate certs rotate --revoke
  memgate certs rotate -n memgate-system --context staging --timeout 5m

It takes the rights to get and patch the Secret, and to get both webhook configurations.

Exit codes: 0 the new CA is in use, 1 it is not in time, 2 wrong usage or a fault, such as no Secret.")]
pub(super) struct Rotate {
    /// Take every other CA out of both webhook configurations, within a minute, and make the paths of
    /// reviews that were in use so far invalid: for when a key has leaked
    #[arg(long)]
    revoke: bool,

    /// How long to wait, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "2m")]
    timeout: Duration,

    /// The namespace that memgate runs in
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// The Secret that holds the CA
    #[arg(long, value_name = "NAME", default_value = "memgate-ca")]
    ca_secret: String,

    /// The name of both webhook configurations [default: memgate, or memgate-NAMESPACE in another namespace]
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
    let runtime = Runtime::new().context("failed to start the runtime")?;
    let stage = runtime.block_on(rotate(args, terminal))?;
    runtime.shutdown_background();
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
    let is_new = if asked.joined { "a new CA was asked for already" } else { "asked for a new CA" };
    terminal.note(&format!("{is_new}, as {}", asked.request));
    Ok(follow(&client, target, asked.request, args.timeout, |line| terminal.note(line)).await)
}

fn text(configuration: &str, stage: &Stage) -> String {
    let Stage::Done { ca, entries } = stage else { return String::new() };
    let others = if ca.request.revoke {
        "No entry trusts any other CA, and keys and paths that the Secret held before are of no use any more."
    } else {
        "The CA before it stays trusted until it expires; `memgate certs rotate --revoke` takes it out."
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
    use crate::server::certs::rotation::{MadeCa, RotationRequest};

    #[test]
    fn says_what_is_trusted_then() {
        for (revoke, end) in [(false, "takes it out."), (true, "are of no use any more.")] {
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
