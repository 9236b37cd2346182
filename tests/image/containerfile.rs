//! The `Containerfile`, read as text.

use std::collections::BTreeSet;

const CONTAINERFILE: &str = include_str!("../../Containerfile");
const TOOLCHAIN: &str = include_str!("../../rust-toolchain.toml");

/// The instructions of the build file, with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let lines = CONTAINERFILE.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            (word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// The instructions of the last stage, which is what is shipped.
pub(crate) fn shipped() -> Vec<(String, String)> {
    let instructions = instructions();
    let last = instructions.iter().rposition(|(word, _)| word == "FROM").unwrap();
    instructions[last..].to_vec()
}

/// What follows each instruction of that name.
pub(crate) fn all<'i>(instructions: &'i [(String, String)], word: &str) -> Vec<&'i str> {
    instructions.iter().filter(|(found, _)| found == word).map(|(_, rest)| rest.as_str()).collect()
}

#[test]
fn instructions_are_ones_that_exist() {
    let known =
        ["FROM", "RUN", "WORKDIR", "COPY", "ARG", "ENV", "LABEL", "USER", "EXPOSE", "ENTRYPOINT", "CMD"];
    let instructions = instructions();
    assert_eq!(instructions[0].0, "FROM");
    for (word, rest) in &instructions {
        assert!(known.contains(&word.as_str()), "{word} {rest}");
    }
    for exec in all(&instructions, "ENTRYPOINT").into_iter().chain(all(&instructions, "CMD")) {
        let words: Vec<String> = serde_json::from_str(exec).expect("the form without a shell");
        assert!(!words.is_empty());
    }
}

#[test]
fn the_image_has_no_shell_and_no_root() {
    let shipped = shipped();
    assert_eq!(all(&shipped, "FROM"), ["scratch"]);
    assert_eq!(all(&shipped, "USER"), ["65532:65532"]);
    assert!(all(&shipped, "RUN").is_empty(), "nothing can run there");
    let copied = all(&shipped, "COPY");
    assert!(copied.iter().all(|copy| copy.starts_with("--from=build ")), "{copied:?}");
    assert_eq!(copied.len(), 2, "the binary and its bill of materials");
    assert_eq!(all(&shipped, "ENTRYPOINT"), [r#"["/memgate"]"#]);
}

/// Nothing that is secret goes in, and nothing comes from an address that may change.
#[test]
fn the_image_is_made_of_what_is_pinned() {
    let instructions = instructions();
    let stages = all(&instructions, "FROM");
    let (image, name) = stages[0].split_once(" AS ").unwrap();
    assert_eq!((name, stages.len()), ("build", 2));
    let channel =
        TOOLCHAIN.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap().trim_matches('"');
    let (tag, digest) = image.split_once("@sha256:").expect("a digest");
    assert_eq!(tag, format!("docker.io/library/rust:{channel}-alpine"));
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    assert_eq!(all(&instructions, "ENV"), [format!("RUSTUP_TOOLCHAIN={channel}")]);
    let arguments = all(&instructions, "ARG");
    let names: Vec<_> = arguments.iter().map(|argument| argument.split('=').next().unwrap()).collect();
    assert_eq!(names, ["SOURCE_DATE_EPOCH", "VERSION", "REVISION"]);
    assert_eq!(arguments[1], format!("VERSION={}", env!("CARGO_PKG_VERSION")));
    let ignored: BTreeSet<_> = include_str!("../../.dockerignore").lines().collect();
    for secret in [".git", "target", "**/*.key", "memgate-certs"] {
        assert!(ignored.contains(secret), "{secret} would be copied");
    }
}
