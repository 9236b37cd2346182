//! The page of `-o html`: well-formed, with the policy that allows its own parts only, within its size, and with every
//! text of an input as text.

use std::collections::BTreeSet;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::json;

use crate::run::{BAD, Scratch, many};

/// The largest page.
const MAX_BYTES: usize = 5_000_000;

/// Every element of a page. An input cannot add one.
const ELEMENTS: [&str; 54] = [
    "html", "head", "meta", "title", "style", "script", "body", "a", "header", "nav", "main", "footer",
    "section", "article", "div", "h1", "h2", "h3", "p", "ul", "ol", "li", "dl", "dt", "dd", "time", "strong",
    "span", "code", "pre", "mark", "data", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure",
    "figcaption", "svg", "g", "rect", "path", "text", "form", "label", "input", "select", "option", "button",
    "details", "summary",
];

/// Every attribute of a page, but for those of data.
const ATTRIBUTES: [&str; 26] = [
    "lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "rel", "scope", "role",
    "tabindex", "datetime", "aria-label", "aria-labelledby", "type", "value", "viewBox", "width", "height",
    "x", "y", "rx", "d", "xmlns", "title",
];

/// The data of a page, which its filter and other programs read.
const DATA: [&str; 21] = [
    "verdict", "tile", "severity", "codes", "policy", "namespace", "platform", "objects", "object", "part",
    "count", "kind", "until", "days", "change", "cut", "cut-list", "edge", "mark", "node", "fold",
];

/// Texts that would be markup, an attribute, a script, a line or a style if they were not text.
pub(crate) fn hostile() -> Vec<String> {
    serde_json::from_str(include_str!("../support/hostile.json")).expect("is JSON")
}

/// A page as XML. Elements without an end have none in HTML either, and the texts of the style sheet and the script are
/// not markup. HTML may have U+FFFE.
fn as_xml(page: &str) -> String {
    let page = page.strip_prefix("<!DOCTYPE html>").expect("a page").trim_end();
    let without = |text: &str, element: &str| {
        let (before, behind) = text.split_once(&format!("<{element}>")).expect("the element");
        let (_, behind) = behind.split_once(&format!("</{element}>")).expect("its end");
        format!("{before}<{element}/>{behind}")
    };
    let page = without(&without(page, "style"), "script");
    let (first, others) = page.split_once("<meta ").expect("an element");
    let others = others.split("<meta ").map(|part| part.replacen('>', "/>", 1));
    format!("{first}<meta {}", others.collect::<Vec<_>>().join("<meta ")).replace('\u{fffe}', "?")
}

/// Fails unless a page is well-formed, can be read by a screen reader, and holds nothing that an input added.
pub(crate) fn expect_good(page: &str, what: &str) {
    assert!(page.len() <= MAX_BYTES, "{what}: {} bytes", page.len());
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
            let is_data =
                name.strip_prefix("data-").is_some_and(|data| data == "sort" || DATA.contains(&data));
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
            let is_filter = |id: &str| {
                let named =
                    |name: &str| name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._%".contains(&it));
                id.starts_with("policy=") || id.strip_prefix("namespace=").is_some_and(named)
            };
            let is_inside = address.strip_prefix('#').is_some_and(|id| ids.contains(id) || is_filter(id));
            let is_page = address.starts_with("https://") || address.starts_with("http://");
            assert!(is_inside || is_page, "{what}: {address}");
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
    let script = hash(part(&page, "<script>", "</script>"));
    let expected = format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; \
         form-action 'none'"
    );
    assert_eq!(policy, expected);
    assert_eq!((page.matches("<style").count(), page.matches("<script").count()), (1, 1));
}

#[test]
fn says_what_was_judged_and_when() {
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    let page = scratch.out(&["check", "bad.yaml", "-o", "html", "--at", "2027-02-01T00:00:00Z"]);
    for text in [
        "<title>memgate check: 1 object would be denied</title>",
        "<code>bad.yaml</code>",
        "<time datetime=\"2027-02-01T00:00:00Z\">2027-02-01T00:00:00Z</time>",
        "5 |   backend: <mark>reddis</mark>",
        "<th scope=\"row\">rules of the platforms</th><td>team-a</td>",
        "<th scope=\"row\">ArkMemory plain <strong class=\"warn\">not used</strong></th><td>team-a</td><td>in-context</td>",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert_eq!(page, scratch.out(&["check", "bad.yaml", "-o", "html", "--at", "2027-02-01T00:00:00Z"]));
}

#[test]
fn texts_of_inputs_stay_texts() {
    let (mut refused, mut exempted) = (0, 0);
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
            exempted += usize::from(page.contains("2027-01-01T00:00:00Z"));
            expect_good(&page, &format!("{text} {arguments:?}"));
            assert!(!page.contains("##[") && page.contains("id=\"map\""), "{text} {error}");
        }
    }
    assert!(refused < 30 && exempted > 40, "{refused} refused, {exempted} with an exemption");
}

