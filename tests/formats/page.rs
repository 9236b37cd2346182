//! The page of `-o html`: well-formed, with the policy that allows its own style sheet only, and with every text of an
//! input as text.

use std::collections::BTreeSet;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::json;

use crate::repositories::programs;
use crate::run::{BAD, Scratch, many};

/// Every element of a page. An input cannot add one.
const ELEMENTS: [&str; 33] = [
    "html", "head", "meta", "title", "style", "body", "a", "header", "nav", "main", "footer", "section",
    "article", "h1", "h2", "h3", "p", "ul", "li", "strong", "span", "code", "pre", "div", "table", "caption",
    "thead", "tbody", "tr", "th", "td", "details", "summary",
];

/// Every attribute of a page, but for those of data.
const ATTRIBUTES: [&str; 13] = [
    "lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "scope", "role", "tabindex",
    "aria-label", "aria-labelledby",
];

/// The data of a page, which other programs read.
const DATA: [&str; 5] = ["verdict", "severity", "objects", "object", "part"];

/// Texts that would be markup, an attribute, a script, a line or a style if they were not text.
pub(crate) fn hostile() -> Vec<String> {
    serde_json::from_str(include_str!("../support/hostile.json")).expect("is JSON")
}

/// A page as XML. Elements without an end have none in HTML either, and the text of the style sheet is not markup. HTML
/// may have U+FFFE.
fn as_xml(page: &str) -> String {
    let page = page.strip_prefix("<!DOCTYPE html>").expect("a page").trim_end();
    let (before, behind) = page.split_once("<style>").expect("a style sheet");
    let (_, behind) = behind.split_once("</style>").expect("its end");
    let page = format!("{before}<style/>{behind}");
    let (first, others) = page.split_once("<meta ").expect("an element");
    let others = others.split("<meta ").map(|part| part.replacen('>', "/>", 1));
    format!("{first}<meta {}", others.collect::<Vec<_>>().join("<meta ")).replace('\u{fffe}', "?")
}

/// Fails unless a page is well-formed, can be read by a screen reader, and holds nothing that an input added.
pub(crate) fn expect_good(page: &str, what: &str) {
    assert!(!page.contains(|c: char| c.is_control() && c != '\n'), "{what}: a control character");
    let xml = as_xml(page);
    let document = Document::parse_with_options(&xml, ParsingOptions::default())
        .unwrap_or_else(|error| panic!("{what}: {error}\n{xml}"));
    let elements = || document.descendants().filter(Node::is_element);
    let count = |name: &str| elements().filter(|node| node.tag_name().name() == name).count();
    for name in ["h1", "header", "nav", "main", "footer", "title"] {
        let most = if name == "title" { usize::MAX } else { 1 };
        assert!((1..=most).contains(&count(name)), "{what}: {} of {name}", count(name));
    }
    let mut ids = BTreeSet::new();
    for node in elements() {
        let name = node.tag_name().name();
        assert!(ELEMENTS.contains(&name), "{what}: the element {name}");
        for attribute in node.attributes() {
            let name = attribute.name();
            let is_data = name.strip_prefix("data-").is_some_and(|data| DATA.contains(&data));
            assert!(is_data || ATTRIBUTES.contains(&name), "{what}: the attribute {name}");
        }
        if let Some(id) = node.attribute("id") {
            assert!(ids.insert(id.to_owned()), "{what}: the id {id} occurs twice");
        }
        if name == "th" {
            assert!(
                matches!(node.attribute("scope"), Some("row" | "col")),
                "{what}: a header without a scope"
            );
        }
        if name == "table" {
            assert!(
                node.first_element_child().is_some_and(|it| it.has_tag_name("caption")),
                "{what}: no caption"
            );
        }
    }
    for node in elements() {
        if let Some(address) = node.attribute("href") {
            let is_inside = address.strip_prefix('#').is_some_and(|id| ids.contains(id));
            assert!(is_inside, "{what}: {address}");
        }
        if let Some(id) = node.attribute("aria-labelledby") {
            assert!(ids.contains(id), "{what}: {id} is not in the page");
        }
    }
}

fn part<'p>(page: &'p str, start: &str, end: &str) -> &'p str {
    let (_, behind) = page.split_once(start).expect("the start");
    behind.split_once(end).expect("the end").0
}

