//! The documentation pages of codes and rules, and other files that are part of the program. The pages are half a megabyte
//! of text, and a quarter of that as the build scripts compress them.

use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

/// A page in Markdown, which is read when its text is needed.
#[derive(Clone, Copy)]
pub struct Page(pub fn() -> &'static str);

impl Page {
    /// The text.
    pub fn text(self) -> &'static str {
        (self.0)()
    }
}

impl Deref for Page {
    type Target = str;

    fn deref(&self) -> &str {
        self.text()
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.lines().next().unwrap_or_default())
    }
}

/// The files of a crate.
pub struct Pages(LazyLock<String, fn() -> String>);

impl Pages {
    /// The files that the build script has compressed: the path and the text of each, with a null byte behind both.
    pub const fn new(unpack: fn() -> String) -> Self {
        Self(LazyLock::new(unpack))
    }

    /// The text of a file, by its path below the folder; empty if there is none, which tests of the files find.
    pub fn page(&'static self, path: &str) -> &'static str {
        self.all().find(|(found, _)| *found == path).map_or("", |(_, text)| text)
    }

    /// All files: the path below the folder, and the text.
    pub fn all(&'static self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let mut parts = self.0.split('\0');
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }
}

/// The text that [`lz4_flex`] has compressed.
pub fn unpacked(packed: &[u8]) -> String {
    // The build script packed it.
    let text = lz4_flex::decompress_size_prepended(packed).unwrap_or_default();
    String::from_utf8(text).unwrap_or_default()
}
