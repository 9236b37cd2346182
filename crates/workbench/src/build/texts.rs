//! Reads bytes as sources, up to a limit, and refuses bytes that are not text.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::paths::leads_out;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;

/// The largest input that is read unless the user says otherwise, in bytes. etcd takes objects of 1.5 MiB; a file
/// of all the objects of a large namespace has some ten MiB.
pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

/// A NUL among so many first bytes marks a binary file, as for git.
const BINARY_PREFIX_BYTES: usize = 8000;

/// What is wrong with such a file.
const BINARY: &str = "this is a binary file; only YAML and JSON are read";

/// The source of this name, if it is text of at most so many bytes.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8.
pub fn source(name: &str, reader: io::Result<impl Read>, max_bytes: usize) -> Result<Source, Error> {
    let path = || name.to_owned();
    let bytes = reader.and_then(|reader| bounded(reader, max_bytes));
    let bytes = bytes.map_err(|source| Error::Read { path: path(), source })?;
    if bytes.len() > max_bytes {
        return Err(Error::of_input(name, format!("larger than {}; is this a manifest?", size(max_bytes))));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => Err(encoding_error(path(), error.as_bytes(), error.utf8_error().valid_up_to())),
    }
}

/// The same of a file. The author of a change can make any file of the machine a link, so one that leads out of the repository is
/// not read.
///
/// # Errors
/// Those of [`source`], and for such a link.
pub fn file(path: &Path, max_bytes: usize) -> Result<Source, Error> {
    let name = path.to_string_lossy();
    if leads_out(path) {
        return Err(Error::of_input(name, LINKED));
    }
    source(&name, File::open(path), max_bytes)
}

/// Why such a link is refused.
const LINKED: &str = "this is a link that leads out of the repository, and what it leads to would be shown; name what it \
                      leads to";

/// Reads a file.
pub type ReadFile<'r> = &'r dyn Fn(&Path) -> Result<Source, Error>;

/// All bytes, or one more than the limit: the caller sees that there are too many.
pub(crate) fn bounded(reader: impl Read, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take((max_bytes as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a text may be a manifest: a line of it begins with `apiVersion`, in quotes or not, or has that as a key in braces.
/// Bytes that are no text count too, and so does UTF-16.
pub(crate) fn may_be_manifest(reader: impl Read) -> bool {
    const KEY: &[u8] = b"apiVersion";
    // How many bytes of the key were read, while it may stand here.
    let (mut matched, mut is_in_braces) = (Some(0), false);
    for byte in BufReader::new(reader).bytes().map_while(Result::ok).filter(|byte| *byte != 0) {
        matched = match (byte, matched) {
            (b'\n' | b'\r', _) => {
                is_in_braces = false;
                Some(0)
            }
            (_, Some(count)) if KEY.get(count) == Some(&byte) => Some(count + 1),
            (b' ' | b'\t' | b'-' | b'?' | b'[' | b'"' | b'\'' | 0x80.., Some(0)) => Some(0),
            (b'{', Some(0)) => {
                is_in_braces = true;
                Some(0)
            }
            (b'{' | b',', _) if is_in_braces => Some(0),
            _ => None,
        };
        if matched == Some(KEY.len()) {
            return true;
        }
    }
    false
}

fn size(bytes: usize) -> String {
    const MIB: usize = 1 << 20;
    if bytes >= MIB && bytes.is_multiple_of(MIB) {
        format!("{} MiB", bytes / MIB)
    } else {
        format!("{bytes} bytes")
    }
}

fn encoding_error(path: String, bytes: &[u8], at: usize) -> Error {
    let before = bytes.get(..at).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let message = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "this is UTF-16; save it as UTF-8".to_owned()
    } else if bytes.iter().take(BINARY_PREFIX_BYTES).any(|byte| *byte == 0) {
        return Error::of_input(path, BINARY);
    } else {
        format!("byte {at} is not UTF-8; save the file as UTF-8")
    };
    Error::Encoding { path, line, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8], max_bytes: usize) -> String {
        source("x", Ok(bytes), max_bytes).expect_err("no source").to_string()
    }

    #[test]
    fn bounds_what_it_reads() {
        let endless = source("big.yaml", Ok(io::repeat(b' ')), 2 << 20).expect_err("too large");
        assert_eq!(endless.to_string(), "big.yaml: larger than 2 MiB; is this a manifest?");
        assert_eq!(error(b"12345", 4), "x: larger than 4 bytes; is this a manifest?");
        assert!(source("x", Ok(&b"1234"[..]), 4).is_ok());
    }

    #[test]
    fn knows_what_may_be_a_manifest() {
        let wide: Vec<u8> = "apiVersion: v1".bytes().flat_map(|byte| [byte, 0]).collect();
        for text in [
            &b"apiVersion: v1\nkind: [\n"[..],
            b"a: 1\r---\r  - \"apiVersion\": v1",
            b"\xef\xbb\xbfapiVersion: caf\xe9",
            b"{\"kind\": \"A\", \"apiVersion\": 1",
            b"[{'apiVersion': v1",
            &[&b"\xff\xfe"[..], &wide].concat(),
        ] {
            assert!(may_be_manifest(text), "{text:?}");
        }
        for text in [
            "", "kind: A\n", "api\nVersion: v1\n", "a: {apiVersion: v1\n", "# apiVersion: v1\n",
            "{a, b apiVersion",
        ] {
            assert!(!may_be_manifest(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn refuses_bytes_that_are_not_text() {
        assert_eq!(
            error(b"\x89PNG\r\n\x1a\n\0\0", 99),
            "x: this is a binary file; only YAML and JSON are read"
        );
        assert_eq!(error(b"\xff\xfea\0", 99), "x:1: this is UTF-16; save it as UTF-8");
        assert_eq!(error(b"a\nb\xff", 99), "x:2: byte 3 is not UTF-8; save the file as UTF-8");
    }
}
