//! Files that are not manifests: no output quotes what such a file holds, whether a user or a file of settings names it.

use std::fs;

use libtest_mimic::Failed;

use crate::outputs::memgate;

/// A word that no rule takes for a credential.
pub(crate) const WORD: &str = "plainword9";

/// Texts without a manifest: as they are, and as each reader of memgate might begin to understand them.
const TEXTS: [&str; 12] = [
    "machine WORD login WORD account WORD\n",
    "[default]\nWORD = WORD\n  WORD: [\n",
    "WORD: WORD\n\"WORD\": 1\nWORD: 2\n",
    "paths: [WORD]\nWORD: x\nrules: [{codes: [WORD], severity: WORD, WORD: 1}]\n",
    "failOn: WORD\nrules: {WORD: WORD}\nnamespaces: {WORD: WORD}\n",
    "- {name: WORD, WORD: x, operation: WORD}\n- WORD\n",
    "{\"WORD\": \"WORD\", \"a\": WORD}\n",
    "{\"schemaVersion\": 1, \"findings\": [{\"WORD\": \"WORD\"}]}\n",
    "WORD: &WORD [*other, WORD\n",
    "kind: WORD\nresources: [WORD]\nWORD: \"\n",
    "a: !WORD 'x\n%WORD\n\tWORD\n",
    "WORD\0",
];

/// Those that read a file that the user names.
pub(crate) const COMMANDS: [&str; 13] = [
    "check FILE",
    "check -o json FILE",
    "check -o github -o sarif=o.sarif -o junit=o.xml -o html=o.html FILE",
    "check --strict --with FILE good.yaml",
    "check --policy FILE good.yaml",
    "check --settings FILE good.yaml",
    "check --project FILE good.yaml",
    "mutate FILE",
    "mutate --diff FILE",
    "test FILE",
    "test -o json FILE",
    "view FILE",
    "map FILE",
];

pub(crate) const GOOD: &str = include_str!("../../examples/arkonis/memory-in-context.yaml");

/// Runs the commands over files that are not manifests.
pub(crate) fn no_manifests() -> Result<(), Failed> {
    for text in TEXTS {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("good.yaml"), GOOD)?;
        fs::write(directory.path().join("other.yaml"), text.replace("WORD", WORD))?;
        for line in COMMANDS {
            let (out, err) = memgate(line, "other.yaml", &directory, None)?;
            expect_none(line, text, &[out, err])?;
        }
        let (out, err) = memgate("review", "", &directory, Some(&text.replace("WORD", WORD)))?;
        expect_none("review", text, &[out, err])?;
        let (out, err) = memgate("check -", "", &directory, Some(&text.replace("WORD", WORD)))?;
        expect_none("check -", text, &[out, err])?;
        fs::rename(directory.path().join("other.yaml"), directory.path().join(".memgate.yaml"))?;
        let (out, err) = memgate("check good.yaml", "", &directory, None)?;
        expect_none(".memgate.yaml", text, &[out, err])?;
        for file in ["o.sarif", "o.xml", "o.html"] {
            let written = fs::read_to_string(directory.path().join(file)).unwrap_or_default();
            expect_none(file, text, &[written])?;
        }
    }
    Ok(())
}

pub(crate) fn expect_none(what: &str, of: &str, outputs: &[String]) -> Result<(), Failed> {
    let lines = outputs.iter().flat_map(|output| output.lines());
    let lines: Vec<&str> = lines.filter(|line| line.contains(WORD)).take(5).collect();
    if lines.is_empty() {
        Ok(())
    } else {
        Err(format!("{what} of {of:?} shows it:\n{}", lines.join("\n")).into())
    }
}
