//! The changes in SARIF: made in the file, they are what `check --fix` writes.

use memgate_core::decide::codes;
use serde_json::Value;

use crate::archive::scenarios;
use crate::repositories::programs;
use crate::run::Scratch;

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A change: from line and column, to line and column, and the new text.
type Change = ([usize; 4], String);

/// Makes changes.
fn changed(text: &str, mut changes: Vec<Change>) -> String {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let at = |line: usize, column: usize| {
        let line = &text[starts[line - 1]..];
        // Columns count characters, without a byte order mark.
        let mark = if line.starts_with('\u{feff}') { 3 } else { 0 };
        let bytes = line[mark..].chars().take(column - 1).map(char::len_utf8).sum::<usize>();
        text.len() - line.len() + mark + bytes
    };
    changes.sort();
    let mut new = text.to_owned();
    for ([line, start, end_line, end], replacement) in changes.iter().rev() {
        new.replace_range(at(*line, *start)..at(*end_line, *end), replacement);
    }
    new
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("fits")
}

/// The changes made in each file are what `--fix` writes. Returns whether there were any.
fn expect_same_as_fix(files: &[(&str, &str)], name: &str) -> bool {
    expect_same(files, name, false)
}

/// The same, with kubectl and helm on the `PATH` if they are needed.
fn expect_same(files: &[(&str, &str)], name: &str, is_built: bool) -> bool {
    let scratch = Scratch::with(files);
    let check = |end: &[&str]| {
        let mut command = scratch.command(&[&["check", "."], end].concat());
        if is_built {
            command.env("PATH", programs());
        }
        command.output().expect("memgate runs").stdout
    };
    let log = check(&["-o", "sarif"]);
    let log: Value = serde_json::from_slice(&log).unwrap_or_else(|error| panic!("{name}: {error}"));
    check(&["--fix"]);
    let mut any = false;
    for (file, text) in files {
        let all_fixes = list(&log["runs"][0]["results"]).iter().flat_map(|it| list(&it["fixes"]).to_vec());
        let changes = all_fixes.flat_map(|fix| list(&fix["artifactChanges"]).to_vec());
        let changes = changes.filter(|change| change["artifactLocation"]["uri"] == *file);
        let replacements = changes.flat_map(|change| list(&change["replacements"]).to_vec()).map(|it| {
            let region = &it["deletedRegion"];
            let range = ["startLine", "startColumn", "endLine", "endColumn"].map(|key| number(&region[key]));
            (range, it["insertedContent"]["text"].as_str().expect("a text").to_owned())
        });
        let replacements: Vec<Change> = replacements.collect();
        any |= !replacements.is_empty();
        assert_eq!(changed(text, replacements), scratch.read(file), "{name}: {file}");
    }
    any
}

/// A part of the codes, with some whose examples have fixes.
#[test]
fn changes_of_examples_are_those_of_fix() {
    let some = ["arkonis/backend-unknown", "arkonis/unknown-field", "sympozium/access-duplicate"];
    changes_of_examples_are_those_of(|number, code| number.is_multiple_of(16) || some.contains(&code));
}

#[test]
#[ignore = "needs minutes"]
fn changes_of_every_example_are_those_of_fix() {
    changes_of_examples_are_those_of(|_, _| true);
}

fn changes_of_examples_are_those_of(is_chosen: impl Fn(usize, &str) -> bool) {
    let mut fixed = 0;
    let all = codes::all(&memgate_platforms::ALL).enumerate();
    for (_, code) in all.filter(|(number, code)| is_chosen(*number, code.name)) {
        let Some((_, section)) = code.page.text().split_once("## Failing example\n\n```yaml\n") else {
            continue;
        };
        let (example, _) = section.split_once("```").expect("an end");
        fixed += usize::from(expect_same_as_fix(&[("example.yaml", example)], code.name));
    }
    for (name, case) in scenarios("check").into_iter().filter(|(name, _)| name.contains("fix")) {
        let scratch = Scratch::with(&[]);
        case.unpack_inputs(scratch.path()).expect("written");
        let files: Vec<(String, String)> = std::fs::read_dir(scratch.path())
            .expect("a folder")
            .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
            .filter(|file| {
                std::path::Path::new(file).extension().is_some_and(|it| it == "yaml")
                    && !file.starts_with('.')
            })
            .map(|file| (file.clone(), scratch.read(&file)))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (&**file, &**text)).collect();
        fixed += usize::from(expect_same_as_fix(&files, &name));
    }
    assert!(fixed > 5, "{fixed} with fixes");
}

const MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: a, namespace: t}\n";
const LIST: &str = "apiVersion: sympozium.ai/v1alpha1\nkind: Ensemble\nmetadata: {name: e, namespace: t}\n\
                    spec:\n  agentConfigs: [{name: a}]\n  sharedMemory:\n    enabled: true\n    accessRules:\n";

