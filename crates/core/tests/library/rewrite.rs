//! Edits in the user's own text: what changes, and what stays.

#![expect(clippy::expect_used, reason = "a test may end where it cannot go on")]

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use memgate_core::patch::Patch;
use memgate_manifest::document::{Document, parse, values};
use memgate_manifest::error::Error;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::rewrite::{self, Rewritten};
use memgate_manifest::source::Source;
use memgate_model::edit::{Edit, Entry, EnvSource, EnvVar, KeyRef, Op, Origin, Value as EditValue};
use memgate_primitives::pointer::Pointer;
use proptest::prelude::*;
use serde_json::{Value, json};

fn origin(rule: &'static str) -> Origin {
    Origin { resource: "ArkMemory team/notes".into(), field: "".into(), rule }
}

/// The origin of a variable bears its name.
fn of(variable: &EnvVar) -> Origin {
    match variable.name {
        Cow::Borrowed(name) => origin(name),
        Cow::Owned(_) => origin("owned"),
    }
}

fn edit(op: Op, pointer: &str, value: EditValue) -> Edit {
    let origins = match &value {
        EditValue::EnvList(list) => list.iter().map(of).collect(),
        EditValue::Env(variable) => vec![of(variable)],
        _ => vec![origin("rule")],
    };
    Edit { op, pointer: Pointer::new(pointer), value, origins }
}

fn add(pointer: &str, value: EditValue) -> Edit {
    edit(Op::Add, pointer, value)
}

fn replace(pointer: &str, value: EditValue) -> Edit {
    edit(Op::Replace, pointer, value)
}

fn variable(name: &'static str, value: &str) -> EnvVar {
    EnvVar { name: name.into(), source: EnvSource::Value(value.into()) }
}

fn secret(name: &'static str) -> EnvVar {
    let key = KeyRef { name: "notes-redis".into(), key: "URL".into(), optional: None };
    EnvVar { name: name.into(), source: EnvSource::Secret(key) }
}

fn env(name: &'static str, value: &str) -> EditValue {
    EditValue::Env(variable(name, value))
}

fn rewrite(source: &Arc<Source>, place: &DocumentPlace, edits: &[Edit]) -> Result<Rewritten, Error> {
    let patch = serde_json::to_value(Patch(edits)).expect("is JSON");
    rewrite::rewrite(source, &[(place, patch)])
}

fn run(text: &str, edits: &[Edit]) -> Rewritten {
    let source = Arc::new(Source::new("a.yaml", text));
    let parsed = parse(&source);
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    let last = parsed.documents.last().expect("a document");
    rewrite(&source, last.place(), edits).expect("the edits apply")
}

/// Edits the last object of a text; nothing may have to be written anew.
fn check(text: &str, edits: &[Edit], expected: &str) {
    let rewritten = run(text, edits);
    assert_eq!(rewritten.text, expected);
    assert!(rewritten.reformatted.is_empty(), "written anew:\n{text}");
}

fn both() -> EditValue {
    EditValue::EnvList(vec![variable("TTL", "3600"), secret("URL")])
}

const HEAD: &str = "apiVersion: v1\nkind: Pod\nspec:\n";

#[test]
fn inserts_elements_before_others_with_their_comments_kept() {
    check(
        &format!(
            "{HEAD}  containers:\n  - name: main # the one\n    env: # ours\n    # first\n    - name: A\n      value: a # why\n    # second\n    - name: B\n      value: b\n    # end\n  # after\n"
        ),
        &[
            add("/spec/containers/0/env/0", env("X", "1")),
            add("/spec/containers/0/env/1", EditValue::Env(secret("URL"))),
            add("/spec/containers/0/env/3", env("Z", "z: #")),
            add("/spec/containers/0/env/5", env("END", "yes")),
        ],
        &format!(
            "{HEAD}  containers:\n  - name: main # the one\n    env: # ours\n    - name: X\n      value: \"1\"\n    - name: URL\n      valueFrom:\n        secretKeyRef:\n          name: notes-redis\n          key: URL\n    # first\n    - name: A\n      value: a # why\n    - name: Z\n      value: \"z: #\"\n    # second\n    - name: B\n      value: b\n    - name: END\n      value: \"yes\"\n    # end\n  # after\n"
        ),
    );
}

