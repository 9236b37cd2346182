//! Repositories with files that no text editor writes: other encodings, large and deep files, bytes that are no text.

use std::fmt::Write as _;

use crate::repository::Repository;

/// A title of a page, in letters of Latin-1.
const TITLE: &str = "titre: café à la crème\nname: Ménage\n";

/// All of them.
pub(crate) fn repositories() -> Vec<Repository> {
    let mut all = encodings();
    all.extend(tables());
    all.push(deep_tree());
    all.push(many_files());
    all
}

/// The same text in encodings that YAML does not have, or with a mark at its start.
fn encodings() -> Vec<Repository> {
    let latin_1 = || TITLE.chars().map(|it| u8::try_from(u32::from(it)).unwrap_or(b'?')).collect::<Vec<u8>>();
    let utf_16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        [0xfeff].into_iter().chain(TITLE.encode_utf16()).flat_map(bytes).collect()
    };
    let marked = [b"\xef\xbb\xbf", TITLE.as_bytes()].concat();
    vec![
        Repository::new("latin-1").with("texts/fr.yaml", latin_1()).with("texts/fr.json", latin_1()),
        Repository::new("utf-16 little endian").with("texts/fr.yaml", utf_16(u16::to_le_bytes)),
        Repository::new("utf-16 big endian").with("texts/fr.yml", utf_16(u16::to_be_bytes)),
        Repository::new("byte order mark").with("texts/fr.yaml", marked),
    ]
}

/// Single files of one repository each.
fn tables() -> Vec<Repository> {
    let random: Vec<u8> = (0..4_096_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &random].concat();
    let files: [(&str, &str, Vec<u8>); 12] = [
        ("binary", "assets/image.yaml", png.clone()),
        ("binary json", "assets/image.json", png),
        ("zeros", "data/disk.yaml", vec![0; 8_192]),
        ("empty", "data/nothing.yaml", Vec::new()),
        ("only comments", "data/comments.yaml", b"# nothing\n---\n# yet\n...\n".to_vec()),
        ("tabs", "texts/tab.yml", b"a:\n\tb: 1\n\t\tc: 2\n".to_vec()),
        ("carriage returns", "texts/mac.yaml", b"a: 1\rb: 2\rkind: x\r".to_vec()),
        ("unclosed quote", "texts/quote.yaml", b"a: \"b\nc: d\n".to_vec()),
        ("list as a key", "data/keys.yaml", b"? [a, b]\n: c\n? {d: e}\n: f\n".to_vec()),
        ("aliases of aliases", "data/laughs.yaml", laughs().into_bytes()),
        (
            "deep nesting",
            "data/deep.json",
            format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)).into_bytes(),
        ),
        ("over the size limit", "data/rows.json", large().into_bytes()),
    ];
    let one = |(name, path, bytes)| Repository::new(name).with("README.md", "# x\n").with(path, bytes);
    files.map(one).into()
}

/// Aliases that stand for more than a billion texts.
fn laughs() -> String {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 8].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{aliases}]");
    }
    text
}

/// JSON of more than 64 MiB, which is the largest file that is read.
fn large() -> String {
    let row = format!("{{\"id\": 1, \"kind\": \"row\", \"text\": \"{}\"}},\n", "x".repeat(1 << 16));
    format!("[{}{{}}]", row.repeat(1_030))
}

/// Folders in folders, each with a file.
fn deep_tree() -> Repository {
    let folders = (1..60).map(|depth| "d/".repeat(depth));
    folders.fold(Repository::new("deep tree"), |it, folder| it.with(folder + "values.yaml", "kind: leaf\n"))
}

/// A repository of many small files.
fn many_files() -> Repository {
    let file = |number: usize| {
        (format!("data/{}/{number}.json", number % 20), format!("{{\"kind\": \"row\", \"id\": {number}}}\n"))
    };
    (0..400).map(file).fold(Repository::new("many files"), |it, (path, text)| it.with(path, text))
}
