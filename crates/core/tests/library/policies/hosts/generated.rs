//! Authorities made of parts that URL parsers have disagreed on: those of `tests/policies/hosts.yaml`.

use super::super::data;

/// So many endpoints, the same ones each time.
pub(super) fn endpoints(count: u32) -> Vec<String> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut pick = move |of: usize| {
        // Xorshift, by George Marsaglia.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % of as u64).unwrap_or_default()
    };
    let parts = data("hosts");
    let of = |name: &str| -> Vec<&str> {
        parts[name].as_array().into_iter().flatten().filter_map(|part| part.as_str()).collect()
    };
    let lists = ["schemes", "users", "hosts", "ports", "paths"].map(of);
    let marks = of("marks");
    let mut one = || {
        let [scheme, user, host, port, path] = lists.each_ref().map(|list| list[pick(list.len())]);
        let mut text = format!("{scheme}{user}{host}{port}{path}");
        for _ in 0..pick(4).saturating_sub(1) {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            text.insert_str(starts[pick(starts.len())], marks[pick(marks.len())]);
        }
        text
    };
    (0..count).map(|_| one()).collect()
}
