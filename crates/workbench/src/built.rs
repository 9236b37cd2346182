//! What the build was given: addresses in its environment. No address of a repository or registry is part of the
//! sources: without these values outputs carry the text of a page in place of its address.

/// `MEMGATE_PAGES`: where the directory `docs` of this version can be read.
pub const PAGES: Option<&str> = given(option_env!("MEMGATE_PAGES"));

/// `MEMGATE_IMAGE`: the container image of this version.
pub const IMAGE: Option<&str> = given(option_env!("MEMGATE_IMAGE"));

/// A pipeline may set a variable that has no value.
const fn given(value: Option<&'static str>) -> Option<&'static str> {
    match value {
        Some(text) if !text.is_empty() => value,
        _ => None,
    }
}

/// The address of a page or directory of `docs`, such as `codes/arkonis/redis-required.md`.
pub fn page(path: &str) -> Option<String> {
    PAGES.map(|pages| below(pages, path))
}

fn below(pages: &str, path: &str) -> String {
    format!("{}/{path}", pages.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_empty_is_none() {
        assert_eq!([given(None), given(Some("")), given(Some("a"))], [None, None, Some("a")]);
    }

    #[test]
    fn pages_are_below_their_place() {
        for pages in ["https://git.example.com/docs", "https://git.example.com/docs/"] {
            assert_eq!(below(pages, "codes/ark/x.md"), "https://git.example.com/docs/codes/ark/x.md");
        }
    }
}