#[test]
fn adds_a_list_where_there_is_none_as_the_lists_around_it_are_written() {
    for (before, after) in [
        // Dashes under the key, or further in.
        (
            "  containers:\n  - name: main\n",
            "  containers:\n  - name: main\n    env:\n    - name: TTL\n      value: \"3600\"\n    - name: URL\n      valueFrom:\n        secretKeyRef:\n          name: notes-redis\n          key: URL\n",
        ),
        (
            "  containers:\n    - name: main\n",
            "  containers:\n    - name: main\n      env:\n        - name: TTL\n          value: \"3600\"\n        - name: URL\n          valueFrom:\n            secretKeyRef:\n              name: notes-redis\n              key: URL\n",
        ),
        (
            "  containers:\n  - name: main\n    ports:\n    - p: 1 # web\n    # more\n",
            "  containers:\n  - name: main\n    ports:\n    - p: 1 # web\n    env:\n    - name: TTL\n      value: \"3600\"\n    - name: URL\n      valueFrom:\n        secretKeyRef:\n          name: notes-redis\n          key: URL\n    # more\n",
        ),
        // Empty or null, in block and in flow.
        (
            "  containers:\n  - env: []\n    name: main\n",
            "  containers:\n  - env:\n    - name: TTL\n      value: \"3600\"\n    - name: URL\n      valueFrom:\n        secretKeyRef:\n          name: notes-redis\n          key: URL\n    name: main\n",
        ),
        (
            "  containers:\n  - env: null # none\n    name: main\n",
            "  containers:\n  - env: # none\n    - name: TTL\n      value: \"3600\"\n    - name: URL\n      valueFrom:\n        secretKeyRef:\n          name: notes-redis\n          key: URL\n    name: main\n",
        ),
        (
            "  containers:\n  - env:\n    name: main\n",
            "  containers:\n  - env:\n    - name: TTL\n      value: \"3600\"\n    - name: URL\n      valueFrom:\n        secretKeyRef:\n          name: notes-redis\n          key: URL\n    name: main\n",
        ),
        (
            "  containers: [{name: main}]\n",
            "  containers: [{name: main, env: [{name: TTL, value: \"3600\"}, {name: URL, valueFrom: {secretKeyRef: {name: notes-redis, key: URL}}}]}]\n",
        ),
        (
            "  containers: [{env: , name: main}]\n",
            "  containers: [{env: [{name: TTL, value: \"3600\"}, {name: URL, valueFrom: {secretKeyRef: {name: notes-redis, key: URL}}}], name: main}]\n",
        ),
        (
            "  containers: [{env, name: main}]\n",
            "  containers: [{env: [{name: TTL, value: \"3600\"}, {name: URL, valueFrom: {secretKeyRef: {name: notes-redis, key: URL}}}], name: main}]\n",
        ),
        (
            "  containers: [{env: [], name: main}]\n",
            "  containers: [{env: [{name: TTL, value: \"3600\"}, {name: URL, valueFrom: {secretKeyRef: {name: notes-redis, key: URL}}}], name: main}]\n",
        ),
    ] {
        check(
            &format!("{HEAD}{before}"),
            &[add("/spec/containers/0/env", both())],
            &format!("{HEAD}{after}"),
        );
    }
    // An element into an empty list.
    let before = format!("{HEAD}  containers:\n  - name: main\n    env: []\n");
    let after = format!(
        "{HEAD}  containers:\n  - name: main\n    env:\n    - name: A\n      value: a\n    - name: B\n      value: b\n"
    );
    check(
        &before,
        &[add("/spec/containers/0/env/0", env("B", "b")), add("/spec/containers/0/env/0", env("A", "a"))],
        &after,
    );
}

#[test]
fn inserts_into_flow_lists_in_one_line_and_over_several() {
    for (before, after) in [
        (
            "  env: [{name: A, value: a}]\n",
            "  env: [{name: X, value: \"1\"}, {name: A, value: a}, {name: Z, value: \"2\"}]\n",
        ),
        (
            "  env: [\n    {name: A, value: a}, # first\n  ]\n",
            "  env: [\n    {name: X, value: \"1\"},\n    {name: A, value: a},\n    {name: Z, value: \"2\"}, # first\n  ]\n",
        ),
        (
            "  env: [\n    {name: A, value: a}\n  ]\n",
            "  env: [\n    {name: X, value: \"1\"},\n    {name: A, value: a},\n    {name: Z, value: \"2\"}\n  ]\n",
        ),
    ] {
        check(
            &format!("{HEAD}{before}"),
            &[add("/spec/env/0", env("X", "1")), add("/spec/env/2", env("Z", "2"))],
            &format!("{HEAD}{after}"),
        );
    }
}

