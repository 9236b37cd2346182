//! tools/build-archives.sh: what is in an archive.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::release::{PUBLISHED, REVISION, ROOT, Release, VERSION, archives, made, run, text};

/// Unpacks the archive of this machine into a directory.
fn unpacked(directory: &Path) -> std::path::PathBuf {
    let archive = made().join("releases").join(format!("v{VERSION}/{}.tar.gz", Release::name()));
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(directory));
    directory.join(Release::name())
}

/// The names of the files of a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// The headings below which a help text lists commands.
const COMMANDS: [&str; 5] = ["Commands:", "Files:", "Install:", "Cluster:", "Policies:"];

/// The commands that a help text lists.
fn commands(arguments: &[&str]) -> Vec<String> {
    let help = run(Command::new(env!("CARGO_BIN_EXE_memgate")).args(arguments).arg("--help"));
    let help = text(&help.stdout);
    let mut names = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        is_list = COMMANDS.contains(&line) || (is_list && !line.is_empty());
        let name = line.strip_prefix("  ").filter(|rest| is_list && !rest.starts_with(' '));
        names.extend(name.and_then(|rest| rest.split_whitespace().next()).filter(|name| *name != "help"));
    }
    names.into_iter().map(Into::into).collect()
}

#[test]
fn each_command_has_a_manual_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = unpacked(directory.path()).join("man/man1");
    let mut expected = BTreeSet::from(["memgate.1".to_owned()]);
    // The two that help does not list.
    let hidden = ["completions", "man"].map(Into::into);
    for name in commands(&[]).into_iter().chain(hidden) {
        expected.insert(format!("memgate-{name}.1"));
        expected.extend(commands(&[&name]).iter().map(|below| format!("memgate-{name}-{below}.1")));
    }
    assert!(expected.contains("memgate-certs-dev.1"), "{expected:?}");
    assert_eq!(names(&pages), expected);
    for name in expected {
        let page = fs::read_to_string(pages.join(&name)).expect("a page");
        assert!(page.contains(".SH NAME") && page.contains(&format!("memgate {VERSION}")), "{name}: {page}");
    }
}

#[test]
fn shells_take_the_completions() {
    let directory = tempfile::tempdir().expect("a directory");
    let completions = unpacked(directory.path()).join("completions");
    let expected = ["_memgate", "_memgate.ps1", "memgate.bash", "memgate.fish"];
    assert_eq!(names(&completions), expected.map(str::to_owned).into());
    let asked = "source \"$1\"; COMP_WORDS=(memgate expl); COMP_CWORD=1; _memgate memgate expl memgate; \
        echo \"${COMPREPLY[@]}\"";
    let said = run(Command::new("bash").args(["-c", asked, "bash"]).arg(completions.join("memgate.bash")));
    assert_eq!(text(&said.stdout), "explain explain-pod\n");
}

#[test]
fn the_examples_of_an_archive_can_be_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = unpacked(directory.path());
    let check = |path: &str| {
        let mut command = Command::new(folder.join("memgate"));
        command.args(["check", path]).current_dir(&folder).output().expect("runs").status.code()
    };
    assert_eq!(check("examples/arkonis"), Some(0));
    assert_eq!(check("docs/tour"), Some(1));
    for name in ["LICENSE", "CHANGELOG.md", "memgate.cdx.json"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
}

/// Builds archives of other systems too, with a text in place of what runs nowhere here.
pub(crate) fn build_all(directory: &Path, out: &str, systems: &[&str]) {
    let built = directory.join("static");
    if !built.exists() {
        run(Command::new("cp").arg("-R").arg(made().join("static")).arg(&built));
    }
    for target in [
        "x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin",
        "aarch64-apple-darwin", "x86_64-pc-windows-gnu",
    ] {
        let folder = built.join(target);
        if folder.exists() {
            continue;
        }
        fs::create_dir(&folder).expect("a folder");
        let program = if target.contains("windows") { "memgate.exe" } else { "memgate" };
        fs::write(folder.join(program), target).expect("a program");
        fs::write(folder.join("memgate.cdx.json"), "{}").expect("a bill of materials");
        fs::write(folder.join("revision"), REVISION).expect("a commit");
    }
    archives(directory, out, systems);
}

