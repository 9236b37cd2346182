//! The repositories of `templates.txt`: each template is written once for each of its variants.

use std::collections::BTreeSet;

use crate::repository::Repository;

const TEMPLATES: &str = include_str!("templates.txt");

/// Every template with each of its variants.
pub(crate) fn repositories() -> Vec<Repository> {
    let templates = TEMPLATES.split("\n=== ").skip(1);
    let all: Vec<Repository> = templates.flat_map(variants).collect();
    let names: BTreeSet<&str> = all.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "a name for each repository");
    all
}

/// A template begins with its name, then come the variants, one a line, and then the files.
fn variants(template: &str) -> Vec<Repository> {
    let (head, files) = template.split_once("\n-- ").expect("has a file");
    let mut head = head.lines();
    let name = head.next().expect("has a name");
    head.map(|variant| {
        let words: Vec<(&str, &str)> = variant.split(" | ").filter_map(|word| word.split_once('=')).collect();
        let (_, label) = words.first().expect("a variant has words");
        let label = label.split(|it: char| !it.is_ascii_alphanumeric()).collect::<String>();
        let start = Repository::new(format!("{name}: {}", label.chars().take(24).collect::<String>()));
        files.split("\n-- ").fold(start, |repository, file| {
            let (path, text) = file.split_once(" --\n").expect("a file has a head");
            repository.with(filled(path, &words), filled(text, &words) + "\n")
        })
    })
    .collect()
}

/// A text with the words of a variant in the places of `⟨NAME⟩`; `\n` in a word ends a line.
fn filled(text: &str, words: &[(&str, &str)]) -> String {
    let put = |text: String, (name, word): &(&str, &str)| {
        text.replace(&format!("⟨{name}⟩"), &word.replace("\\n", "\n"))
    };
    let filled = words.iter().fold(text.to_owned(), put);
    assert!(!filled.contains('⟨'), "a variant lacks a word of:\n{filled}");
    filled
}