#[test]
fn no_comment_in_a_flow_collection_is_lost() {
    check(
        &format!("{HEAD}  env: [\n    # above\n    {{name: A, value: a}} # behind\n  ]\n"),
        &[add("/spec/env/0", env("X", "1")), add("/spec/env/2", env("Z", "2"))],
        &format!(
            "{HEAD}  env: [\n    # above\n    {{name: X, value: \"1\"}},\n    {{name: A, value: a}},\n    \
             {{name: Z, value: \"2\"}} # behind\n  ]\n"
        ),
    );
    let text = format!("{HEAD}  ref: {{\n    name: a, # of a\n    port: 1\n  }}\n");
    let rewritten = run(&text, &[edit(Op::Remove, "/spec/ref/port", EditValue::Nothing)]);
    assert_eq!(rewritten.reformatted, [0]);
}

#[test]
fn siblings_in_a_flow_collection_stay_as_they_are_written() {
    for (before, after) in [
        (
            "  env: &e [{name: A, value: 'yes'}, {name: N, value: 0x1F}] # e\n",
            "  env: &e [{name: X, value: \"1\"}, {name: A, value: 'yes'}, {name: N, value: 0x1F}] # e\n",
        ),
        (
            "  {env: [b, # c\n   ], 'n':  1.50}\n",
            "  {env: [{name: X, value: \"1\"}, b, # c\n   ], 'n':  1.50}\n",
        ),
    ] {
        check(&format!("{HEAD}{before}"), &[add("/spec/env/0", env("X", "1"))], &format!("{HEAD}{after}"));
    }
    check(
        "{\n  \"kind\": \"A\", \"apiVersion\": \"v1\",\n  \"n\": [1.50, 1e3, 12345678901234567890123],\n  \"env\": []\n}\n",
        &[add("/m", EditValue::Integer(1))],
        "{\n  \"kind\": \"A\", \"apiVersion\": \"v1\",\n  \"n\": [1.50, 1e3, 12345678901234567890123],\n  \"env\": [],\n  \"m\": 1\n}\n",
    );
    let remove = |name: &str| edit(Op::Remove, &format!("/spec/{name}"), EditValue::Nothing);
    for (names, after) in [
        (["a", "b"], "{c: 'x',  d: 0x1}"),
        (["a", "c"], "{b: \"1\",  d: 0x1}"),
        (["b", "c"], "{a: ~,  d: 0x1}"),
        (["c", "d"], "{a: ~, b: \"1\"}"),
    ] {
        let text = format!("{HEAD}  {{a: ~, b: \"1\", c: 'x',  d: 0x1}} # e\n");
        check(&text, &names.map(remove), &format!("{HEAD}  {after} # e\n"));
    }
    check(
        "apiVersion: v1\nkind: Pod\nx: &x {y: 1} # x\nspec: {a: ~, <<: *x, b: '2'} # e\n",
        &[remove("b"), add("/spec/c", EditValue::Integer(3))],
        "apiVersion: v1\nkind: Pod\nx: &x {y: 1} # x\nspec: {a: ~, <<: *x, c: 3} # e\n",
    );
}

