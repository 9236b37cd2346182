//! `memgate map`: which agents and pods reach which memory.

use anstream::adapter::strip_bytes;
use anyhow::Context as _;

use crate::cli::cluster::ClusterArgs;
use crate::cli::file::write_whole;
use crate::cli::input::{InputArgs, note_read};
use crate::cli::output::FormatAndFile;
use crate::cli::pull_request::{at_base, note_base_errors, reference};
use crate::cli::terminal::{Terminal, masked_bytes};
use crate::cli::{ExitStatus, live};
use memgate_model::request::Point;
use memgate_workbench::map::read_map;
use memgate_workbench::plan::Plan;
use memgate_workbench::report::diff::{self, FileDiff};
use memgate_workbench::report::map::{MAX_DRAWN_BYTES, MAX_DRAWN_LINES, MapFormat, MemoryMap, write};
use memgate_workbench::report::without_commands;

/// Print which agents and pods reach which memory
///
/// For each memory resource: backend, durability, retention, hosts and names of Secrets, and the objects that refer to
/// it or get it. A line across namespaces is marked, and so is a reference to memory that does not exist. A workload
/// stands for its pods. The order is stable, so a diff of two maps shows what has changed.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 printed, 2 an input cannot be read or parsed, 3 nothing to map
was found.",
    after_long_help = "\
Examples:
  memgate map deploy/
  memgate map --context prod
  memgate map deploy/ -o dot | dot -Tsvg > map.svg
  memgate map deploy/ -o mermaid=map.mmd
  memgate map deploy/ --base origin/main

Without PATH the objects are those of --snapshot, or of the cluster of --context or --kubeconfig. With none of them,
they are those of the paths of .memgate.yaml, else of the cluster of KUBECONFIG, else of the working directory."
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Format and file [default: text]
    ///
    /// Formats: text, dot (Graphviz) and mermaid (a flowchart that GitHub and GitLab draw).
    #[arg(short, long, value_name = "FORMAT[=FILE]", help_heading = "Output", value_parser = parse_output)]
    output: Option<MapOutput>,

    /// Print what changes since REF, as a unified diff
    ///
    /// REF is a branch or a commit. The same paths are read through git, as they were at the merge base of REF and
    /// HEAD.
    #[arg(long, value_name = "REF", value_parser = reference, help_heading = "Pull requests")]
    base: Option<String>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A format of the map and its file.
type MapOutput = FormatAndFile<MapFormat>;

fn parse_output(text: &str) -> Result<MapOutput, String> {
    MapOutput::parse(text, &MapFormat::ALL, MapFormat::name)
}

/// Runs the command.
///
/// # Errors
/// When the cluster does not answer, the base cannot be read, or the map cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let project = args.input.project(terminal)?;
    let mut plan = live::plan(&args.input, &args.cluster, &project, true, terminal)?;
    anyhow::ensure!(
        args.base.is_none() || !plan.checks_snapshot,
        "--base compares files with a commit; give the files as PATH"
    );
    plan.policies.clone_from(&args.input.policies.policy);
    let occasion = args.input.policies.occasion(Point::Ci);
    let (map, inputs) = read_map(&plan, occasion)?;
    note_read(&inputs, terminal);
    let errors = inputs.errors;
    let output = args.output.clone().unwrap_or(MapOutput { format: MapFormat::Text, file: None });
    let (memories, _) = map.counts();
    if let Some(reference) = &args.base {
        let read = |plan: Plan| Ok(read_map(&plan, occasion)?);
        let ((before, inputs), base) = at_base(reference, &args.input, &project, &plan, terminal, read)?;
        note_base_errors(&inputs.errors, &base, "its map may lack objects", terminal);
        write_changes(&before, &map, &output, terminal)?;
        return Ok(ExitStatus::of(!errors.is_empty(), false, memories + before.counts().0 == 0));
    }
    if memories > 0 {
        write_map(&map, &output, terminal)?;
    } else if errors.is_empty() {
        terminal.note(
            "error: nothing to map was found\n  \
             what counts: memory resources, and agents and pods that refer to one",
        );
    }
    Ok(ExitStatus::of(!errors.is_empty(), false, memories == 0))
}

fn write_map(map: &MemoryMap, output: &MapOutput, terminal: Terminal) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    write(map, output.format, &mut bytes).context("failed to write the map")?;
    let (_, lines) = map.counts();
    if output.format == MapFormat::Mermaid && (lines > MAX_DRAWN_LINES || bytes.len() > MAX_DRAWN_BYTES) {
        terminal.note(&format!(
            "note: GitHub and GitLab draw a map of up to {MAX_DRAWN_LINES} lines and {MAX_DRAWN_BYTES} bytes, and this \
             one is larger; name fewer paths, or use -o dot"
        ));
    }
    put(bytes, output, output.format == MapFormat::Text, terminal)
}

/// Writes the difference of two maps.
fn write_changes(
    before: &MemoryMap,
    after: &MemoryMap,
    output: &MapOutput,
    terminal: Terminal,
) -> anyhow::Result<()> {
    let plain = |map: &MemoryMap| {
        let mut bytes = Vec::new();
        write(map, output.format, &mut bytes).context("failed to write the map")?;
        anyhow::Ok(strip_bytes(&bytes).into_vec())
    };
    let (before, after) = (plain(before)?, plain(after)?);
    let name = match output.format {
        MapFormat::Text => "map.txt",
        MapFormat::Dot => "map.dot",
        MapFormat::Mermaid => "map.mmd",
    };
    let [before, after] = [before, after].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let mut text = Vec::new();
    let file = FileDiff { name, before: &before, after: &after, removed: &[], origins: &[] };
    diff::write(&file, &mut text).context("failed to write the diff")?;
    if text.is_empty() {
        terminal.note("note: the map is the same");
    }
    put(text, output, true, terminal)
}

/// Writes to the file, or to standard output.
fn put(bytes: Vec<u8>, output: &MapOutput, is_for_people: bool, terminal: Terminal) -> anyhow::Result<()> {
    match &output.file {
        Some(path) => {
            let bytes = masked_bytes(without_commands(bytes, " #"));
            write_whole(path, &strip_bytes(&bytes).into_vec())
        }
        None if is_for_people => terminal.out(&bytes),
        None => terminal.raw(&masked_bytes(bytes)),
    }
}
