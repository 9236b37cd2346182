//! Did you mean …?

/// The candidate that `wrong` most likely stands for; `None` when none is near.
///
/// Near is: equal but for case, `-` and `_`; or at most one slip of the pen away for words under
/// six characters, two for longer ones.
#[must_use]
pub fn nearest<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    /// Longer words are no names of anything; comparing them would cost more than it tells.
    const LONGEST: usize = 253;
    if wrong.is_empty() || wrong.len() > LONGEST {
        return None;
    }
    let reach = if wrong.chars().count() < 6 { 1 } else { 2 };
    let folded = fold(wrong);
    let distance = |candidate: &str| {
        let plain = strsim::osa_distance(wrong, candidate);
        if fold(candidate) == folded { plain.min(1) } else { plain }
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= reach && *candidate != wrong)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The end of a message that proposes `candidate`; empty without one.
#[must_use]
pub fn did_you_mean(candidate: Option<&str>) -> String {
    candidate.map(|candidate| format!("; did you mean \"{candidate}\"?")).unwrap_or_default()
}

fn fold(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
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
