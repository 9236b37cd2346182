//! The formula for Homebrew and the plugin manifest for krew: what they download is an archive of the release, and what
//! they take out of it is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use crate::archives::build_all;
use crate::release::{PUBLISHED, ROOT, Release, SOURCE, VERSION, made, run, text};

/// The systems of a formula and of a plugin manifest, by our names.
const SYSTEMS: [(&str, &str); 5] = [
    ("linux-x86_64", "linux/amd64"),
    ("linux-aarch64", "linux/arm64"),
    ("darwin-x86_64", "darwin/amd64"),
    ("darwin-aarch64", "darwin/arm64"),
    ("windows-x86_64", "windows/amd64"),
];

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("a file")
}

/// The sums of a release by file; they are right.
fn sums(folder: &Path) -> BTreeMap<String, String> {
    run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(folder));
    let sums = read(folder, "SHA256SUMS");
    sums.lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(sum, file)| (file.into(), sum.into()))
        .collect()
}

/// The files of an archive.
fn content(folder: &Path, file: &str) -> BTreeSet<String> {
    let listed = if file.contains("-windows-") {
        let script = "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))";
        run(Command::new("python3").args(["-c", script]).arg(folder.join(file)))
    } else {
        run(Command::new("tar").arg("-tzf").arg(folder.join(file)))
    };
    text(&listed.stdout).lines().map(str::to_owned).collect()
}

/// The file of the release at an address, which has to have this sum.
fn archive<'u>(url: &'u str, sum: &str, sums: &BTreeMap<String, String>) -> &'u str {
    let (place, file) = url.rsplit_once('/').expect("a file");
    assert_eq!(place, format!("{PUBLISHED}/v{VERSION}"));
    assert_eq!(sums.get(file).map(String::as_str), Some(sum), "{file}");
    file
}

/// Checks the formula, and returns the files that it downloads.
fn formula(folder: &Path) -> BTreeSet<String> {
    let (formula, sums) = (read(folder, "memgate.rb"), sums(folder));
    assert!(formula.contains(&format!("\n  version \"{VERSION}\"\n")), "{formula}");
    assert!(formula.contains(&format!("\n  homepage \"{SOURCE}\"\n")), "{formula}");
    let download = Regex::new(
        r#"on_(macos|linux) do|on_(arm|intel) do\n      url "(.*)"\n      sha256 "([0-9a-f]{64})""#,
    );
    let (mut system, mut files) = (String::new(), BTreeSet::new());
    for found in download.expect("a pattern").captures_iter(&formula) {
        if let Some(name) = found.get(1) {
            name.as_str().clone_into(&mut system);
            continue;
        }
        let file = archive(&found[3], &found[4], &sums);
        let ours = if system == "macos" { "darwin" } else { "linux" };
        let processor = if &found[2] == "arm" { "aarch64" } else { "x86_64" };
        assert_eq!(file, format!("memgate-{VERSION}-{ours}-{processor}.tar.gz"));
        // Homebrew begins in the only directory of an archive.
        let (top, content) = (file.trim_end_matches(".tar.gz"), content(folder, file));
        for installed in
            ["memgate", "completions/memgate.bash", "completions/_memgate", "completions/memgate.fish"]
        {
            assert!(formula.contains(&format!(".install \"{installed}\"")), "{installed}");
            assert!(content.contains(&format!("{top}/{installed}")), "{file}: {installed}");
        }
        assert!(content.contains(&format!("{top}/man/man1/memgate.1")), "{file}");
        assert!(content.contains(&format!("{top}/examples/arkonis/agent.yaml")), "{file}");
        files.insert(file.to_owned());
    }
    files
}