#[test]
fn adds_keys_at_the_end_of_their_mapping() {
    let entry = || EditValue::Entry(Entry("memgate.dev/injected".into(), "{\"v\":1}".into()));
    for (before, after) in [
        (
            "metadata:\n  name: a\n  # that was it\nspec: {}\n",
            "metadata:\n  name: a\n  annotations:\n    memgate.dev/injected: '{\"v\":1}'\n  # that was it\nspec: {}\n",
        ),
        ("metadata: {name: a}\n", "metadata: {name: a, annotations: {memgate.dev/injected: '{\"v\":1}'}}\n"),
        (
            "metadata:\n    name: a",
            "metadata:\n    name: a\n    annotations:\n        memgate.dev/injected: '{\"v\":1}'",
        ),
        (
            "metadata:\n  annotations: {}\n  name: a\n",
            "metadata:\n  annotations:\n    memgate.dev/injected: '{\"v\":1}'\n  name: a\n",
        ),
        (
            "metadata:\n  name: |-\n    a\n\n\nspec: {}\n",
            "metadata:\n  name: |-\n    a\n  annotations:\n    memgate.dev/injected: '{\"v\":1}'\n\n\nspec: {}\n",
        ),
        (
            "metadata:\n  name: |+\n    a\n\nspec: {}\n",
            "metadata:\n  name: |+\n    a\n\n  annotations:\n    memgate.dev/injected: '{\"v\":1}'\nspec: {}\n",
        ),
        (
            "metadata:\n  name: &n a\nspec: {a: *n}\n",
            "metadata:\n  name: &n a\n  annotations:\n    memgate.dev/injected: '{\"v\":1}'\nspec: {a: *n}\n",
        ),
        (
            "metadata: {}\nspec: 1\n...\n",
            "metadata:\n  annotations:\n    memgate.dev/injected: '{\"v\":1}'\nspec: 1\n...\n",
        ),
    ] {
        let head = "# c\n---\napiVersion: v1\nkind: Pod\n";
        check(
            &format!("{head}{before}"),
            &[add("/metadata/annotations", entry())],
            &format!("{head}{after}"),
        );
    }
}

#[test]
fn adds_inside_what_it_added_before() {
    check(
        &format!("{HEAD}  containers:\n  - name: main\n"),
        &[
            add("/spec/containers/0/env", EditValue::EnvList(vec![variable("B", "b")])),
            add("/spec/containers/0/env/0", env("A", "a")),
            replace("/spec/containers/0/env/1/value", EditValue::Text("c".into())),
            add("/metadata", EditValue::Entry(Entry("name".into(), "x".into()))),
            add("/metadata/namespace", EditValue::Text("team".into())),
        ],
        &format!(
            "{HEAD}  containers:\n  - name: main\n    env:\n    - name: A\n      value: a\n    - name: B\n      value: c\nmetadata:\n  name: x\n  namespace: team\n"
        ),
    );
}

#[test]
fn replaces_scalars_in_place() {
    for (before, new, after) in [
        ("a: 1 # one\n", EditValue::Integer(2), "a: 2 # one\n"),
        ("a: \"x\"\n", EditValue::Text("5".into()), "a: \"5\"\n"),
        ("a:\n", EditValue::Text("x".into()), "a: x\n"),
        ("a: # none\n", EditValue::Text("x".into()), "a: x # none\n"),
        ("a: !!str 5\n", EditValue::Text("x".into()), "a: x\n"),
        ("a: |\n  x\n  y\nb: 1\n", EditValue::Text("z".into()), "a: z\nb: 1\n"),
        ("a: >- # why\n  x\n", EditValue::Text("z".into()), "a: z\n"),
        ("a: x\n  y\nb: &b 1\n", EditValue::Text("z".into()), "a: z\nb: &b 1\n"),
        ("b: &b 1\na: *b\n", EditValue::Integer(2), "b: &b 1\na: 2\n"),
        ("? a\n: 1\n", EditValue::Integer(2), "? a\n: 2\n"),
        ("a: [1, 2]\n", EditValue::Integer(2), "a: 2\n"),
    ] {
        let head = "apiVersion: v1\nkind: A\n";
        check(&format!("{head}{before}"), &[replace("/a", new)], &format!("{head}{after}"));
    }
}

#[test]
fn keeps_line_ends_byte_order_mark_and_other_documents() {
    check(
        "\u{feff}# top\r\na: 'x'   # kept\r\n--- # second\r\napiVersion: v1\r\nkind: Pod\r\nspec:\r\n  env:\r\n  - name: A\r\n    value: a\r\n",
        &[add("/spec/env/0", env("X", "1")), add("/spec/size", EditValue::Integer(1))],
        "\u{feff}# top\r\na: 'x'   # kept\r\n--- # second\r\napiVersion: v1\r\nkind: Pod\r\nspec:\r\n  env:\r\n  - name: X\r\n    value: \"1\"\r\n  - name: A\r\n    value: a\r\n  size: 1\r\n",
    );
}

