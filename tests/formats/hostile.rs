//! Names and values that could break a format.

use roxmltree::Document;

use crate::github;
use crate::run::{BAD, Scratch};

const NAME: &str = "a:b,c%d <e>&\"\nf.yaml";

#[test]
fn names_of_files_stay_one_name() {
    let scratch = Scratch::with(&[(NAME, BAD)]);
    let annotations = github::parse(&scratch.out(&["check", ".", "-o", "github"]));
    assert_eq!(annotations[0].get("file"), Some(NAME));
    let issues = scratch.json(&["check", ".", "-o", "gitlab"]);
    assert_eq!(issues[0]["location"]["path"], NAME);
    let xml = scratch.out(&["check", ".", "-o", "junit"]);
    let document = Document::parse(&xml).expect("XML");
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).expect("a suite");
    assert!(suite.attribute("name").is_some_and(|name| name.ends_with(NAME)), "{xml}");
    let log = scratch.json(&["check", ".", "-o", "sarif"]);
    let uri = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "a%3Ab,c%25d%20%3Ce%3E&%22%0Af.yaml");
    assert_eq!(scratch.out(&["check", ".", "-o", "concise"]).lines().count(), 2);
}

#[test]
fn names_of_files_do_not_reach_the_terminal() {
    let scratch = Scratch::with(&[("a\u{1b}[31m\u{202e}.yaml", BAD)]);
    for format in ["text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown", "html"] {
        let text = scratch.out(&["check", ".", "-o", format]);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{format}: {text:?}");
    }
}

#[test]
fn values_cannot_break_out() {
    let value = r#""\e[31m]]></failure>\r\n::error::x%0A\0\u2028""#;
    let scratch = Scratch::with(&[("bad.yaml", &BAD.replace("reddis", value))]);
    for format in ["text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown", "html"] {
        let output = scratch.run(&["check", "bad.yaml", "-o", format]);
        assert_eq!(output.status.code(), Some(1), "{format}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{format}: {text:?}");
        match format {
            "github" => assert_eq!(github::parse(&text).len(), 2, "{text}"),
            "concise" => assert_eq!(text.lines().count(), 2, "{text}"),
            "junit" => drop(Document::parse(&text).expect("XML")),
            _ => {}
        }
    }
}

#[test]
fn a_directory_that_is_none_is_an_entry_everywhere() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    for format in ["concise", "json", "github", "gitlab", "sarif", "junit", "markdown", "html"] {
        let output = scratch.run(&["check", "bad.yaml", "missing/", "-o", format]);
        assert_eq!(output.status.code(), Some(2), "{format}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.contains("missing") && text.contains("no such file or directory"), "{format}: {text}");
    }
}

/// What CI systems read as a command: `::` at the head of a line behind blanks, `##[…]` anywhere.
const COMMANDS: [&str; 3] = ["::stop-commands::x", "##[stop-commands]x", "##vso[task.setvariable]x"];

/// The lines that a CI system would obey, but for those that memgate writes as `-o github`.
fn obeyed(output: &std::process::Output, format: &str) -> Vec<String> {
    let text = [output.stdout.as_slice(), b"\n", &output.stderr].concat();
    let text = String::from_utf8(text).expect("UTF-8");
    let is_own = |line: &str| {
        let kinds = ["::error ", "::warning ", "::notice "];
        format == "github" && kinds.iter().any(|kind| line.starts_with(kind))
    };
    let is_command = |line: &&str| {
        // The renderer's own `:::` before a second place is not a command.
        line.trim_start().starts_with("::") && !line.starts_with(" ::: ") && !is_own(line)
            || line.contains("##[")
            || line.contains("##vso[")
    };
    text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).filter(is_command).map(str::to_owned).collect()
}

