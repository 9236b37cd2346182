//! Names that people wrote wrong, in each place where a name of an object belongs: outputs show them whole, and propose the
//! name that was meant. Beside them stand the keys of [`crate::pasted`], which no output shows.

use std::fs;

use libtest_mimic::Failed;

use crate::outputs::memgate;
use crate::pasted;

/// What was written, and the name that was meant.
const SLIPS: [(&str, &str); 11] = [
    ("Notes_A", "notes-a"),
    ("My Memory", "my-memory"),
    ("agent-redis-Secret", "agent-redis-secret"),
    ("UPPER", "upper"),
    ("notes ", "notes"),
    (" notes", "notes"),
    ("notes_redis", "notes-redis"),
    ("Agent_Redis_V2", "agent-redis-v2"),
    ("TeamA", "teama"),
    ("redis_6379", "redis-6379"),
    ("Qdrant of Research", "qdrant-of-research"),
];

/// Texts that are no slip: no name is meant by them, or a longer one than a person mistypes.
const OTHERS: [&str; 8] = [
    "team/notes?",
    "notes!",
    "_notes",
    "notes,redis",
    "nötes",
    "-notes-",
    // As programs propose passwords.
    "rimhyq-Xawcog-6kyxpi",
    "Notes_of_the_team_that_has_a_name_of_46_letters",
];

/// Objects with a name in each place where messages quote one.
const OBJECTS: &str = r#"apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata:
  name: "SLIP"
  namespace: team-a
spec:
  backend: redis
  redis:
    secretRef:
      name: "SLIP"
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: team-a}
spec:
  model: m
  systemPrompt: x
  memoryRef:
    name: "SLIP"
---
apiVersion: kagent.dev/v1alpha2
kind: Agent
metadata: {name: helper, namespace: team-a}
spec:
  type: Declarative
  declarative:
    systemMessage: x
    memory:
      modelConfig: "SLIP"
---
apiVersion: kagent.dev/v1alpha2
kind: ModelConfig
metadata: {name: other, namespace: team-a}
spec: {model: x, provider: OpenAI}
---
apiVersion: ark.mckinsey.com/v1alpha1
kind: Query
metadata: {name: ask, namespace: team-a}
spec:
  input: x
  target: {type: agent, name: a}
  memory:
    name: "SLIP"
---
apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: other, namespace: team-a}
spec: {address: {value: "http://x"}}
"#;

/// A place of [`OBJECTS`]: the line, from 1, and how many of them there are.
const LINES: [usize; 5] = [4, 10, 19, 29, 43];

/// Each slip is shown whole in the message and the line of each finding, with the proposal that `check --fix` writes.
pub(crate) fn shown() -> Result<(), Failed> {
    for (slip, meant) in SLIPS {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("in.yaml");
        fs::write(&file, OBJECTS.replace("SLIP", slip))?;
        let (out, err) = memgate("check in.yaml", "", &directory, None)?;
        for line in LINES {
            let finding =
                block(&out, line).ok_or_else(|| format!("{slip}: nothing about line {line}: {out}{err}"))?;
            let message = finding.contains(&format!("\"{slip}\"")) && !finding.contains("characters)");
            let proposal = finding.contains(&format!("did you mean \"{meant}\"?"));
            if !(message && proposal && !finding.contains("**")) {
                return Err(format!("{slip}: {finding}").into());
            }
        }
        memgate("check --fix in.yaml", "", &directory, None)?;
        let fixed = fs::read_to_string(&file)?;
        if fixed != OBJECTS.replace("\"SLIP\"", &format!("\"{meant}\"")) {
            return Err(format!("{slip} is not mended: {fixed}").into());
        }
    }
    Ok(())
}

/// What is in the tables of edges and takes other texts than names: a value of a label, and the name of a model.
const NO_NAMES: [&str; 3] = ["sympozium.ai/ensemble", "sympozium.ai/persona-pack", "embedding_model"];

/// Neither what is no slip nor a key is shown, in the same places.
pub(crate) fn hidden() -> Result<(), Failed> {
    for text in OTHERS.into_iter().chain(pasted::keys().map(|(_, key)| key)) {
        let directory = tempfile::tempdir()?;
        let objects = OBJECTS.replace("SLIP", text) + &pasted::edges(text)?;
        fs::write(directory.path().join("in.yaml"), objects)?;
        for line in ["check in.yaml", "check -o json in.yaml"] {
            let (out, err) = memgate(line, "", &directory, None)?;
            let is_of_name = |line: &&str| !NO_NAMES.iter().any(|it| line.contains(it));
            let mut lines = out.lines().chain(err.lines()).filter(is_of_name);
            if let Some(shown) = lines.find(|line| line.contains(text)) {
                return Err(format!("{line} shows {text}: {shown}").into());
            }
        }
    }
    Ok(())
}

/// A field that is indented below a name is shown by its word, what stands before it and a key in its place are not.
pub(crate) fn wrong_depth() -> Result<(), Failed> {
    let above = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: notes-of-the-research-team-of-the-house\n";
    for (word, is_shown) in [("namespace", true), ("labels", true), ("generateName", true)]
        .into_iter()
        .chain(pasted::keys().filter(|(_, key)| !key.contains(':')).map(|(_, key)| (key, false)))
    {
        let directory = tempfile::tempdir()?;
        fs::write(
            directory.path().join("in.yaml"),
            format!("{above}    {word}: x\nspec: {{backend: in-context}}\n"),
        )?;
        let (out, err) = memgate("check in.yaml", "", &directory, None)?;
        if err.contains(&format!("    {word}: x")) != is_shown || out.contains(word) {
            return Err(format!("{word}: {out}{err}").into());
        }
    }
    Ok(())
}

/// The finding about this line of the file.
fn block(out: &str, line: usize) -> Option<&str> {
    out.split("\n\n").find(|finding| finding.contains(&format!("in.yaml:{line}:")))
}
