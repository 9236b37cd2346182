//! Suggestions for misspelled words: "did you mean …?"

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
    let length = wrong.chars().count();
    let max_distance = if length < 6 { 1 } else { 2 };
    // Most names are far from every candidate, and their lengths alone tell.
    let distance = |candidate: &str| {
        let far = candidate.chars().count().abs_diff(length) > max_distance;
        let plain = if far { usize::MAX } else { strsim::osa_distance(wrong, candidate) };
        if plain > 1 && normalized(candidate).eq(normalized(wrong)) { 1 } else { plain }
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= max_distance && *candidate != wrong)
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
}
