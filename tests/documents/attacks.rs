//! That stress/ATTACKS.md and the table of threats in SECURITY.md are written from stress/attacks.yaml, that each test which
//! it names exists, and that rows which tests name exist. `BLESS=1 cargo test --test documents attacks` writes both anew.

#![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const LIST: &str = "stress/ATTACKS.md";

const SECURITY: &str = "SECURITY.md";

/// The lines around the table of threats.
const MARKS: [&str; 2] =
    ["<!-- threats: written from stress/attacks.yaml -->\n", "<!-- end of the threats -->\n"];

/// The text above the tables.
const HEAD: &str = "# Attacks with a test

For security people who ask what was tried against memgate: each attack, what happens, and the tests that hold it.
[SECURITY.md](../SECURITY.md) says what memgate trusts and what counts as a vulnerability.

<!-- Written from stress/attacks.yaml by `BLESS=1 cargo test --test documents attacks`. -->
";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).expect(name)
}

fn data() -> Value {
    serde_saphyr::from_str(&read("stress/attacks.yaml")).expect("YAML")
}

/// All attacks, of all attackers.
fn attacks(data: &Value) -> impl Iterator<Item = &Value> {
    list(data, "attackers").iter().flat_map(|attacker| list(attacker, "attacks"))
}

/// The threats of SIG Security's threat model for admission control.
fn threats(data: &Value) -> &[Value] {
    list(data, "threats")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().filter(|text| !text.is_empty()).expect(key).trim_end()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().filter(|list| !list.is_empty()).expect(key)
}

/// The tests of an attack: a file or folder, and the name in it.
fn tests(attack: &Value) -> impl Iterator<Item = (&str, Option<&str>)> {
    let named = list(attack, "tests").iter().map(|test| test.as_str().expect("a text"));
    named.map(|test| test.split_once("::").map_or((test, None), |(file, name)| (file, Some(name))))
}

/// The cell with the tests: each file as a link from this folder, and the names in it.
fn cell(attack: &Value, up: &str) -> String {
    let mut cell = String::new();
    let mut last = "";
    for (file, name) in tests(attack) {
        if file != last {
            let separator = if last.is_empty() { "" } else { "<br>" };
            write!(cell, "{separator}[`{file}`]({up}{file})").expect("is written");
        }
        let separator = if file == last { "," } else { "" };
        if let Some(name) = name {
            write!(cell, "{separator} `{name}`").expect("is written");
        }
        last = file;
    }
    cell
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let data = data();
    for attacker in list(&data, "attackers") {
        let title = text(attacker, "attacker");
        let (first, rest) = title.split_at(1);
        let gain = text(attacker, "gain");
        let first = first.to_uppercase();
        write!(page, "\n## {first}{rest}\n\n{gain}.\n\n| attack | what happens | test |\n|---|---|---|\n")
            .expect("is written");
        for attack in list(attacker, "attacks") {
            let (tried, result) = (text(attack, "attack"), text(attack, "result"));
            assert!(!format!("{tried}{result}").contains('|'), "{tried}: | would end its cell");
            let id = attack["id"].as_str().map(|id| format!("{id}: ")).unwrap_or_default();
            writeln!(page, "| {id}{tried} | {result} | {} |", cell(attack, "../")).expect("is written");
        }
    }
    page
}

/// SECURITY.md with its table of threats.
fn security() -> String {
    let mut table =
        "\n| # | threat | what memgate does | shown by | what remains for you |\n|---|---|---|---|---|\n"
            .to_owned();
    let data = data();
    for threat in threats(&data) {
        let shown = if threat["tests"].is_null() { "–".to_owned() } else { cell(threat, "") };
        let [threatens, answer, remains] = ["threat", "answer", "remains"].map(|key| text(threat, key));
        writeln!(table, "| {} | {threatens} | {answer} | {shown} | {remains} |", threat["id"])
            .expect("is written");
    }
    let page = read(SECURITY);
    let (head, rest) = page.split_once(MARKS[0]).expect("where the threats begin");
    let (_, tail) = rest.split_once(MARKS[1]).expect("where they end");
    format!("{head}{}{table}\n{}{tail}", MARKS[0], MARKS[1])
}

