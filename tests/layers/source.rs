//! The sources of a crate, and the paths in them: enough of Rust's grammar to tell a path from a comment, a
//! string and a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names from the root of a crate down to a module; none is the root.
pub(crate) type Module = Vec<String>;

/// One source file.
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) module: Module,
    pub(crate) paths: Vec<Used>,
}

/// A path that starts with `crate`, `self`, `super` or `memgate`.
pub(crate) struct Used {
    pub(crate) line: usize,
    pub(crate) start: String,
    pub(crate) segments: Vec<String>,
    /// Whether a `use` brings it in, and under which name.
    pub(crate) import: Option<String>,
}

impl Used {
    /// The path from the root of the crate, where it stands in `module`.
    pub(crate) fn from(&self, module: &[String]) -> Vec<String> {
        let mut path = match self.start.as_str() {
            "self" | "super" => module.to_vec(),
            _ => Vec::new(),
        };
        if self.start == "super" {
            path.pop();
        }
        for segment in &self.segments {
            if segment == "super" {
                path.pop();
            } else if segment != "self" {
                path.push(segment.clone());
            }
        }
        path
    }
}

/// The source files of one crate; those of tests are left out.
pub(crate) fn sources_of(folder: &str) -> Vec<Source> {
    let mut files = Vec::new();
    let folder = root().join(folder);
    walk(&folder, &mut files);
    files.sort();
    let texts: Vec<_> = files
        .into_iter()
        .map(|path| {
            let below = path.strip_prefix(&folder).expect("is below the folder").with_extension("");
            let names = below.iter().map(|part| part.to_string_lossy().into_owned());
            let module: Module = names.filter(|name| name != "lib" && name != "mod").collect();
            let text = without_comments_and_texts(&fs::read_to_string(&path).expect("is text"));
            let file = path.strip_prefix(root()).expect("is below the root").to_owned();
            (file, module, words(&text))
        })
        .collect();
    let mut test_modules = BTreeSet::new();
    for (_, module, words) in &texts {
        let (_, declared) = without_tests(words);
        test_modules.extend(declared.into_iter().map(|name| [module.as_slice(), &[name]].concat()));
    }
    let is_test = |module: &Module| test_modules.iter().any(|test: &Module| module.starts_with(test));
    let texts = texts.into_iter().filter(|(_, module, _)| !is_test(module));
    texts
        .map(|(file, module, words)| Source { file, module, paths: paths(&without_tests(&words).0) })
        .collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("is a folder") {
        let path = entry.expect("can be read").path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The text with comments, strings and characters replaced by spaces; line numbers stay the same.
fn without_comments_and_texts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            closing_quote(rest)
        } else if first == 'r' && !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            raw_string(rest).unwrap_or(0)
        } else if first == '\'' {
            character(rest).unwrap_or(0)
        } else {
            0
        };
        let taken = if skipped == 0 { first.len_utf8() } else { skipped };
        let (part, after) = rest.split_at(taken);
        if skipped == 0 {
            out.push_str(part);
        } else {
            out.extend(part.chars().map(|c| if c == '\n' { c } else { ' ' }));
        }
        rest = after;
    }
    out
}

/// How long the string is that a text begins with.
fn closing_quote(text: &str) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// How long the raw string is that a text begins with.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    text[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    Some(text[start..].find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// How long the character literal is that a text begins with; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let mut chars = text[1..].char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        chars.next()?;
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 2);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(at + 2)
}

/// A word or a sign, with its line; `::` is one sign.
type Word = (usize, String);

fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let length = match name {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                name => name,
            };
            let (word, after) = rest.split_at(length);
            words.push((index + 1, word.to_owned()));
            rest = after.trim_start();
        }
    }
    words
}

/// The words without items behind `#[cfg(test)]`, and the names of the files of such modules.
fn without_tests(words: &[Word]) -> (Vec<Word>, Vec<String>) {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut files) = (Vec::new(), Vec::new());
    let mut rest = words;
    while let Some((first, after)) = rest.split_first() {
        let behind = rest.get(TEST.len()..).unwrap_or_default();
        if !rest.iter().map(|(_, word)| word.as_str()).take(TEST.len()).eq(TEST) {
            kept.push(first.clone());
            rest = after;
            continue;
        }
        let mut open = 0_usize;
        let end = behind.iter().position(|(_, word)| {
            open += usize::from(word == "{");
            let closes = word == "}" && open == 1;
            open = open.saturating_sub(usize::from(word == "}"));
            closes || (word == ";" && open == 0)
        });
        let (item, after) = behind.split_at(end.map_or(behind.len(), |end| end + 1));
        if let [.., (_, word), (_, name), (_, end)] = item
            && word == "mod"
            && end == ";"
        {
            files.push(name.clone());
        }
        rest = after;
    }
    (kept, files)
}

/// All paths that start at the crate, this module or its parent.
fn paths(words: &[Word]) -> Vec<Used> {
    let mut found = Vec::new();
    let word = |at: usize| words.get(at).map_or("", |(_, word)| word.as_str());
    let mut in_use = false;
    for (at, (line, start)) in words.iter().enumerate() {
        match start.as_str() {
            "use" => in_use = true,
            ";" => in_use = false,
            "crate" | "self" | "super" | "memgate"
                if word(at + 1) == "::" && (at == 0 || word(at - 1) != "::") =>
            {
                let start = start.clone();
                let mut tree = Vec::new();
                read_tree(words, at + 2, &mut Vec::new(), &mut tree);
                found.extend(tree.into_iter().map(|(segments, name)| {
                    let import = name.filter(|_| in_use);
                    Used { line: *line, start: start.clone(), segments, import }
                }));
            }
            _ => {}
        }
    }
    found
}

/// Reads one path, or a tree of them, behind `::`; gives back where it ends.
fn read_tree(
    words: &[Word],
    mut at: usize,
    way: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, Option<String>)>,
) -> usize {
    let word = |at: usize| words.get(at).map_or("", |(_, word)| word.as_str());
    let depth = way.len();
    loop {
        match word(at) {
            "{" => {
                at += 1;
                while word(at) != "}" && at < words.len() {
                    at = read_tree(words, at, way, found);
                    if word(at) == "," {
                        at += 1;
                    }
                }
                way.truncate(depth);
                return at + 1;
            }
            name if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                way.push(name.to_owned());
                at += 1;
            }
            // A glob, or the arguments of a type.
            _ => at += 1,
        }
        if word(at) != "::" {
            break;
        }
        at += 1;
    }
    let name = if word(at) == "as" {
        at += 2;
        Some(word(at - 1).to_owned())
    } else {
        way.last().cloned()
    };
    found.push((way.clone(), name));
    way.truncate(depth);
    at
}
