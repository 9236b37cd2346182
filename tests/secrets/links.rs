//! Links that lead out of the repository: no output quotes what such a link leads to, and each names the link.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;
use memgate_workbench::report::ReportFormat;

use crate::others::{COMMANDS, GOOD, WORD, expect_none};
use crate::outputs::memgate;

/// A manifest with faults of every kind, and with the word wherever a text may be.
const MANIFEST: &str = include_str!("linked.yaml");

/// What cannot be read as YAML, a policy, a file of cases and a kustomization, all with faults.
const OTHERS: [(&str, &str); 9] = [
    ("broken.yaml", "apiVersion: v1\nkind: WORD\nWORD: [WORD\n  WORD: \"WORD"),
    ("twice.yaml", "apiVersion: v1\nkind: Pod\nWORD: 1\nWORD: *WORD\n---\nWORD: !WORD {\n"),
    ("template.yaml", "apiVersion: v1\n{{ .WORD }}\nkind: WORD\nWORD: {{ WORD }} WORD\n  - WORD\n"),
    ("bytes.yaml", "apiVersion: v1\nkind: WORD\nWORD: \u{0}\n"),
    (
        "policy.yaml",
        "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: p}\n\
         spec: {WORD: 1, rules: [{id: a, backends: {durable: true, WORD: WORD}}]}\n",
    ),
    (
        "valid.yaml",
        "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: WORD}\n\
         spec: {rules: [{id: WORD, backends: {durable: true, allow: [WORD]}}]}\n",
    ),
    (
        "cases.yaml",
        "- {name: WORD, why: WORD, operation: CREATE, object: {apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, \
         metadata: {name: a, namespace: b}, spec: {backend: WORD}}, expect: {allowed: true, codes: [WORD], \
         message_contains: [WORD]}}\n",
    ),
    (
        "memory.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: WORD}\nspec: {backend: WORD}\n",
    ),
    (
        "kustomization.yaml",
        "resources: [memory.yaml, WORD.yaml, policy.yaml]\nnamespace: WORD\nWORD: WORD\npatches: [{patch: \"WORD: WORD\"}]\n",
    ),
];

/// Files of the repository whose findings are about what is behind the links: names that are nearly those there, a
/// name in another namespace, a memory that an agent there uses, a value that a Kustomization there fills in.
const INSIDE: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: asks, namespace: team-a}
spec: {model: m, systemPrompt: s, memoryRef: {name: plainword8}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: looks, namespace: team-a}
spec: {model: '${filled}', systemPrompt: s, memoryRef: {name: elsewhere}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: bad, namespace: team-a}
spec: {backend: redis, redis: {secretRef: {name: plainword8}}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: worse, namespace: team-a}
spec: {backend: plainword8}
";

const POLICY: &str = "\
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: strict}
spec:
  rules:
    - {id: durable, backends: {durable: true, allow: [in-context]}}
    - {id: here, references: {crossNamespace: forbid, mustExist: [ArkMemory]}, onUnknown: deny}
";

/// The commands that read the link, in every format.
fn commands() -> Vec<String> {
    let formats = ReportFormat::ALL.map(ReportFormat::name);
    let of_report = formats.iter().flat_map(|format| {
        [
            "check -o FORMAT FILE",
            "check -o FORMAT --strict --fail-on warn FILE inside.yaml",
            "check -o FORMAT --policy own.yaml FILE inside.yaml",
            "check -o FORMAT --base HEAD FILE inside.yaml",
            "audit -o FORMAT --policy own.yaml FILE inside.yaml",
            "what-if -o FORMAT --policy own.yaml FILE inside.yaml",
        ]
        .map(|line| line.replace("FORMAT", format))
    });
    let of_map = ["map FILE inside.yaml".to_owned()];
    let of_tests = ["text", "json", "junit", "github"].map(|format| format!("test -v -o {format} FILE"));
    let others = [
        "check --with FILE inside.yaml",
        "check --with inside.yaml FILE",
        "check --no-render FILE inside.yaml",
        "check --fix FILE",
        "view FILE inside.yaml",
        "view --with FILE inside.yaml",
        "what-if --base FILE --policy own.yaml inside.yaml",
        "test --policy FILE good.yaml",
        "review --with FILE",
    ];
    let others = others.map(str::to_owned);
    let known = COMMANDS.map(str::to_owned);
    of_report.chain(of_map).chain(of_tests).chain(others).chain(known).collect()
}

/// Runs the commands over links out of the repository, by a name of a link and by one below a link.
pub(crate) fn check() -> Result<(), Failed> {
    let outside = tempfile::tempdir()?;
    let filled = |text: &str| text.replace("WORD", WORD);
    fs::create_dir(outside.path().join("all"))?;
    fs::create_dir(outside.path().join("others"))?;
    fs::write(outside.path().join("all/all.yaml"), filled(MANIFEST))?;
    for (name, text) in OTHERS {
        fs::write(outside.path().join("others").join(name), filled(text))?;
    }
    for has_repository in [true, false] {
        let directory = tempfile::tempdir()?;
        let here = directory.path();
        for (name, text) in [("good.yaml", GOOD), ("inside.yaml", INSIDE), ("own.yaml", POLICY)] {
            fs::write(here.join(name), text)?;
        }
        symlink(outside.path().join("all/all.yaml"), here.join("link.yaml"))?;
        symlink(outside.path().join("all"), here.join("link-folder"))?;
        symlink(outside.path().join("others"), here.join("link-others"))?;
        if has_repository {
            git(here, &["init", "-q"])?;
            git(here, &["add", "."])?;
            let user = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
            git(here, &[&user[..], &["commit", "-qm", "a"]].concat())?;
        }
        let known = || COMMANDS.map(str::to_owned).to_vec();
        let others = OTHERS.iter().map(|(name, _)| (format!("link-others/{name}"), known()));
        let below =
            ["link-folder", "./good.yaml/../link-folder/all.yaml"].map(|file| (file.to_owned(), known()));
        let whole = ["link.yaml", "link-others"].map(|file| (file.to_owned(), commands()));
        for (file, lines) in others.chain(below).chain(whole.into_iter().filter(|_| has_repository)) {
            for line in lines {
                let (out, err) = memgate(&line, &file, &directory, None)?;
                // No kustomization is a file of cases, wherever it is.
                if !["link", "no case was found"].iter().any(|it| format!("{out}{err}").contains(it)) {
                    return Err(format!("{line} of {file} does not name it: {out}{err}").into());
                }
                expect_none(&line, &file, &[out, err])?;
                for written in ["known.json", "o.sarif", "o.xml", "o.html", "inside.yaml"] {
                    let written = fs::read_to_string(here.join(written)).unwrap_or_default();
                    expect_none(&line, &file, &[written])?;
                }
            }
        }
        for (name, text) in OTHERS.map(|(name, text)| (format!("others/{name}"), text)) {
            assert_eq!(fs::read_to_string(outside.path().join(name))?, filled(text));
        }
        assert_eq!(fs::read_to_string(outside.path().join("all/all.yaml"))?, filled(MANIFEST));
        fs::write(here.join("same.yaml"), filled(MANIFEST))?;
        symlink("same.yaml", here.join("inner.yaml"))?;
        let (out, err) = memgate("check inner.yaml", "", &directory, None)?;
        if !format!("{out}{err}").contains(WORD) {
            return Err(format!("a link that stays inside is not shown: {out}{err}").into());
        }
    }
    Ok(())
}

fn git(directory: &Path, words: &[&str]) -> Result<(), Failed> {
    let output = Command::new("git").args(words).current_dir(directory).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said.into()) }
}
