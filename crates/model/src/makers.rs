//! The objects among files that may make others: those of no built-in group and no platform. Nothing is known of what they do, so
//! an object whose name one of them says is neither missing nor there.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use crate::kind::{Kind, NAMESPACE};

/// So many words of a name are looked at.
const MOST: usize = 32;

/// Makers by their own names and by the words in them.
#[derive(Debug, Clone, Default)]
pub struct Makers {
    /// What they are, for messages: `Cluster "pg"`.
    titles: Vec<Arc<str>>,
    /// The number of a maker by the hash of its namespace and its name.
    named: BTreeMap<u64, usize>,
    /// By the hash of its namespace and of a word that it says. Hashes, since a file can have very many words.
    says: BTreeMap<u64, usize>,
}

impl Makers {
    /// Adds a maker with its name, which may be empty, and with what it says. Without a namespace it may make objects in any.
    pub fn add(&mut self, (namespace, name): (&str, &str), title: &str, texts: &[&str]) {
        let number = self.titles.len();
        self.titles.push(title.into());
        if !name.is_empty() {
            self.named.entry(key(namespace, name)).or_insert(number);
        }
        for word in texts.iter().flat_map(|text| words(text)) {
            self.says.entry(key(namespace, word)).or_insert(number);
        }
    }

    /// Adds an object of a kind that is copied to any namespace.
    pub fn add_copied(&mut self, (kind, name): (&str, &str), title: &str) {
        self.says.entry(key("", &format!("{kind}/{name}"))).or_insert(self.titles.len());
        self.titles.push(title.into());
    }

    /// What may make an object that is not there. Only kinds of the core are made by others of which nothing is known.
    pub fn of(&self, kind: &Kind, (namespace, name): (&str, &str)) -> Option<&Arc<str>> {
        if self.titles.is_empty() || !kind.group.is_empty() || *kind == NAMESPACE {
            return None;
        }
        let copied = || self.titles.get(*self.says.get(&key("", &format!("{}/{name}", kind.kind)))?);
        self.find(namespace, name).or_else(copied)
    }

    /// What may make an object of this name, if something does.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&Arc<str>> {
        let named = || parts(name).find_map(|part| self.named.get(&key(namespace, part)));
        let found = self.says.get(&key(namespace, name)).or_else(named);
        let anywhere = || if namespace.is_empty() { None } else { self.find("", name) };
        found.and_then(|number| self.titles.get(*number)).or_else(anywhere)
    }
}

fn key(namespace: &str, word: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((namespace, word))
}

/// The words of a text that can be names, and what is between the dots of each: of `a-b.c.svc` it and its parts.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let runs = text.split(move |c| !is_of_name(c)).map(|run| run.trim_matches(['-', '.']));
    runs.filter(|run| !run.is_empty()).flat_map(|run| {
        let labels = run.split('.').filter(move |label| label.len() < run.len());
        [run].into_iter().chain(labels)
    })
}

/// The parts of a name that begin and end with one of its words: of `pg-app` it, `pg` and `app`.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let is_of_word = |at: usize| name.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric);
    let is_start = move |at: &usize| is_of_word(*at) && !at.checked_sub(1).is_some_and(is_of_word);
    let starts = (0..name.len()).filter(is_start).take(MOST);
    starts.flat_map(move |start| {
        let is_end = move |end: &usize| is_of_word(end - 1) && !is_of_word(*end);
        let ends = (start + 1..=name.len()).filter(is_end).take(MOST);
        ends.filter_map(move |end| name.get(start..end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_what_it_says_and_what_begins_with_its_name() {
        let mut makers = Makers::default();
        let says = ["to: http://cache.a.svc:80", "app-redis, \"Other\""];
        makers.add(("a", "pg"), "Cluster \"pg\"", &says);
        makers.add(("", "sync"), "Policy \"sync\"", &["copied"]);
        for (namespace, name, expected) in [
            ("a", "pg-app", true),
            ("a", "app.pg.credentials", true),
            ("a", "pg", true),
            ("a", "cache", true),
            ("a", "app-redis", true),
            ("b", "copied", true),
            ("b", "sync-of-it", true),
            ("b", "pg-app", false),
            ("a", "pgapp", false),
            ("a", "redis", false),
            ("a", "other", false),
        ] {
            assert_eq!(makers.find(namespace, name).is_some(), expected, "{namespace}/{name}");
        }
    }

    #[test]
    fn very_long_names_and_texts_end() {
        let (long, mut makers) = ("a-".repeat(100_000), Makers::default());
        makers.add(("a", &long), "A", &[long.as_str(), &"a.".repeat(100_000)]);
        assert!(makers.find("a", &long).is_none());
    }
}
