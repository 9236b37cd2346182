//! A reader of JSON for the request path: strict, in safe code, and without a word about what is wrong.
//!
//! It takes many bytes of a string at a time, and skips a value without a call for each token. It refuses all that
//! JSON refuses and serde_json does: what nests deeper than 127 where it is kept, control characters and wrong escapes in
//! strings, other forms of numbers, and whatever stands behind the value. Why a text is not JSON only serde_json says,
//! which [`parse`] then asks; it also skips what nests deeper than 63.

use std::borrow::Cow;
use std::iter;

use memchr::memchr2;
use serde::Deserializer;
use serde::de::value::{BorrowedStrDeserializer, Error, MapDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Number, Value};

/// What is kept may not nest deeper, as in serde_json.
const MAX_DEPTH: u8 = 127;

/// The name by which serde_json asks for the text of a value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Blanks in JSON.
const BLANKS: [u8; 4] = *b" \t\n\r";

/// What reading gives. The errors say little.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a text was refused.
#[cold]
fn refused<T>() -> Result<T> {
    Err(Error::custom("expected a value that does not nest deeper than 127"))
}

/// Reads a whole text.
///
/// # Errors
/// When the text is not JSON, with the words of serde_json; when the value is refused. Both say line and column.
pub fn parse<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> serde_json::Result<S::Value> {
    let mut reader = JsonReader::new(text);
    let read = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| explained(&reader, &error))
}

/// Why the reading of a text ended here with this error.
#[cold]
fn explained(reader: &JsonReader<'_>, error: &Error) -> serde_json::Error {
    // With blanks in place of what is before a wrong value, its error says its place in the whole text.
    let blanks = reader.text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    let alone = |start| blanks.take(start).chain(reader.since(start).chars()).collect::<String>();
    let wrong = reader.wrong.and_then(|start| serde_json::from_str::<Value>(&alone(start)).err());
    if let Some(error) = serde_json::from_str::<IgnoredAny>(reader.text).err().or(wrong) {
        return error;
    }
    let before = reader.text.get(..reader.at).unwrap_or(reader.text);
    let (line, begin) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |at| at + 1));
    let column = before.len() - begin;
    serde_json::Error::custom(format!("{error} at line {line} column {column}"))
}

/// A place in a text.
#[derive(Debug)]
pub struct JsonReader<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
    /// Where a string or a number begins that stands for nothing.
    wrong: Option<usize>,
}

impl<'de> JsonReader<'de> {
    /// At the beginning of a text.
    pub const fn new(text: &'de str) -> Self {
        Self { text, at: 0, depth: 0, wrong: None }
    }

    /// That nothing but blanks is left.
    ///
    /// # Errors
    /// When there is more.
    pub fn end(&mut self) -> Result<()> {
        if self.next().is_none() { Ok(()) } else { refused() }
    }

