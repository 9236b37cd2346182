//! `memgate certs dev`: a CA and a certificate for development.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;
use crate::server::certs::self_signed;
use crate::server::clock::Clock;

/// Write a CA of your own and a server certificate that it signs
///
/// The keys can be read by you alone, and the certificates expire after a year. Do not use them in
/// a cluster that matters: whoever has ca.key can pretend to be memgate.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate certs dev
  memgate certs dev --dir certs --name host.docker.internal --name 192.168.5.2")]
pub(super) struct Dev {
    /// Where to write ca.crt, ca.key, tls.crt and tls.key; made when it does not exist
    #[arg(long, value_name = "DIR", default_value = "memgate-certs")]
    dir: PathBuf,

    /// A further DNS name or IP address of the server; can be repeated
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// Replace keys and certificates that are in the directory already
    #[arg(long)]
    force: bool,
}

/// Names that a server on the same machine, or the Service of `memgate manifests`, is reached by.
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
pub(super) fn run(dev: &Dev, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let there = FILES.iter().map(|(name, _)| name).find(|name| dev.dir.join(name).symlink_metadata().is_ok());
    if let Some(name) = there.filter(|_| !dev.force) {
        anyhow::bail!(
            "{} is there already, and a cluster may trust it; replace what is there with --force, or give another --dir",
            dev.dir.join(name).display()
        );
    }
    let names = USUAL_NAMES.into_iter().chain(dev.names.iter().map(String::as_str));
    let names: Vec<_> = names.map(str::to_owned).collect();
    let pair = self_signed::generate_pem(&names, &Clock::default()).context("failed to make certificates")?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dev.dir)
        .with_context(|| format!("failed to create {}", dev.dir.display()))?;
    let texts = [&pair.ca, &pair.ca_key, &pair.leaf, &pair.leaf_key];
    for ((name, mode), text) in FILES.into_iter().zip(texts) {
        write(&dev.dir.join(name), text, mode)?;
    }
    terminal.out(advice(&dev.dir).as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// Writes a file anew: the mode of one that was there before would stay as it was.
fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let failed = || format!("failed to write {}", path.display());
    if path.symlink_metadata().is_ok() {
        std::fs::remove_file(path).with_context(failed)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(failed)
}

fn advice(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "\
Wrote ca.crt, ca.key, tls.crt and tls.key to {dir}. They expire in a year.

Serve on this machine and let a cluster on it call:
  memgate serve --tls-cert {dir}/tls.crt --tls-key {dir}/tls.key
  memgate manifests --url https://127.0.0.1:10250 --ca {dir}/ca.crt | kubectl apply -f -

Or put them into a cluster:
  kubectl -n memgate-system create secret tls memgate-tls --cert {dir}/tls.crt --key {dir}/tls.key
  memgate manifests --ca {dir}/ca.crt | kubectl apply -f -
"
    )
}
