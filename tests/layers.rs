//! Which module may use which. A back arrow, or a module that has no place yet, fails.
//!
//! ```text
//! main → cli → {server, offline, deploy}; offline → {report, casefile, manifest, admission};
//! admission → {decide, patch} → family → model; deploy → manifest; report → model
//! ```

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each module with those that it may use besides itself.
const LAYERS: [(&str, &[&str]); 16] = [
    ("model", &[]),
    ("family", &["model"]),
    ("decide", &["family", "model"]),
    ("patch", &["model"]),
    ("admission", &["patch", "decide", "family", "model"]),
    ("manifest", &["model"]),
    ("report", &["model"]),
    ("deploy", &["manifest", "family", "model"]),
    ("state", &["family", "model"]),
    ("offline", &["report", "casefile", "state", "manifest", "admission", "decide", "family", "model"]),
    ("casefile", &["state", "family", "model"]),
    ("server", &["admission", "decide", "family", "model"]),
    ("cluster", &["server", "state", "report", "deploy", "admission", "decide", "family", "model"]),
    ("doctor", &["cluster", "state", "manifest", "report", "deploy", "family", "model"]),
    (
        "cli",
        &[
            "doctor",
            "cluster",
            "server",
            "casefile",
            "offline",
            "state",
            "manifest",
            "report",
            "deploy",
            "admission",
            "decide",
            "family",
            "model",
        ],
    ),
    ("main", &["cli"]),
];

/// The families: none uses another.
const FAMILIES: [&str; 5] = ["arkonis", "ark", "orloj", "orka", "sympozium"];

#[test]
fn no_module_uses_one_above_it() {
    let layers: BTreeMap<_, _> = LAYERS.into();
    let mut wrong = Vec::new();
    for (path, module, text) in sources() {
        if module == "lib" {
            continue;
        }
        let Some(allowed) = layers.get(module.as_str()) else {
            wrong.push(format!("{}: the module {module} has no place in tests/layers.rs", path.display()));
            continue;
        };
        for (number, used) in uses(&text, &["crate::", "memgate::"]) {
            if used != module && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}:{number}: {module} may not use {used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_family_uses_another() {
    let mut wrong = Vec::new();
    for (path, module, text) in sources() {
        let part = |part: &std::ffi::OsStr| FAMILIES.iter().copied().find(|family| part == *family);
        let own = path.iter().find_map(part).or_else(|| part(path.file_stem().unwrap_or_default()));
        let Some(own) = own.filter(|_| module == "family") else { continue };
        for (number, used) in uses(&text, &["crate::family::"]) {
            if used != own && FAMILIES.contains(&used.as_str()) {
                wrong.push(format!("{}:{number}: {own} may not use {used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every source file with the name of its module at the top of the crate.
fn sources() -> Vec<(PathBuf, String, String)> {
    let crates = ["crates/core/src", "crates/server/src", "src"];
    crates
        .into_iter()
        .flat_map(|place| sources_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join(place)))
        .collect()
}

fn sources_in(root: &Path) -> Vec<(PathBuf, String, String)> {
    let mut files = Vec::new();
    walk(root, &mut files);
    files.sort();
    let source = |path: PathBuf| {
        let below = path.strip_prefix(root).expect("is below the root").to_owned();
        let top = below.iter().next().expect("is a file").to_string_lossy();
        let module = top.trim_end_matches(".rs").to_owned();
        (below, module, fs::read_to_string(path).expect("is text"))
    };
    files.into_iter().map(source).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("is a folder") {
        let path = entry.expect("can be read").path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The word behind each prefix, with its line; comments aside.
fn uses(text: &str, prefixes: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for prefix in prefixes {
            for (at, _) in line.match_indices(prefix) {
                let before = line[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                let word = |c: &char| c.is_alphanumeric() || *c == '_';
                found.push((index + 1, line[at + prefix.len()..].chars().take_while(word).collect()));
            }
        }
    }
    found
}