    /// Skips blanks, and returns the byte behind them.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.as_bytes().get(self.at)?;
        if byte > b' ' { Some(byte) } else { self.next_behind_blanks() }
    }

    #[cold]
    fn next_behind_blanks(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().take_while(|byte| BLANKS.contains(byte)).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips blanks and this sign.
    #[inline]
    fn sign(&mut self, sign: u8) -> Result<()> {
        let found = self.next() == Some(sign);
        self.at += usize::from(found);
        if found { Ok(()) } else { refused() }
    }

    #[inline]
    fn since(&self, start: usize) -> &'de str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Refuses what was read from there on.
    #[cold]
    fn is_wrong<T>(&mut self, start: usize) -> Result<T> {
        self.wrong = Some(start);
        refused()
    }

    #[inline]
    fn word(&mut self, word: &str) -> Result<()> {
        let found = self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        self.at += word.len();
        if found { Ok(()) } else { refused() }
    }

    /// Reads what is between these signs.
    #[inline]
    fn within<T>(
        &mut self,
        (begin, end): (u8, u8),
        read: impl FnOnce(Members<'_, 'de>) -> Result<T>,
    ) -> Result<T> {
        self.sign(begin)?;
        if self.depth == MAX_DEPTH {
            return refused();
        }
        self.depth += 1;
        let value = read(Members { reader: self, is_first: true })?;
        self.depth -= 1;
        self.sign(end)?;
        Ok(value)
    }

    /// Skips a string, and says whether it has escapes.
    #[inline]
    fn skip_string(&mut self) -> Result<bool> {
        self.sign(b'"')?;
        let bytes = self.text.as_bytes();
        let mut escapes = false;
        loop {
            self.at += bytes.get(self.at..).and_then(part_length).map_or_else(refused, Ok)?;
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escapes);
                }
                Some(b'\\') => {
                    let rest = bytes.get(self.at + 1..).unwrap_or_default();
                    self.at += escape(rest).map_or_else(refused, Ok)?;
                }
                _ => return refused(),
            }
            escapes = true;
        }
    }

    /// Reads a string, borrowed unless it holds an escape.
    #[inline]
    fn string(&mut self) -> Result<Cow<'de, str>> {
        match self.plain_string() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.unescaped_string().map(Cow::Owned),
        }
    }

    /// Reads a string without escapes; `None` for anything else.
    fn plain_string(&mut self) -> Option<&'de str> {
        self.next().filter(|byte| *byte == b'"')?;
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let end = start + part_length(bytes.get(start..)?)?;
        bytes.get(end).filter(|byte| **byte == b'"')?;
        self.at = end + 1;
        self.text.get(start..end)
    }

    #[cold]
    fn unescaped_string(&mut self) -> Result<String> {
        let start = self.at;
        self.skip_string()?;
        // The library knows which escapes make a text.
        serde_json::from_str(self.since(start)).or_else(|_| self.is_wrong(start))
    }

    fn skip_number(&mut self) -> Result<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let mut rest = match rest.strip_prefix(b"-").unwrap_or(rest) {
            [b'0', behind @ ..] => behind,
            digits => behind_digits(digits)?,
        };
        if let [b'.', digits @ ..] = rest {
            rest = behind_digits(digits)?;
        }
        if let [b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..] = rest {
            rest = behind_digits(digits)?;
        }
        self.at = self.text.len() - rest.len();
        Ok(())
    }

    /// Skips a value.
    fn skip(&mut self) -> Result<()> {
        // The objects and lists that are open: a bit for each, set for an object, behind one that is always set.
        let mut open = 1_u64;
        let start = self.at;
        loop {
            if open > 1 && open & 1 == 1 {
                self.skip_string()?;
                self.sign(b':')?;
            }
            let begins = self.next();
            match begins {
                Some(b'"') => _ = self.skip_string()?,
                Some(b'-' | b'0'..=b'9') => self.skip_number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                Some(b'{' | b'[') if open.leading_zeros() > 0 => {
                    self.at += 1;
                    let is_object = begins == Some(b'{');
                    open = open << 1 | u64::from(is_object);
                    if self.next() != Some(if is_object { b'}' } else { b']' }) {
                        continue;
                    }
                }
                Some(b'{' | b'[') => {
                    let length = self.text.get(start..).map_or_else(refused, deep_length);
                    return length.map(|length| self.at = start + length);
                }
                _ => return refused(),
            }
            while open > 1 {
                let (sign, in_object) = (self.next(), open & 1 == 1);
                self.at += 1;
                match (sign, in_object) {
                    (Some(b','), _) => break,
                    (Some(b'}'), true) | (Some(b']'), false) => open >>= 1,
                    _ => return refused(),
                }
            }
            if open == 1 {
                return Ok(());
            }
        }
    }
}

/// What is behind the digits, of which there is at least one.
fn behind_digits(digits: &[u8]) -> Result<&[u8]> {
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits.get(count..).filter(|_| count > 0).map_or_else(refused, Ok)
}

/// The length of the value that begins here, however deep it nests.
#[cold]
fn deep_length(rest: &str) -> Result<usize> {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    if let Some(Ok(_)) = values.next() { Ok(values.byte_offset()) } else { refused() }
}

