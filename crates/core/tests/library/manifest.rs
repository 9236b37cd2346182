//! Reading manifests: what kubectl would send, where it stands, and what is refused.

use std::fmt::Write as _;
use std::sync::Arc;

use memgate_manifest::document::{Document, Parsed, parse, values};
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_primitives::pointer::Pointer;
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str) -> Parsed {
    parse(&Arc::new(Source::new("a.yaml", text)))
}

/// The values of all documents of a text that has no faults.
fn all(text: &str) -> Vec<Value> {
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("a.yaml", text)), &mut errors);
    assert!(errors.is_empty(), "{text}: {errors:?}");
    documents.iter().map(|document| document.value().clone()).collect()
}

fn one(text: &str) -> Value {
    let mut all = all(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn faults(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let _ = values(&Arc::new(Source::new("a.yaml", text)), &mut errors);
    errors.iter().map(Error::to_string).collect()
}

fn names(parsed: &Parsed) -> Vec<&str> {
    parsed.documents.iter().map(Document::name).collect()
}

/// The texts under key, value and caret of a pointer.
fn texts_at<'d>(document: &'d Document, pointer: &str) -> (&'d str, &'d str, &'d str, bool) {
    let location = document.locate(&Pointer::new(pointer));
    let source = document.source();
    let key = location.key.map_or("", |key| source.slice(key));
    (key, source.slice(location.value), source.slice(location.caret), location.exact)
}

const POD: &str = "\
# a pod
apiVersion: v1
kind: Pod
metadata:
  name: scout   # the one
  labels: {app: scout, 'a/b': \"c\"}
spec:
  containers:
  - name: main
    image: scout:1
    args: [--one, two]
    env:
    - name: A
      value: |
        text
        more
  # the end
";

#[test]
fn reads_a_pod() {
    let parsed = read(POD);
    let [document] = parsed.documents.as_slice() else { panic!("{parsed:?}") };
    assert_eq!(
        document.value(),
        &json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "scout", "labels": {"app": "scout", "a/b": "c"}},
            "spec": {"containers": [{"name": "main", "image": "scout:1", "args": ["--one", "two"],
                "env": [{"name": "A", "value": "text\nmore\n"}]}]},
        })
    );
    assert_eq!((document.group(), document.version(), document.kind()), ("", "v1", "Pod"));
    assert_eq!((document.name(), document.namespace()), ("scout", None));
}

#[test]
fn finds_the_place_of_each_pointer() {
    let parsed = read(POD);
    let document = &parsed.documents[0];
    for (pointer, expected) in [
        ("/metadata/name", ("name", "scout", "scout", true)),
        ("/metadata/labels/a~1b", ("'a/b'", "\"c\"", "\"c\"", true)),
        ("/metadata/labels", ("labels", "{app: scout, 'a/b': \"c\"}", "labels", true)),
        (
            "/metadata/namespace",
            ("metadata", "name: scout   # the one\n  labels: {app: scout, 'a/b': \"c\"}", "metadata", false),
        ),
        ("/spec/containers/0/args/1", ("", "two", "two", true)),
        ("/spec/containers/0/env/0/value", ("value", "|\n        text\n        more", "|", true)),
        ("/spec/containers/0/image/x/y", ("image", "scout:1", "image", false)),
        ("/spec/containers/7", ("containers", "", "containers", false)),
        (
            "/spec/containers/0/env/0/valueFrom",
            ("", "name: A\n      value: |\n        text\n        more", "name: A", false),
        ),
    ] {
        let (key, value, caret, exact) = texts_at(document, pointer);
        let value = if expected.1.is_empty() { "" } else { value };
        assert_eq!((key, value, caret, exact), expected, "{pointer}");
    }
    assert_eq!(texts_at(document, "").2, "kind: Pod");
    assert_eq!(texts_at(document, "/status").2, "kind: Pod");
    let caret = document.locate(&Pointer::new("/metadata/name")).caret;
    assert_eq!((caret.line, caret.column), (5, 9));
    let whole = document.locate(&Pointer::new("/metadata/name")).whole();
    assert_eq!(document.source().slice(whole), "name: scout");
}

