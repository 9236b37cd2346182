//! `memgate certs dev`: makes a CA and a certificate for development.

use std::fs::DirBuilder;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::file::write_with;
use crate::cli::terminal::Terminal;
use memgate_certs::clock::Clock;
use memgate_certs::self_signed;

/// Make certificates for development
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Dev(Dev),
}

/// Write a CA of your own and a server certificate that it signs
///
/// Only you can read the keys, and the certificates expire after a year. Do not use them in a
/// production cluster: a program with ca.key can pretend to be memgate.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 written, 2 the files exist already or cannot be written.",
    after_long_help = "\
Examples:
  memgate certs dev
  memgate certs dev --dir certs --name host.docker.internal --name 192.168.5.2"
)]
struct Dev {
    /// Directory for ca.crt, ca.key, tls.crt and tls.key; created if missing
    #[arg(long, value_name = "DIR", default_value = "memgate-certs")]
    dir: PathBuf,

    /// Further DNS name or IP address of the server; repeatable
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// Replace existing keys and certificates
    #[arg(long)]
    force: bool,
}

/// The names of a server on the same machine, and of the Service of `memgate manifests`.
const USUAL_NAMES: [&str; 5] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "memgate.memgate-system.svc",
    "memgate.memgate-system.svc.cluster.local",
];

/// The files that are written, with their modes.
const FILES: [(&str, u32); 4] =
    [("ca.crt", 0o644), ("ca.key", 0o600), ("tls.crt", 0o644), ("tls.key", 0o600)];

/// Runs the command.
///
/// # Errors
/// When a name is invalid, or a file exists already or cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let Command::Dev(dev) = &args.command;
    let existing =
        FILES.iter().map(|(name, _)| name).find(|name| dev.dir.join(name).symlink_metadata().is_ok());
    if let Some(name) = existing.filter(|_| !dev.force) {
        anyhow::bail!(
            "{} exists already, and a cluster may trust it; replace the files with --force, or give another --dir",
            dev.dir.join(name).display()
        );
    }
    let names = USUAL_NAMES.into_iter().chain(dev.names.iter().map(String::as_str));
    let names: Vec<_> = names.map(str::to_owned).collect();
    let pair = self_signed::generate(&names, &Clock::default()).context("failed to make certificates")?;
    directory(&dev.dir).with_context(|| format!("failed to create {}", dev.dir.display()))?;
    let texts = [&pair.ca, &pair.ca_key, &pair.leaf, &pair.leaf_key];
    for ((name, mode), text) in FILES.into_iter().zip(texts) {
        write(&dev.dir.join(name), text, mode)?;
    }
    terminal.out(advice(&dev.dir).as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// Makes a directory that only its owner can use. On systems without modes it has the rights of its parent.
fn directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(path)
}

/// Deletes an existing file and writes a new one, since the old file would keep its mode.
fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    if path.symlink_metadata().is_ok() {
        std::fs::remove_file(path).with_context(|| format!("failed to write {}", path.display()))?;
    }
    write_with(path, text.as_bytes(), mode)
}

fn advice(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "\
Wrote ca.crt, ca.key, tls.crt and tls.key to {dir}. They expire after a year.

Serve on this machine and let a cluster on it call:
  memgate serve --tls-cert {dir}/tls.crt --tls-key {dir}/tls.key
  memgate manifests --url https://127.0.0.1:10250 --ca {dir}/ca.crt | kubectl apply -f -

Or put them into a cluster:
  kubectl -n memgate-system create secret tls memgate-tls --cert {dir}/tls.crt --key {dir}/tls.key
  memgate manifests --image IMAGE --ca {dir}/ca.crt | kubectl apply -f -
"
    )
}
