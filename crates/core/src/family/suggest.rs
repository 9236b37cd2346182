//! Suggestions for misspelled words: "did you mean …?"
//!
//! There can be thousands of wrong words and thousands of candidates, and nearly all are far from each other.
//! So a comparison ends as soon as two words cannot be near any more.

/// The candidate that `wrong` most likely stands for, if one is near.
///
/// A candidate is near if it differs only in case, `-` and `_`, or by at most one edit for words under six
/// characters and two for longer ones.
#[must_use]
pub fn nearest<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    /// Longer words cannot be names, and comparing them is expensive.
    const MAX_WORD_BYTES: usize = 253;
    if wrong.is_empty() || wrong.len() > MAX_WORD_BYTES {
        return None;
    }
    let max_distance = if wrong.chars().count() < 6 { 1 } else { 2 };
    let distance = |candidate: &str| {
        let plain = distance_within(wrong, candidate, max_distance, Swap::OneEdit);
        if normalized(candidate).eq(normalized(wrong)) { Some(plain.unwrap_or(1).min(1)) } else { plain }
    };
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(candidate)?, candidate)))
        .filter(|(_, candidate)| *candidate != wrong)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The end of a message that suggests `candidate`; empty for `None`.
#[must_use]
pub fn did_you_mean(candidate: Option<&str>) -> String {
    candidate.map(|candidate| format!("; did you mean \"{candidate}\"?")).unwrap_or_default()
}

/// Advice on a value that is none of a fixed set, if one of them was likely meant.
#[must_use]
pub fn help<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(wrong, candidates).map(|candidate| format!("did you mean \"{candidate}\"?"))
}

/// The characters of a word that tell it from others, in lower case.
fn normalized(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase)
}

/// What two swapped neighbours count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// One edit (the distance of optimal string alignment).
    OneEdit,
    /// Two edits, as any two characters (the distance of Levenshtein).
    TwoEdits,
}

/// The largest distance that is ever asked for.
const MAX_EDITS: usize = 2;

/// How many places of a row can lie within that distance of the diagonal.
const BAND: usize = 2 * MAX_EDITS + 1;

/// How many edits lead from one word to the other; `None` if more than `max`, which is at most two.
#[must_use]
pub fn distance_within(one: &str, two: &str, max: usize, swap: Swap) -> Option<usize> {
    let max = max.min(MAX_EDITS);
    if one.len().abs_diff(two.len()) > MAX_UTF8_BYTES * max {
        return None;
    }
    let distance = if one.is_ascii() && two.is_ascii() {
        banded(one.as_bytes(), two.as_bytes(), max, swap)
    } else {
        let [one, two] = [one, two].map(|word| word.chars().collect::<Vec<_>>());
        banded(&one, &two, max, swap)
    };
    distance.filter(|distance| *distance <= max)
}

/// How many bytes a character has at most.
const MAX_UTF8_BYTES: usize = 4;

/// The distance, as the usual table of prefixes has it, of which only the places near the diagonal are
/// computed. `None` as soon as a whole row is beyond `max`.
fn banded<T: PartialEq>(one: &[T], two: &[T], max: usize, swap: Swap) -> Option<usize> {
    /// Beyond every distance.
    const FAR: usize = usize::MAX / 2;
    // Place `at` of row `row` stands for the first `row` of one and the first `row + at - MAX_EDITS` of two.
    let at_two = |row: usize, at: usize| (row + at).checked_sub(MAX_EDITS).filter(|end| *end <= two.len());
    let get = |row: &[usize; BAND], at: usize| row.get(at).copied().unwrap_or(FAR);
    if one.len().abs_diff(two.len()) > max {
        return None;
    }
    let mut before_last = [FAR; BAND];
    let mut last: [usize; BAND] = std::array::from_fn(|at| at_two(0, at).unwrap_or(FAR));
    for (row, character) in (1..).zip(one) {
        let mut here = [FAR; BAND];
        for at in 0..BAND {
            let Some(end) = at_two(row, at) else { continue };
            let other = end.checked_sub(1).and_then(|end| two.get(end));
            let mut best = get(&last, at + 1) + 1;
            if let Some(other) = other {
                let left = at.checked_sub(1).map_or(FAR, |at| get(&here, at));
                best = best.min(left + 1).min(get(&last, at) + usize::from(other != character));
            }
            let swapped = || {
                let (before, before_other) = (one.get(row.checked_sub(2)?)?, two.get(end.checked_sub(2)?)?);
                Some(other == Some(before) && before_other == character)
            };
            if swap == Swap::OneEdit && swapped() == Some(true) {
                best = best.min(get(&before_last, at) + 1);
            }
            if let Some(place) = here.get_mut(at) {
                *place = best;
            }
        }
        if here.iter().chain(&last).all(|distance| *distance > max) {
            return None;
        }
        (before_last, last) = (last, here);
    }
    (two.len() + MAX_EDITS).checked_sub(one.len()).map(|at| get(&last, at))
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
    fn measures_as_the_whole_table_does() {
        let words = [
            "",
            "a",
            "ab",
            "ba",
            "abc",
            "acb",
            "cab",
            "abcd",
            "badc",
            "xbcd",
            "remember",
            "remebmer",
            "ermember",
            "remembers",
            "rmembr",
            "emember",
            "räume",
            "raume",
            "rbume",
            "recall_memory",
        ];
        for (one, two) in words.iter().flat_map(|one| words.map(|two| (*one, two))) {
            for (swap, whole) in [
                (Swap::OneEdit, strsim::osa_distance(one, two)),
                (Swap::TwoEdits, strsim::levenshtein(one, two)),
            ] {
                for max in 0..=MAX_EDITS {
                    let expected = Some(whole).filter(|whole| *whole <= max);
                    assert_eq!(distance_within(one, two, max, swap), expected, "{one} {two} {swap:?} {max}");
                }
            }
        }
    }
}