#[test]
fn edits_json_in_its_own_form() {
    let edits = [
        add("/spec/containers/0/env", both()),
        add("/spec/args/0", EditValue::Text("x".into())),
        add("/spec/args/2", EditValue::Text("z".into())),
        replace("/kind", EditValue::Text("B".into())),
    ];
    check(
        "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"A\",\n    \"spec\": {\n        \"args\": [\n            \"y\"\n        ],\n        \"containers\": [\n            {\n                \"name\": \"main\"\n            }\n        ]\n    }\n}\n",
        &edits,
        "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"B\",\n    \"spec\": {\n        \"args\": [\n            \"x\",\n            \"y\",\n            \"z\"\n        ],\n        \"containers\": [\n            {\n                \"name\": \"main\",\n                \"env\": [\n                    {\n                        \"name\": \"TTL\",\n                        \"value\": \"3600\"\n                    },\n                    {\n                        \"name\": \"URL\",\n                        \"valueFrom\": {\n                            \"secretKeyRef\": {\n                                \"name\": \"notes-redis\",\n                                \"key\": \"URL\"\n                            }\n                        }\n                    }\n                ]\n            }\n        ]\n    }\n}\n",
    );
    check(
        "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"spec\":{\"args\":[\"y\"],\"containers\":[{\"name\":\"main\",\"env\":[]}]}}",
        &edits,
        "{\"apiVersion\":\"v1\",\"kind\":\"B\",\"spec\":{\"args\":[\"x\",\"y\",\"z\"],\"containers\":[{\"name\":\"main\",\"env\":[{\"name\":\"TTL\",\"value\":\"3600\"},{\"name\":\"URL\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"notes-redis\",\"key\":\"URL\"}}}]}]}}",
    );
    check(
        "{\n\t\"apiVersion\": \"v1\", \"kind\": \"A\",\n\t\"spec\": {\n\t\t\"n\": {}\n\t}\n}",
        &[add("/spec/n/a", EditValue::Integer(1)), add("/spec/m", EditValue::Integer(2))],
        "{\n\t\"apiVersion\": \"v1\", \"kind\": \"A\",\n\t\"spec\": {\n\t\t\"n\": {\n\t\t\t\"a\": 1\n\t\t},\n\t\t\"m\": 2\n\t}\n}",
    );
}

#[test]
fn edits_objects_inside_a_list() {
    check(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod # a\n- apiVersion: v1\n  kind: Pod\n  spec:\n    x: 1\n",
        &[add("/spec/env", both()), add("/spec/z", EditValue::Integer(2))],
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod # a\n- apiVersion: v1\n  kind: Pod\n  spec:\n    x: 1\n    env:\n    - name: TTL\n      value: \"3600\"\n    - name: URL\n      valueFrom:\n        secretKeyRef:\n          name: notes-redis\n          key: URL\n    z: 2\n",
    );
}

#[test]
fn leaves_what_other_aliases_share() {
    for (before, after) in [
        (
            "a: &e # why\n- name: A\nb: *e\n",
            "a: &e # why\n- name: A\nb:\n- name: X\n  value: \"1\"\n- name: A\n",
        ),
        (
            "a:\n- name: A\nc: &c {b: [{name: A}]}\n<<: *c\n",
            "a:\n- name: A\nc: &c {b: [{name: A}]}\n<<: *c\nb:\n- name: X\n  value: \"1\"\n- name: A\n",
        ),
    ] {
        let head = "apiVersion: v1\nkind: Pod\n";
        check(&format!("{head}{before}"), &[add("/b/0", env("X", "1"))], &format!("{head}{after}"));
    }
}

#[test]
fn writes_a_document_anew_when_its_text_cannot_be_changed() {
    let edits = [edit(Op::Remove, "/b/x", EditValue::Nothing)];
    let before = "apiVersion: v1\nkind: Pod\na: &a {x: 1} # why\nb:\n  <<: *a\n  z: 2\n";
    let rewritten = run(&format!("# kept\na: 1 # too\n---\n{before}--- # next\n"), &edits);
    assert_eq!(rewritten.reformatted, [1]);
    let after = "apiVersion: v1\nkind: Pod\na:\n  x: 1\nb:\n  z: 2\n";
    assert_eq!(rewritten.text, format!("# kept\na: 1 # too\n---\n{after}--- # next\n"));
}

