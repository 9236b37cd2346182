//! Several files in one text, as `tests/ui` has them. The head of `tests/ui.rs` describes the format.

#![allow(dead_code, reason = "each test program uses the part of it that it needs")]
#![allow(clippy::panic, reason = "a test stops where something is wrong")]

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

const EXECUTABLE: &str = "executable";
const ESCAPED: &str = "escaped";
const NO_NEWLINE: &str = "no newline at end";

/// A head and a section for each file, in the order of the text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Archive {
    pub(crate) head: String,
    pub(crate) sections: Vec<Section>,
}

/// One file of an archive.
#[derive(Debug, Default, Clone)]
pub(crate) struct Section {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    executable: bool,
    /// The mark and the lines below it, kept so that a rewritten archive differs only where a file does.
    text: String,
}

/// The scenarios of a command of `tests/ui`: name and archive, in order of names.
///
/// # Panics
/// When one cannot be read.
pub(crate) fn scenarios(command: &str) -> Vec<(String, Archive)> {
    let names = files(&root().join(command)).into_iter().map(|path| name(&path, &root()));
    names.map(|name| (name.clone(), scenario(&name))).collect()
}

/// One scenario.
///
/// # Panics
/// When it cannot be read.
pub(crate) fn scenario(name: &str) -> Archive {
    let path = root().join(format!("{name}.txt"));
    Archive::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// The archives of a folder, in order of names. A directory is listed too: it fails to be read, so that no scenario is
/// passed over.
///
/// # Panics
/// When there is no such folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut paths: Vec<_> = paths
        .filter(|path| path.is_dir() || path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    paths.sort();
    paths
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui")
}

/// `command/scenario` of a file below `tests/ui`.
pub(crate) fn name(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).with_extension("").display().to_string()
}

/// What the mark of a section holds, if a line is one.
fn mark(line: &str) -> Option<&str> {
    line.strip_suffix('\n').unwrap_or(line).strip_prefix("-- ")?.strip_suffix(" --")
}