/// Checks the plugin manifest by the rules of krew, and returns the files that it downloads.
fn plugin(folder: &Path) -> BTreeSet<String> {
    let plugin: Value = serde_saphyr::from_str(&read(folder, "memgate.krew.yaml")).expect("YAML");
    assert_eq!(plugin["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&plugin["kind"], &plugin["metadata"]["name"]), (&"Plugin".into(), &"memgate".into()));
    let spec = &plugin["spec"];
    assert_eq!(spec["version"], format!("v{VERSION}"));
    assert_eq!(spec["homepage"], SOURCE);
    assert!(spec["description"].as_str().is_some_and(|words| words.lines().all(|line| line.len() <= 80)));
    assert!(
        spec["shortDescription"].as_str().is_some_and(|words| words.len() <= 50 && !words.contains('\n'))
    );
    let (sums, mut files) = (sums(folder), BTreeSet::new());
    for platform in spec["platforms"].as_array().expect("platforms") {
        let word = |value: &Value| value.as_str().expect("a text").to_owned();
        let labels = platform["selector"]["matchLabels"].as_object().expect("labels");
        assert!(labels.keys().eq(["os", "arch"]), "{labels:?}");
        let url = word(&platform["uri"]);
        let file = archive(&url, platform["sha256"].as_str().expect("a sum"), &sums);
        let system = format!("{}/{}", word(&labels["os"]), word(&labels["arch"]));
        let (ours, _) = SYSTEMS.iter().find(|(_, krews)| *krews == system).expect("a system");
        assert!(file.starts_with(&format!("memgate-{VERSION}-{ours}.")), "{file}");
        let content = content(folder, file);
        let taken: Vec<String> =
            platform["files"].as_array().expect("files").iter().map(|file| word(&file["from"])).collect();
        assert!(taken.iter().all(|name| content.contains(name)), "{file}: {taken:?}");
        let names: Vec<&str> = taken.iter().filter_map(|name| name.rsplit('/').next()).collect();
        assert_eq!(names, [platform["bin"].as_str().expect("a program"), "LICENSE"]);
        files.insert(file.to_owned());
    }
    files
}

#[test]
fn packages_install_the_archive_of_this_machine() {
    let folder = made().join("releases").join(format!("v{VERSION}"));
    let expected = BTreeSet::from([format!("{}.tar.gz", Release::name())]);
    assert_eq!(formula(&folder), expected);
    assert_eq!(plugin(&folder), expected);
}

/// Homebrew and krew fetch from https:// only; no address is made up in its place.
#[test]
fn without_an_address_there_are_no_packages() {
    let directory = tempfile::tempdir().expect("a directory");
    for releases in ["", "file:///releases", "http://example.com/releases"] {
        let mut command = Command::new(Path::new(ROOT).join("tools/build-archives.sh"));
        command.arg("--from").arg(made().join("static")).arg("--out").arg(directory.path());
        let said = run(command.env("MEMGATE_RELEASES", releases).env_remove("MEMGATE_SOURCE"));
        assert!(text(&said.stderr).contains("MEMGATE_RELEASES is not an https:// address"), "{said:?}");
        let folder = directory.path().join(format!("v{VERSION}"));
        let sums = sums(&folder);
        assert!(["memgate.rb", "memgate.krew.yaml"].iter().all(|file| !sums.contains_key(*file)), "{sums:?}");
    }
}

/// The installer of a release knows where it is from.
#[test]
fn the_installer_of_a_release_names_it() {
    let folder = made().join("releases").join(format!("v{VERSION}"));
    assert!(read(&folder, "install.sh").contains(&format!("\nRELEASES='{PUBLISHED}'\n")));
    let own = fs::read_to_string(Path::new(ROOT).join("tools/install.sh")).expect("the installer");
    assert!(own.contains("\nRELEASES=\n"), "{own}");
}

#[test]
#[ignore = "needs python3"]
fn packages_install_the_archives_of_all_systems() {
    let directory = tempfile::tempdir().expect("a directory");
    build_all(directory.path(), "out", &SYSTEMS.map(|(system, _)| system));
    let folder = directory.path().join("out").join(format!("v{VERSION}"));
    let archives = |is: fn(&str) -> bool| {
        let systems = SYSTEMS.iter().map(|(system, _)| *system).filter(|system| is(system));
        let ending = |system: &str| if system.starts_with("windows") { "zip" } else { "tar.gz" };
        systems
            .map(|system| format!("memgate-{VERSION}-{system}.{}", ending(system)))
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(formula(&folder), archives(|system| !system.starts_with("windows")));
    assert_eq!(plugin(&folder), archives(|_| true));
}

/// A damaged formula shows that the parser reads it.
#[test]
#[ignore = "needs node, and npm to fetch a parser of Ruby"]
fn the_formula_is_ruby() {
    let packages = Path::new(ROOT).join("target/check-packages");
    fs::create_dir_all(&packages).expect("a directory");
    let npm = ["install", "--silent", "--no-audit", "--no-fund", "@ruby/prism@1.9.0", "--prefix"];
    run(Command::new("npm").args(npm).arg(&packages));
    let script = "import {loadPrism} from '@ruby/prism'; import {readFileSync} from 'node:fs';
        const parse = await loadPrism(); const {errors} = parse(readFileSync(0, 'utf8'));
        errors.forEach(error => console.error(error.message)); process.exit(errors.length ? 1 : 0);";
    fs::write(packages.join("parse.mjs"), script).expect("a script");
    let formula = read(&made().join("releases").join(format!("v{VERSION}")), "memgate.rb");
    for (text, is_ruby) in [(formula.clone(), true), (formula.replacen(" do\n", "\n", 1), false)] {
        let file = packages.join("formula.rb");
        fs::write(&file, text).expect("a file");
        let mut node = Command::new("node");
        let node = node.arg("parse.mjs").current_dir(&packages).stdin(fs::File::open(&file).expect("a file"));
        let output = node.output().expect("node starts");
        assert_eq!(output.status.success(), is_ruby, "{}", crate::release::text(&output.stderr));
    }
}
