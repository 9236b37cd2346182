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
    let max_distance = if wrong.chars().count() < 6 { 1 } else { 2 };
    let normalized = normalize(wrong);
    let distance = |candidate: &str| {
        let plain = strsim::osa_distance(wrong, candidate);
        if normalize(candidate) == normalized { plain.min(1) } else { plain }
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

fn normalize(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
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
