//! That `memgate policy new` writes what works at once: for every code that it takes, and for every line of the examples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use memgate_core::decide::codes;
use memgate_workbench::policy_new::{NewPolicy, PolicyWish, codes_with_rule, new_policy};

use super::{memgate, text};

/// The types of rules that lines of the examples lead to.
const TYPES: [&str; 9] = [
    "backends", "capacity", "endpoint", "fields", "labels", "operations", "providers", "retention", "secrets",
];

fn made(name: &str, about: &str) -> Result<NewPolicy, String> {
    let wish = PolicyWish { name, about, paths: &[], next: "memgate test" };
    new_policy(&wish).map_err(|refusal| refusal.to_string())
}

/// What is wrong with a policy and its cases, if anything: they pass, and `check` reports nothing.
fn wrong(directory: &Path, name: &str, made: &NewPolicy) -> Option<String> {
    let file = |end: &str, text: &str| {
        let path = directory.join(format!("{name}.{end}"));
        fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let (policy, cases) = (file("yaml", &made.policy), file("cases.yaml", &made.cases));
    let test = memgate(&["test", "--policy", &policy, &cases], "");
    if test.status.code() != Some(0) || !text(&test.stderr).contains("2 passed, 0 failed") {
        return Some(format!("{name}: {}{}", text(&test.stdout), text(&test.stderr)));
    }
    let check = memgate(&["check", &policy, &cases], "");
    let is_clean = check.status.code() == Some(0) && check.stdout.is_empty();
    (!is_clean).then(|| format!("{name}: {}", text(&check.stdout)))
}

#[test]
fn every_code_with_a_rule_makes_a_policy_that_works() {
    let (directory, mut seen) = (tempfile::tempdir().expect("a folder"), BTreeSet::new());
    for code in codes_with_rule() {
        assert!(seen.insert(code), "{code} has two rules");
        let made = made("new", code).unwrap_or_else(|why| panic!("{code}: {why}"));
        assert_eq!(wrong(directory.path(), "new", &made), None, "{code}");
        assert!(made.cases.contains("- policy/new/"), "{code}: {}", made.cases);
        assert!(!made.cases.contains("kind: MemoryPolicy"), "{code}: {}", made.cases);
    }
}

#[test]
fn every_other_code_is_refused_with_what_to_do() {
    let with_rule: BTreeSet<&str> = codes_with_rule().collect();
    for code in codes::all(&memgate_platforms::ALL).filter(|code| !with_rule.contains(code.name)) {
        let why = made("new", code.name).err().unwrap_or_default();
        assert!(why.contains(code.name) && why.contains("--for memory.yaml:7"), "{}: {why}", code.name);
    }
}

#[test]
fn every_line_of_the_examples_makes_a_policy_that_works_or_is_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let (directory, mut tried, mut types) =
        (tempfile::tempdir().expect("a folder"), BTreeMap::new(), BTreeSet::new());
    for file in memgate_platforms::ALL.iter().flat_map(|family| files_below(&root.join(family.name))) {
        for line in 1..=fs::read_to_string(&file).expect("read").lines().count() {
            let about = format!("{file}:{line}");
            match made("new", &about) {
                // One of each rule for each kind is enough for the whole command.
                Ok(made) => {
                    let rule: Vec<&str> = made.policy.lines().filter(|line| !line.contains('#')).collect();
                    tried.entry(rule.join("\n")).or_insert((about, made));
                }
                Err(why) => assert!(why.starts_with(&about), "{about}: {why}"),
            }
        }
    }
    for (about, made) in tried.values() {
        assert_eq!(wrong(directory.path(), "new", made), None, "{about}");
        types.extend(TYPES.iter().filter(|name| made.policy.contains(&format!("\n    {name}:\n"))));
    }
    assert_eq!(types, TYPES.iter().collect());
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            // Its files are faulty on purpose.
            true if path.ends_with("wrong") => {}
            true => files.extend(files_below(&path)),
            false if path.extension().is_some_and(|end| end == "yaml") => {
                files.push(path.to_string_lossy().into_owned());
            }
            false => {}
        }
    }
    files
}
