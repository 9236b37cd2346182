//! Suggestions for misspelled words: "did you mean …?"

use std::collections::BTreeMap;
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

/// Names among which many words look for their [`nearest`], in less time than a comparison with each takes.
#[derive(Debug, Default)]
pub struct Names<'n> {
    /// In order, with their characters.
    sorted: Vec<(Vec<char>, &'n str)>,
    /// The first ones of each form, of which one may be the word itself.
    by_form: BTreeMap<String, [Option<&'n str>; 2]>,
}

/// The numbers of edits that make the first characters of a word of the first ones of a name, around the diagonal.
type Row = [usize; 2 * MAX_DISTANCE + 1];

impl<'n> Names<'n> {
    /// Names, each once.
    pub fn new(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut sorted: Vec<_> = names.into_iter().map(|name| (name.chars().collect(), name)).collect();
        sorted.sort();
        sorted.dedup();
        let mut by_form: BTreeMap<String, [Option<&str>; 2]> = BTreeMap::new();
        for (_, name) in &sorted {
            let first = by_form.entry(normalized(name).collect()).or_default();
            if let Some(free) = first.iter_mut().find(|it| it.is_none()) {
                *free = Some(name);
            }
        }
        Self { sorted, by_form }
    }

    /// The name that `wrong` most likely stands for: of those that are as near, the first.
    pub fn nearest(&self, wrong: &str) -> Option<&'n str> {
        let forms = self.by_form.get(&normalized(wrong).collect::<String>()).into_iter().flatten().flatten();
        let of_form = near(wrong, forms.copied());
        let word: Vec<char> = wrong.chars().collect();
        let max = max_distance(wrong);
        let (mut best, mut at, mut before) = (of_form.min(), 0, [].as_slice());
        let mut rows = vec![first_row()];
        while is_word(wrong)
            && let Some((name, text)) = self.sorted.get(at)
        {
            let name = name.as_slice();
            let shared = name.iter().zip(before).take_while(|(a, b)| a == b).count();
            rows.truncate(shared + 1);
            before = name;
            let is_far = |row: Option<&Row>| row.is_some_and(|row| row.iter().all(|edits| *edits > max));
            while rows.len() <= name.len() && !is_far(rows.last()) {
                rows.push(next_row(&rows, name, &word));
            }
            if is_far(rows.last()) {
                // So are all others that begin with the same characters.
                let start = name.get(..rows.len() - 1).unwrap_or(name);
                let rest = self.sorted.get(at..).unwrap_or_default();
                at += rest.partition_point(|(other, _)| other.starts_with(start));
                continue;
            }
            at += 1;
            let edits = (word.len() + MAX_DISTANCE).checked_sub(name.len()).zip(rows.last());
            let edits = edits.and_then(|(column, row)| row.get(column).copied());
            let found = edits.filter(|edits| *edits <= max && *text != wrong && is_long(wrong, text));
            best = best.into_iter().chain(found.map(|edits| (edits, *text))).min();
        }
        best.map(|(_, name)| name)
    }
}

/// The row of no characters.
fn first_row() -> Row {
    std::array::from_fn(|column| column.checked_sub(MAX_DISTANCE).unwrap_or(FAR))
}

/// The row of one more character of a name, by the rows of those before it.
fn next_row(rows: &[Row], name: &[char], word: &[char]) -> Row {
    let length = rows.len();
    let edits = |back: usize, column: Option<usize>| {
        let row = length.checked_sub(back).and_then(|at| rows.get(at));
        row.zip(column).and_then(|(row, column)| row.get(column)).map_or(FAR, |edits| edits + 1)
    };
    let mut row = [FAR; 2 * MAX_DISTANCE + 1];
    let mut left = FAR;
    for (column, place) in row.iter_mut().enumerate() {
        let Some(end) = (length + column).checked_sub(MAX_DISTANCE).filter(|end| *end <= word.len()) else {
            left = FAR;
            continue;
        };
        let letter = |letters: &[char], end: usize, back: usize| {
            end.checked_sub(back).and_then(|at| letters.get(at).copied())
        };
        let is_same = end > 0 && letter(name, length, 1) == letter(word, end, 1);
        let is_swapped = length > 1
            && end > 1
            && letter(name, length, 1) == letter(word, end, 2)
            && letter(name, length, 2) == letter(word, end, 1);
        let replaced = if end == 0 { FAR } else { edits(1, Some(column)) - usize::from(is_same) };
        let swapped = if is_swapped { edits(2, Some(column)) } else { FAR };
        *place = left.saturating_add(1).min(edits(1, Some(column + 1))).min(replaced).min(swapped);
        left = *place;
    }
    row
}

/// More edits than any word may take.
const FAR: usize = usize::MAX / 2;

/// How many edits a longer word may take.
const MAX_DISTANCE: usize = 2;

fn max_distance(wrong: &str) -> usize {
    if wrong.chars().count() < 6 { 1 } else { MAX_DISTANCE }
}

fn is_word(wrong: &str) -> bool {
    /// Longer words cannot be names, and comparing them is expensive.
    const MAX_WORD_BYTES: usize = 253;
    !wrong.is_empty() && wrong.len() <= MAX_WORD_BYTES
}

/// Words of one character are all near each other.
fn is_long(wrong: &str, candidate: &str) -> bool {
    candidate.len().max(wrong.len()) > 1
}

/// The candidates that are near, each with how far it is.
fn near<'c>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> impl Iterator<Item = (usize, &'c str)> {
    let (is_name, max_distance) = (is_word(wrong), max_distance(wrong));
    let distance = move |candidate: &str| {
        let [wrong, candidate] = without_common_start(wrong, candidate);
        let plain = edits(wrong.chars(), candidate.chars(), max_distance);
        let is_other_form = || normalized(candidate).eq(normalized(wrong));
        if plain.is_none_or(|edits| edits > 1) && is_other_form() { Some(1) } else { plain }
    };
    let candidates = candidates.into_iter();
    let candidates = candidates.filter(move |it| is_name && *it != wrong && is_long(wrong, it));
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

/// How such an end begins.
const DID_YOU_MEAN: &str = "; did you mean ";

/// The end of a message that suggests `candidate`; empty for `None`.
pub fn did_you_mean(candidate: Option<&str>) -> String {
    candidate.map(|candidate| format!("{DID_YOU_MEAN}{}?", quoted_text(candidate))).unwrap_or_default()
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

    /// As a comparison with each, also where many names begin alike or are one word in several forms.
    #[test]
    fn an_index_finds_the_same_as_a_comparison_with_each() {
        let words = |length: u32| {
            (0..4_u32.pow(length)).map(move |number| {
                let letter = |at: u32| ['a', 'B', '-', 'é'][(number / 4_u32.pow(at) % 4) as usize];
                (0..length).map(letter).collect::<String>()
            })
        };
        let mut all: Vec<String> = (0..=3).flat_map(words).collect();
        all.extend(words(3).map(|word| format!("notes-{word}")));
        all.extend(["no-tes", "NOTES", "n_o_t_e_s", "notes"].map(str::to_owned));
        for step in [1, 2, 3, 5, 7, 60] {
            let mut some: Vec<&str> = all.iter().step_by(step).map(String::as_str).collect();
            some.sort_unstable();
            let names = Names::new(some.iter().copied());
            for wrong in
                all.iter().map(String::as_str).chain(["notes-aaaaaa", "ntoes-aB", "no-te-s", "xxxxxxx"])
            {
                assert_eq!(names.nearest(wrong), nearest(wrong, some.iter().copied()), "{wrong} {step}");
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
