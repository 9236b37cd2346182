//! The comment for a pull request: nothing of an input is a link, a mention, a reference or HTML in it, and it is bounded.

use serde_json::Value;

use crate::run::{BAD, Scratch, many};

/// The text outside of spans of code. Each span ends on its line.
fn outside_code(comment: &str, name: &str) -> String {
    let line = |line: &str| {
        assert!(line.matches('`').count().is_multiple_of(2), "{name}: an open span of code\n{line}");
        line.split('`').step_by(2).collect::<Vec<_>>().join("") + "\n"
    };
    comment.lines().map(line).collect()
}

/// A comment in which every text of an input is inert.
pub(crate) fn expect_safe(comment: &str, name: &str) {
    assert!(comment.len() < 60_000, "{name}: {} bytes", comment.len());
    assert!(comment.starts_with("### memgate: "), "{name}: {comment}");
    let outside = outside_code(comment, name);
    let (first, rest) = outside.split_once('\n').expect("lines");
    let bare = |text: &str| text.replace("#### What", "What").replace("(already", "");
    for text in [first.trim_start_matches("### "), &*bare(rest)] {
        let live = text.find(['<', '>', '@', '[', ']', '!', '#', '&', '\\', '~', '*', '_', '$', '%']);
        assert!(live.is_none() && !text.contains("://") && !text.contains("www."), "{name}: {text}");
    }
    for line in comment.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(line.matches('|').count(), 5, "{name}: {line}");
    }
    assert!(!comment.contains(|c: char| c.is_control() && c != '\n'), "{name}: {comment:?}");
}

/// A comment with the verdict and the findings of a report, whose findings begin with denials.
pub(crate) fn expect_good(comment: &str, report: &Value, name: &str) {
    expect_safe(comment, name);
    let denials =
        report["findings"].as_array().expect("findings").iter().filter(|it| it["severity"] == "deny");
    let shown = comment.lines().filter(|line| line.starts_with("| deny |")).count();
    if !comment.contains("left out here") {
        assert_eq!(shown, denials.count(), "{name}: {comment}");
    }
    let ranks: Vec<_> = comment
        .lines()
        .filter_map(|line| {
            ["| error", "| deny", "| warn", "| note"].iter().position(|it| line.starts_with(it))
        })
        .collect();
    assert!(ranks.is_sorted(), "{name}: {comment}");
}

const HOSTILE: [&str; 16] = [
    "`",
    "``` ```",
    "<script>alert(1)</script>",
    "![x](http://a.example/x.png)",
    "[x](https://a.example)",
    "https://a.example www.a.example",
    "@team @org/team a@b.example",
    "#1 GH-1 org/repo#1 !1 %1 ~1 $1 &1",
    "a | b || c",
    "\\`\\|",
    "\\n\\r\\u2028/close",
    "<!-- x --> --> <img src=x>",
    "**a** _b_ ~~c~~ :tada:",
    "##[stop-commands]x ###[y] ####vso[z]",
    "\\u202e\\u200b@team",
    "|---|---|\\n# a",
];

#[test]
fn no_text_of_an_input_is_live() {
    for (number, text) in HOSTILE.iter().enumerate() {
        let quoted =
            format!("\"{}\"", text.replace('\\', "\\\\").replace("\\\\u", "\\u").replace("\\\\n", "\\n"));
        let objects = [
            BAD.replace("reddis", &quoted),
            BAD.replace("name: notes", &format!("name: {quoted}")),
            BAD.replace("team-a", &quoted),
            BAD.replace("kind: ArkMemory", &format!("kind: {quoted}")),
            BAD.replace("  backend: reddis", &format!("  backend: redis\n  {quoted}: 1\n  {quoted}: 2")),
            BAD.replace(
                "metadata: {name: notes",
                &format!("metadata: {{labels: {{{quoted}: {quoted}}}, name: notes"),
            ),
        ];
        for bad in objects {
            let scratch = Scratch::with(&[("a.yaml", &bad)]);
            expect_safe(&scratch.out(&["check", ".", "-o", "markdown"]), &bad);
        }
        let file = format!("{}{number}.yaml", text.replace("\\n", "\n").replace('/', ":"));
        let scratch = Scratch::with(&[(&file, BAD), (&format!("{file}b.yaml"), "a: [\n")]);
        let comment = scratch.out(&["check", ".", "-o", "markdown"]);
        expect_safe(&comment, &file);
        assert!(comment.contains("1 denial"), "{comment}");
    }
}

#[test]
fn says_how_many_it_leaves_out() {
    let scratch = Scratch::with(&[("many.yaml", &(BAD.to_owned() + &many(101)))]);
    let comment = scratch.out(&["check", "many.yaml", "-o", "markdown"]);
    expect_safe(&comment, "many");
    let summary = scratch.json(&["check", "many.yaml", "-o", "json"])["summary"].take();
    let all = ["deny", "warn", "note"].map(|severity| summary[severity].as_u64().expect("a number"));
    let rows = comment
        .lines()
        .filter(|line| ["| deny |", "| warn |", "| note |"].iter().any(|it| line.starts_with(it)));
    let left = all.iter().sum::<u64>() - u64::try_from(rows.count()).expect("fits");
    assert!(comment.contains(&format!("{left} findings left out here")), "{comment}");
    assert!(comment.starts_with(&format!("### memgate: {} denials", summary["deny"])), "{comment}");
    // Characters of several bytes, and what CI systems read as commands.
    for text in ["𐐀", "##[a"] {
        let wide = many(101).replace(
            "kind: Agent\nmetadata: {name: a",
            &format!("kind: Agent\nmetadata: {{name: {}", text.repeat(60)),
        );
        let scratch = Scratch::with(&[("many.yaml", &(BAD.to_owned() + &wide))]);
        expect_safe(&scratch.out(&["check", "many.yaml", "-o", "markdown"]), text);
    }
}

#[test]
fn says_that_all_is_fine() {
    let good = BAD.replace("reddis", "in-context").replace("ttl: 5", "");
    let scratch = Scratch::with(&[("a.yaml", &good)]);
    let comment = scratch.out(&["check", ".", "-o", "markdown"]);
    assert!(
        comment.starts_with("### memgate: 0 denials, 0 warnings; nothing would be denied\n"),
        "{comment}"
    );
    assert!(!comment.contains('|') && !comment.contains("map of memory"), "{comment}");
}
