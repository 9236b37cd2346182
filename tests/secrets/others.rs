//! Files that are not manifests, and files behind links that lead out of the repository: no output quotes what such a file
//! holds, whether a user or a file of settings names it.

use std::fs;
use std::os::unix::fs::symlink;

use libtest_mimic::Failed;

use crate::outputs::memgate;

/// A word that no rule takes for a credential.
const WORD: &str = "Plainword9";

/// Texts without a manifest: as they are, and as each reader of memgate might begin to understand them.
const TEXTS: [&str; 12] = [
    "machine WORD login WORD account WORD\n",
    "[default]\nWORD = WORD\n  WORD: [\n",
    "WORD: WORD\n\"WORD\": 1\nWORD: 2\n",
    "paths: [WORD]\nWORD: x\nrules: [{codes: [WORD], severity: WORD, WORD: 1}]\n",
    "failOn: WORD\nsets: {WORD: WORD}\nnamespaces: {WORD: WORD}\n",
    "- {name: WORD, WORD: x, operation: WORD}\n- WORD\n",
    "{\"WORD\": \"WORD\", \"a\": WORD}\n",
    "{\"schemaVersion\": 1, \"findings\": [{\"WORD\": \"WORD\"}]}\n",
    "WORD: &WORD [*other, WORD\n",
    "kind: WORD\nresources: [WORD]\nWORD: \"\n",
    "a: !WORD 'x\n%WORD\n\tWORD\n",
    "WORD\0",
];

/// Those that read a file that the user names.
const COMMANDS: [&str; 17] = [
    "check FILE",
    "check -o json FILE",
    "check -o github -o sarif=o.sarif -o junit=o.xml -o html=o.html FILE",
    "check --strict --with FILE good.yaml",
    "check --policy FILE good.yaml",
    "check --config FILE good.yaml",
    "check --project FILE good.yaml",
    "check --baseline FILE good.yaml",
    "check --fix --diff FILE",
    "mutate FILE",
    "mutate --diff FILE",
    "mutate --patch FILE",
    "test FILE",
    "test -o json FILE",
    "explain-pod FILE",
    "view FILE",
    "map FILE",
];

/// A manifest with faults in many places, and with the word in each text that no title of an object shows.
const MANIFEST: &str = "\
# WORD
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a, labels: {team: WORD}, annotations: {note: WORD}}
spec: {backend: WORD, redis: {secretRef: {name: WORD}, WORD: {WORD: 1}}, extra: WORD, WORD: 1} # WORD
---
apiVersion: v1
kind: Pod
metadata: {name: scout, namespace: team-a, labels: {arkonis.dev/deployment: scout, memgate.dev/inject: WORD}}
spec: {containers: [{name: agent, image: x, env: [{name: A, value: WORD}]}]}
";

/// A policy and a file of cases with faults.
const OTHERS: [&str; 2] = [
    "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: p}\n\
     spec: {WORD: 1, rules: [{id: a, backends: {durable: true, WORD: WORD}}]}\n",
    "- {name: WORD, why: WORD, operation: CREATE, object: {apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: \
     {name: a, namespace: b}, spec: {backend: WORD}}, expect: {allowed: true, codes: [WORD], message_contains: [WORD]}}\n",
];

const GOOD: &str = include_str!("../../examples/arkonis/memory-in-context.yaml");

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

/// Runs the commands over links out of the repository, by a name of a link and by one below a link.
pub(crate) fn links() -> Result<(), Failed> {
    let outside = tempfile::tempdir()?;
    fs::write(outside.path().join("all.yaml"), MANIFEST.replace("WORD", WORD))?;
    let others = tempfile::tempdir()?;
    for (text, name) in OTHERS.iter().zip(["policy.yaml", "cases.yaml"]) {
        fs::write(others.path().join(name), text.replace("WORD", WORD))?;
    }
    for has_repository in [true, false] {
        let directory = tempfile::tempdir()?;
        let here = directory.path();
        if has_repository {
            fs::create_dir(here.join(".git"))?;
        }
        fs::write(here.join("good.yaml"), GOOD)?;
        symlink(outside.path().join("all.yaml"), here.join("link.yaml"))?;
        symlink(outside.path(), here.join("folder"))?;
        symlink(others.path(), here.join("others"))?;
        let manifests = ["link.yaml", "folder/all.yaml", "folder", "./good.yaml/../folder/all.yaml"];
        for file in manifests.into_iter().chain(["others/policy.yaml", "others/cases.yaml"]) {
            for line in COMMANDS {
                let (out, err) = memgate(line, file, &directory, None)?;
                let is_named =
                    ["link", "folder", "others"].iter().any(|name| format!("{out}{err}").contains(name));
                if !is_named
                    && ["check", "mutate", "view", "map", "test"].contains(&line.trim_end_matches(" FILE"))
                {
                    return Err(format!("{line} of {file} does not name it: {out}{err}").into());
                }
                expect_none(line, file, &[out, err])?;
            }
        }
        // It is read all the same.
        let (out, err) = memgate("check link.yaml", "", &directory, None)?;
        if !format!("{out}{err}").contains("arkonis/") {
            return Err(format!("nothing was found: {out}{err}").into());
        }
        fs::write(here.join("inside.yaml"), MANIFEST.replace("WORD", WORD))?;
        symlink("inside.yaml", here.join("inner.yaml"))?;
        let (out, err) = memgate("check inner.yaml", "", &directory, None)?;
        if !format!("{out}{err}").contains(WORD) {
            return Err(format!("a link that stays inside is not shown: {out}{err}").into());
        }
    }
    Ok(())
}

fn expect_none(what: &str, of: &str, outputs: &[String]) -> Result<(), Failed> {
    let lines = outputs.iter().flat_map(|output| output.lines());
    let lines: Vec<&str> = lines.filter(|line| line.contains(WORD)).take(5).collect();
    if lines.is_empty() {
        Ok(())
    } else {
        Err(format!("{what} of {of:?} shows it:\n{}", lines.join("\n")).into())
    }
}