#[test]
fn counts_columns_in_characters_and_passes_over_a_byte_order_mark() {
    let parsed = read("\u{feff}apiVersion: v1\r\nkind: Ä\r\nmetadata: {ö: 1, name: ü}\r\n");
    let document = &parsed.documents[0];
    let location = document.locate(&Pointer::new("/metadata/name"));
    assert_eq!((location.value.line, location.value.column), (3, 24));
    let location = document.locate(&Pointer::new("/apiVersion"));
    assert_eq!(location.key.map(|key| (key.line, key.column, key.start)), Some((1, 1, 3)));
}

#[test]
fn shows_a_field_behind_an_alias_or_merge_key_where_it_is_written() {
    let parsed = read(
        "apiVersion: v1\nkind: A\nbase: &b {x: 1, z: 2}\nuse: *b\nmore:\n  <<: *b\n  z: 3\nlist: [&i 7, *i]\n",
    );
    let document = &parsed.documents[0];
    assert_eq!(document.value()["use"], json!({"x": 1, "z": 2}));
    assert_eq!(document.value()["more"], json!({"x": 1, "z": 3}));
    assert_eq!(texts_at(document, "/use"), ("use", "*b", "*b", true));
    assert_eq!(document.locate(&Pointer::new("/use/x")).value.line, 3);
    assert_eq!(document.locate(&Pointer::new("/more/x")).value.line, 3);
    assert_eq!(document.locate(&Pointer::new("/more/z")).value.line, 7);
    assert_eq!(texts_at(document, "/list/1").1, "*i");
}

#[test]
fn reads_many_documents_and_passes_over_empty_ones() {
    for (text, count) in [
        ("", 0),
        ("# only a comment\n", 0),
        ("---\n---\n# c\n---\n", 0),
        ("null\n---\n~\n", 0),
        ("a: 1\n---\nb: 2\n", 2),
        ("--- # first\na: 1\n--- {b: 2}\n...\n---\nc: 3\n...\n", 3),
        ("%YAML 1.1\n---\na: 1\n", 1),
        ("a: 1\r\n---\r\nb: 2\r\n", 2),
        ("{\"a\": 1}\n{\"b\": 2}\n\n[3]{\"c\": 4}", 4),
        ("{\"a\":1}\n---\n{\"b\":2}\n", 2),
    ] {
        assert_eq!(all(text).len(), count, "{text:?}");
    }
}

#[test]
fn reads_json_exactly() {
    let text = "{\n\t\"a\": \"\\u00e9\\ud83d\\ude00\\/\\\"\\\\\\b\\f\\n\\r\\t\",\n\t\"n\": [0, -1, 1.5, 1e3, 9007199254740993, 18446744073709551615],\n\t\"e\": {}, \"l\": [], \"t\": true, \"z\": null, \"yes\": \"yes\", \"u\": \"\u{7f}\u{2028}é\"}";
    let expected: Value = serde_json::from_str(text).expect("good JSON");
    let mut value = one(text);
    // Whole floats become integers, as Go writes them.
    assert_eq!(value["n"][3], json!(1000));
    value["n"][3] = json!(1e3);
    assert_eq!(value, expected);
}

#[test]
fn takes_lists_apart_also_nested_and_typed_ones() {
    let parsed = read(
        r#"{"apiVersion":"v1","kind":"List","items":[
            {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},
            {"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}]},
            {"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"c"}}]},
            7]}"#,
    );
    assert_eq!(names(&parsed), ["a", "b", "c"]);
    assert_eq!(parsed.documents[1].place().prefix().as_str(), "/items/1/items/0");
    assert_eq!(parsed.documents[2].kind(), "Pod");
    assert_eq!(texts_at(&parsed.documents[1], "/metadata/name").1, "\"b\"");
    assert_eq!(parsed.non_objects.len(), 1);
    assert_eq!(
        (parsed.non_objects[0].reason, parsed.non_objects[0].document.span().line),
        ("is a single value", 5)
    );
    let empty =
        read("apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: PodList\nitems: null\n");
    assert!(empty.documents.is_empty() && empty.non_objects.is_empty());
    assert_eq!(read("apiVersion: x/v1\nkind: AllowList\nspec: {}\n").documents.len(), 1);
}