/// The length of the part of a string that begins here. It ends at a quote, a backslash or a control character.
#[inline]
fn part_length(rest: &[u8]) -> Option<usize> {
    let length = memchr2(b'"', b'\\', rest)?;
    let part = rest.get(..length)?;
    // Without a way out of the loop, many bytes are compared at a time.
    let controls = part.iter().fold(0, |found, byte| found | u8::from(*byte < b' '));
    if controls != 0 { part.iter().position(|byte| *byte < b' ') } else { Some(length) }
}

/// The length of an escape with its backslash, from what is behind that.
fn escape(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'u', digits @ ..] if digits.get(..4)?.iter().all(u8::is_ascii_hexdigit) => Some(6),
        _ => None,
    }
}

impl<'de> Deserializer<'de> for &mut JsonReader<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.next().map_or_else(refused, Ok)? {
            b'"' => self.deserialize_str(visitor),
            b'{' => self.within((b'{', b'}'), |members| visitor.visit_map(members)),
            b'[' => self.within((b'[', b']'), |elements| visitor.visit_seq(elements)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            _ => {
                let start = self.at;
                self.skip_number()?;
                // The library knows which number it is.
                let number: Number =
                    serde_json::from_str(self.since(start)).or_else(|_| self.is_wrong(start))?;
                number.deserialize_any(visitor).map_err(Error::custom)
            }
        }
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.next() == Some(b'n') {
            return self.word("null").and_then(|()| visitor.visit_none());
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        if name != RAW_VALUE {
            return visitor.visit_newtype_struct(self);
        }
        self.next();
        let start = self.at;
        self.skip()?;
        let text = BorrowedStrDeserializer::new(self.since(start));
        visitor.visit_map(MapDeserializer::new(iter::once((BorrowedStrDeserializer::new(RAW_VALUE), text))))
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip().and_then(|()| visitor.visit_unit())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// The members of an object or a list, while it is read.
#[derive(Debug)]
struct Members<'r, 'de> {
    reader: &'r mut JsonReader<'de>,
    is_first: bool,
}

impl Members<'_, '_> {
    /// Whether another one follows before this sign, which ends them.
    #[inline]
    fn follows(&mut self, end: u8) -> Result<bool> {
        match self.reader.next() {
            Some(next) if next == end => Ok(false),
            Some(_) if std::mem::take(&mut self.is_first) => Ok(true),
            _ => self.reader.sign(b',').map(|()| true),
        }
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.follows(b'}')? {
            return Ok(None);
        }
        let key = match self.reader.string()? {
            Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
            Cow::Owned(key) => seed.deserialize(StringDeserializer::new(key)),
        };
        self.reader.sign(b':')?;
        key.map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(&mut *self.reader)
    }
}

impl<'de> SeqAccess<'de> for Members<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.follows(b']')? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    const TEXTS: [&str; 12] = [
        r#"{"a":[1,-2.5e+3,true,null,"x\n\u00e9\\"],"b":{"c":{}},"":false}"#,
        " [ 0 , -0 , 10.01 , 1E5 , 18446744073709551615 , -9223372036854775808 ] ",
        r#"["0123456","01234567","012345678","é23456ü","\"2345678","12345678\\","\ud83d\ude00"]"#,
        "{\"k\" :\t[ ] ,\r\n\"l\":{ } }",
        r#"[[],[[]],{"a":[{}]},[{"b":[]}]]"#,
        "\"\"",
        "null",
        "[\"1234567\u{7f}\",\"\u{80}\u{7ff}\u{ffff}\u{10ffff}\"]",
        r#"["\ud800"]"#,
        r#"["\udc00\ud800", "\uD83D\uDE00"]"#,
        "[1e999]",
        r#"{"a":1,"a":"2","\u0061":[3]}"#,
    ];

    fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
        let mut reader = JsonReader::new(text);
        let value = T::deserialize(&mut reader).ok()?;
        reader.end().ok().map(|()| value)
    }