#[test]
fn the_policy_allows_what_the_page_has_and_nothing_else() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    let page = scratch.out(&["check", "bad.yaml", "-o", "html"]);
    let policy = part(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| STANDARD.encode(digest(&SHA256, text.as_bytes()));
    let style = hash(part(&page, "<style>", "</style>"));
    let expected =
        format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'");
    assert_eq!(policy, expected);
    assert_eq!((page.matches("<style").count(), page.matches("<script").count()), (1, 0));
}

#[test]
fn says_what_was_judged_and_found() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    let page = scratch.out(&["check", "bad.yaml", "-o", "html"]);
    for text in [
        "<title>memgate check: 1 object would be denied</title>",
        "1 object would be denied.</p>",
        "<span data-part=\"owner\">namespace <strong>team-a</strong>, file <code>bad.yaml</code></span>; at \
         <span data-part=\"place\"><code>bad.yaml:5</code></span>",
        "\n5 |   backend: reddis\n  |            ^^^^^^\n",
        "<th scope=\"row\">rules of the platforms</th><td>team-a</td>",
        "<th scope=\"row\">ArkMemory plain</th><td>team-a</td><td>in-context</td>",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert_eq!(page, scratch.out(&["check", "bad.yaml", "-o", "html"]));
}

#[test]
fn texts_of_inputs_stay_texts() {
    let mut refused = 0;
    for text in &hostile() {
        let secret = json!({"secretRef": {"name": text}});
        let object = |version: &str, kind: &str, spec: serde_json::Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": text, "namespace": text}, "spec": spec});
        let objects = vec![
            object(
                "arkonis.dev/v1alpha1",
                "ArkMemory",
                json!({"backend": "redis", "redis": secret, text.clone(): text}),
            ),
            object("arkonis.dev/v1alpha1", "ArkMemory", json!({"backend": text})),
            object("arkonis.dev/v1alpha1", "ArkAgent", json!({"model": "m", "memoryRef": {"name": text}})),
            object(
                "ark.mckinsey.com/v1alpha1",
                "Query",
                json!({"memory": {"name": text, "namespace": "other"}}),
            ),
            object("ark.mckinsey.com/v1alpha1", "Memory", json!({"address": {"value": text}})),
            json!({"apiVersion": text, "kind": text, "metadata": {"name": text}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": text, "namespace": "a",
                "labels": {"arkonis.dev/deployment": text}}, "spec": {"containers": [{"name": text}]}}),
        ];
        let docs = format!(
            "https://example.com/{}",
            text.replace(|c: char| c.is_whitespace() || c.is_control(), "_")
        );
        let policy = format!(
            "{}\n---\n{}\n",
            json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": "p"},
                "spec": {"exemptions": {"namespaces": ["x"], "maxAge": "90d"}, "rules": [
                    {"id": "durable", "backends": {"allow": ["vector-store"]}, "hint": text, "docs": docs, "exemptable": true}]}}),
            json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
                "metadata": {"name": "e", "namespace": "x"},
                "spec": {"policy": "p", "rules": ["durable"], "target": {"namespaces": ["a"], "names": ["*"]},
                    "reason": format!("{text} and more words"), "ticket": text,
                    "from": "2026-12-01T00:00:00Z", "expiresAt": "2027-01-01T00:00:00Z"}}),
        );
        let name = format!("{}.json", text.replace(['/', '\0'], "_"));
        let scratch = Scratch::with(&[
            (&name, &json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()),
            ("policies/p.yaml", &policy),
        ]);
        for arguments in [
            &["check", "."][..],
            &["check", ".", "--policy", "policies"],
            &["audit", ".", "--policy", "policies"],
            &["what-if", ".", "--policy", "policies"],
        ] {
            let output = scratch.run(&[arguments, &["-o", "html"]].concat());
            let page = String::from_utf8(output.stdout).expect("UTF-8");
            let error = String::from_utf8_lossy(&output.stderr);
            if page.is_empty() {
                // The policies cannot be read, so nothing is judged.
                assert_eq!(output.status.code(), Some(2), "{text} {arguments:?} {error}");
                refused += 1;
                continue;
            }
            expect_good(&page, &format!("{text} {arguments:?}"));
            assert!(!page.contains("##[") && page.contains("id=\"map\""), "{text} {error}");
        }
    }
    assert!(refused < 30, "{refused} refused");
}