#[test]
fn reports_what_is_not_a_kubernetes_object() {
    for (text, reason) in [
        ("a: 1\n", "has no apiVersion and no kind"),
        ("kind: A\n", "has no apiVersion"),
        ("apiVersion: v1\n", "has no kind"),
        ("apiVersion: v1\nkind: 5\n", "has a kind that is not text"),
        ("apiVersion: 1\nkind: A\n", "has an apiVersion that is not text"),
        ("- a\n", "is a list"),
        ("just words\n", "is plain text"),
        ("5\n", "is a single value"),
        ("apiVersion: v1\nkind: List\nitems: {}\n", "is a List whose items are not a list"),
        ("apiVersion: v1\nkind: List\n", "is a List without items"),
        ("apiVersion: v1\nkind: ''\n", "has an empty kind"),
    ] {
        let parsed = read(text);
        assert!(parsed.documents.is_empty(), "{text}");
        assert_eq!(
            parsed.non_objects.iter().map(|other| other.reason).collect::<Vec<_>>(),
            [reason],
            "{text}"
        );
    }
}

#[test]
fn resolves_tags_merges_and_keys_as_go_yaml_does() {
    for (text, value) in [
        ("a: !!str 5", json!({"a": "5"})),
        ("a: !!int \"5\"", json!({"a": 5})),
        ("a: !!str", json!({"a": ""})),
        ("a: !custom 5", json!({"a": "5"})),
        ("a: ! 5", json!({"a": "5"})),
        ("a: &x\nb: *x", json!({"a": null, "b": null})),
        ("1: a\ntrue: b\n0x10: c\n1.5: d", json!({"1": "a", "true": "b", "16": "c", "1.5": "d"})),
        ("yes: a", json!({"true": "a"})),
        ("a: 'yes'\nb: |-\n  5\nc: \"1e3\"", json!({"a": "yes", "b": "5", "c": "1e3"})),
        ("a: 2001-01-01", json!({"a": "2001-01-01"})),
        // What follows a merge key wins over it, what is before it yields.
        (
            "b: &b {x: 1}\nc: {x: 2, <<: *b}\nd: {<<: *b, x: 2}",
            json!({"b": {"x": 1}, "c": {"x": 1}, "d": {"x": 2}}),
        ),
        (
            "a: &a {x: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b]}",
            json!({"a": {"x": 1}, "b": {"x": 2, "z": 2}, "c": {"x": 1, "z": 2}}),
        ),
        ("a: {\"<<\": 1}", json!({"a": {"<<": 1}})),
        ("a:\n- - b\n  - c\n-\n  d: e\n", json!({"a": [["b", "c"], {"d": "e"}]})),
        ("a: [x: 1, {z}]", json!({"a": [{"x": 1}, {"z": null}]})),
        (
            "a: >-\n  folded\n  text\nb: |+\n  kept\n\nc: 1",
            json!({"a": "folded text", "b": "kept\n\n", "c": 1}),
        ),
    ] {
        assert_eq!(one(text), value, "{text}");
    }
}

