//! Documents show the real output of memgate, their pictures are drawn from it, and their links lead to an existing
//! file and heading.
//!
//! A fenced `console` block whose first line starts with `$` is a command and its standard output;
//! a line `…` stands for any number of lines. `BLESS=1 cargo test --test readme` draws the pictures anew.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "support/shown.rs"]
mod shown;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anstyle_svg::{Term, WIN10_CONSOLE};
use shown::fits;

/// Each picture of README, and the command whose output it is.
const PICTURES: &[(&str, &str)] = &[
    ("docs/pictures/finding.svg", "memgate check docs/tour/"),
    ("docs/pictures/diff.svg", "memgate mutate --diff examples/arkonis/pod.yaml --with examples/arkonis/"),
];

/// The width of a picture, in characters: what a page of a repository shows without scaling it down much.
/// Longer lines are cut off, as a pager does.
const COLUMNS: usize = 110;

#[test]
fn documents_show_what_memgate_prints() {
    let mut commands = 0;
    for (path, text) in documents() {
        for block in text.split("```console\n$ ").skip(1) {
            let block = block.split("\n```").next().expect("an end");
            let (command, shown) = block.split_once('\n').expect("output");
            let needs_cluster = ["kubectl ", "jq "].iter().any(|program| command.contains(program));
            if needs_cluster || shown.contains("\n$ kubectl ") {
                // tests/operate runs what needs a cluster or its audit log.
                continue;
            }
            let printed = run(command, "never");
            assert!(
                fits(&shown.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>()),
                "{}: {command} prints\n{printed}",
                path.display()
            );
            commands += 1;
        }
    }
    assert!(commands > 0, "no example");
}

#[test]
fn pictures_are_of_what_memgate_prints() {
    for (path, command) in PICTURES {
        let output = run(command, "always");
        let lines = output.trim_end().lines().map(|line| cut(line, COLUMNS));
        let shown: Vec<String> = std::iter::once(format!("$ {command}")).chain(lines).collect();
        let picture = Term::new().palette(WIN10_CONSOLE).render_svg(&shown.join("\n"));
        let path = root().join(path);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &picture).expect("the picture can be written");
        }
        let drawn = fs::read_to_string(&path).unwrap_or_default();
        assert!(drawn == picture, "{} is out of date; draw it anew with `just pictures`", path.display());
    }
}

#[test]
fn readme_shows_each_picture() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README");
    for (path, _) in PICTURES {
        assert!(readme.contains(&format!("]({path})")), "{path}");
    }
}

#[test]
fn links_lead_somewhere() {
    for (path, text) in documents() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, at)| (file, Some(at)));
            let folder = path.parent().expect("a folder");
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            assert!(target.exists(), "{}: {link} leads nowhere", path.display());
            if let Some(anchor) = anchor {
                let text = fs::read_to_string(&target).expect("a document");
                assert!(anchors(&text).contains(anchor), "{}: {link} leads nowhere", path.display());
            }
        }
    }
}

/// No image is published yet, so what is installed names one that the reader has built.
#[test]
fn installing_names_an_image() {
    for (path, text) in documents() {
        let pipes = text.lines().filter(|line| line.contains("kubectl apply -f -"));
        for line in pipes.filter(|line| line.trim_start().starts_with("memgate manifests")) {
            let named = ["--image ", "--only ", "--url "].iter().any(|flag| line.contains(flag));
            assert!(named, "{}: {line}", path.display());
        }
        assert!(!text.contains("apply -k deploy/kustomize/default"), "{}", path.display());
    }
}

/// Nothing is published yet, so documents must not name the address where it will be. docs/release.md is the exception.
#[test]
fn nothing_is_fetched_that_is_not_published() {
    for (path, text) in documents().into_iter().filter(|(path, _)| !path.ends_with("docs/release.md")) {
        for place in
            ["github.com/memgate/memgate", "pull ghcr.io/memgate", "oci://ghcr.io/memgate", "uses: memgate/"]
        {
            // Alerts name pages of the repository, at an address that each installation can set.
            let text = text.replace("github.com/memgate/memgate/blob/main/docs/runbooks/", "");
            assert!(!text.contains(place), "{}: {place}", path.display());
        }
    }
}

