//! The map of `memgate map`: every line of a graph has one of a few forms, whatever the names are.

use regex::Regex;
use serde_json::json;

use crate::page::HOSTILE;
use crate::run::Scratch;

/// A text in quotes that holds nothing which ends it, and no escape but a line end.
const DOT_LABEL: &str = r#""([^"\\]|\\n)*""#;
const MERMAID_LABEL: &str = r#""[^"`<>{}|\\*_~&]*""#;

fn scratch(text: &str) -> Scratch {
    let object = |version: &str, kind: &str, spec: serde_json::Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": text, "namespace": text}, "spec": spec});
    let objects = vec![
        object("arkonis.dev/v1alpha1", "ArkMemory", json!({"backend": text})),
        object("arkonis.dev/v1alpha1", "ArkAgent", json!({"model": "m", "memoryRef": {"name": text}})),
        object(
            "ark.mckinsey.com/v1alpha1",
            "Memory",
            json!({"address": {"value": format!("http://{text}:80")}}),
        ),
        object("ark.mckinsey.com/v1alpha1", "Query", json!({"memory": {"name": text, "namespace": "other"}})),
        json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent", "metadata": {"name": "a"},
            "spec": {"model": "m", "memoryRef": {"name": text}}}),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    Scratch::with(&[("objects.json", &list.to_string())])
}

fn expect_lines(format: &str, forms: &[String]) {
    let forms: Vec<Regex> =
        forms.iter().map(|form| Regex::new(&format!("^ *{form}$")).expect("a pattern")).collect();
    let count = |text| scratch(text).out(&["map", "objects.json", "-o", format]).lines().count();
    let usual = count("notes");
    assert!(usual > 10, "{usual}");
    for text in HOSTILE {
        let map = scratch(text).out(&["map", "objects.json", "-o", format]);
        for line in map.lines() {
            assert!(forms.iter().any(|form| form.is_match(line)), "{text}: {line}");
        }
        assert!(map.lines().count().abs_diff(usual) <= 2, "{text}: {map}");
    }
}

#[test]
fn no_name_adds_to_a_graph_of_graphviz() {
    let id = "[A-Za-z0-9_]+";
    expect_lines(
        "dot",
        &[
            r"digraph memory \{".to_owned(),
            r"rankdir=LR;".to_owned(),
            r#"node \[fontname="sans-serif"\];"#.to_owned(),
            format!(r"subgraph cluster_{id} \{{"),
            format!("label={DOT_LABEL};"),
            format!(r"{id} \[[a-z=, ]*label={DOT_LABEL}\];"),
            format!(r"{id} -> {id}( \[(label={DOT_LABEL})?(, )?(style=dashed, color=red)?\])?;"),
            r"\}".to_owned(),
        ],
    );
}

#[test]
fn no_name_adds_to_a_flowchart_of_mermaid() {
    let (id, label) = ("[A-Za-z0-9_]+", MERMAID_LABEL);
    expect_lines(
        "mermaid",
        &[
            "flowchart LR".to_owned(),
            format!(r"subgraph {id}\[{label}\]"),
            format!(r"{id}(\({label}\)|\[\[{label}\]\]|\[{label}\]|\[\({label}\)\])"),
            format!(r"{id} (-->|-\.->)(\|{label}\|)? {id}"),
            "end".to_owned(),
            "classDef missing stroke:#d1242f,stroke-dasharray:5 5".to_owned(),
            format!("class {id} missing"),
        ],
    );
}

#[test]
fn the_order_of_files_does_not_change_a_map() {
    let memory = |name: &str| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: {name}, namespace: t}}\n\
             spec: {{backend: in-context}}\n---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\n\
             metadata: {{name: of-{name}, namespace: t}}\nspec: {{model: m, memoryRef: {{name: {name}}}}}\n"
        )
    };
    let scratch = Scratch::with(&[("a.yaml", &memory("one")), ("b.yaml", &memory("two"))]);
    for format in ["text", "dot", "mermaid"] {
        let [one, two] = [["a.yaml", "b.yaml"], ["b.yaml", "a.yaml"]]
            .map(|[first, second]| scratch.out(&["map", first, second, "-o", format]));
        assert!(one.contains("of-one") && one.contains("of-two"), "{one}");
        assert_eq!(one, two);
    }
}