#[test]
fn changes_are_right_in_every_form_of_text() {
    let repeated = "    - {agentConfig: a, access: read-only}\n";
    let flow = "{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: a, labels: {grün: 𐐀}}, spec: {bakend: rdis}}";
    let json = "{\"apiVersion\": \"arkonis.dev/v1alpha1\", \"kind\": \"ArkMemory\", \"metadata\": {\"name\": \"a\", \"annotations\": {\"ü\": \"𐐀\"}}, \"spec\": {\"bakend\": \"rdis\"}}";
    let below = format!("{MEMORY}spec:\n  bakend: rdis\n  redsi: {{}}\n");
    let texts = [
        below.clone(),
        below.replace('\n', "\r\n"),
        format!("\u{feff}{flow}\n"),
        flow.to_owned(),
        json.to_owned(),
        format!("# ünï\n{below}---\n{below}"),
        format!("{LIST}{}", repeated.repeat(2)),
        format!("{LIST}{}", repeated.repeat(4)),
        format!("{LIST}{}", repeated.repeat(3)).replace('\n', "\r\n"),
        format!("{LIST}{}", repeated.repeat(2)).trim_end().to_owned(),
    ];
    for text in &texts {
        assert!(expect_same_as_fix(&[("a.yaml", text)], text), "no fix in\n{text}");
    }
    let numbered: Vec<(String, &str)> =
        texts.iter().enumerate().map(|(number, text)| (format!("f{number}.yaml"), &**text)).collect();
    let files: Vec<(&str, &str)> = numbered.iter().map(|(name, text)| (&**name, *text)).collect();
    expect_same_as_fix(&files, "all together");
}

/// A base with two overlays: patches in files and in the text of kustomization.yaml, of both kinds, and a file in JSON.
const OVERLAYS: [(&str, &str); 8] = [
    ("base/kustomization.yaml", "resources: [m.yaml, q.yaml]\n"),
    (
        "base/m.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\nspec:\n  bakend: redis # ü\n  redis:\n    \
         ttlSeconds: \"60\"\n    secretRef: {name: notes-redis}\n",
    ),
    (
        "base/q.yaml",
        "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Query\nmetadata: {name: q}\nspec: {input: ü, ttl: 30d, targt: {type: agent, \
         name: x}}\n",
    ),
    (
        "dev/kustomization.yaml",
        "namespace: d\nresources: [../base]\npatches:\n- path: merge.yaml\n- target: {kind: Query}\n  path: query.json\n",
    ),
    (
        "dev/merge.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\nspec: {redis: {\"maxEntries\": \"7\"}}\n",
    ),
    (
        "dev/query.json",
        "[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"ü\": \"𐐀\"}}, {\"op\": \"add\", \"path\": \"/spec/timeout\", \
         \"value\": \"2d\"}]\n",
    ),
    ("prod/kustomization.yaml", "# 𐐀\r\nnamespace: p\r\nnamePrefix: x-\r\nresources: [../base]\r\n"),
    (
        "test/kustomization.yaml",
        "namespace: t\nresources: [../base]\npatches:\n- target: {kind: Query}\n  patch: |-\n    - op: add\n      path: /spec/timeot\n      \
         value: 48h\n- patch: |\n    apiVersion: arkonis.dev/v1alpha1\n    kind: ArkMemory\n    metadata: {name: notes}\n    spec:\n      \
         # ü\n      redis: {maxEntriez: 5}\n",
    ),
];

#[test]
#[ignore = "needs kubectl and helm"]
fn changes_in_what_is_rendered_are_those_of_fix() {
    assert!(expect_same(&OVERLAYS, "overlays", true), "a fix");
    let chart = [
        ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"),
        ("c/values.yaml", "# ü\nttl: 30d\nquery: {timeout: \"2d\"}\n"),
        (
            "c/templates/q.yaml",
            "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Query\nmetadata: {name: q}\nspec:\n  input: a\n  ttl: {{ .Values.ttl }}\n  \
             timeout: {{ .Values.query.timeout | quote }}\n  target: {type: agent, name: x}\n",
        ),
    ];
    assert!(expect_same(&chart, "chart", true), "a fix");
}

#[test]
fn ignored_codes_are_not_changed() {
    let files = [("a.yaml", &*format!("{MEMORY}spec:\n  bakend: rdis\n  redsi: {{}}\n"))];
    let scratch = Scratch::with(&files);
    let log = scratch.json(&["check", ".", "--ignore", "arkonis/unknown-field", "-o", "sarif"]);
    assert!(list(&log["runs"][0]["results"]).iter().all(|it| it["fixes"].is_null()), "{log}");
    scratch.run(&["check", ".", "--ignore", "arkonis/unknown-field", "--fix"]);
    assert_eq!(scratch.read("a.yaml"), files[0].1);
}
