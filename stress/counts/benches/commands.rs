//! Instructions of whole commands: `check` of one file, and of 1,000. See instructions.rs.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(
    clippy::exit,
    clippy::disallowed_methods,
    missing_docs,
    unused_qualifications,
    reason = "what macros write"
)]

use std::fs;
use std::path::Path;

use gungraun::prelude::*;
use gungraun::{Callgrind, Sandbox};

/// Writes manifests, a file each: a third of them memories, agents that refer to them, and SkillPacks.
fn write(folder: &str, count: usize) {
    fs::create_dir(folder).expect("a folder");
    for number in 0..count {
        let (kind, name) = match number % 3 {
            0 => ("ArkMemory", "notes"),
            1 => ("ArkAgent", "agent"),
            _ => ("SkillPack", "skills"),
        };
        let group = if kind == "SkillPack" { "sympozium.ai" } else { "arkonis.dev" };
        let spec = match kind {
            "ArkMemory" => {
                "backend: redis\n  redis:\n    secretRef: {name: redis}\n    ttlSeconds: 3600".to_owned()
            }
            "ArkAgent" => format!(
                "model: m\n  systemPrompt: You take notes.\n  memoryRef: {{name: notes-{}}}",
                number - 1
            ),
            _ => "skills:\n    - {name: reading, description: reads, content: Read the notes.}".to_owned(),
        };
        let namespace = number / 3 % 20;
        let text = format!(
            "apiVersion: {group}/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}-{number}, namespace: team-{namespace}}}\nspec:\n  {spec}\n"
        );
        fs::write(Path::new(folder).join(format!("{number}.yaml")), text).expect("a file");
    }
}

#[binary_benchmark]
#[bench::of_1_file(args = ("1"), setup = write("1", 1))]
#[bench::of_1_000_files(args = ("1000"), setup = write("1000", 1_000))]
fn check(folder: &str) -> Command {
    Command::new(env!("CARGO_BIN_EXE_memgate")).arg("check").arg(folder).build()
}

binary_benchmark_group!(name = commands, benchmarks = check);

main!(
    config = BinaryBenchmarkConfig::default()
        .sandbox(Sandbox::new(true))
        .tool(Callgrind::with_args(["--cache-sim=no"]));
    binary_benchmark_groups = commands
);
