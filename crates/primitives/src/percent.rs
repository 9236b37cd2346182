//! Percent-encoding, as in URLs (RFC 3986, section 2.1).

use std::borrow::Cow;

/// A text without percent-encoding, as far as it is text.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}

/// Whether each percent sign of a text begins two hexadecimal digits.
pub fn is_percent_encoded(text: &str) -> bool {
    text.split('%').skip(1).all(|behind| {
        behind.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_percent_signs_that_encode_nothing() {
        for (text, expected) in [("a", true), ("%41b", true), ("%4", false), ("%", false), ("%4ä", false)] {
            assert_eq!(is_percent_encoded(text), expected, "{text}");
        }
    }

    #[test]
    fn decodes_percent_signs() {
        for (text, decoded) in [("a", "a"), ("%41%2f", "A/"), ("%4", "%4"), ("%zz%%41", "%zz%A"), ("%", "%")]
        {
            assert_eq!(percent_decoded(text), decoded, "{text}");
        }
    }
}
