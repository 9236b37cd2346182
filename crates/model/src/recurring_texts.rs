//! Texts that recur, such as a backend, an endpoint or a team. Objects of the state share them.
//!
//! Names and uids do not recur, but the texts that do are not known in advance. So all texts are remembered up to a
//! limit. Then those that are not shared are forgotten, and all of them if too many are shared.
//!
//! A text counts in full for each object that has it: the others can go, and then it is there for the last one alone.

#![expect(clippy::disallowed_types, reason = "nothing here shows the order of a table")]

use std::collections::HashSet;
use std::sync::Arc;

/// How many texts are remembered before those that are not shared are forgotten. The number is high enough for a text
/// of each of 500 teams to recur before that.
const FIRST_LIMIT: usize = 2048;

/// The longest text that is remembered, in bytes. Longer texts seldom recur, and the table must stay small.
const LONGEST: usize = 64;

/// How many references there are to a text that only one object has: in its tree, in its name, in the map of all
/// objects, and in this table.
const HELD_BY_ONE_OBJECT: usize = 4;

/// How many texts are remembered at most. Those that no object has any more do not count for any.
const LAST_LIMIT: usize = 4 * FIRST_LIMIT;

/// The texts that were seen lately, and those that are shared.
#[derive(Debug)]
pub struct RecurringTexts {
    texts: HashSet<Arc<str>>,
    /// How many texts there may be.
    limit: usize,
}

impl Default for RecurringTexts {
    fn default() -> Self {
        Self { texts: HashSet::new(), limit: FIRST_LIMIT }
    }
}

impl RecurringTexts {
    /// A text, shared with all who had it from here.
    pub fn shared(&mut self, text: &str) -> Arc<str> {
        self.texts.get(text).cloned().unwrap_or_else(|| {
            let mut text = text.into();
            self.share(&mut text);
            text
        })
    }

    /// Has `text` be the one with the same content that is remembered. Returns how many bytes it takes.
    pub(super) fn share(&mut self, text: &mut Arc<str>) -> usize {
        // With both its counts, in steps of 16 bytes as allocators have them.
        let bytes = (text.len() + 16).next_multiple_of(16);
        if text.len() > LONGEST {
            return bytes;
        }
        if let Some(known) = self.texts.get(text) {
            *text = Arc::clone(known);
            return bytes;
        }
        if self.texts.len() >= self.limit {
            self.texts.retain(|text| Arc::strong_count(text) > HELD_BY_ONE_OBJECT);
            if self.texts.len() > LAST_LIMIT / 2 {
                self.texts.clear();
            }
            // At least half of the table is free then, so the cost per text does not grow with the number of shared
            // texts.
            self.limit = FIRST_LIMIT.max(2 * self.texts.len());
        }
        self.texts.insert(Arc::clone(text));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_long(recurring: &mut RecurringTexts) -> Arc<str> {
        let mut text = Arc::from("long".repeat(LONGEST));
        recurring.share(&mut text);
        text
    }

    #[test]
    fn the_table_stays_small_whatever_is_shared() {
        let mut recurring = RecurringTexts::default();
        for (different, holders) in [(100, 8), (1_900, 18), (30_000, 1), (30_000, 6), (300_000, 5)] {
            let share = |recurring: &mut RecurringTexts, number: usize| {
                let mut text = Arc::from(format!("{different}-{number}"));
                let bytes = recurring.share(&mut text);
                assert_eq!(bytes, (text.len() + 16).next_multiple_of(16), "each holder counts it");
                text
            };
            let mut held = Vec::new();
            for number in 0..different {
                held.extend((0..holders).map(|_| share(&mut recurring, number)));
                assert!(recurring.texts.len() <= LAST_LIMIT, "{}", recurring.texts.len());
            }
        }
    }

    #[test]
    fn texts_that_recur_are_shared_and_others_forgotten() {
        let mut recurring = RecurringTexts::default();
        let mut share = |text: String| {
            let mut text = Arc::from(text);
            recurring.share(&mut text);
            text
        };
        let texts: Vec<[Arc<str>; 4]> = (0..20_000)
            .map(|number| {
                let team = || format!("team-{}", number % 100);
                [
                    share(team()),
                    share(format!("name-{number}")),
                    share(format!("uid-{number}")),
                    share(team()),
                ]
            })
            .collect();
        for (number, [label, name, _, namespace]) in texts.iter().enumerate() {
            let expected = (format!("team-{}", number % 100), format!("name-{number}"));
            assert_eq!((label.to_string(), name.to_string()), expected);
            assert!(Arc::ptr_eq(label, namespace) && Arc::ptr_eq(label, &texts[number % 100][0]));
        }
        assert!(recurring.texts.len() <= FIRST_LIMIT, "{}", recurring.texts.len());
        assert!(!Arc::ptr_eq(&share_long(&mut recurring), &share_long(&mut recurring)));
        drop(texts);
        for number in 0..FIRST_LIMIT {
            recurring.share(&mut Arc::from(format!("other-{number}")));
        }
        assert!(!recurring.texts.contains("team-1"), "it is not used any more");
    }
}