    /// Reads and skips a text as serde_json does.
    fn is_as_known(text: &str) {
        assert_eq!(read::<Value>(text), serde_json::from_str(text).ok(), "{text}");
        let skipped = serde_json::from_str::<IgnoredAny>(text).is_ok();
        assert_eq!(read::<IgnoredAny>(text).is_some(), skipped, "{text}");
        let raw = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
        assert_eq!(read::<&RawValue>(text).map(RawValue::get), raw, "{text}");
        let list = serde_json::from_str::<Vec<Option<&RawValue>>>(text).ok();
        let raws =
            |list: Vec<Option<&RawValue>>| list.iter().map(|raw| raw.map(RawValue::to_string)).collect();
        let list: Option<Vec<_>> = list.map(raws);
        assert_eq!(read::<Vec<Option<&RawValue>>>(text).map(raws), list, "{text}");
    }

    #[test]
    fn accepts_and_refuses_what_serde_json_does() {
        let parts: Vec<String> = (0..=0x7f_u8).map(|byte| char::from(byte).to_string()).collect();
        let more =
            ["é", "\u{2028}", r"\u12", r"\x", "00", "1.", ".5", "1e", "+1", "{}", "[]", ",,", "nul", "/**/"];
        for text in TEXTS {
            is_as_known(text);
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let (before, behind) = text.split_at(at);
                let rest = behind.get(behind.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
                is_as_known(before);
                is_as_known(behind);
                is_as_known(&format!("{before}{rest}"));
                for part in parts.iter().map(String::as_str).chain(more) {
                    is_as_known(&format!("{before}{part}{behind}"));
                    is_as_known(&format!("{before}{part}{rest}"));
                }
            }
        }
    }

    #[test]
    fn finds_what_ends_a_string_at_every_place() {
        for length in (0..20).chain(60..90) {
            for mark in ["\"", "\\", "\u{0}", "\u{1f}", "\u{7f}", "!", "#", "[", "]", "\u{a0}", "\u{dc}"] {
                for at in 0..=length {
                    let (before, behind) = ("x".repeat(at), "é".repeat(length - at));
                    is_as_known(&format!("[\"{before}{mark}{behind}\"]"));
                    is_as_known(&format!("[\"{before}{mark}n{behind}\" , 1]"));
                }
            }
        }
    }

    #[test]
    fn nests_as_deep_as_with_serde_json() {
        let parts = [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]"), (r#"{"a":[[[1],"#, "]]}")];
        for (depth, (open, close)) in (1..200).flat_map(|depth| parts.map(|part| (depth, part))) {
            let text = format!("{}0{}", open.repeat(depth), close.repeat(depth));
            let last = text.len() - 1;
            for text in [
                text.replacen('}', "]", 1),
                text.replacen(']', "}", 1),
                format!("{}]", &text[..last]),
                format!("{}}}", &text[..last]),
                text,
            ] {
                let any = parse(&text, PhantomData::<Value>).ok();
                assert_eq!(any, serde_json::from_str(&text).ok(), "{text}");
                let skipped = serde_json::from_str::<IgnoredAny>(&text).is_ok();
                assert_eq!(read::<IgnoredAny>(&text).is_some(), skipped, "{text}");
            }
        }
        let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        assert!(parse(&deep, PhantomData::<IgnoredAny>).is_ok());
        assert!(parse(&deep[1..], PhantomData::<IgnoredAny>).is_err());
        let error = parse(&deep, PhantomData::<Value>).expect_err("deeper than what is kept");
        assert!(error.to_string().contains("deeper than 127"), "{error}");
    }

    #[test]
    fn texts_are_borrowed_and_errors_have_words() {
        let list: Vec<&str> = read(r#"["a", "é"]"#).expect("texts without escapes");
        assert_eq!(list, ["a", "é"]);
        assert!(read::<Vec<&str>>(r#"["\u0061"]"#).is_none());
        for text in
            ["[1, x]", "[1,\n  \"x\"]", "[1, 256]", "[1,\n -2]", "[\"\\ud800\"]", "[1]2", "[1, 1e999]"]
        {
            let known = serde_json::from_str::<Vec<u8>>(text).expect_err("not a list of bytes");
            let error = parse(text, PhantomData::<Vec<u8>>).expect_err("not a list of bytes");
            assert_eq!(error.to_string(), known.to_string(), "{text}");
        }
        let error = parse("[\n {}]", PhantomData::<Vec<u8>>).expect_err("not a byte");
        assert_eq!(error.to_string(), "invalid type: map, expected u8 at line 2 column 2");
    }
}