#[test]
fn says_what_is_wrong_and_where() {
    for (text, message) in [
        (
            "a: 1\nb: 2\na: 3\n",
            "a.yaml:3:1: the key \"a\" is given twice; remove one; the first is at line 1",
        ),
        (
            "{\"a\": 1, \"a\": 2}",
            "a.yaml:1:10: the key \"a\" is given twice; remove one; the first is at line 1",
        ),
        ("1: a\n'1': b\n", "a.yaml:2:1: the key \"1\" is given twice; remove one; the first is at line 1"),
        (
            "b: &b {x: 1}\nc: {<<: *b, x: 2, x: 3}\n",
            "a.yaml:2:19: the key \"x\" is given twice; remove one; the first is at line 2",
        ),
        ("a: .inf\n", "a.yaml:1:4: JSON has no such number; put it in quotes"),
        ("a: .NaN\n", "a.yaml:1:4: JSON has no such number; put it in quotes"),
        ("a: !!int x\n", "a.yaml:1:10: the tag says an integer, the value is not"),
        ("~: x\n", "a.yaml:1:1: null cannot be a key; put it in quotes"),
        (
            "a: {{ .Values.x }}\n",
            "a.yaml:1:5: a list or mapping cannot be a key; put a template expression in quotes",
        ),
        ("a:\n\tb: 1\n", "a.yaml:2:1: a tab cannot indent; use spaces"),
        ("\ta: 1\n", "a.yaml:1:1: a tab cannot indent; use spaces"),
        ("a: b\n\tc: d\n", "a.yaml:2:1: a tab cannot indent; use spaces"),
        ("a: \"b\nc: d\n", "a.yaml:1:4: a quote is not closed; close it, and indent each of its lines"),
        ("a: 'b\n", "a.yaml:1:4: a quote is not closed; close it, and indent each of its lines"),
        ("a: *x\n", "a.yaml:1:4: this alias has no anchor before it in its document"),
        ("a: &x 1\n---\nb: *x\n", "a.yaml:3:4: this alias has no anchor before it in its document"),
        ("a: &x {b: *x}\n", "a.yaml:1:11: this alias stands inside what it stands for"),
        ("<<: 5\n", "a.yaml:1:5: a merge key takes a mapping, or a list of mappings"),
        ("<<: [5]\n", "a.yaml:1:6: a merge key takes a mapping, or a list of mappings"),
        ("a: @x\n", "a.yaml:1:4: a value cannot start with '@' without quotes; put it in quotes"),
        (
            "a: b: c\n",
            "a.yaml:1:5: a \":\" is not expected here; check the indentation of this line, or put a value with \": \" in quotes",
        ),
        (
            "a: 1\n b: 2\n",
            "a.yaml:2:3: a \":\" is not expected here; check the indentation of this line, or put a value with \": \" in quotes",
        ),
        ("a: [1, 2\n", "a.yaml:1:4: unclosed bracket '['"),
        ("{\"a\": 1,\n \"b\" 2}", "a.yaml:2:6: a \":\" is expected here"),
        ("{\"a\": [\"1\" 2]}", "a.yaml:1:12: a \",\" or \"]\" is expected here"),
        ("{\"a\": \"\\ud800x\"}", "a.yaml:1:14: this is not JSON: unexpected end of hex escape"),
        ("{\"a\": \"x", "a.yaml:1:7: a quote is not closed"),
        ("{\"a\": ", "a.yaml:1:7: the JSON ends where a value is expected"),
        ("{a: 1, b: [}", "a.yaml:1:11: mismatched bracket '[' closed by '}'"),
        (
            "a: 1\nb\n",
            "a.yaml:2:1: this line fits nothing above it; check its indentation, and that its key ends in \":\"",
        ),
        (
            "a: x\0y\n",
            "a.yaml:1:5: a control character (U+0000) cannot stand here; remove it, or write it as an escape",
        ),
    ] {
        assert_eq!(faults(text), [message], "{text}");
    }
}

