//! Suggestions for misspelled words: "did you mean …?"

/// The candidate that `wrong` most likely stands for, if one is near.
///
/// A candidate is near if it differs only in case, `-` and `_`, or by at most one edit for words under six
/// characters and two for longer ones.
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
    let length = wrong.chars().count();
    let max_distance = if length < 6 { 1 } else { 2 };
    // Most names are far from every candidate, and their lengths alone tell.
    let distance = move |candidate: &str| {
        let far = candidate.chars().count().abs_diff(length) > max_distance;
        let plain = if far { usize::MAX } else { strsim::osa_distance(wrong, candidate) };
        if plain > 1 && normalized(candidate).eq(normalized(wrong)) { 1 } else { plain }
    };
    let candidates = candidates.into_iter().filter(move |_| is_name);
    let all = candidates.map(move |candidate| (distance(candidate), candidate));
    all.filter(move |(distance, candidate)| *distance <= max_distance && *candidate != wrong)
}

/// The end of a message that suggests `candidate`; empty for `None`.
pub fn did_you_mean(candidate: Option<&str>) -> String {
    candidate.map(|candidate| format!("; did you mean \"{candidate}\"?")).unwrap_or_default()
}

/// Advice on a value outside a fixed set, if one of the set was likely meant.
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

    #[test]
    fn takes_one_only_where_no_other_is_as_near() {
        for (wrong, meant) in
            [("v3", None), ("v11", Some("v1")), ("redsi", Some("redis")), ("orkaa", Some("orka"))]
        {
            assert_eq!(only_nearest(wrong, ["v1", "v2", "redis", "orka", "ark", "orka"]), meant, "{wrong}");
        }
        assert_eq!(nearest("v3", ["v1", "v2"]), Some("v1"));
    }
}