/// Ten thousand objects with findings and long names, and objects with very many findings.
#[test]
fn a_page_is_small_enough_to_open_and_says_what_it_leaves_out() {
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
    assert!(page.len() > MAX_BYTES / 4, "{} bytes", page.len());
    for words in
        [" more are not shown in this page", " more namespaces</text>", "10100 objects judged in 2 files"]
    {
        assert!(page.contains(words), "{words}");
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
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("exemption.yaml", EXEMPTION)]);
    let page = scratch.out(&["check", ".", "-o", "html", "--at", "2027-01-01T00:00:00Z"]);
    let parts = values(&page, "section", "id");
    let first = ["summary", "denials", "map", "warnings", "matrix", "timeline"];
    assert!(parts.starts_with(&first.map(str::to_owned)), "{parts:?}");
    assert_eq!(values(&page, "p", "data-verdict"), ["denied"]);
    assert_eq!(values(&page, "li", "data-tile"), ["denied", "warnings", "ending", "not-judged"]);
    assert_eq!(values(&page, "data", "value"), ["3", "2", "1", "0"]);
    assert_eq!(values(&page, "li", "data-days"), ["19"]);
    let good = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n\
                metadata: {name: m, namespace: a}\nspec: {backend: in-context}\n";
    for (text, verdict) in [(good.to_owned(), "clean"), (format!("{good}  \nttl: 1\n"), "warned")] {
        let page = Scratch::with(&[("a.yaml", &text)]).out(&["check", ".", "-o", "html"]);
        assert_eq!(values(&page, "p", "data-verdict"), [verdict], "{page}");
        assert!(!values(&page, "section", "id").contains(&"denials".to_owned()));
    }
}

/// An article for each cause that several objects share, then one for each other object with all of its findings.
#[test]
fn findings_are_grouped_by_cause_and_by_object() {
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
    assert_eq!(values(&page, "article", "data-severity"), ["deny", "deny"]);
    // The users of one of them are not another cause.
    assert_eq!(values(&page, "article", "data-objects"), ["2", "1"]);
    assert_eq!(values(&page, "article", "data-namespace"), ["x z", "x"]);
    assert_eq!(values(&page, "article", "data-platform"), ["arkonis", "arkonis"]);
    assert_eq!(values(&page, "li", "data-object"), ["ArkMemory x/b", "ArkMemory z/c"]);
    assert_eq!(values(&page, "article", "data-codes"), ["arkonis/backend-unknown", "arkonis/field-type"]);
    assert_eq!(page.matches("To do:").count(), 3, "two of one object");
    for (part, count) in [("owner", 2), ("place", 2), ("do", 2)] {
        assert_eq!(page.matches(&format!("data-part=\"{part}\"")).count(), count, "{part}");
    }
    assert!(page.contains("<code data-part=\"place\">./o.yaml:9</code>"), "{page}");
}

/// Lists of many causes are whole while the page has room, those of warnings too.
#[test]
fn lists_are_whole_while_the_page_has_room() {
    let memory = |number: usize| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: a{number}, namespace: team}}\n\
             spec: {{backend: in-context, unknown{}: 1}}\n---\n",
            number % 160
        )
    };
    let objects: String = (0..160 * 12).map(memory).collect();
    let page = Scratch::with(&[("objects.yaml", &objects)]).out(&["check", ".", "-o", "html"]);
    expect_good(&page, "160 causes");
    assert!(page.len() < MAX_BYTES, "{} bytes", page.len());
    assert_eq!(values(&page, "article", "data-objects"), vec!["12"; 160]);
    assert_eq!(values(&page, "li", "data-object").len(), 160 * 12);
    assert!(values(&page, "article", "data-cut-list").is_empty());
}

