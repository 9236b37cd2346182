//! Which code may use which, read from the sources themselves:
//!
//! - Crates: the crates that decide know no cluster, network, runtime or command line, memgate-server no command line.
//!
//!   ```text
//!   memgate → {editor, cluster, workbench, server, install}; editor → workbench
//!   cluster → {core, certs, install}; {workbench, server} → core; server → certs → primitives; install → {policy, platforms}
//!   core → platforms → model → schema → primitives
//!                      core → policy → model; platforms → manifest → primitives
//!   ```
//! - Modules at the top of a crate: an arrow back, or a module that has no place yet, fails.
//!
//!   ```text
//!   admission → decide → patch
//!   files → build → report
//!   ```
//!
//!   Those of the other crates form no circle.
//! - Modules below: those with one parent form no circle, at any depth. Each stands there with all that is
//!   inside it, so a use deep in `server::audit` of anything in `server::metrics` is `audit → metrics`. A parent and
//!   its children may use each other: the parent is where they are put together, and what it holds itself (a
//!   type that all of them pass on) is theirs to share. What a parent has only imported counts as a use of
//!   where it comes from. Test code may use everything.
//! - Families: none uses another.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

#[path = "layers/circles.rs"]
mod circles;
#[path = "layers/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use circles::{Modules, circles_in};
use source::{root, sources_of};

/// The sources of each crate, in the order in which a crate may use others.
const CRATES: [&str; 14] = [
    "crates/primitives/src", "crates/schema/src", "crates/model/src", "crates/manifest/src",
    "crates/policy/src", "crates/platforms/src", "crates/core/src", "crates/install/src", "crates/certs/src",
    "crates/server/src", "crates/workbench/src", "crates/cluster/src", "crates/editor/src", "src",
];

/// What the crates that decide may not depend on, by the beginning of a dependency's name.
const NOT_FOR_DECISIONS: [&str; 11] = [
    "anyhow", "axum", "clap", "futures", "hyper", "k8s-openapi", "kube", "rustls", "tokio", "tower",
    "tracing",
];

/// What the crates above those may not depend on: they know no command line.
const NOT_FOR_OTHERS: [&str; 2] = ["anyhow", "clap"];

/// For each crate the other crates of memgate that it may use.
const CRATE_LAYERS: [(&str, &[&str]); 13] = [
    ("primitives", &[]),
    ("schema", &["primitives"]),
    ("model", &["primitives", "schema"]),
    ("manifest", &["primitives"]),
    ("policy", &["primitives", "schema", "model"]),
    ("platforms", &["primitives", "schema", "model", "manifest"]),
    ("core", &["primitives", "schema", "model", "manifest", "policy", "platforms"]),
    ("install", &["primitives", "model", "manifest", "policy", "platforms"]),
    ("certs", &["primitives"]),
    (
        "server",
        &["primitives", "schema", "model", "manifest", "policy", "platforms", "core", "install", "certs"],
    ),
    ("workbench", &["primitives", "schema", "model", "manifest", "policy", "platforms", "core"]),
    ("cluster", &["primitives", "model", "policy", "platforms", "core", "install", "certs"]),
    ("editor", &["primitives", "model", "manifest", "platforms", "core", "workbench"]),
];

/// For each module at the top of a crate with several parts, the modules of the same crate that it may use.
const LAYERS: [(&str, &[&str]); 10] = [
    ("patch", &[]),
    ("decide", &["patch"]),
    ("admission", &["patch", "decide"]),
    ("state", &[]),
    ("built", &[]),
    ("paths", &[]),
    ("in_order", &[]),
    ("report", &["built", "paths"]),
    ("build", &["built", "paths", "in_order", "report"]),
    ("files", &["built", "paths", "in_order", "report", "build"]),
];

/// The crates whose modules [`LAYERS`] orders; in the others they form no circle.
const LAYERED: [&str; 2] = ["crates/core/src", "crates/workbench/src"];

