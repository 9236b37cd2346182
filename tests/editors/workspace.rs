//! A folder as an editor opens it: the schemas that docs/editors.md has users print, and the settings that stand there.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::page::{block, settings_for_vscode};

pub(crate) struct Workspace {
    folder: TempDir,
}

impl Workspace {
    /// With the schemas that the page names, printed as it says.
    pub(crate) fn new() -> Self {
        // The usual name begins with a dot, and `**` leads into no such folder.
        let folder = tempfile::Builder::new().prefix("manifests-").tempdir().expect("a folder");
        fs::create_dir(folder.path().join(".schemas")).expect("a folder");
        let commands = block("The schemas", "console");
        let mut printed = 0;
        for line in commands.lines().filter_map(|line| line.strip_prefix("memgate ")) {
            let (arguments, file) = line.split_once(" > ").expect("a command that writes a file");
            let output = Command::new(env!("CARGO_BIN_EXE_memgate"))
                .args(arguments.split(' '))
                .output()
                .expect("memgate runs");
            assert!(output.status.success(), "{line}");
            fs::write(folder.path().join(file), output.stdout).expect("is written");
            printed += 1;
        }
        assert_eq!(printed, 3, "{commands}");
        Self { folder }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An editor with the settings of the page.
    pub(crate) fn with_settings(&self) -> Client {
        let mut editor = self.start(&settings_for_vscode());
        // The server asks for settings when it has begun to work; until then it finds nothing wrong.
        let begun = "apiVersion: orloj.dev/v1\nkind: Memory\n";
        editor.open_until_marked(&self.file("deploy/begun.yaml"), begun);
        editor
    }

    /// An editor without any.
    pub(crate) fn without_settings(&self) -> Client {
        self.start(&Map::new())
    }

    /// Nothing is fetched: what else an editor would ask the network for is off.
    fn start(&self, yaml: &Map<String, Value>) -> Client {
        let mut settings = json!({
            "yaml": {
                "schemaStore": {"enable": false},
                "kubernetesCRDStore": {"enable": false},
                "validate": true,
                "hover": true,
                "completion": true,
            },
            "http": {},
            "[yaml]": {},
            "editor": {},
            "files": {},
        });
        settings["yaml"].as_object_mut().expect("an object").extend(yaml.clone());
        Client::start(self.folder.path(), settings)
    }
}
