//! `memgate certs`: makes certificates for development, checks those of a cluster, and replaces its CA.

mod dev;
mod rotate;
mod verify;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;

/// Make certificates for development, verify those of a cluster, or replace its CA
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Dev(dev::Dev),
    Verify(verify::Verify),
    Rotate(rotate::Rotate),
}

/// Runs the command.
///
/// # Errors
/// When a name is invalid, a file cannot be written or read, or the apiserver does not answer.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    match &args.command {
        Command::Dev(dev) => dev::run(dev, terminal),
        Command::Verify(verify) => verify::run(verify, terminal),
        Command::Rotate(rotate) => rotate::run(rotate, terminal),
    }
}