/// Ten thousand objects with findings and long names, and objects with very many findings.
#[test]
fn a_large_page_says_what_it_leaves_out() {
    let long = "##[x".repeat(60);
    let memory = |number: usize| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: \"a{number}{long}\", \
             namespace: team-{number}}}\nspec: {{backend: redis, \"{long}\": 1}}\n---\n"
        )
    };
    let agent = |number: usize| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {{name: \"b{number}{long}\", \
             namespace: team-{number}}}\nspec: {{model: m, memoryRef: {{name: \"a{number}{long}\"}}}}\n---\n"
        )
    };
    let objects: String = (0..5_000).map(|number| memory(number) + &agent(number)).collect();
    let scratch = Scratch::with(&[("objects.yaml", &objects), ("agents.yaml", &many(100))]);
    let page = scratch.out(&["check", ".", "-o", "html"]);
    expect_good(&page, "ten thousand objects");
    for words in [" more are not shown in this page", "10100 objects judged in 2 files"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.matches("<article ").count() <= 2_000 && page.matches("<tr>").count() <= 2_002);
}

const NOTES: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: in-context}
---
";

/// A memory resource and its agents.
fn agents(count: usize) -> String {
    let agent = |number: usize| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {{name: a{number}, namespace: team-a}}\n\
             spec: {{model: m, systemPrompt: p, memoryRef: {{name: notes}}}}\n---\n"
        )
    };
    NOTES.to_owned() + &(0..count).map(agent).collect::<String>()
}

#[test]
fn agents_of_denied_memory_would_run_without_it() {
    let archive = "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Memory\nmetadata: {name: m, namespace: team-a}\n\
                   spec: {address: {value: 'http://memory.example.com'}}\n";
    let objects = agents(1).replace("in-context", "reddis") + archive;
    let page = Scratch::with(&[("all.yaml", &objects)]).out(&["check", ".", "-o", "html"]);
    expect_good(&page, "denied memory");
    for form in [
        "ArkMemory notes <strong class=\"deny\">denied</strong>",
        "<li>ArkAgent team-a/a0 <strong class=\"deny\">would run without memory</strong></li>",
        "<td>memory.example.com</td>",
    ] {
        assert!(page.contains(form), "{form}\n{page}");
    }
}

/// Findings that are equal but for their objects stand together, each with its line.
#[test]
fn equal_findings_stand_together() {
    let memory = |number: usize| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: a{number}, namespace: team}}\n\
             spec: {{backend: reddis}}\n---\n"
        )
    };
    let objects: String = (0..12).map(memory).collect();
    let page = Scratch::with(&[("objects.yaml", &objects)]).out(&["check", ".", "-o", "html"]);
    expect_good(&page, "twelve objects");
    assert_eq!(page.matches("class=\"finding is-deny\"").count(), 1);
    assert!(page.contains("</span> 12 objects</h3>"));
    for line in (0..12).map(|number| number * 5 + 4) {
        assert!(page.contains(&format!("objects.yaml:{line}<")), "{line}");
    }
}

/// The value of an attribute of each element with this name that has it, in their order.
fn values(page: &str, element: &str, attribute: &str) -> Vec<String> {
    let xml = as_xml(page);
    let document = Document::parse_with_options(&xml, ParsingOptions::default()).expect("is well-formed");
    let all = document.descendants().filter(|node| node.has_tag_name(element));
    all.filter_map(|node| node.attribute(attribute)).map(str::to_owned).collect()
}

#[test]
fn the_parts_stand_in_their_order() {
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("warned.yaml", &NOTES.replace("---", "  \nttl: 1"))]);
    let page = scratch.out(&["check", ".", "-o", "html"]);
    assert_eq!(values(&page, "section", "id"), ["denials", "map", "warnings", "policies"]);
    assert_eq!(values(&page, "p", "data-verdict"), ["denied"]);
    let good = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n\
                metadata: {name: m, namespace: a}\nspec: {backend: in-context}\n";
    for (text, verdict) in [(good.to_owned(), "clean"), (format!("{good}  \nttl: 1\n"), "warned")] {
        let page = Scratch::with(&[("a.yaml", &text)]).out(&["check", ".", "-o", "html"]);
        assert_eq!(values(&page, "p", "data-verdict"), [verdict], "{page}");
        assert!(!values(&page, "section", "id").contains(&"denials".to_owned()));
    }
}