impl Archive {
    /// # Errors
    /// The file and what is wrong with it.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("the last line does not end".to_owned());
        }
        let mut archive = Self::default();
        let mut marks = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(mark) = mark(line) {
                marks.push(mark);
                archive.sections.push(Section { text: line.to_owned(), ..Section::default() });
            } else {
                archive.sections.last_mut().map_or(&mut archive.head, |last| &mut last.text).push_str(line);
            }
        }
        for (at, mark) in marks.iter().enumerate() {
            let (earlier, rest) = archive.sections.split_at_mut(at);
            let section = rest.first_mut().ok_or("a mark without its section")?;
            section.decode(mark).map_err(|error| format!("-- {mark} --: {error}"))?;
            if earlier.iter().any(|it| it.path == section.path) {
                return Err(format!("{} has two sections", section.path));
            }
        }
        Ok(archive)
    }

    /// The archive as it is written to its file.
    pub(crate) fn text(&self) -> String {
        let sections = self.sections.iter().map(|section| section.text.as_str());
        std::iter::once(self.head.as_str()).chain(sections).collect()
    }

    /// The command line, with ` < file` behind it where a file is the standard input.
    pub(crate) fn command_line(&self) -> &str {
        self.head.lines().next().unwrap_or_default().trim()
    }

    /// The bytes of a file; none when there is no section of it.
    pub(crate) fn bytes(&self, path: &str) -> &[u8] {
        let section = self.sections.iter().find(|section| section.path == path);
        section.map(|section| section.bytes.as_slice()).unwrap_or_default()
    }

    /// The text of a file; empty when there is no section of it.
    ///
    /// # Panics
    /// When it is not UTF-8.
    pub(crate) fn text_of(&self, path: &str) -> &str {
        std::str::from_utf8(self.bytes(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Replaces, adds or, without bytes, removes a section. The others stay as they are.
    pub(crate) fn set(&mut self, path: &str, bytes: &[u8]) {
        let new = (!bytes.is_empty()).then(|| Section::new(path, bytes, false));
        let at = self.sections.iter().position(|section| section.path == path);
        if let Some(at) = at {
            self.sections.splice(at..=at, new);
        } else {
            let is_behind = |section: &Section| place(&section.path) > place(path);
            let at = self.sections.iter().position(is_behind).unwrap_or(self.sections.len());
            self.sections.splice(at..at, new);
        }
    }

    /// Writes the inputs of a scenario.
    pub(crate) fn unpack_inputs(&self, folder: &Path) -> io::Result<()> {
        self.unpack(folder, |path| place(path).0 == 0 && !path.starts_with("bin/"))
    }

    /// Writes the files whose path is wanted.
    pub(crate) fn unpack(&self, folder: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<()> {
        for section in self.sections.iter().filter(|section| is_wanted(&section.path)) {
            let path = folder.join(&section.path);
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(&path, &section.bytes)?;
            if section.executable {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(())
    }
}

/// Where a section belongs: inputs, then what came out. Sections of one kind are in order of paths.
fn place(path: &str) -> (u8, &str) {
    let rank = match path {
        "stdout" => 1,
        "stderr" => 2,
        _ if path.starts_with("written/") => 3,
        _ => 0,
    };
    (rank, path)
}

impl Section {
    pub(crate) fn new(path: &str, bytes: &[u8], executable: bool) -> Self {
        let plain = std::str::from_utf8(bytes).ok().filter(|text| is_plain(text));
        let mut body = plain.map_or_else(|| escape(bytes), str::to_owned);
        let is_open = !body.is_empty() && !body.ends_with('\n');
        if is_open {
            body.push('\n');
        }
        let mut attributes =
            vec![(executable, EXECUTABLE), (plain.is_none(), ESCAPED), (is_open, NO_NEWLINE)];
        attributes.retain(|(has, _)| *has);
        let attributes: Vec<_> = attributes.into_iter().map(|(_, attribute)| attribute).collect();
        let attributes =
            if attributes.is_empty() { String::new() } else { format!(" ({})", attributes.join(", ")) };
        let text = format!("-- {path}{attributes} --\n{body}");
        Self { path: path.to_owned(), bytes: bytes.to_owned(), executable, text }
    }

    /// Reads the mark, and the bytes from the lines below it.
    fn decode(&mut self, mark: &str) -> Result<(), String> {
        let (path, attributes) = match mark.strip_suffix(')').and_then(|mark| mark.split_once(" (")) {
            Some((path, attributes)) => (path, attributes.split(", ").collect()),
            None => (mark, Vec::new()),
        };
        let parts = || Path::new(path).components();
        if path.is_empty() || !parts().all(|part| matches!(part, Component::Normal(_))) {
            return Err("is not a path below the scenario".to_owned());
        }
        let known = [EXECUTABLE, ESCAPED, NO_NEWLINE];
        if let Some(other) = attributes.iter().find(|attribute| !known.contains(attribute)) {
            return Err(format!("unknown attribute {other}"));
        }
        let has = |attribute| attributes.contains(&attribute);
        let (_, mut body) = self.text.split_once('\n').unwrap_or_default();
        if has(NO_NEWLINE) {
            body = body.strip_suffix('\n').ok_or("there is no line")?;
        }
        self.bytes = if has(ESCAPED) { unescape(body)? } else { body.as_bytes().to_owned() };
        self.executable = has(EXECUTABLE);
        path.clone_into(&mut self.path);
        Ok(())
    }
}

/// Whether a text can be in an archive as it is.
fn is_plain(text: &str) -> bool {
    !text.contains(is_odd) && text.lines().all(|line| mark(line).is_none())
}

/// Characters that an editor or a review does not show, or changes.
fn is_odd(letter: char) -> bool {
    letter == '\u{feff}' || (letter.is_control() && letter != '\n' && letter != '\t')
}

fn escape(bytes: &[u8]) -> String {
    let mut escaped = String::new();
    let push_bytes = |escaped: &mut String, bytes: &[u8]| {
        for byte in bytes {
            write!(escaped, "\\x{byte:02x}").unwrap_or_default();
        }
    };
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => escaped.push_str("\\\\"),
                _ if is_odd(letter) => push_bytes(&mut escaped, letter.to_string().as_bytes()),
                _ => escaped.push(letter),
            }
        }
        push_bytes(&mut escaped, chunk.invalid());
    }
    let lines = escaped.split_inclusive('\n');
    lines
        .map(|line| match mark(line) {
            Some(_) => line.replacen('-', "\\x2d", 1),
            None => line.to_owned(),
        })
        .collect()
}

fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        if let Some(behind) = escape.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = behind;
        } else {
            let digits = escape.strip_prefix('x').and_then(|behind| behind.get(..2));
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.ok_or("\\ is not followed by \\ or by x and two digits")?);
            rest = escape.get(3..).unwrap_or_default();
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}
