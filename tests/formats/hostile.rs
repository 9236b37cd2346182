//! Names and values that could break a format.

use memgate_primitives::plain_text::misleads;
use roxmltree::Document;
use serde_json::json;

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

/// What moves a cursor, ends a line, reorders or hides text, beyond what YAML lets a file have unescaped.
const MISLEADING: &str =
    "\u{85}\u{9b}31m\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{e0041}\u{7f}\u{1b}[31m\u{7}";

/// The same in a quoted scalar, with the end of a line between two words.
fn quoted() -> String {
    let escape = |all, c| format!("{all}\\U{:08X}", u32::from(c));
    let escaped = MISLEADING.chars().fold(String::new(), escape);
    format!("\"one\\ntwo{escaped}\"")
}

/// Files that cannot be read, with such characters in each place.
fn unreadable() -> Vec<(String, String)> {
    let head = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n";
    let texts = [
        format!("{head}metadata:\n  name: [X\n"),
        format!("{head}X: : : {{\n"),
        "{\"apiVersion\": \"arkonis.dev/v1alpha1\", \"kind\": X".to_owned(),
        format!("{head}metadata: {{name: &X a, x: *X}}\n"),
        format!("{head}metadata: !<X> {{name: a}}\n"),
        format!("{head}metadata: {{name: a}}\nspec: {{backend: \"\\qX\"}}\n"),
        format!("{head}metadata: {{name: a}}\n\"X\": 1\n\"X\": 2\n"),
        format!("%YAML X\n---\n{head}"),
        format!("{head}metadata: {{name: a, name: b}} # X\n\tx: X\n"),
        format!("{head}metadata: {{name: a, Q: 1, Q: 2}}\n"),
        "- name: a\n  expect: {X: 1}\n".to_owned(),
    ];
    let filled = |text: String| text.replace('X', MISLEADING).replace('Q', &quoted());
    texts.into_iter().enumerate().map(|(index, text)| (format!("{index}.yaml"), filled(text))).collect()
}

/// Files that can be read, with such characters in each text.
fn readable() -> Vec<(String, String)> {
    let files = [
        (
            "memory.yaml",
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: X, namespace: X, labels: {X: X}, annotations: {X: X, memgate.dev/owner: X}}\nspec: {backend: X, X: X, redis: {secretRef: {name: X}}}\n",
        ),
        (
            "kinds.yaml",
            "apiVersion: X\nkind: X\nmetadata: {name: X}\n---\napiVersion: arkonis.dev/v1alpha1\nkind: X\nmetadata: {name: a}\n---\napiVersion: X\nkind: ArkMemory\nmetadata: {name: a}\n",
        ),
        (
            "agent.yaml",
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: X}\nspec: {model: m, systemPrompt: p, memoryRef: {name: X}}\n",
        ),
        (
            "pod.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: X, labels: {arkonis.dev/deployment: X}, annotations: {memgate.dev/injected: X, memgate.dev/inject: X}}\nspec: {containers: [{name: agent, image: X, env: [{name: X, value: X}]}]}\n",
        ),
        (
            "injected.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {memgate.dev/injected: 'J'}}\nspec: {containers: []}\n",
        ),
        (
            "policy.yaml",
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: X, annotations: {X: X}}\nspec: {match: {families: [X], X: X}, rules: [{id: X, X: X, hint: X, message: X}]}\n",
        ),
        (
            "rules.yaml",
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: p}\nspec: {rules: [{id: r, hint: X, fields: [{path: backend, allow: [X]}]}]}\n",
        ),
        (
            "exemption.yaml",
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: PolicyExemption\nmetadata: {name: X, namespace: X}\nspec: {policy: X, rules: [X], reason: X, until: X, X: X}\n",
        ),
        (
            "case.yaml",
            "- name: X\n  why: X\n  operation: CREATE\n  state: [{apiVersion: X, kind: X, metadata: {name: X}}]\n  object: {apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: a}, spec: {backend: X}}\n  expect: {allowed: true, message_contains: [X], after: {X: X}}\n",
        ),
    ];
    let injected = json!({"version": MISLEADING, "family": MISLEADING, "added": [{"memory": MISLEADING, "X": MISLEADING}]});
    let fill =
        |text: &str| text.replace('J', &injected.to_string().replace('\'', "")).replace('X', &quoted());
    files.into_iter().map(|(name, text)| (name.to_owned(), fill(text))).collect()
}