#[test]
fn no_line_begins_with_a_text_of_an_input() {
    let fields = [
        "metadata: {name: \"X\"}\nspec: {backend: redis}",
        "metadata: {name: a, namespace: \"X\"}\nspec: {backend: redis}",
        "metadata: {name: a, labels: {\"X\": \"X\"}}\nspec: {backend: redis}",
        "metadata: {name: a}\nspec: {backend: \"X\"}",
        "metadata: {name: a}\nspec: {backend: redis, \"X\": 1, redis: {\"X\": \"X\"}}",
        "metadata: {name: a, \"X\": 1, \"X\": 2}\nspec: {backend: redis}",
        "# memgate: ignore[X] because\nmetadata: {name: a}\nspec: {backend: redis}",
        "metadata: {name: a}\nspec:\n  backend: |\n    Y\n    Y",
    ];
    for command in COMMANDS {
        for end in ["\\n", "\\r\\n", "\\u0085", "\\u2028", "", "\\n  \\t"] {
            for field in fields {
                let field = field.replace('X', &format!("a{end}{command}")).replace('Y', command);
                let memory = format!("apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n{field}\n");
                let name = format!("{command}\n{command}.yaml").replace('/', "");
                let scratch = Scratch::with(&[(&name, &memory), (&format!("{command}/a.yaml"), &memory)]);
                let formats =
                    ["text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown", "html"];
                for format in if end == "\\n" { &formats[..] } else { &formats[..1] } {
                    let output = scratch.run(&["check", ".", command, "--strict", "-o", format]);
                    assert_eq!(obeyed(&output, format), [""; 0], "{format} {field:?}");
                }
                let output = scratch.run(&["view", "."]);
                let obeyed: Vec<String> = obeyed(&output, "")
                    .into_iter()
                    .filter(|line| line.trim_start().starts_with("::"))
                    .collect();
                assert_eq!(obeyed, [""; 0], "view {field:?}");
            }
        }
    }
}

/// What the findings and notes about other kinds quote.
#[test]
fn no_line_about_any_kind_begins_with_a_text_of_an_input() {
    let kinds = [
        "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Query\nmetadata: {name: q, namespace: \"X\"}\n\
         spec: {input: a, memory: {name: \"X\"}, target: {type: agent, name: \"X\"}}",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: a, namespace: \"X\"}\n\
         spec: {model: m, systemPrompt: p, memoryRef: {name: \"X\"}}",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: \"X\", labels: {arkonis.dev/deployment: \"X\"}}\n\
         spec: {containers: [{name: agent, image: \"X\", env: [{name: AGENT_MEMORY_BACKEND, value: \"X\"}]}]}",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"X\"}\nspec: {selector: {}, template: {metadata: \
         {annotations: {memgate.dev/ark-memory: \"X\"}}, spec: {containers: [{name: \"X\", image: a}]}}}",
        "apiVersion: orloj.dev/v1\nkind: Agent\nmetadata: {name: a, annotations: {orloj.dev/target-namespace: \"X\"}}\n\
         spec: {memory: {ref: \"X\", allow: [\"X\"]}}",
    ];
    for command in COMMANDS {
        for end in ["\\n", "\\r\\n", "\\u0085", "\\u2028", ""] {
            for kind in kinds {
                let text = kind.replace('X', &format!("a{end}{command}"));
                let scratch = Scratch::with(&[("a.yaml", &text)]);
                for words in [
                    &["check", "."][..],
                    &["check", ".", "-o", "concise"],
                    &["check", ".", "-o", "junit", "--strict"],
                    &["mutate", ".", "--diff"],
                    &["explain-pod", "a.yaml"],
                    &["map", "."],
                    &["test", "a.yaml"],
                ] {
                    let diff =
                        |line: &String| !words.contains(&"--diff") || !line.starts_with(['+', '-', ' ']);
                    let obeyed: Vec<String> =
                        obeyed(&scratch.run(words), "").into_iter().filter(diff).collect();
                    assert_eq!(obeyed, [""; 0], "{words:?} {text}");
                }
            }
        }
    }
}

#[test]
fn no_error_begins_a_line_with_a_text_of_an_input() {
    for command in COMMANDS {
        let key = format!("\"a\\n{command}\"");
        for project in [
            format!("{key}: 1"),
            format!("failOn: {key}"),
            format!("families: [{key}]"),
            format!("settings: {{orloj: {{{key}: 1}}}}"),
            format!("paths: [{key}]"),
            format!("exclude: [{key}, \"[\\n{command}\"]"),
            format!("settings: {{orloj: {{sharedSecrets: [{key}]}}}}"),
        ] {
            let scratch = Scratch::with(&[(".memgate.yaml", &project), ("a.yaml", BAD)]);
            for arguments in [&["check"][..], &["check", "."], &["mutate", "."], &["view", "."]] {
                let output = scratch.run(arguments);
                assert_eq!(obeyed(&output, ""), [""; 0], "{arguments:?} {project}");
            }
        }
    }
}
