//! A folder as an editor opens it: the schemas that docs/editors.md has users print, and the settings that stand there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::client::Client;

pub(crate) struct Workspace {
    folder: TempDir,
}

impl Workspace {
    /// With the schemas that the page names, printed as it says.
    pub(crate) fn new() -> Self {
        // The usual name begins with a dot, and `**` leads into no such folder.
        let folder = tempfile::Builder::new().prefix("manifests-").tempdir().expect("a folder");
        fs::create_dir(folder.path().join(".schemas")).expect("a folder");
        let commands = section("console", 0);
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
        let mut editor = self.start(&settings_of_the_page());
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

/// The settings for Visual Studio Code, as it hands them to a server: below `yaml`.
fn settings_of_the_page() -> Map<String, Value> {
    let settings: Map<String, Value> = serde_json::from_str(&section("json", 0)).expect("is JSON");
    let below = |(key, value): (String, Value)| {
        let key = key.strip_prefix("yaml.").expect("a setting of the extension");
        (key.to_owned(), value)
    };
    settings.into_iter().map(below).collect()
}

/// A block of code of docs/editors.md.
pub(crate) fn section(language: &str, number: usize) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/editors.md");
    let page = fs::read_to_string(page).expect("the page");
    let block = page.split(&format!("```{language}\n")).nth(number + 1);
    block.and_then(|text| text.split("```").next()).expect("a block").to_owned()
}

#[test]
fn editors_get_the_same_settings() {
    let (json, lua, toml) = (settings_of_the_page(), section("lua", 0), section("toml", 0));
    assert_eq!(json["yamlVersion"], "1.1");
    assert!(lua.contains("yamlVersion = '1.1'") && toml.contains("yamlVersion = \"1.1\""));
    let schemas = json["schemas"].as_object().expect("schemas");
    assert_eq!(schemas.len(), 3);
    for (schema, globs) in schemas {
        assert!(
            toml.contains(&format!("\"{schema}\" = {}", globs.to_string().replace("\",\"", "\", \""))),
            "{toml}"
        );
        for glob in globs.as_array().expect("globs") {
            let glob = glob.as_str().expect("a glob");
            let line = lua.lines().find(|line| line.contains(&format!("['{schema}']"))).expect("a line");
            assert!(line.contains(&format!("'{glob}'")), "{line}");
        }
    }
}