/// What of an output would mislead, by lines.
fn misleading(output: &std::process::Output) -> Vec<String> {
    let text = [output.stdout.as_slice(), b"\n", &output.stderr].concat();
    let text = String::from_utf8(text).expect("UTF-8");
    let is_bad = |line: &&str| line.contains("onetwo") || line.contains(misleads);
    text.split('\n').filter(is_bad).map(|line| format!("{line:?}")).collect()
}

#[test]
fn no_output_has_a_character_that_misleads() {
    const FORMATS: [&str; 9] =
        ["text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown", "html"];
    let name = format!("a{MISLEADING}/b{MISLEADING}.yaml");
    let base = format!("refs/{MISLEADING}");
    let flag = format!("--x{MISLEADING}");
    let (unreadable, readable) = (unreadable(), readable());
    let single = unreadable.iter().chain(&readable).map(|(name, text)| vec![(name.as_str(), text.as_str())]);
    let all = |files: &[(String, String)]| {
        files.iter().map(|(name, text)| (name.clone(), text.clone())).collect::<Vec<_>>()
    };
    let all = [all(&unreadable), all(&readable)].concat();
    let together = vec![all.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>()];
    let named = [BAD, unreadable[0].1.as_str()].map(|text| vec![(name.as_str(), text)]);
    let project = vec![(".memgate.yaml", unreadable[0].1.as_str()), ("a.yaml", BAD)];
    let choices = "paths: [Q]\nexclude: [Q]\nrules: {Q: Q}\nfamilies: [Q]\nnamespaces: [{match: Q}]\n"
        .replace('Q', &quoted());
    let project = [project, vec![(".memgate.yaml", choices.as_str()), ("a.yaml", BAD)]];
    let chart = "apiVersion: v2\nname: Q\nversion: Q\n".replace('Q', &quoted());
    let unit = vec![
        ("Chart.yaml", chart.as_str()),
        ("values.yaml", unreadable[0].1.as_str()),
        ("templates/a.yaml", BAD),
        ("k/kustomization.yaml", "resources: [Q]\n"),
        ("k/a.yaml", BAD),
    ];
    let mut wrong = Vec::new();
    for files in single.chain(together).chain(named).chain(project).chain([unit]) {
        let scratch = Scratch::with(&files);
        let mut commands: Vec<Vec<&str>> =
            FORMATS.iter().map(|format| vec!["check", ".", "--strict", "-o", format]).collect();
        if files.len() == 1 && files[0].0 != name {
            // All of them together go through every format.
            commands.truncate(1);
        }
        commands.extend([
            vec!["check", ".", "--fix", "--policy", "."],
            vec!["mutate", "."],
            vec!["view", "."],
            vec!["map", "."],
            vec!["test", "."],
            vec!["audit", ".", "--policy", "."],
        ]);
        if commands.len() > FORMATS.len() {
            commands.extend([
                vec!["mutate", ".", "--diff"],
                vec!["map", ".", "-o", "html"],
                vec!["audit", ".", "--policy", ".", "-o", "html"],
                vec!["what-if", ".", "--policy", "."],
                vec!["explain", "p/r", "--policy", "."],
                vec!["exempt", "p/r", "--policy", "."],
                vec!["check", ".", "--base", &base],
                vec!["check", &flag],
                vec!["explain", MISLEADING],
                vec!["schema", MISLEADING],
                vec![&flag],
            ]);
        }
        for words in commands {
            // A file is rewritten by `--fix`, and `mutate` prints the lines of its author.
            let found = misleading(&scratch.run(&words));
            if !found.is_empty() {
                wrong.push(format!("{words:?} {:?}: {found:#?}", files[0].0));
            }
        }
    }
    assert!(wrong.is_empty(), "{} outputs:\n{}", wrong.len(), wrong.join("\n"));
}
