//! That the versions which pages name are those that are used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The rows of the table of docs/compatibility.md: what, version, file.
fn rows(page: &str) -> Vec<[String; 3]> {
    let (_, table) = page.split_once("\n| what | version | used from |\n").expect("the table");
    let lines = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_owned());
            [(); 3].map(|()| cells.next().expect("three cells"))
        })
        .collect()
}

/// How a file names a version of something.
fn named(what: &str, version: &str, file: &str) -> String {
    let what = what.split(',').next().unwrap_or_default();
    match (file, what) {
        ("rust-toolchain.toml", _) => format!("channel = \"{version}\""),
        ("Containerfile", _) => format!("FROM docker.io/library/{version}@sha256:"),
        ("tools/build-static.sh", "Zig") => format!("ziglang=={version}\n"),
        ("tools/build-static.sh", _) => format!("cyclonedx={version}\n"),
        (_, "Kubernetes") => format!("\tk8s.io/kubernetes v{version} "),
        (_, "etcd") => format!("\tgo.etcd.io/etcd/server/v3 v{version} "),
        (_, "Helm") => format!("\thelm.sh/helm/v4 v{version} "),
        (_, "promtool") => format!("\tgithub.com/prometheus/prometheus v{version} "),
        _ => format!("a known way to name {what}"),
    }
}

#[test]
fn the_table_names_what_is_used() {
    let rows = rows(&read("docs/compatibility.md"));
    assert!(rows.len() >= 10, "{rows:?}");
    for [what, version, file] in rows {
        let expected = named(&what, &version, &file);
        assert!(read(&file).contains(&expected), "{file} does not have {expected:?}");
    }
}

/// Every page, those of the repository's root and of `docs` and below.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = ["docs", "deploy", "tools"].map(|folder| root.join(folder)).to_vec();
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|page| root.join(page)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Pages name a version of Kubernetes down to its patch, or a tag of the base image, only if it is in the table.
#[test]
fn pages_name_no_other_versions() {
    let known: BTreeSet<String> =
        rows(&read("docs/compatibility.md")).into_iter().map(|[_, version, _]| version).collect();
    let kubernetes = regex::Regex::new(r"\b(1\.3\d\.\d+)\b").expect("a pattern");
    let image = regex::Regex::new(r"\b(rust:[0-9.]+-[a-z]+)\b").expect("a pattern");
    let mut found = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for version in kubernetes.captures_iter(&text).chain(image.captures_iter(&text)) {
            let version = &version[1];
            assert!(known.contains(version), "{}: {version} is not in the table", page.display());
            found += 1;
        }
    }
    assert!(found >= 8, "{found} versions");
}