/// Line ends of YAML 1.1 and byte order marks, wherever they stand: kubectl would read on behind them.
#[test]
fn refuses_characters_that_kubectl_reads_otherwise() {
    const PLACES: [&str; 14] = [
        "# @b: 2\n", "b: 2 # x@c: 3\n", "b: x@c: 2\n", "b: x@y\n", "b: \"x@y\"\n", "b: 'x@y'\n",
        "b: |\n  x@y\n", "b: >-\n  x\n  y@z\n", "b@: 2\n", "\"b@\": 2\n", "@b: 2\n", "b: {c: 1,@d: 2}\n",
        "b: &x@ 1\n", "# @",
    ];
    for (character, message) in [
        ("\u{85}", "U+0085 ends a line for kubectl; remove it, or write it as \"\\u0085\" in double quotes"),
        (
            "\u{2028}",
            "U+2028 ends a line for kubectl; remove it, or write it as \"\\u2028\" in double quotes",
        ),
        (
            "\u{2029}",
            "U+2029 ends a line for kubectl; remove it, or write it as \"\\u2029\" in double quotes",
        ),
        (
            "\u{feff}",
            "U+FEFF stands at the start of a file only; remove it, or write it as \"\\ufeff\" in double quotes",
        ),
        (
            "\r",
            "U+000D without a line feed is a line end to some readers only; end the line with a line feed, or write it as \"\\u000d\" in double quotes",
        ),
    ] {
        for place in PLACES {
            for (before, ends) in
                [("a: 1\n", "\n"), ("a: 1\n---\n", "\n"), ("a: 1\n", "\r\n"), ("%YAML 1.1\n---\n", "\n")]
            {
                let text = format!("{before}{place}").replace('\n', ends).replace('@', character);
                let at = text.find(character).filter(|_| character != "\r").unwrap_or_else(|| {
                    text.match_indices('\r')
                        .find(|(at, _)| !text[at + 1..].starts_with('\n'))
                        .expect("there")
                        .0
                });
                let line = text[..at].matches('\n').count() + 1;
                let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
                assert_eq!(faults(&text), [format!("a.yaml:{line}:{column}: {message}")], "{text:?}");
                assert!(read(&text).documents.is_empty(), "{text:?}");
            }
        }
        // An escape is text like any other, and JSON ends no line at one of these.
        let code = u32::from(character.chars().next().expect("one"));
        let json = json!({"a": format!("x{character}y")});
        assert_eq!(one(&format!("a: \"x\\u{code:04x}y\"\n")), json);
        if character != "\r" {
            assert_eq!(one(&format!("{{\"a\": \"x{character}y\"}}")), json);
        }
    }
    assert_eq!(one("\u{feff}a: 1\r\n"), json!({"a": 1}));
}

/// Where kubectl cuts a text into documents, and YAML does not.
#[test]
fn refuses_marks_of_documents_that_only_kubectl_knows() {
    for blank in ["\u{a0}", "\u{1680}", "\u{2003}", "\u{202f}", "\u{205f}", "\u{3000}"] {
        for (text, line, column) in [
            ("|\n---@\na: 1\n", 2, 4),
            ("|\n--- \t@# x\na: 1\n", 2, 6),
            ("a: 1\n---@\n{\"b\":2}\n", 2, 4),
            ("a: 1\r\n--- @\r\n{\"b\":2}\r\n", 2, 5),
            ("@{\"a\":1}\n", 1, 1),
            ("\n\t @{\"a\":1}\n", 2, 3),
        ] {
            let text = text.replace('@', blank);
            let code = u32::from(blank.chars().next().expect("one"));
            let message = format!(
                "a.yaml:{line}:{column}: U+{code:04X} is passed over by kubectl here; remove it, or write it as \"\\u{code:04x}\" in double quotes"
            );
            assert_eq!(faults(&text), [message], "{text:?}");
        }
        assert_eq!(
            one(&format!("a:{blank}1: |\n {blank}x\n # {blank}\n")),
            json!({(format!("a:{blank}1")): format!("{blank}x\n# {blank}\n")})
        );
    }
    for text in ["|\n---#\na: 1\n", "a: 1\n---#b: 2\n", "a: 1\n---##\nb: 2\n"] {
        let message =
            "a.yaml:2:4: U+0023 ends a document for kubectl, right behind ---; put a blank before it";
        assert_eq!(faults(text), [message], "{text:?}");
    }
    assert_eq!(all("a: 1\n--- # x\nb: 2\n"), [json!({"a": 1}), json!({"b": 2})]);
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    let text = "apiVersion: v1\nkind: A\nmetadata: {name: one}\n---\na: [1\n---\napiVersion: v1\nkind: A\nmetadata: {name: two}\n---\na: 1\na: 2\n---\napiVersion: v1\nkind: A\nmetadata: {name: three}\n";
    let parsed = read(text);
    assert_eq!(names(&parsed), ["one", "two", "three"]);
    assert_eq!(parsed.errors.len(), 2);
    assert_eq!(
        parsed.documents.iter().map(|document| document.place().index()).collect::<Vec<_>>(),
        [0, 2, 4]
    );
}