#[test]
fn a_merge_key_in_braces_is_written_out() {
    check(
        "apiVersion: v1\nkind: Pod\na: &a {x: 1} # why\nb: {<<: *a, z: 2} # not\n",
        &[edit(Op::Remove, "/b/x", EditValue::Nothing)],
        "apiVersion: v1\nkind: Pod\na: &a {x: 1} # why\nb: {z: 2} # not\n",
    );
}

#[test]
fn a_merge_key_stays_when_something_is_added_beside_it() {
    check(
        "apiVersion: v1\nkind: Pod\na: &a {x: 1}\nb:\n  <<: *a\n  z: 2\n",
        &[add("/b/w", EditValue::Integer(3)), add("/b/x", EditValue::Integer(4))],
        "apiVersion: v1\nkind: Pod\na: &a {x: 1}\nb:\n  <<: *a\n  z: 2\n  x: 4\n  w: 3\n",
    );
}

#[test]
fn refuses_an_edit_that_does_not_apply() {
    let source = Arc::new(Source::new("a.yaml", "apiVersion: v1\nkind: Pod\n"));
    let documents = parse(&source).documents;
    for pointer in ["/spec/a", "/kind/x"] {
        let edits = [add(pointer, EditValue::Integer(1))];
        let error = rewrite(&source, documents[0].place(), &edits).expect_err("no such place");
        assert!(error.to_string().contains(" does not apply"), "{error}");
    }
    assert_eq!(rewrite(&source, documents[0].place(), &[]).expect("nothing to do").text, source.text());
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all");
}

/// How a value is written in a property test.
#[derive(Debug, Clone, Copy)]
struct Look {
    seed: u64,
    crlf: bool,
    indent: usize,
    indentless: bool,
    comments: bool,
}

impl Look {
    fn pick(&mut self, of: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % of
    }

    fn comment(&mut self) -> &'static str {
        if self.comments && self.pick(3) == 0 { " # note: [x" } else { "" }
    }

    fn block(&mut self, value: &Value, at: usize, out: &mut String) {
        let margin = " ".repeat(at);
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if self.comments && self.pick(4) == 0 {
                        put(out, format_args!("{margin}# - about: this\n\n"));
                    }
                    put(out, format_args!("{margin}{}:", serde_json::to_string(key).expect("JSON")));
                    self.below(value, at, out);
                }
            }
            Value::Array(list) => {
                for value in list {
                    if self.comments && self.pick(4) == 0 {
                        put(out, format_args!("{margin}# the next one\n"));
                    }
                    let mut inner = String::new();
                    if is_long(value) && self.pick(2) == 0 {
                        self.block(value, at + 2, &mut inner);
                        let skip =
                            if inner.trim_start().starts_with('#') { None } else { inner.get(at + 2..) };
                        match skip {
                            Some(inner) => put(out, format_args!("{margin}- {inner}")),
                            None => put(out, format_args!("{margin}-\n{inner}")),
                        }
                    } else {
                        let comment = self.comment();
                        put(out, format_args!("{margin}- {}{comment}\n", self.flow(value)));
                    }
                }
            }
            _ => put(out, format_args!("{margin}{value}\n")),
        }
    }

    fn below(&mut self, value: &Value, at: usize, out: &mut String) {
        if is_long(value) && self.pick(4) != 0 {
            let comment = self.comment();
            put(out, format_args!("{comment}\n"));
            let indent = if value.is_array() && self.indentless { 0 } else { self.indent };
            return self.block(value, at + indent, out);
        }
        let written = match value {
            Value::Null if self.pick(2) == 0 => String::new(),
            Value::String(text)
                if !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase()) && self.pick(2) == 0 =>
            {
                format!(" |-\n{}{text}", " ".repeat(at + self.indent))
            }
            _ => format!(" {}{}", self.flow(value), self.comment()),
        };
        put(out, format_args!("{written}\n"));
    }

    fn flow(&mut self, value: &Value) -> String {
        let gap = if self.pick(2) == 0 { " " } else { "" };
        match value {
            Value::Object(map) => {
                let entries: Vec<String> = map
                    .iter()
                    .map(|(key, value)| {
                        format!("{}: {}", serde_json::to_string(key).expect("JSON"), self.flow(value))
                    })
                    .collect();
                format!("{{{gap}{}{gap}}}", entries.join(", "))
            }
            Value::Array(list) => {
                let items: Vec<String> = list.iter().map(|value| self.flow(value)).collect();
                format!("[{gap}{}{gap}]", items.join(", "))
            }
            _ => value.to_string(),
        }
    }
}

