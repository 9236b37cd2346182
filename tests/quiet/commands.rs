//! What commands and hooks say of a repository.

use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::repository::Repository;

/// The commands and the hooks of `.pre-commit-hooks.yaml`, each with its exit code where nothing is ours.
pub(crate) const COMMANDS: [(&str, i32); 5] = [
    ("check", 3),
    ("map .", 3),
    ("audit .", 3),
    ("check --allow-empty", 0),
    ("check --fix --allow-empty", 0),
];

/// One entry for each command that is not silent: another exit code, words on standard output, more than one line on
/// standard error, or a changed file.
pub(crate) fn words(repository: &Repository, folder: &Path) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    for (line, expected) in COMMANDS {
        let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_memgate"))
            .args(line.split(' '))
            .env_clear()
            .env("PATH", folder.join("no-programs"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()?;
        let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let is_silent = status.code() == Some(expected) && out.is_empty() && err.lines().count() <= 1;
        if !is_silent || !repository.is_unchanged(folder) {
            let start = |text: &str| text.lines().take(8).collect::<Vec<_>>().join("\n    ");
            let code = status.code().unwrap_or(-1);
            all.push(format!("{line}: exit {code}\n  out: {}\n  err: {}", start(&out), start(&err)));
        }
    }
    Ok(all)
}