#[test]
fn refuses_depth_without_crashing() {
    for depth in [101, 1_000, 100_000] {
        let block: String = (0..depth.min(2_000)).fold(String::new(), |mut text, level| {
            let _ = writeln!(text, "{}a:", " ".repeat(level));
            text
        });
        for text in
            ["[".repeat(depth), "{a: ".repeat(depth), "- ".repeat(depth), "{\"a\":[".repeat(depth), block]
        {
            let faults = faults(&text);
            assert_eq!(faults.len(), 1);
            assert!(faults[0].contains("nested deeper than 100 levels"), "{}", faults[0]);
        }
    }
    assert_eq!(all(&format!("{}{}", "[".repeat(100), "]".repeat(100))).len(), 1);
}

#[test]
fn refuses_aliases_that_repeat_too_much() {
    let mut laughs = String::from("a0: &a0 [lol, lol]\n");
    let mut merges = String::from("a0: &a0 {x: 1}\n");
    let mut deep = String::from("a0: &a0 [1]\n");
    for level in 1..200 {
        let below = level - 1;
        let _ = writeln!(laughs, "a{level}: &a{level} [*a{below}, *a{below}, *a{below}]");
        let _ = writeln!(merges, "a{level}: &a{level} {{<<: [*a{below}, *a{below}]}}");
        let _ = writeln!(deep, "a{level}: &a{level} [*a{below}]");
    }
    let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
    assert!(faults(&laughs)[0].contains("aliases repeat more than 16 MiB; write it out without aliases"));
    assert!(faults(&long)[0].contains("aliases repeat more than 16 MiB"));
    assert!(faults(&merges)[0].contains("aliases "), "{:?}", faults(&merges));
    assert!(faults(&deep)[0].contains("aliases nest this deeper than 100 levels"));
}

#[test]
fn tells_only_so_many_faults_of_one_source() {
    assert_eq!(faults(&"a: [\n---\n".repeat(10_000)).len(), 20);
}

/// Any JSON value whose numbers are not whole floats.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) + 0.5)),
        "\\PC*".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ynYN~0-9.:eEx_+-]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((".*", inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let _ = read(&text);
    }

    #[test]
    fn reads_json_as_serde_json_does(value in json_value()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")] {
            prop_assert_eq!(&one(&format!("[{text}]"))[0], &value);
        }
    }

    #[test]
    fn no_yaml_like_text_makes_it_panic(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "b: ", "- ", "  ", "\n", "\n  ", "\n- ", "---\n", "...\n", "{", "}", "[", "]", ",", ": ", "? ", "&a ", "*a",
            "<<: ", "!!str ", "!!int ", "|\n", ">-\n", "|2+\n", "\"", "'", "#c", "\t", "\r\n", "0x1", "~", ".inf", "é", "\u{feff}",
            "kind: List\n", "apiVersion: v1\n", "items:\n", "\\u12", "%YAML 1.1\n", "\0", "\u{2028}", "\u{85}",
        ]), 0..40),
    ) {
        let text = pieces.concat();
        let parsed = read(&text);
        for document in &parsed.documents {
            let _ = document.locate(&Pointer::new("/items/0/a/b"));
            let _ = document.span();
        }
    }
}
