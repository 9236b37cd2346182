//! The extension for Visual Studio Code: its manifest, the packed file, and what it shows with and without a memgate.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::repository::{FILE, Repository};

/// An address of a repository.
const SOURCE: &str = "https://example.com/someone/memgate";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

fn manifest() -> Value {
    serde_json::from_str(&read("editors/vscode/package.json")).expect("is JSON")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed ({})\n{stderr}", output.status);
    String::from_utf8(output.stdout).expect("is text")
}

#[test]
fn the_manifest_starts_it_where_memgate_has_work() {
    let manifest = manifest();
    assert_eq!(manifest["name"], "memgate");
    assert_eq!(manifest["publisher"], "memgate");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["license"], env!("CARGO_PKG_LICENSE"));
    assert!(manifest["repository"].is_null() && manifest["bugs"].is_null(), "the build sets them");
    assert_eq!(
        manifest["activationEvents"],
        json!(["onLanguage:yaml", "onLanguage:json", "workspaceContains:**/.memgate.yaml"])
    );
    let lock: Value = serde_json::from_str(&read("editors/vscode/package-lock.json")).expect("is JSON");
    assert_eq!(lock["version"], manifest["version"]);
    assert_eq!(lock["packages"][""]["devDependencies"], manifest["devDependencies"]);
    // The types of an editor that is newer than the oldest one with the extension would allow what that one lacks.
    let oldest = manifest["engines"]["vscode"].as_str().and_then(|range| range.strip_prefix('^'));
    assert_eq!(oldest, manifest["devDependencies"]["@types/vscode"].as_str());
}

/// A repository must not name the program that an editor starts.
#[test]
fn settings_are_documented_and_not_for_workspaces() {
    let (manifest, readme) = (manifest(), read("editors/vscode/README.md"));
    let settings = manifest["contributes"]["configuration"]["properties"].as_object().expect("settings");
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["memgate.path", "memgate.arguments"]);
    for (name, setting) in settings {
        let default = match &setting["default"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert!(readme.contains(&format!("| `{name}` | `{default}` |")), "{name}: {readme}");
        assert_eq!(setting["scope"], "machine", "{name}");
    }
    for command in manifest["contributes"]["commands"].as_array().expect("commands") {
        let title = command["title"].as_str().expect("a title");
        assert!(readme.contains(&format!("**memgate: {title}**")), "{title}: {readme}");
    }
}

#[test]
#[ignore = "needs node, npm and python3"]
fn the_extension_is_packed_and_starts_memgate_or_reports_why_not() {
    let printed = run(Command::new(root().join("tools/build-vscode.sh")).env("MEMGATE_SOURCE", SOURCE));
    let packed = PathBuf::from(printed.trim());
    let name = packed.file_name().expect("a name").display().to_string();
    assert_eq!(name, format!("memgate-{}.vsix", env!("CARGO_PKG_VERSION")));

    let folder = tempfile::tempdir().expect("a folder");
    run(Command::new("python3").args(["-m", "zipfile", "--extract"]).arg(&packed).arg(folder.path()));
    let sizes = sizes(&folder.path().join("extension"));
    let names: Vec<_> = sizes.keys().map(String::as_str).collect();
    assert_eq!(names, ["LICENSE.txt", "out/extension.js", "out/licences.txt", "package.json", "readme.md"]);
    assert!(sizes.values().all(|size| (1..1_000_000).contains(size)), "{sizes:?}");
    let manifest_in_it =
        fs::read_to_string(folder.path().join("extension/package.json")).expect("a manifest");
    let manifest_in_it: Value = serde_json::from_str(&manifest_in_it).expect("is JSON");
    assert_eq!(manifest_in_it["repository"]["url"], SOURCE);
    let main = manifest()["main"].as_str().expect("a path").to_owned();
    let main = folder.path().join("extension").join(main);
    assert!(main.is_file(), "{}", main.display());

    // The second program exists and does not know the command. The last but one ends at once.
    let repository = Repository::new();
    let memgate = env!("CARGO_BIN_EXE_memgate");
    let choices = [
        json!({"path": "/no/memgate here"}),
        json!({"path": "false"}),
        json!({"path": memgate, "arguments": ["--no-such"]}),
        json!({"path": memgate, "marks": true}),
        json!({"path": "true"}),
        json!({"path": memgate, "marks": true}),
    ];
    let printed = run(Command::new("node")
        .arg(root().join("tests/editors/extension.cjs"))
        .arg(&main)
        .arg(repository.folder().join(FILE))
        .args(choices.map(|choice| choice.to_string())));
    let reports: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let problem = |message: &str| json!([[message, "How to install it", "Open the settings", "Try again"]]);
    let advice = "Install a newer memgate, or correct memgate.path and memgate.arguments.";
    let expected = [
        problem(
            "memgate: There is no program \"/no/memgate here\". Install memgate, or set memgate.path to where it is.",
        ),
        problem(&format!("memgate: \"false lsp\" does not start. {advice}")),
        problem(&format!("memgate: \"{memgate} lsp --no-such\" does not start. {advice}")),
        json!([]),
    ];
    let messages: Vec<&Value> = reports.iter().map(|report| &report["messages"]).collect();
    assert_eq!(messages[..4], expected.iter().collect::<Vec<_>>());
    // What the client says of a program that ends, at once or later, is its own.
    assert_ne!(messages[4], &json!([]));
    let mark = json!([{"code": "arkonis/backend-unknown", "line": 5, "severity": 0, "source": "memgate"}]);
    let none = json!([]);
    let marks: Vec<&Value> = reports.iter().map(|report| &report["marks"]).collect();
    assert_eq!(marks, [&none, &none, &none, &mark, &none, &mark]);
    for report in &reports {
        assert_eq!(report["registered"], json!(["memgate.restart"]), "{report}");
    }
}

/// The files below a folder, and their sizes.
fn sizes(folder: &Path) -> BTreeMap<String, u64> {
    let mut folders = vec![folder.to_owned()];
    let mut sizes = BTreeMap::new();
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it").display().to_string();
                sizes.insert(name, path.metadata().expect("a size").len());
            }
        }
    }
    sizes
}