#[test]
fn names_the_inputs_that_cannot_be_read() {
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("broken.yaml", "apiVersion: {\n")]);
    let output = scratch.run(&["check", ".", "-o", "html"]);
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(page.contains("; 1 input could not be read.</p>"), "{page}");
    assert!(page.contains("<ul class=\"deny\"><li>./broken.yaml:"), "{page}");
}

/// An article for each cause, whichever objects have it, those of most objects first.
#[test]
fn findings_are_grouped_by_cause() {
    let memory = |name: &str, namespace: &str, spec: &str| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             spec: {{{spec}}}\n---\n"
        )
    };
    let objects = memory("a", "x", "backend: [one], redis: 7")
        + &memory("b", "x", "backend: reddis")
        + &memory("c", "z", "backend: reddis");
    let agent = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: u, namespace: z}\n\
                 spec: {model: m, systemPrompt: s, memoryRef: {name: c}}\n";
    let scratch = Scratch::with(&[("o.yaml", &objects), ("u.yaml", agent)]);
    let page = scratch.out(&["check", ".", "-o", "html"]);
    expect_good(&page, "three objects");
    // The users of one of them are not another cause.
    assert_eq!(values(&page, "article", "data-objects"), ["2", "1", "1"]);
    assert_eq!(values(&page, "article", "data-severity"), ["deny"; 3]);
    assert_eq!(values(&page, "li", "data-object"), ["ArkMemory x/b", "ArkMemory z/c"]);
    for part in ["owner", "place"] {
        assert_eq!(page.matches(&format!("data-part=\"{part}\"")).count(), 3, "{part}");
    }
    let owner = "namespaces <strong>x, z</strong>, file <code>./o.yaml</code>";
    assert!(page.contains(owner) && page.contains("<code>./o.yaml:9</code>"), "{page}");
    assert!(page.contains("deny[arkonis/backend-unknown]: "), "{page}");
}

/// Several units, each with a map.
#[test]
#[ignore = "needs kubectl and helm"]
fn the_maps_of_units_share_a_table() {
    let name = |start: &str, number: usize| format!("{start}{number}{}", "<".repeat(240));
    let objects = |number: usize| {
        let (memory, agent) = (name("a", number), name("b", number));
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: \"{memory}\", namespace: t}}\n\
             spec: {{backend: in-context}}\n---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\n\
             metadata: {{name: \"{agent}\", namespace: t}}\nspec: {{model: m, memoryRef: {{name: \"{memory}\"}}}}\n---\n"
        )
    };
    let objects: String = (0..29).map(objects).collect();
    let scratch = Scratch::with(&[
        ("base/objects.yaml", &*objects),
        ("base/kustomization.yaml", "resources: [objects.yaml]\n"),
    ]);
    for number in 0..10 {
        let overlay = scratch.path().join(format!("overlay-{number}"));
        std::fs::create_dir(&overlay).expect("a folder");
        std::fs::write(overlay.join("kustomization.yaml"), "resources: [../base]\n").expect("it is written");
    }
    let mut command = scratch.command(&["check", ".", "-o", "html"]);
    let output = command.env("PATH", programs()).output().expect("memgate runs");
    let page = String::from_utf8(output.stdout).expect("is UTF-8");
    expect_good(&page, "ten units");
    assert!(page.contains("(unit overlay-4)"), "{page}");
}

#[test]
#[ignore = "needs script, of util-linux"]
fn a_terminal_gets_no_page_and_the_inputs_are_not_read() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    for command in ["check", "audit", "what-if --policy none.yaml"] {
        let line = format!("{} {command} none.yaml -o json=a.json -o html", env!("CARGO_BIN_EXE_memgate"));
        let mut script = Command::new("script");
        let output = script.args(["-qec", &line, "/dev/null"]).current_dir(scratch.path()).output();
        let output = output.expect("script runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("a page is not for a terminal") && !text.contains("no such file"), "{text}");
        assert!(output.status.code() == Some(2) && !scratch.path().join("a.json").exists(), "{text}");
    }
}