fn is_long(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty())
        || value.as_array().is_some_and(|list| !list.is_empty())
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,5}".prop_map(Value::from),
        "[ -~äß\n\t]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-z0-9./ #:-]{0,6}", inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-e]", tree()), 0..4).prop_map(|entries| {
        let spec = Value::Object(entries.into_iter().collect());
        json!({"apiVersion": "v1", "kind": "A", "spec": spec})
    })
}

fn written() -> impl Strategy<Value = EditValue> {
    let text = prop_oneof!["[ -~\nä\u{85}\u{2028}]{0,8}", "[a-z]{1,4}", "[0-9.:_x-]{1,5}"];
    prop_oneof![
        text.clone().prop_map(EditValue::Text),
        any::<i64>().prop_map(EditValue::Integer),
        text.clone().prop_map(|value| env("NAME", &value)),
        text.clone().prop_map(|value| EditValue::EnvList(vec![variable("A", &value), secret("B")])),
        (text.clone(), text).prop_map(|(key, value)| EditValue::Entry(Entry(key, value))),
    ]
}

/// The pointers of a value that an edit can go to, `true` for those that can be replaced.
fn pointers(value: &Value, at: &Pointer, found: &mut Vec<(Pointer, bool)>) {
    match value {
        Value::Object(map) => {
            found.push((at.key("new key"), false));
            for (key, value) in map {
                found.push((at.key(key), true));
                pointers(value, &at.key(key), found);
            }
        }
        Value::Array(list) => {
            found.push((at.index(list.len()), false));
            for (index, value) in list.iter().enumerate() {
                found.push((at.index(index), true));
                pointers(value, &at.index(index), found);
            }
        }
        _ => {}
    }
}

fn choose(value: &mut Value, choices: Vec<(prop::sample::Index, bool, EditValue)>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (index, insert, new) in choices {
        let mut found = Vec::new();
        pointers(&value["spec"], &Pointer::new("/spec"), &mut found);
        if found.is_empty() {
            break;
        }
        let (pointer, there) = index.get(&found);
        let op = if *there && !insert { Op::Replace } else { Op::Add };
        let edit = edit(op, pointer.as_str(), new);
        let patch = json!([{"op": edit.op.name(), "path": edit.pointer.as_str(), "value": edit.value}]);
        json_patch::patch(value, &serde_json::from_value::<json_patch::Patch>(patch).expect("patch"))
            .expect("applies");
        edits.push(edit);
    }
    edits
}

