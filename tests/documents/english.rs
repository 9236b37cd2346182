//! The English of sources, pages and output: words and phrases that make a sentence hard to read.
//!
//! A comment, a name, a message and a page are read by people who do not know the answer yet. CONTRIBUTING.md says how to
//! write for them. This test only finds the habits that can be found by their words.

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::mark;

/// What not to write, and what to write instead. Each phrase is found as whole words, in any case, in names too.
const PHRASES: &[(&str, &str)] = &[
    ("nobody", NAME_THE_ACTOR),
    ("somebody", NAME_THE_ACTOR),
    ("anybody", NAME_THE_ACTOR),
    ("whoever", NAME_THE_ACTOR),
    ("those who", NAME_THE_ACTOR),
    ("that which", "write the noun"),
    ("what is there", "write the noun: the stored object, the existing entry"),
    ("what stands", "write the noun"),
    ("acquaintance", "write: known address"),
    ("acquaintances", "write: known addresses"),
    ("dear", "write: expensive"),
    ("wordless", "write: without a message"),
    ("untold", "write: not shown"),
    ("is told", "write: is reported"),
    ("are told", "write: are reported"),
    ("speaks of", "write: reports"),
    ("spoken of", "write: reported"),
    ("is no", NEGATE_THE_VERB),
    ("are no", NEGATE_THE_VERB),
    ("of no family", NEGATE_THE_VERB),
    ("needs no", NEGATE_THE_VERB),
    ("need no", NEGATE_THE_VERB),
];

const NAME_THE_ACTOR: &str = "name the actor: the caller, the apiserver, the user, an operator";
const NEGATE_THE_VERB: &str = "negate the verb: is not a URL, does not need";

/// Phrases around one of [`PHRASES`] that are usual English.
const USUAL: &[&str] = &["there is no", "there are no", "is no longer", "are no longer"];

/// The places where a phrase stays: the name of a code in files of users that older builds wrote, and messages.
const KEPT: &[(&str, &str)] = &[
    ("crates/platforms/src/kagent/embedder/flaw.rs", "is no"),
    ("crates/platforms/src/orka/validate/task.rs", "is no"),
    ("crates/platforms/src/sympozium/validate/pods.rs", "is no"),
    ("tests/ui/codes/orka.txt", "is no"),
    ("tests/ui/codes/sympozium.txt", "is no"),
    // The names of cases, and that message.
    ("tests/documents/messages.txt", "nobody"),
    ("tests/documents/messages.txt", "is no"),
];

/// Folders and files that are read. Descriptions of definitions and hints are what editors show; the expected output in
/// `tests/ui` has every help text and message.
const READ: &[&str] = &[
    "src", "crates", "stress", "tests", "docs", "deploy", "examples", "tools", "certs", "ci", "editors",
    ".github", "justfile", "install.sh", "action.yml", "Cargo.toml", "README.md", "ARCHITECTURE.md",
    "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
];

/// Paths that are not read: this list, case files, whose texts are data, inputs that are kept as they were found, texts
/// by other authors, and what is built.
const NOT_READ: &[&str] = &[
    "tests/documents/english.rs", "tests/cases", "stress/tests/fuzz/corpus", "stress/benches/results",
    "tests/formats/sarif", "tests/formats/junit", "node_modules", "target",
];

/// Endings of files with English in them.
const ENDINGS: &[&str] = &["rs", "md", "yaml", "yml", "sh", "toml", "sql", "txt", "tpl", "ts", "mjs", "cjs"];

#[test]
fn sources_pages_and_output_are_plain_english() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = READ.iter().map(|path| root.join(path)).collect();
    let mut found = Vec::new();
    while let Some(path) = files.pop() {
        let name = path.strip_prefix(root).expect("a path of the repository").display().to_string();
        if NOT_READ.iter().any(|left_out| name.ends_with(left_out)) {
            continue;
        }
        if path.is_dir() {
            files.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if is_english(&path) {
            // Some inputs of tests are not text on purpose.
            let mut text = fs::read_to_string(&path).unwrap_or_default();
            if name.starts_with("tests/ui/") {
                text = without_inputs(&text);
            }
            let phrases =
                phrases_in(&text).filter(|(_, phrase, _)| !KEPT.contains(&(name.as_str(), *phrase)));
            found.extend(phrases.map(|(line, phrase, advice)| format!("{name}:{line}: {phrase} ({advice})")));
        }
    }
    found.sort();
    assert!(found.is_empty(), "{} phrases to write otherwise:\n{}", found.len(), found.join("\n"));
}

#[test]
fn phrases_are_found_in_names_and_across_lines() {
    let found = |text| phrases_in(text).map(|(line, phrase, _)| (line, phrase)).collect::<Vec<_>>();
    assert_eq!(found("fn holds_untold()"), [(1, "untold")]);
    assert_eq!(found("struct WordlessFinding;"), [(1, "wordless")]);
    assert_eq!(found("/// It is\n/// no list."), [(1, "is no")]);
    assert_eq!(found("There is no list. It is no longer one. It is. No."), []);
}

#[test]
fn outputs_of_commands_are_read_and_inputs_are_not() {
    let read =
        without_inputs("memgate\n-- a.yaml --\nno list\n-- stdout --\none\n-- written/b.json --\n{}\n");
    assert_eq!(read, "memgate\n\n\n-- stdout --\none\n\n\n");
}

fn is_english(path: &Path) -> bool {
    match path.extension() {
        Some(ending) => ENDINGS.iter().any(|known| ending == *known),
        None => true,
    }
}

/// A file of `tests/ui` with empty lines in place of its inputs, which are data. Expected output has no ending.
fn without_inputs(archive: &str) -> String {
    let mut is_input = false;
    let lines = archive.lines().map(|line| {
        if let Some(path) = mark(line) {
            is_input = Path::new(path).extension().is_some();
        }
        if is_input { "" } else { line }
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A word in lower case and its line. Between words that do not belong to one sentence there is an empty word.
type Word = (usize, String);

fn phrases_in(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    let words = words(text);
    let is_at = |at: usize, phrase: &str| {
        let wanted = phrase.split(' ').map(Some);
        let there = words.iter().skip(at).map(|(_, word)| Some(word.as_str()));
        wanted.eq(there.take(phrase.split(' ').count()))
    };
    let is_usual = |at: usize| USUAL.iter().any(|usual| is_at(at, usual) || (at > 0 && is_at(at - 1, usual)));
    let mut found = Vec::new();
    for (at, (line, word)) in words.iter().enumerate() {
        let phrases =
            PHRASES.iter().filter(|(phrase, _)| phrase.starts_with(word.as_str()) && !word.is_empty());
        let phrases = phrases.filter(|(phrase, _)| is_at(at, phrase) && !is_usual(at));
        found.extend(phrases.map(|(phrase, advice)| (*line, *phrase, *advice)));
    }
    found.into_iter()
}

/// The words of a text. Signs of comments join the words of two lines; `_` and a capital letter part those of a name.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut in_word = false;
    for (number, line) in text.lines().enumerate() {
        let mut was_lower = false;
        for letter in line.trim_start_matches(|sign: char| " \t/!#*-|".contains(sign)).chars() {
            if letter.is_alphabetic() {
                if !in_word || (letter.is_uppercase() && was_lower) {
                    words.push((number + 1, String::new()));
                }
                if let Some((_, word)) = words.last_mut() {
                    word.extend(letter.to_lowercase());
                }
            } else if !" _".contains(letter) {
                words.push((number + 1, String::new()));
            }
            (in_word, was_lower) = (letter.is_alphabetic(), letter.is_lowercase());
        }
        in_word = false;
    }
    words
}
