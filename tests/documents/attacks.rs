//! That stress/ATTACKS.md and the table of threats in SECURITY.md are written from stress/attacks.yaml, and that each test
//! which it names exists. `BLESS=1 cargo test --test documents attacks` writes both anew.

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

/// Whether there is such a test: a file or folder, a function of it, or the names of cases in it.
fn exists(file: &str, name: Option<&str>) -> bool {
    let Some(name) = name else { return path(file).exists() };
    let source = fs::read_to_string(path(file)).unwrap_or_default();
    if Path::new(file).extension().is_none_or(|ending| ending != "yaml") {
        return source.contains(&format!("fn {name}("));
    }
    let prefix = name.strip_suffix('*');
    let mut cases = source.lines().filter_map(|line| line.strip_prefix("- name: "));
    cases.any(|case| prefix.map_or(case == name, |prefix| case.starts_with(prefix)))
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
fn the_threat_of_exempt_namespaces_names_all_of_them() {
    let data = data();
    let about = |threat: &&Value| text(threat, "threat").contains("a namespace that is exempt");
    let threat = threats(&data).iter().find(about).expect("a threat about exempt namespaces");
    for name in memgate_model::kind::SYSTEM_NAMESPACES {
        assert!(text(threat, "answer").contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn each_named_test_exists() {
    let data = data();
    let shown = threats(&data).iter().filter(|threat| !threat["tests"].is_null());
    let named = attacks(&data).chain(shown).flat_map(tests);
    let missing: Vec<_> = named.filter(|(file, name)| !exists(file, *name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
