//! `memgate snapshot`: writes the state of a cluster into a file, for decisions without the cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::families::FamilyArgs;
use crate::cli::file::write_private;
use crate::cli::live;
use crate::cli::terminal::Terminal;
use memgate_cluster::listed_state::add_definitions;
use memgate_cluster::wait::probe_namespace;
use memgate_core::state::cluster_snapshot::ClusterSnapshot;
use memgate_model::family::Family;
use memgate_workbench::report::{counted, plain};

/// Write the state of a cluster into a file, for --snapshot
///
/// The file holds memory resources, agents, policies, definitions of kinds, Namespaces, Services, ConfigMaps and claims,
/// each with the fields that decisions read. Credentials are masked. Secrets are left out, so a reference to a Secret
/// counts as right. Kinds that you may not read are named, and unknown in the file.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 written, 2 wrong usage or a fault, such as no apiserver.",
    after_long_help = "\
Examples:
  memgate snapshot --all -o prod.json
  memgate check deploy/ --snapshot prod.json
  memgate snapshot -n team-a -n shared --context staging -o staging.json

It takes the right to list each kind in the namespaces, or everywhere with --all, and to get the definitions of
kinds and the Namespaces."
)]
pub struct Args {
    /// File, or - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = "Output")]
    output: PathBuf,

    /// Namespace to read, in place of that of the context; repeatable
    #[arg(short, long, value_name = "NAME", value_parser = probe_namespace, conflicts_with = "all")]
    namespace: Vec<String>,

    /// Read all namespaces
    #[arg(long)]
    all: bool,

    /// Write the names of Secrets and of their keys too
    ///
    /// This takes the right to list Secrets. Their values are skipped while the answer is read, and never written.
    #[arg(long)]
    secrets: bool,

    #[command(flatten)]
    families: FamilyArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When the cluster cannot be reached, or the file cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let families = args.families.chosen();
    let snapshot = block_on(read(args, &families))?;
    let known = snapshot.kinds.iter().filter(|kind| kind.unknown().is_none()).count();
    for (kind, why) in snapshot.kinds.iter().filter_map(|kind| Some((kind, kind.unknown()?))) {
        terminal.note(&plain(&format!("note: {} is not in the snapshot: {why}", kind.full_name())));
    }
    anyhow::ensure!(known > 0, "no kind of the cluster can be read, so the snapshot would be empty");
    let mut bytes = Vec::new();
    snapshot.write(&mut bytes).context("failed to write the snapshot")?;
    if args.output == Path::new("-") {
        terminal.raw(&bytes)?;
    } else {
        write_private(&args.output, &bytes)?;
    }
    let objects = counted(snapshot.items.len(), "object");
    terminal.note(&format!("{objects} of {}", counted(known, "kind")));
    Ok(ExitStatus::Clean)
}

async fn read(args: &Args, families: &[&'static Family]) -> anyhow::Result<ClusterSnapshot> {
    let client = args.cluster.client().await?;
    let asked: BTreeSet<String> = if args.namespace.is_empty() {
        [client.default_namespace().to_owned()].into()
    } else {
        args.namespace.iter().cloned().collect()
    };
    let namespaces = (!args.all).then_some(asked);
    let (reader, mut snapshot) = live::read(client, families, namespaces, args.secrets).await?;
    add_definitions(&reader, families, &mut snapshot).await;
    Ok(snapshot)
}