/// What is written wrong stands before what breaks a policy, and a number of the matrix is that of the objects in its
/// articles.
#[test]
fn a_number_of_the_matrix_is_what_the_articles_show() {
    let memory = |name: &str, namespace: &str, spec: &str| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             spec: {{{spec}}}\n---\n"
        )
    };
    let wrong = |namespace: &str| {
        let agent = format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {{name: u, namespace: {namespace}}}\n\
             spec: {{model: m, systemPrompt: s, memoryRef: {{name: r}}}}\n---\n"
        );
        memory("r", namespace, "backend: reddis") + &agent
    };
    let good: String =
        (0..5).map(|number| memory(&format!("m{number}"), "x", "backend: in-context")).collect();
    let policy = "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: p}\n\
                  spec: {rules: [{id: durable, backends: {durable: true}}]}\n";
    let objects = good + &wrong("x") + &wrong("z");
    let scratch = Scratch::with(&[("o.yaml", &objects), ("p.yaml", policy)]);
    let page = scratch.out(&["check", ".", "-o", "html"]);
    expect_good(&page, "a policy");
    let policies = values(&page, "article", "data-policy");
    assert_eq!((policies.first().map(String::as_str), policies.contains(&"p".to_owned())), (Some("-"), true));
    let xml = as_xml(&page);
    let document = Document::parse_with_options(&xml, ParsingOptions::default()).expect("is well-formed");
    let cells = document.descendants().filter(|node| node.has_attribute("data-count"));
    let mut seen = 0;
    for cell in cells {
        let of = |name: &str| cell.attribute(name).expect("of a cell");
        let articles = document.descendants().filter(|node| node.has_tag_name("article"));
        let of_policy = articles.filter(|it| it.attribute("data-policy") == Some(of("data-policy")));
        let shown: usize = of_policy
            .map(|article| {
                let names: Vec<_> =
                    article.descendants().filter_map(|it| it.attribute("data-object")).collect();
                let is_here = |it: &&&str| it.contains(&format!(" {}/", of("data-namespace")));
                match names.len() {
                    0 => {
                        let own = article.attribute("data-namespace").filter(|own| !own.is_empty());
                        usize::from(own.unwrap_or("-") == of("data-namespace"))
                    }
                    _ => names.iter().filter(is_here).count(),
                }
            })
            .sum();
        assert_eq!(of("data-count"), shown.to_string(), "{} {}", of("data-policy"), of("data-namespace"));
        seen += shown;
    }
    assert!(seen > 6, "{seen}");
}

/// As many denials as warnings.
#[test]
fn warnings_are_left_out_before_denials() {
    let memory = |number: usize| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: a{number}, namespace: team}}\n\
             spec: {{backend: reddis{number}, unknown{number}: 1}}\n---\n"
        )
    };
    let objects: String = (0..6_000).map(memory).collect();
    let page = Scratch::with(&[("objects.yaml", &objects)]).out(&["check", ".", "-o", "html"]);
    expect_good(&page, "six thousand objects");
    let shown = |severity: &str| page.matches(&format!("class=\"finding is-{severity}\"")).count();
    assert!(shown("deny") > 2 * shown("warn") && shown("warn") > 500, "{} {}", shown("deny"), shown("warn"));
    assert!(page.len() > MAX_BYTES * 3 / 4, "{} bytes", page.len());
}

/// The most sets that there may be, each with a map: they share one picture.
#[test]
fn the_picture_leaves_room_for_the_rest_of_a_page() {
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
    let sets: serde_json::Map<_, _> =
        (0..100).map(|number| (format!("set-{number}"), json!(["objects.yaml"]))).collect();
    let settings = json!({"sets": sets}).to_string();
    let scratch = Scratch::with(&[("objects.yaml", &objects), (".memgate.yaml", &settings)]);
    let page = scratch.out(&["check", "-o", "html"]);
    expect_good(&page, "a hundred sets");
    assert_eq!(page.matches("<svg").count(), 1);
    assert!(page.matches(" data-node=").count() <= 60 && page.contains(" more namespaces"), "{page}");
}

#[test]
fn says_when_an_exemption_begins() {
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("exemption.yaml", EXEMPTION)]);
    for (at, state) in [
        (
            "2026-11-30T00:00:00Z",
            "not yet in force</strong>, begins <time datetime=\"2026-12-01T00:00:00Z\">",
        ),
        ("2026-12-01T00:00:00Z", "in force</strong></td>"),
        ("2027-01-01T00:00:00Z", "ends within 30 days</strong></td>"),
        ("2027-02-01T00:00:00Z", "has ended</strong></td>"),
    ] {
        let page = scratch.out(&["check", ".", "-o", "html", "--at", at]);
        assert!(page.contains(state), "{at} {page}");
    }
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

const EXEMPTION: &str = "\
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: p}
spec:
  exemptions: {namespaces: [x], maxAge: 90d}
  rules: [{id: durable, backends: {durable: true}, exemptable: true}]
---
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicyExemption
metadata: {name: e, namespace: x}
spec:
  {policy: p, rules: [durable], target: {namespaces: [a], names: [\"*\"]}, reason: it is a test of a page,
    from: \"2026-12-01T00:00:00Z\", expiresAt: \"2027-01-20T00:00:00Z\"}
";
