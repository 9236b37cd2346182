//! Percent-encoding, as in URLs (RFC 3986, section 2.1).

use std::borrow::Cow;

/// A text without percent-encoding, as far as it is text.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [byte, behind @ ..] = rest {
        let encoded = match rest {
            [b'%', high, low, behind @ ..] => hex(*high).zip(hex(*low)).map(|digits| (digits, behind)),
            _ => None,
        };
        let (byte, behind) =
            encoded.map_or((*byte, behind), |((high, low), behind)| (high << 4 | low, behind));
        bytes.push(byte);
        rest = behind;
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
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