/// What runs nowhere here is packed all the same, and twice the same.
#[test]
#[ignore = "needs python3"]
fn there_are_archives_for_other_systems() {
    let directory = tempfile::tempdir().expect("a directory");
    let systems = ["linux-aarch64", "darwin-x86_64", "darwin-aarch64", "windows-x86_64"];
    let sums = ["one", "two"].map(|out| {
        build_all(directory.path(), out, &systems);
        fs::read_to_string(directory.path().join(out).join(format!("v{VERSION}/SHA256SUMS"))).expect("sums")
    });
    assert_eq!(sums[0], sums[1]);
    let named: BTreeSet<_> = sums[0].lines().filter_map(|line| line.split("  ").nth(1)).collect();
    let archive = |system: &str| {
        format!("memgate-{VERSION}-{system}.{}", if system.starts_with("windows") { "zip" } else { "tar.gz" })
    };
    let provenance = format!("memgate-{VERSION}.intoto.json");
    let others = ["install.sh", "memgate.krew.yaml", "memgate.rb", &provenance].map(str::to_owned);
    let expected: BTreeSet<_> = systems.map(archive).into_iter().chain(others).collect();
    assert_eq!(named.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    let zip = directory.path().join("one").join(format!("v{VERSION}")).join(archive("windows-x86_64"));
    let listed = run(Command::new("python3").args(["-m", "zipfile", "--list"]).arg(zip));
    let program = format!("memgate-{VERSION}-windows-x86_64/memgate.exe");
    assert!(text(&listed.stdout).contains(&program), "{}", text(&listed.stdout));
}

/// The SHA-256 of a file, in hex.
fn sum(path: &Path) -> String {
    let said = run(Command::new("sha256sum").arg(path));
    text(&said.stdout).split(' ').next().expect("a sum").to_owned()
}

/// The statement names exactly the files of the release with their sums, the commit, and the locked libraries.
#[test]
fn the_provenance_is_that_of_the_files() {
    let folder = made().join("releases").join(format!("v{VERSION}"));
    let file = format!("memgate-{VERSION}.intoto.json");
    let statement = fs::read_to_string(folder.join(&file)).expect("the provenance");
    let statement: Value = serde_json::from_str(&statement).expect("JSON");
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let subjects = statement["subject"].as_array().expect("files").iter();
    let text_of = |value: &Value| value.as_str().expect("a text").to_owned();
    let named: BTreeSet<_> =
        subjects.map(|it| (text_of(&it["digest"]["sha256"]), text_of(&it["name"]))).collect();
    let expected: BTreeSet<_> = names(&folder)
        .into_iter()
        .filter(|name| ![file.as_str(), "SHA256SUMS"].contains(&name.as_str()))
        .map(|name| (sum(&folder.join(&name)), name))
        .collect();
    assert_eq!(named, expected);
    let build = &statement["predicate"]["buildDefinition"];
    assert_eq!(build["buildType"], "file:tools/RELEASE.md#provenance");
    assert!(release_page().contains("\n### Provenance\n"));
    let own = format!("linux-{}", std::env::consts::ARCH);
    assert_eq!(
        build["externalParameters"],
        json!({
            "command": "tools/build-archives.sh", "arguments": [own], "environment": {"MEMGATE_RELEASES": PUBLISHED},
        })
    );
    assert_eq!(build["internalParameters"], json!({"SOURCE_DATE_EPOCH": "0", "modified": false}));
    let from = &build["resolvedDependencies"];
    assert_eq!(from[0]["digest"]["gitCommit"], REVISION);
    assert_eq!(from[2]["digest"]["sha256"], sum(&Path::new(ROOT).join("Cargo.lock")));
    assert!(statement["predicate"]["runDetails"]["builder"]["id"].is_string());
}

fn release_page() -> String {
    fs::read_to_string(Path::new(ROOT).join("tools/RELEASE.md")).expect("the page")
}

/// The command of tools/RELEASE.md accepts the files as they are, and no other.
#[test]
fn the_provenance_shows_a_file_that_was_changed() {
    let release = Release::new();
    let page = release_page();
    let command = page.lines().find(|line| line.starts_with("jq -r ")).expect("the command for users");
    let check =
        || Command::new("bash").args(["-c", command]).current_dir(release.folder()).output().expect("bash");
    assert!(check().status.success(), "{}", text(&check().stderr));
    fs::write(release.folder().join("install.sh"), "another").expect("a file");
    assert!(!check().status.success());
}

/// Programs of two commits do not become one release.
#[test]
fn programs_of_two_commits_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    build_all(directory.path(), "one", &["linux-aarch64"]);
    fs::write(directory.path().join("static/aarch64-apple-darwin/revision"), "another").expect("a commit");
    let mut command = Command::new(Path::new(ROOT).join("tools/build-archives.sh"));
    command.arg("--from").arg(directory.path().join("static")).arg("--out").arg(directory.path().join("two"));
    let said = command.args(["linux-aarch64", "darwin-aarch64"]).output().expect("it starts");
    assert!(!said.status.success() && text(&said.stderr).contains("is of another commit than"), "{said:?}");
}
