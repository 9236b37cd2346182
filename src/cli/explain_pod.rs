//! `memgate explain-pod`: what memgate added to a pod, and from where.

use std::io;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;
use crate::offline::errors::input_error;
use crate::offline::injected::describe_all;

/// Tell what memgate added to a pod, and from where
///
/// Reads the annotation memgate.dev/injected of pods, or of the pod templates of workloads.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl get pod scout-0 -o yaml | memgate explain-pod
  memgate explain-pod pod.yaml

Exit codes: 0 told, 2 an input cannot be read or parsed, 3 no pod was found.")]
pub struct Args {
    /// Files, directories, globs, or - for standard input
    #[arg(value_name = "PATH", default_value = "-")]
    paths: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (descriptions, errors) = describe_all(&args.paths, &mut io::stdin().lock());
    terminal.out(descriptions.concat().as_bytes())?;
    for error in &errors {
        terminal.input_error(&input_error(error));
    }
    if !errors.is_empty() {
        return Ok(ExitStatus::Failed);
    }
    if descriptions.is_empty() {
        terminal.note("error: no pod was found\n  what counts: pods, and workloads with a pod template");
        return Ok(ExitStatus::Nothing);
    }
    Ok(ExitStatus::Clean)
}
