//! The output of commands about objects with a credential.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::Failed;
use memgate_manifest::mask::shown;
use memgate_manifest::source::Source;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::editor;
use crate::fields::Field;
use crate::policy::policy;
use crate::review;
use crate::styles::{Style, holds_marker, objects};
use crate::{MARKER, expect_no_marker};

/// The commands that read manifests; `FILE` stands for the file.
const COMMANDS: [&str; 20] = [
    "check -o text FILE",
    "check -o concise FILE",
    "check -o json FILE",
    "check -o github FILE",
    "check -o gitlab FILE",
    "check -o sarif FILE",
    "check -o junit FILE",
    "check -o html FILE",
    "check --with FILE FILE",
    "check --strict --exclude FILE .",
    "check --settings FILE FILE",
    "check --project FILE FILE",
    "check --fail-on warn --color always FILE",
    "view FILE",
    "view --with FILE FILE",
    "map FILE",
    "test FILE",
    "test -o json FILE",
    "test -o junit FILE",
    "test -o github FILE",
];

/// The commands that judge by a policy, whose findings quote the wrong values.
const JUDGED: [&str; 15] = [
    "check -o text --policy policy.json FILE",
    "check -o json --policy policy.json FILE",
    "check -o sarif --policy policy.json FILE",
    "check -o junit --policy policy.json FILE",
    "check -o github --policy policy.json FILE",
    "check -o gitlab --policy policy.json FILE",
    "check -o html --policy policy.json FILE",
    "audit -o html --policy policy.json FILE",
    "what-if -o html --policy policy.json FILE",
    "check -o text --point audit --policy policy.json --with FILE FILE",
    "view --with FILE FILE",
    "what-if --policy policy.json FILE",
    "audit -o json --policy policy.json FILE",
    "what-if -o json --policy policy.json FILE",
    "what-if --base policy.json --policy policy.json --with FILE FILE",
];

/// What `test` prints about a case that fails, with the sign of it.
const FAILED_CASES: [(&str, &str); 4] = [
    ("test -v FILE", "FAIL"),
    ("test -o json FILE", "\"failed\": 1"),
    ("test -o junit FILE", "<failure"),
    ("test -o github FILE", "::error "),
];

/// Those that print what the user wrote.
const REWRITES: [&str; 2] = ["mutate FILE", "mutate --diff FILE"];

/// Runs every command over the objects of a field.
pub(crate) fn check(field: &Field, style: &Style) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let text = style.write(&field.text());
    fs::write(directory.path().join(style.file), &text)?;
    expect_masked(style.file, &text)?;
    for line in REWRITES {
        let (out, err) = memgate(line, style.file, &directory, None)?;
        if !field.copied {
            expect_nothing_added(line, &text, &out)?;
        }
        expect_no_marker(line, &err)?;
    }
    for line in COMMANDS {
        let (out, err) = memgate(line, style.file, &directory, None)?;
        expect_no_marker(line, &out)?;
        expect_no_marker(line, &err)?;
        if line == COMMANDS[0] {
            expect_shown(field, style, &out)?;
        }
    }
    judged(style, &directory)?;
    editor::check(style.file, &text, &directory)?;
    if style.name == "block" {
        expect_masked_apart(field, &directory)?;
    }
    for (index, object) in objects(&field.text()).iter().enumerate() {
        review(field, object, style, &directory)?;
        failed_case(object, &objects(&field.text()), &directory, &format!("case-{index}.yaml"))?;
    }
    Ok(())
}

/// Runs the commands that judge by a policy.
fn judged(style: &Style, directory: &TempDir) -> Result<(), Failed> {
    fs::write(directory.path().join("policy.json"), policy().to_string())?;
    for line in JUDGED {
        let (out, err) = memgate(line, style.file, directory, None)?;
        expect_no_marker(line, &out)?;
        expect_no_marker(line, &err)?;
        if err.contains("--> policy.json") {
            return Err(format!("{line}: the policy is refused: {err}").into());
        }
    }
    Ok(())
}

/// Runs over the objects in files of their own, each in one line: what is shown of another object stands in another
/// file, and with it all that the object holds.
fn expect_masked_apart(field: &Field, directory: &TempDir) -> Result<(), Failed> {
    fs::create_dir(directory.path().join("apart"))?;
    for (number, object) in objects(&field.text()).iter().enumerate() {
        fs::write(directory.path().join(format!("apart/{number}.json")), object.to_string())?;
    }
    for format in ["text", "json", "sarif", "html"] {
        let line = format!("check -o {format} apart");
        let (out, err) = memgate(&line, "", directory, None)?;
        expect_no_marker(&line, &out)?;
        expect_no_marker(&line, &err)?;
    }
    Ok(())
}

/// The text as reports have it: as long as it was, and without the marker wherever a finding may be.
pub(crate) fn expect_masked(file: &str, text: &str) -> Result<(), Failed> {
    assert!(holds_marker(text), "the marker is in the input");
    let source = Arc::new(Source::new(file, text));
    let shown = shown(&source);
    assert_eq!(shown.len(), text.len(), "masks keep everything in its place");
    expect_no_marker("the masked text", shown)
}

