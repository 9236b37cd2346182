//! Running memgate in a directory of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with these files, and what memgate does in it.
pub(crate) struct Scratch(pub(crate) TempDir);

impl Scratch {
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
        command.args(words).env_clear().current_dir(self.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("memgate runs")
    }

    /// What it writes to standard output.
    pub(crate) fn out(&self, words: &[&str]) -> String {
        String::from_utf8(self.run(words).stdout).expect("is UTF-8")
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.out(words)).expect("is JSON")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// Objects with one denial, one warning, and none.
pub(crate) const BAD: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec:
  backend: reddis
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: plain, namespace: team-a}
spec:
  backend: in-context
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: warned, namespace: team-a}
spec:
  backend: in-context
  ttl: 5
";

/// So many objects with 50 findings each.
pub(crate) fn many(objects: usize) -> String {
    let allow: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    let agent = |number: usize| {
        format!(
            "---\napiVersion: orloj.dev/v1\nkind: Agent\nmetadata: {{name: a{number}, namespace: team}}\n\
             spec: {{memory: {{allow: [{}]}}}}\n",
            allow.join(", ")
        )
    };
    (0..objects).map(agent).collect()
}