#[test]
fn no_crate_depends_on_what_it_must_not_know() {
    let mut wrong = Vec::new();
    for (name, allowed) in CRATE_LAYERS {
        let manifest = format!("crates/{name}/Cargo.toml");
        let text = fs::read_to_string(root().join(&manifest)).expect("a manifest");
        let (_, section) = text.split_once("\n[dependencies]\n").expect("a list of dependencies");
        let section = section.split("\n[").next().unwrap_or_default();
        let names: Vec<_> = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
        assert!(names.contains(&"serde_json"), "the dependencies of {manifest} are not read well: {names:?}");
        let decides = !["install", "certs", "server", "workbench", "cluster", "editor"].contains(&name);
        let forbidden = if decides { &NOT_FOR_DECISIONS[..] } else { &NOT_FOR_OTHERS[..] };
        for dependency in names {
            let is_allowed = match dependency.strip_prefix("memgate-") {
                // It evaluates rules, and knows nothing of clusters.
                None if (name, dependency) == ("schema", "kube-cel") => true,
                Some(other) => allowed.contains(&other),
                None => !forbidden.iter().any(|word| dependency.starts_with(word)),
            };
            if !is_allowed {
                wrong.push(format!("{manifest}: {dependency}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_module_uses_one_above_it() {
    let layers: BTreeMap<_, _> = LAYERS.into();
    let mut wrong = Vec::new();
    for source in LAYERED.into_iter().flat_map(sources_of) {
        let Some(module) = source.module.first() else { continue };
        let Some(allowed) = layers.get(module.as_str()) else {
            wrong.push(format!(
                "{}: the module {module} has no place in tests/layers.rs",
                source.file.display()
            ));
            continue;
        };
        for used in source.paths.iter().filter(|path| ["crate", "memgate"].contains(&path.start.as_str())) {
            let Some(top) = used.segments.first() else { continue };
            if top != module && !allowed.contains(&top.as_str()) {
                wrong.push(format!("{}:{}: {module} may not use {top}", source.file.display(), used.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_modules_of_one_parent_use_each_other_in_a_circle() {
    let mut circles = String::new();
    for folder in CRATES {
        let modules = Modules::of(sources_of(folder));
        for (parent, uses) in modules.uses_among_children() {
            for circle in circles_in(&uses) {
                let parent = if parent.is_empty() { "the crate".to_owned() } else { parent.join("::") };
                writeln!(circles, "in {folder}, {parent}:").expect("a text can be written to");
                for (from, to) in circle {
                    let places = &uses[&from][&to];
                    writeln!(circles, "  {from} → {to}: {}", places.join(", "))
                        .expect("a text can be written to");
                }
            }
        }
    }
    assert!(circles.is_empty(), "these modules use each other in a circle\n{circles}");
}

/// The texts of other libraries' errors can be dumps of a value, so the log has `library_error::explained` instead.
#[test]
fn no_log_line_has_an_error_as_a_library_writes_it() {
    let sources = ["crates/certs/src", "crates/server/src", "crates/cluster/src", "src"]
        .into_iter()
        .flat_map(sources_of);
    let mut wrong = Vec::new();
    for source in sources {
        let text = fs::read_to_string(&source.file).expect("a source");
        let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").zip(1..);
        let raw = |line: &str| {
            ["%error", "?error", "%err,", "?err,", "error:?}"].iter().any(|it| line.contains(it))
        };
        wrong.extend(
            lines
                .filter(|(line, _)| raw(line))
                .map(|(_, number)| format!("{}:{number}", source.file.display())),
        );
    }
    assert!(wrong.is_empty(), "write these errors with library_error::explained: {wrong:#?}");
}

#[test]
fn no_family_uses_another() {
    let mut wrong = Vec::new();
    let families = families();
    assert!(families.contains("arkonis"), "the folders of families are not found: {families:?}");
    for source in sources_of("crates/platforms/src") {
        let family = |module: &[String]| families.get(module.first()?);
        let Some(own) = family(&source.module) else { continue };
        for used in &source.paths {
            if let Some(other) = family(&used.from(&source.module)).filter(|other| *other != own) {
                wrong.push(format!("{}:{}: {own} may not use {other}", source.file.display(), used.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The folders that describe kinds.
fn families() -> BTreeSet<String> {
    let folders = fs::read_dir(root().join("crates/platforms/src")).expect("is a folder");
    let folders = folders.map(|entry| entry.expect("can be read").path());
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    folders.filter(|path| path.join("api.rs").exists()).filter_map(name).collect()
}
