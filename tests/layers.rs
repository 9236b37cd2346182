//! Which code may use which, read from the sources themselves:
//!
//! - Crates: memgate-core knows no cluster, network, runtime or command line, memgate-server no command line.
//! - Modules at the top: an arrow back, or a module that has no place yet, fails.
//!
//!   ```text
//!   main → cli → {doctor, cluster, server, offline, deploy}; doctor → cluster → {server, deploy, report};
//!   offline → {report, casefile, manifest, admission}; server → admission;
//!   admission → decide → {patch, policy, family} → model; deploy → manifest; report → model
//!   ```
//! - Modules below: those with one parent form no circle, at any depth. Each stands there with all that is
//!   inside it, so a use deep in `server::tls` of anything in `server::metrics` is `tls → metrics`. A parent and
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
use source::{Source, root, sources_of};

/// The sources of each crate.
const CRATES: [&str; 3] = ["crates/core/src", "crates/server/src", "src"];

/// What a crate may not depend on, by the beginning of a dependency's name.
const FORBIDDEN_DEPENDENCIES: [(&str, &[&str]); 2] = [
    (
        "crates/core/Cargo.toml",
        &[
            "anyhow",
            "axum",
            "clap",
            "futures",
            "hyper",
            "k8s-openapi",
            "kube",
            "memgate-server",
            "opentelemetry",
            "rustls",
            "tokio",
            "tower",
            "tracing",
        ],
    ),
    ("crates/server/Cargo.toml", &["anyhow", "clap"]),
];

/// Each module with those that it may use besides itself.
const LAYERS: [(&str, &[&str]); 19] = [
    ("model", &[]),
    ("family", &["model"]),
    ("policy", &["model"]),
    ("crd", &["model"]),
    ("patch", &["model"]),
    ("decide", &["patch", "crd", "policy", "family", "model"]),
    ("admission", &["patch", "decide", "family", "model"]),
    ("manifest", &["model"]),
    ("report", &["model"]),
    ("review_path", &["model"]),
    ("deploy", &["review_path", "manifest", "policy", "family", "model"]),
    ("state", &["manifest", "crd", "policy", "family", "model"]),
    (
        "offline",
        &[
            "patch",
            "report",
            "casefile",
            "state",
            "manifest",
            "admission",
            "decide",
            "policy",
            "family",
            "model",
        ],
    ),
    ("casefile", &["state", "manifest", "policy", "family", "model"]),
    ("server", &["review_path", "admission", "decide", "policy", "family", "model"]),
    (
        "cluster",
        &["review_path", "server", "state", "report", "deploy", "admission", "decide", "family", "model"],
    ),
    ("doctor", &["review_path", "cluster", "state", "manifest", "report", "deploy", "family", "model"]),
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
            "policy",
            "family",
            "model",
        ],
    ),
    ("main", &["cli"]),
];

#[test]
fn no_crate_depends_on_what_it_must_not_know() {
    let mut wrong = Vec::new();
    for (manifest, forbidden) in FORBIDDEN_DEPENDENCIES {
        let text = fs::read_to_string(root().join(manifest)).expect("a manifest");
        let (_, section) = text.split_once("\n[dependencies]\n").expect("a list of dependencies");
        let section = section.split("\n[").next().unwrap_or_default();
        let names: Vec<_> = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
        assert!(names.contains(&"serde_json"), "the dependencies of {manifest} are not read well: {names:?}");
        let known = names.into_iter().filter(|name| forbidden.iter().any(|word| name.starts_with(word)));
        wrong.extend(known.map(|name| format!("{manifest}: {name}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_module_uses_one_above_it() {
    let layers: BTreeMap<_, _> = LAYERS.into();
    let mut wrong = Vec::new();
    for source in sources() {
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

#[test]
fn no_family_uses_another() {
    let mut wrong = Vec::new();
    let families = families();
    assert!(families.contains("arkonis"), "the folders of families are not found: {families:?}");
    for source in sources() {
        let family = |name: &String| families.get(name);
        let [first, second, ..] = source.module.as_slice() else { continue };
        let Some(own) = family(second).filter(|_| first == "family") else { continue };
        for used in &source.paths {
            let path = used.from(&source.module);
            let [first, second, ..] = path.as_slice() else { continue };
            if let Some(other) = family(second).filter(|other| first == "family" && *other != own) {
                wrong.push(format!("{}:{}: {own} may not use {other}", source.file.display(), used.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The folders that describe kinds.
fn families() -> BTreeSet<String> {
    let folders = fs::read_dir(root().join("crates/core/src/family")).expect("is a folder");
    let folders = folders.map(|entry| entry.expect("can be read").path());
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    folders.filter(|path| path.join("api.rs").exists()).filter_map(name).collect()
}

fn sources() -> Vec<Source> {
    CRATES.into_iter().flat_map(sources_of).collect()
}