fn reread(text: &str) -> Vec<Value> {
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("b.yaml", text)), &mut errors);
    assert!(errors.is_empty(), "{text}\n{errors:?}");
    documents.iter().map(Document::value).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]
    #[test]
    fn says_the_patched_value_whatever_the_form(
        object in object(),
        other in object(),
        choices in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), written()), 1..5),
        seed in any::<u64>(),
        (crlf, indentless, comments) in any::<(bool, bool, bool)>(),
        indent in 1_usize..5,
        form in 0..4,
    ) {
        let mut look = Look { seed, crlf, indent, indentless, comments };
        let mut text = match form {
            0 => serde_json::to_string_pretty(&object).expect("JSON"),
            1 => object.to_string(),
            _ => {
                let mut text = String::from("# top\n");
                look.block(&other, 0, &mut text);
                text.push_str("--- # here\n");
                look.block(&object, 0, &mut text);
                text
            }
        };
        if look.crlf {
            text = text.replace('\n', "\r\n");
        }
        let source = Arc::new(Source::new("a.yaml", text.clone()));
        let parsed = parse(&source);
        prop_assert!(parsed.errors.is_empty(), "{}\n{:?}", text, parsed.errors);
        let document = parsed.documents.last().expect("a document");
        prop_assert_eq!(document.value(), &object, "{}", text);
        let mut expected = object.clone();
        let edits = choose(&mut expected, choices);
        let rewritten = rewrite(&source, document.place(), &edits);
        let rewritten = rewritten.map_err(|error| TestCaseError::fail(format!("{error}\n{text}\n{edits:?}")))?;
        let found = reread(&rewritten.text);
        prop_assert_eq!(found.last(), Some(&expected), "{}\n=>\n{}", text, rewritten.text);
        prop_assert!(form > 1 || rewritten.reformatted.is_empty(), "written anew:\n{}", text);
        if form > 1 {
            let other_text = text.split("--- # here").next().expect("the first part");
            prop_assert!(rewritten.text.starts_with(other_text));
        }
    }

    #[test]
    fn no_well_formed_text_is_broken_by_an_edit(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a: 1\n", "b:\n", "  c: &x {d: [e, f]}\n", "c: *x\n", "<<: *x\n", "d: &y\n", "- g\n", "  - h: i\n", "    j: k # l\n",
            "# m\n", "\n", "e: |\n  n\n\n", "f: >+\n  o\n\n", "h: [p,\n  q]\n", "i: {r: s, t}\n", "? u\n", ": v\n", "---\n", "--- # w\n",
            "...\n", "k: 'x\n  y'\n", "l: !!str 5\n", "  - - 1\n    - 2\n", "m: !!map\n  n: o\n", "\r\n", "o: p: q\n", "  ", "{a: b}\n",
            "spec:\n", "  - &z\n    a: b\n", "q: [\n]\n", "r: {\n  s: t\n  }\n", "\t", "u: # v\n",
        ]), 0..16),
        choices in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), written()), 1..4),
        form in prop::sample::select(vec!["apiVersion: v1\nkind: A\nspec:\n", "apiVersion: v1\nkind: A\n", "--- # c\nkind: A\napiVersion: v1\n"]),
    ) {
        let text = format!("{form}{}", pieces.concat());
        let source = Arc::new(Source::new("a.yaml", text.clone()));
        let parsed = parse(&source);
        if !parsed.errors.is_empty() || parsed.documents.is_empty() {
            return Ok(());
        }
        let mut expected = parsed.documents[0].value().clone();
        expected["spec"] = expected["spec"].take();
        let mut edits = vec![add("/spec", serde_json::from_value::<String>(json!("x")).map(EditValue::Text).expect("text"))];
        if parsed.documents[0].value().get("spec").is_some() {
            edits.clear();
        } else {
            expected["spec"] = json!("x");
        }
        edits.extend(choose(&mut expected, choices));
        let rewritten = rewrite(&source, parsed.documents[0].place(), &edits);
        let rewritten = rewritten.map_err(|error| TestCaseError::fail(format!("{error}\n{text}\n{edits:?}")))?;
        let found = reread(&rewritten.text);
        prop_assert_eq!(&found[0], &expected, "{}\n=>\n{}", text, rewritten.text);
    }
}

#[test]
fn takes_an_entry_away_and_leaves_its_neighbours() {
    let remove = || vec![edit(Op::Remove, "/spec/port", EditValue::Nothing)];
    for (before, after) in [
        (
            "  # the one\n  name: a # why\n  port: 80 # not so\n  path: /v1\n",
            "  # the one\n  name: a # why\n  path: /v1\n",
        ),
        ("  name: a\n  port: 80", "  name: a\n"),
        ("  {name: a, port: 80, path: /v1} # end\n", "  {name: a, path: /v1} # end\n"),
        ("  {port: 80, path: /v1}\n", "  {path: /v1}\n"),
        ("  {name: a, port: 80}\n", "  {name: a}\n"),
        ("  {\n    name: a,\n    port: 80\n  }\n", "  {\n    name: a\n  }\n"),
    ] {
        check(&format!("{HEAD}{before}"), &remove(), &format!("{HEAD}{after}"));
    }
    let rewritten = run(&format!("{HEAD}  port: 80\n"), &remove());
    assert!(!rewritten.reformatted.is_empty() && rewritten.text.contains("spec: {}"), "{}", rewritten.text);
}