/// The reason why there is no such test, if there is none.
fn fault(file: &str, name: Option<&str>) -> Option<String> {
    let place = path(file);
    if !place.exists() {
        return Some(format!("there is no {file}"));
    }
    let is_of = |ending: &str| Path::new(file).extension().is_some_and(|known| known == ending);
    let source = if place.is_file() { read(file) } else { String::new() };
    let Some(name) = name else {
        let names_tests = marks_a_test(&source) || ["Trial", "\nmod "].iter().any(|it| source.contains(it));
        return (is_of("rs") && !names_tests && !file.contains("/soak/"))
            .then(|| format!("{file} has no test"));
    };
    let found = if is_of("rs") {
        is_test(&source, name)
    } else if is_of("yaml") {
        let names = source.lines().filter_map(|line| line.strip_prefix("- name: "));
        let prefix = name.strip_suffix('*');
        names.into_iter().any(|case| prefix.map_or(case == name, |prefix| case.starts_with(prefix)))
    } else {
        false
    };
    (!found).then(|| format!("{file} has no test {name}"))
}

/// Whether a source has a function of this name that is marked as a test, or that a list of trials names.
fn is_test(source: &str, name: &str) -> bool {
    let Some((before, _)) = source.split_once(&format!("fn {name}(")) else { return false };
    let is_trial =
        || source.contains("Trial") && [")", ","].iter().any(|end| source.contains(&format!(" {name}{end}")));
    marks_a_test(before.rsplit("\n\n").next().unwrap_or_default()) || is_trial()
}

/// Whether an attribute such as `#[test]` or `#[tokio::test(…)]` is in a source.
fn marks_a_test(source: &str) -> bool {
    let attributes = source.lines().map(str::trim).filter(|line| line.starts_with("#["));
    attributes.into_iter().any(|line| line.contains("test]") || line.contains("test("))
}

#[test]
fn the_lists_are_written_from_their_data() {
    for (name, page) in [(LIST, page()), (SECURITY, security())] {
        if std::env::var_os("BLESS").is_some() {
            fs::write(path(name), &page).expect("the list can be written");
        }
        let is_current = fs::read_to_string(path(name)).unwrap_or_default() == page;
        assert!(is_current, "{name} is out of date: BLESS=1 cargo test --test documents attacks");
    }
}

#[test]
fn each_named_test_exists() {
    let data = data();
    let shown = threats(&data).iter().filter(|threat| !threat["tests"].is_null());
    let faults: Vec<_> =
        attacks(&data).chain(shown).flat_map(tests).filter_map(|(file, name)| fault(file, name)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// SIG Security numbers its threats from 1 to 18.
#[test]
fn each_threat_of_the_model_has_a_row() {
    let data = data();
    let ids = threats(&data).iter().map(|threat| threat["id"].as_u64());
    assert!(ids.eq((1..=18).map(Some)));
}

/// A comment such as "S4 of stress/ATTACKS.md" is at a test that the row S4 names.
#[test]
fn rows_that_tests_name_name_them() {
    let data = data();
    let mut found = 0;
    for entry in fs::read_dir(path("stress/tests/attack")).expect("the attacks") {
        let file = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let file = format!("stress/tests/attack/{file}");
        let source = if path(&file).is_file() { read(&file) } else { String::new() };
        for (before, _) in source.match_indices(" of stress/ATTACKS.md").map(|(at, _)| source.split_at(at)) {
            let id = before.rsplit(|it: char| !it.is_alphanumeric()).next().unwrap_or_default();
            let has_id =
                |row: &&Value| row["id"].as_str().is_some_and(|ids| ids.split(", ").any(|it| it == id));
            let is_named = attacks(&data).filter(has_id).flat_map(tests).any(|(named, _)| named == file);
            assert!(is_named, "no row {id} of stress/attacks.yaml names {file}");
            found += 1;
        }
    }
    assert!(found > 20, "{found} comments");
}

/// A file of attacks that no row names is one that security people do not find.
#[test]
fn each_file_of_attacks_is_named() {
    let data = read("stress/attacks.yaml");
    let mut found = 0;
    for entry in fs::read_dir(path("stress/tests/attack")).expect("the attacks") {
        let file = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let file = format!("stress/tests/attack/{file}");
        if path(&file).is_file() && marks_a_test(&read(&file)) {
            assert!(data.contains(&file), "{file} is not in stress/attacks.yaml");
            found += 1;
        }
    }
    assert!(found > 8, "{found} files");
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    for (file, name) in [
        ("tests/formats/no_such.rs", None),
        ("tests/formats/hostile.rs", Some("no_such")),
        // A function that is not a test.
        ("crates/core/tests/library/deletion.rs", Some("decided")),
        ("tests/cases/policy/pods.yaml", Some("no-such")),
        ("tests/cases/policy/pods.yaml", Some("no-such-*")),
        ("tests/ui/check/no-such.txt", None),
    ] {
        assert!(fault(file, name).is_some(), "{file} {name:?}");
    }
    assert_eq!(fault("tests/cases/policy/pods.yaml", Some("an-exemption-of-*")), None);
    assert_eq!(fault("tests/documents/attacks.rs", Some("each_named_test_exists")), None);
}
