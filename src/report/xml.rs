//! As much of XML as a report needs: elements whose attributes and text come from user input.

use std::fmt::{self, Write as _};

/// Text inside an element. What XML 1.0 cannot hold (most control characters, in whatever form) is a `?`.
pub(super) struct Text<'a>(pub &'a str);

/// The value of an attribute, with its quotes. Its line ends are kept, which a reader would take for blanks.
pub(super) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| if matches!(c, '\n' | '\t') { f.write_char(c) } else { escape(c, f) })
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.0.chars().try_for_each(|c| escape(c, f))?;
        f.write_char('"')
    }
}

fn escape(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match c {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        // In text it has to be escaped behind ]] only, and never hurts.
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\n' | '\r' | '\t' => write!(f, "&#{};", u32::from(c)),
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => f.write_char('?'),
        c => f.write_char(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_would_end_the_text() {
        let text = "a<b>&\"c\"\n\u{1b}[31m\u{0}\r";
        assert_eq!(Text(text).to_string(), "a&lt;b&gt;&amp;&quot;c&quot;\n?[31m?&#13;");
        assert_eq!(Quoted(text).to_string(), "\"a&lt;b&gt;&amp;&quot;c&quot;&#10;?[31m?&#13;\"");
    }
}
