//! `memgate schema`: JSON Schemas for editors and programs, and the names that kustomize has to change.

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::cli::ExitStatus;
use crate::cli::keys;
use crate::cli::terminal::Terminal;
use memgate_core::decide::codes;
use memgate_primitives::suggest::{did_you_mean, nearest};
use memgate_workbench::files::kind_schema::{KindDefinition, combined, definitions};

/// What is a file of the repository.
const FILES: [(&str, &str); 4] = [
    ("output", include_str!("../../docs/schema/output.json")),
    ("cases", include_str!("../../docs/schema/cases.json")),
    ("settings", keys::SETTINGS),
    ("kustomize", include_str!("../../docs/schema/kustomize.yaml")),
];

/// The name of the schema of `.memgate.yaml`.
const PROJECT: &str = "project";

/// The name of the schema of all kinds.
const ALL: &str = "all";

/// The names of what is made from the platforms.
const MADE: [&str; 2] = [PROJECT, ALL];

/// Print a JSON Schema of a kind, or of a file of memgate
///
/// output: the json of check, audit, what-if and test. cases: the files of memgate
/// test. settings: the file of --settings. project: .memgate.yaml. all: every kind that `memgate crds`
/// defines, chosen by apiVersion and kind of the object. Any other name is one such kind.
///
/// kustomize: not a schema but a file for `configurations:` of a kustomization, with the fields by which
/// objects name other objects, so that namePrefix and the hashes of generators change them too.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed or listed, 2 there is no such schema.",
    after_long_help = "\
Examples:
  memgate schema output
  memgate schema ArkMemory > .schemas/arkmemory.json
  memgate schema Agent.orloj.dev
  memgate schema all > .schemas/memgate.json
  memgate schema kustomize > base/memgate.yaml

Editors with yaml-language-server complete and check a file that begins with:
  # yaml-language-server: $schema=.schemas/memgate.json
docs/editors.md has settings of editors that do it for all files."
)]
pub struct Args {
    /// output, cases, settings, project, all, kustomize, or a kind such as Agent.orloj.dev [default: list the names]
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// When there is no such schema or more than one, or it cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let Some(name) = args.name.as_deref() else {
        let kinds = definitions().iter().map(KindDefinition::full_name).collect::<Vec<_>>();
        let files = FILES.iter().map(|(name, _)| (*name).to_owned());
        let names = files.chain(MADE.map(str::to_owned)).chain(kinds);
        terminal.raw(names.map(|name| name + "\n").collect::<String>().as_bytes())?;
        terminal.note("note: these are the names that memgate schema takes; give it one of them");
        return Ok(ExitStatus::Clean);
    };
    if let Some((_, text)) = FILES.iter().find(|(file, _)| *file == name) {
        terminal.raw(text.as_bytes())?;
        return Ok(ExitStatus::Clean);
    }
    let definitions = definitions();
    let schema = match name {
        ALL => combined(&definitions),
        PROJECT => project()?,
        name => find(name, &definitions)?.json_schema(),
    };
    terminal.raw(format!("{schema:#}\n").as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// The schema of `.memgate.yaml`, with all codes.
fn project() -> anyhow::Result<Value> {
    let mut schema: Value = serde_json::from_str(keys::PROJECT).context("the bundled schema is not JSON")?;
    let codes: Vec<&str> = codes::all(&memgate_platforms::ALL).map(|code| code.name).collect();
    // A glob, or the code of a policy's rule.
    let other = json!({"type": "string", "pattern": "[*?\\[{]|^policy/[^/]+/"});
    if let Some(items) = schema.pointer_mut("/properties/rules/items/properties/codes/items") {
        *items = json!({"anyOf": [{"enum": codes}, other]});
    }
    Ok(schema)
}

fn find<'d>(name: &str, definitions: &'d [KindDefinition]) -> anyhow::Result<&'d KindDefinition> {
    let found: Vec<_> = definitions.iter().filter(|definition| definition.has_name(name)).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => {
            let names = FILES.iter().map(|(name, _)| *name).chain(MADE);
            let near = nearest(name, definitions.iter().map(|it| it.kind.as_str()).chain(names));
            let hint = if near.is_some() { &did_you_mean(near) } else { "; memgate schema lists them" };
            anyhow::bail!("there is no schema \"{name}\"{hint}");
        }
        several => {
            let names: Vec<String> = several.iter().map(|definition| definition.full_name()).collect();
            anyhow::bail!("several groups have the kind \"{name}\"; name one of them: {}", names.join(", "))
        }
    }
}
