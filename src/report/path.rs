//! Names of files as the services that read reports want them: relative to the root of the repository, in which
//! memgate is expected to run.

use std::fmt::Write as _;

/// The path without `./` at its start, which services take for a part of the name.
pub(super) fn relative(file: &str) -> &str {
    let mut path = file;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path
}

/// The path as a reference by RFC 3986; an absolute one as a `file` URI.
pub(super) fn uri(file: &str) -> String {
    let path = relative(file);
    let mut uri = String::with_capacity(path.len());
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        // The colon is left out: in the first segment of a relative reference it would end a scheme.
        if byte.is_ascii_alphanumeric() || b"-._~/@!$&'()*+,;=".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _infallible = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_references() {
        for (file, expected) in [
            ("deploy/a.yaml", "deploy/a.yaml"),
            ("././/deploy/a.yaml", "deploy/a.yaml"),
            ("../a b.yaml", "../a%20b.yaml"),
            ("/tmp/a#1.yaml", "file:///tmp/a%231.yaml"),
            ("c:ü\n%.yaml", "c%3A%C3%BC%0A%25.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
        ] {
            assert_eq!(uri(file), expected);
        }
    }
}
