//! Suggestions for misspelled words: "did you mean …?"

use std::str::Chars;

use crate::plain_text::quoted_text;

/// The candidate that `wrong` most likely stands for, if one is near.
///
/// A candidate is near if it differs only in case, `-` and `_`, or by at most one edit for words under six
/// characters and two for longer ones. Words of one character are all near each other, so none of them is.
pub fn nearest<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    near(wrong, candidates).min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// The same, but `None` if another candidate is as near: an automatic fix needs a single one.
pub fn only_nearest<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let mut best: Option<(usize, &str)> = None;
    let mut is_alone = false;
    for (distance, candidate) in near(wrong, candidates) {
        match best {
            Some((least, _)) if distance > least => {}
            Some((least, known)) if distance == least => is_alone &= known == candidate,
            _ => (best, is_alone) = (Some((distance, candidate)), true),
        }
    }
    best.filter(|_| is_alone).map(|(_, candidate)| candidate)
}

/// The candidates that are near, each with how far it is.
fn near<'c>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> impl Iterator<Item = (usize, &'c str)> {
    /// Longer words cannot be names, and comparing them is expensive.
    const MAX_WORD_BYTES: usize = 253;
    let is_name = !wrong.is_empty() && wrong.len() <= MAX_WORD_BYTES;
    let max_distance = if wrong.chars().count() < 6 { 1 } else { 2 };
    let distance = move |candidate: &str| {
        let [wrong, candidate] = without_common_start(wrong, candidate);
        let plain = edits(wrong.chars(), candidate.chars(), max_distance);
        let is_other_form = || normalized(candidate).eq(normalized(wrong));
        if plain.is_none_or(|edits| edits > 1) && is_other_form() { Some(1) } else { plain }
    };
    // Words of one character are all near each other.
    let is_other = move |it: &&str| is_name && *it != wrong && it.len().max(wrong.len()) > 1;
    let candidates = candidates.into_iter().filter(is_other);
    candidates.filter_map(move |candidate| Some((distance(candidate)?, candidate)))
}

/// What follows the part with which both begin: names of one kind are often long and alike.
fn without_common_start<'w>(a: &'w str, b: &'w str) -> [&'w str; 2] {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let start = (0..=same).rev().find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at)).unwrap_or(0);
    [a, b].map(|word| word.get(start..).unwrap_or_default())
}

/// How many characters have to be added, left out, replaced or swapped with the next one to make `b` of `a`; `None` for
/// more than `most`. Nothing is allocated, and the time grows with the length alone.
fn edits(mut a: Chars<'_>, mut b: Chars<'_>, most: usize) -> Option<usize> {
    loop {
        let before = (a.clone(), b.clone());
        match (a.next(), b.next()) {
            (None, None) => return Some(0),
            (one, other) if one == other => {}
            (one, other) => {
                let most = most.checked_sub(1)?;
                let swapped = || {
                    let [mut a, mut b] = [a.clone(), b.clone()];
                    (one.is_some() && one == b.next() && other.is_some() && other == a.next())
                        .then_some((a, b))
                };
                let replaced = one.and(other).map(|_| (a.clone(), b.clone()));
                let left_out = one.map(|_| (a.clone(), before.1));
                let added = other.map(|_| (before.0, b.clone()));
                let ways = [swapped(), replaced, left_out, added].into_iter().flatten();
                return ways.filter_map(|(a, b)| edits(a, b, most)).min().map(|edits| edits + 1);
            }
        }
    }
}

/// The end of a message that suggests `candidate`; empty for `None`.
pub fn did_you_mean(candidate: Option<&str>) -> String {
    candidate.map(|candidate| format!("; did you mean {}?", quoted_text(candidate))).unwrap_or_default()
}

/// Advice on a value outside a fixed set, if one of the set was likely meant.
pub fn help<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(wrong, candidates).map(|candidate| format!("did you mean {}?", quoted_text(candidate)))
}

fn normalized(word: &str) -> impl Iterator<Item = char> + '_ {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_candidate() {
        let fields = ["vectorStore", "redis", "backend"];
        for (wrong, meant) in [
            ("vectorstore", Some("vectorStore")),
            ("vector_store", Some("vectorStore")),
            ("redsi", Some("redis")),
            ("bakcend", Some("backend")),
            ("endpoint", None),
            ("red", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, fields), meant, "{wrong}");
        }
    }

    #[test]
    fn counts_edits_as_strsim_does_up_to_the_most() {
        let words = |length: u32| {
            (0..3_u32.pow(length)).map(move |number| {
                let letter = |at: u32| ['a', 'b', 'é'][(number / 3_u32.pow(at) % 3) as usize];
                (0..length).map(letter).collect::<String>()
            })
        };
        let all: Vec<String> = (0..=4).flat_map(words).collect();
        for a in &all {
            for b in &all {
                let distance = strsim::osa_distance(a, b);
                for most in 0..=2 {
                    let expected = (distance <= most).then_some(distance);
                    assert_eq!(edits(a.chars(), b.chars(), most), expected, "{a} {b} {most}");
                }
            }
        }
    }

    #[test]
    fn takes_one_only_where_no_other_is_as_near() {
        for (wrong, meant) in
            [("v3", None), ("v11", Some("v1")), ("redsi", Some("redis")), ("orkaa", Some("orka"))]
        {
            assert_eq!(only_nearest(wrong, ["v1", "v2", "redis", "orka", "ark", "orka"]), meant, "{wrong}");
        }
        assert_eq!(nearest("v3", ["v1", "v2"]), Some("v1"));
        assert_eq!(nearest("g", ["o"]), None);
        // Both letters begin with the same byte.
        assert_eq!(nearest("café", ["cafè"]), Some("cafè"));
        assert_eq!(nearest("no-tes", ["no-xxxx", "NO_TES"]), Some("NO_TES"));
    }
}