/// Fails when the marker stands more often in an output than in what the user wrote: memgate has written it.
fn expect_nothing_added(what: &str, text: &str, output: &str) -> Result<(), Failed> {
    let count = |prefix: &str, text: &str| -> usize {
        let lines = text.lines().filter(|line| line.starts_with(prefix));
        lines.map(|line| line.matches(MARKER).count() + line.matches(&STANDARD.encode(MARKER)).count()).sum()
    };
    let diff = what.contains("--diff");
    let (before, after) =
        if diff { (count("-", output), count("+", output)) } else { (count("", text), count("", output)) };
    if after <= before { Ok(()) } else { Err(format!("{what} adds it:\n{output}").into()) }
}

/// The line of the credential is there, and masked: the test would see nothing otherwise.
fn expect_shown(field: &Field, style: &Style, output: &str) -> Result<(), Failed> {
    if !field.here || style.name != "block" {
        return Ok(());
    }
    let masked = |line: &str| {
        line.contains(&field.beside) && ["***", "···", "•••"].iter().any(|mask| line.contains(mask))
    };
    if output.lines().any(masked) {
        return Ok(());
    }
    Err(format!("no masked line with {:?} is shown:\n{output}", field.beside).into())
}

/// The answer to the review of each object. Only the patch may contain copied values.
fn review(field: &Field, object: &Value, style: &Style, directory: &TempDir) -> Result<(), Failed> {
    let body = admission_review(object).to_string();
    for line in ["review --with FILE", "review --policy policy.json --with FILE"] {
        let (out, err) = memgate(line, style.file, directory, Some(&body))?;
        expect_no_marker(line, &err)?;
        // An exemption that cannot be read ends it without an answer.
        if !out.is_empty() {
            expect_clean_answer(field, &out)?;
        }
    }
    Ok(())
}

/// Looks at an answer and at its patch, which is in base64.
pub(crate) fn expect_clean_answer(field: &Field, answer: &str) -> Result<(), Failed> {
    let mut answer: Value = serde_json::from_str(answer)?;
    let patch = answer.pointer_mut("/response/patch").map(Value::take).unwrap_or_default();
    expect_no_marker("the answer", &answer.to_string())?;
    let Some(patch) = patch.as_str() else { return Ok(()) };
    let patch: Value = serde_json::from_slice(&STANDARD.decode(patch)?)?;
    for operation in patch.as_array().into_iter().flatten() {
        let annotation = operation["path"].as_str().is_some_and(|path| path.contains("annotations"));
        if annotation || !field.copied {
            expect_no_marker("the patch", &operation.to_string())?;
        }
    }
    Ok(())
}

/// The review of an object that is created in its namespace.
pub(crate) fn admission_review(object: &Value) -> Value {
    review::review(object["metadata"]["namespace"].as_str().unwrap_or_default(), object)
}

/// A case about an object that expects everything to be otherwise.
fn failed_case(object: &Value, state: &[Value], directory: &TempDir, file: &str) -> Result<(), Failed> {
    let containers = object.pointer("/spec/containers").and_then(Value::as_array);
    let env: serde_json::Map<String, Value> = containers
        .into_iter()
        .flatten()
        .filter_map(|container| {
            let names = container["env"].as_array()?.iter().filter_map(|entry| entry["name"].as_str());
            let env: serde_json::Map<_, _> = names.map(|name| (name.to_owned(), json!("other"))).collect();
            Some((container["name"].as_str()?.to_owned(), env.into()))
        })
        .collect();
    let case = json!([{
        "name": "is-otherwise",
        "why": "the opposite of what is",
        "at": "2027-02-01T00:00:00Z", "operation": "CREATE",
        "state": state,
        "object": object,
        "expect": {
            "allowed": true,
            "unchanged": true,
            "message_contains": ["nothing of the kind"],
            "warnings_contain": ["nothing of the kind"],
            "after": {"/spec": "other", "": object.pointer("/metadata")},
            "absent": ["/spec", "/metadata"],
            "env": env,
        },
    }]);
    fs::write(directory.path().join(file), case.to_string())?;
    for (line, sign) in FAILED_CASES {
        let (out, err) = memgate(line, file, directory, None)?;
        if !out.contains(sign) {
            return Err(format!("{line}: the case did not fail:\n{out}{err}").into());
        }
        expect_no_marker(line, &out)?;
        expect_no_marker(line, &err)?;
    }
    Ok(())
}

/// Runs the program in the directory. Returns its output and its standard error.
pub(crate) fn memgate(
    line: &str,
    file: &str,
    directory: &TempDir,
    stdin: Option<&str>,
) -> Result<(String, String), Failed> {
    let words = line.split(' ').map(|word| if word == "FILE" { file } else { word });
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
    command.args(words).env_clear().env("RUST_LOG", "debug").current_dir(directory.path());
    command.stdin(Stdio::null());
    if let Some(text) = stdin {
        let path: &Path = directory.path();
        fs::write(path.join("stdin"), text)?;
        command.stdin(fs::File::open(path.join("stdin"))?);
    }
    let output = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr)))
}
