//! How many lines of product code each crate has, beside `lines.txt`: growth is a line of the diff, with a word why.
//!
//! A line of product code is not blank, no comment and no test. `BLESS=1 cargo test --test documents lines` writes down
//! what became less. What grew is typed by hand, with its reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What was counted, by crate: the number, and why it last grew.
type Counts = BTreeMap<String, (usize, String)>;

#[test]
fn each_crate_has_as_many_lines_as_written_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("tests/documents/lines.txt");
    let text = fs::read_to_string(&file).expect("the counts");
    let (head, _) = text.split_once("\n\n").expect("a head, and an empty line behind it");
    let written = counts_of(&text);
    let mut counted: Counts = sources(root)
        .into_iter()
        .map(|(name, files)| {
            (name, (files.iter().map(|file| product_lines(&read(file))).sum(), String::new()))
        })
        .collect();
    let mut wrong = Vec::new();
    for (name, (lines, why)) in &mut counted {
        let (before, reason) = written.get(name).cloned().unwrap_or_default();
        if *lines > before {
            wrong
                .push(format!("{name}: {before} lines became {lines}: write {lines} and why into lines.txt"));
        } else if *lines < before && std::env::var_os("BLESS").is_none() {
            wrong.push(format!("{name}: {before} lines became {lines}: BLESS=1 writes it down"));
        }
        *why = reason;
    }
    let gone = written.keys().filter(|name| !counted.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{name}: there is no such crate")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, format!("{head}\n\n{}", table(&counted))).expect("can be written");
    }
}

#[test]
fn tests_comments_and_blanks_do_not_count() {
    let text = "//! A module.\n\nuse a::b;\n\n/* more\nof it */\nfn f() {\n    // why\n    g();\n}\n\n#[cfg(test)]\nmod tests {\n    fn h() {}\n}\n\n#[cfg(test)]\nmod other;\nconst A: u8 = 1;\n";
    assert_eq!(product_lines(text), 5);
}

fn counts_of(text: &str) -> Counts {
    let rows = text.split_once("\n\n").map_or("", |(_, rows)| rows).lines();
    let row = |line: &str| {
        let mut words = line.splitn(3, char::is_whitespace);
        let (name, rest) = (words.next()?.to_owned(), line.split_whitespace().nth(1)?);
        let why = line.split_once(rest).map_or("", |(_, why)| why).trim().to_owned();
        Some((name, (rest.parse().ok()?, why)))
    };
    rows.filter_map(row).filter(|(name, _)| name != "total").collect()
}

fn table(counts: &Counts) -> String {
    let mut text = String::new();
    for (name, (lines, why)) in counts {
        let row = format!("{name:<12}{lines:>6}  {why}");
        writeln!(text, "{}", row.trim_end()).expect("a text can be written to");
    }
    let total: usize = counts.values().map(|(lines, _)| lines).sum();
    writeln!(text, "{:<12}{total:>6}", "total").expect("a text can be written to");
    text
}

/// The source files of each crate, by its folder; `memgate` is the command line.
fn sources(root: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut crates = BTreeMap::from([("memgate".to_owned(), files_below(&root.join("src")))]);
    for entry in fs::read_dir(root.join("crates")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        crates.insert(name, files_below(&path.join("src")));
    }
    crates
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let is_test = name == "tests" || name == "tests.rs" || name.starts_with("test_");
        if path.is_dir() && !is_test {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            files.push(path);
        }
    }
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).expect("a source")
}

/// What a line belongs to.
enum Inside {
    Code,
    Comment,
    /// Behind `#[cfg(test)]`, before the item that it is for.
    TestAhead,
    /// In such an item, so many braces deep.
    Test(i64),
}

fn product_lines(text: &str) -> usize {
    let (mut count, mut inside) = (0, Inside::Code);
    for line in text.lines().map(str::trim) {
        let depth = || braces(line, '{') - braces(line, '}');
        inside = match inside {
            Inside::Code if line.starts_with("#[cfg(test)]") => Inside::TestAhead,
            Inside::Code if line.starts_with("/*") && !line.contains("*/") => Inside::Comment,
            Inside::Code => {
                count += usize::from(!line.is_empty() && !line.starts_with("//") && !line.starts_with("/*"));
                Inside::Code
            }
            Inside::Comment if line.contains("*/") => Inside::Code,
            Inside::TestAhead if line.contains('{') && depth() > 0 => Inside::Test(depth()),
            Inside::TestAhead if line.contains('{') || line.ends_with(';') => Inside::Code,
            Inside::Test(before) if before + depth() <= 0 => Inside::Code,
            Inside::Test(before) => Inside::Test(before + depth()),
            same @ (Inside::Comment | Inside::TestAhead) => same,
        };
    }
    count
}

fn braces(line: &str, brace: char) -> i64 {
    i64::try_from(line.matches(brace).count()).expect("few braces")
}