/// README's words about one agent come first: two sentences, and the manifest of an example.
#[test]
fn readme_begins_with_one_agent() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README");
    let (_, start) = readme.split_once("# memgate\n\n").expect("a title");
    let (sentences, rest) = start.split_once("\n\n").expect("a paragraph");
    assert_eq!(sentences.matches('.').count(), 2, "{sentences}");
    let (between, rest) = rest.split_once("```yaml\n").expect("a manifest");
    assert!(between.lines().count() <= 2, "{between}");
    let (manifest, rest) = rest.split_once("```\n").expect("an end");
    let example = fs::read_to_string(root().join("examples/arkonis/memory-redis.yaml")).expect("an example");
    let lines = example.lines().map(|line| line.split('#').next().unwrap_or_default().trim_end());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    assert_eq!(manifest.lines().collect::<Vec<_>>(), lines);
    let (between, shown) = rest.split_once("```console\n$ ").expect("what the pod gets");
    assert!(
        between.lines().count() <= 4 && shown.contains("\n+        - name: AGENT_MEMORY_BACKEND "),
        "{between}"
    );
}

/// What precedes the second heading is what a reader sees first. Its commands need Rust alone, and succeed.
#[test]
fn no_command_of_the_first_screen_fails() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README");
    let (screen, _) = readme.split_once("\n## ").expect("a heading");
    let blocks = screen.split("\n```").skip(1).step_by(2).filter(|block| !block.starts_with("yaml\n"));
    let mut commands = 0;
    for block in blocks {
        let block = block.strip_prefix("console\n$ ").expect("a command with its output");
        let command = block.lines().next().expect("a command");
        assert!(command.starts_with("cargo run --profile quick -- "), "{command}");
        let status = start(command, "never").status.code();
        assert_eq!(status, Some(0), "{command}");
        commands += 1;
    }
    assert!(commands > 0, "no command");
}

/// README's commands use the profile without link-time optimization, which builds in a third of the time.
#[test]
fn what_readme_runs_is_built_quickly() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README");
    let runs: Vec<_> = readme.lines().filter(|line| line.contains("cargo run ")).collect();
    assert!(!runs.is_empty(), "README runs nothing");
    assert!(runs.iter().all(|line| line.contains("cargo run --profile quick -- ")), "{runs:?}");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let (_, profile) = manifest.split_once("\n[profile.quick]\n").expect("the profile");
    assert!(profile.starts_with("inherits = \"dev\"\n"), "{profile}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every document of the repository, except the pages of codes, which `memgate explain` prints.
fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders =
        ["docs", "docs/adr", "certs", "examples", "deploy/kustomize", "deploy/helm/memgate", ""]
            .map(|folder| root().join(folder))
            .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// The headings of a document, as a link names them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let letters = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
    };
    headings.map(letters).collect()
}

/// What a command prints on standard output.
fn run(command: &str, color: &str) -> String {
    String::from_utf8(start(command, color).stdout).expect("text")
}

/// Runs a command of memgate.
fn start(command: &str, color: &str) -> Output {
    let arguments =
        command.strip_prefix("cargo run --profile quick -- ").or_else(|| command.strip_prefix("memgate "));
    let arguments = arguments.expect("a command of memgate").split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(arguments)
        .args(["--color", color])
        .current_dir(root())
        .env_clear()
        .output()
        .expect("memgate starts")
}

/// The line as far as it fits into so many columns. Its escape sequences stay, to the one that ends its colours.
fn cut(line: &str, columns: usize) -> String {
    let mut cut = String::new();
    let (mut escaped, mut column) = (false, 0);
    for letter in line.chars() {
        escaped |= letter == '\u{1b}';
        if !escaped {
            column += 1;
        }
        if escaped || column < columns {
            cut.push(letter);
        } else if column == columns {
            cut.push('…');
        }
        escaped &= letter != 'm';
    }
    cut
}
