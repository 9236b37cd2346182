//! The map of `memgate map`: every line of a graph has one of a few forms, whatever the names are.

use regex::Regex;
use serde_json::json;

use crate::page::hostile;
use crate::run::Scratch;

/// A text in quotes that holds nothing which ends it.
const LABEL: &str = r#""[^"`<>{}|\\*_~&]*""#;

const ID: &str = "[A-Za-z_][A-Za-z0-9_]*";

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

#[test]
fn no_name_adds_to_a_flowchart_of_mermaid() {
    let forms = [
        "flowchart LR".to_owned(),
        format!(r"subgraph {ID}\[{LABEL}\]"),
        format!(r"{ID}(\({LABEL}\)|\[\[{LABEL}\]\]|\[{LABEL}\]|\[\({LABEL}\)\])"),
        format!(r"{ID} (-->|-\.->)(\|{LABEL}\|)? {ID}"),
        "end".to_owned(),
        "classDef (denied|memoryless|warned|unused|missing) stroke:#[0-9a-z:,# -]+".to_owned(),
        format!("class {ID} (denied|memoryless|warned|unused|missing)"),
    ];
    let forms = forms.map(|form| Regex::new(&format!("^ *{form}$")).expect("a pattern"));
    // What cannot be a name is denied, so it has a class.
    let count = |map: &str| map.lines().filter(|line| !line.starts_with("  class")).count();
    let usual = count(&scratch("notes").out(&["map", "-o", "mermaid"]));
    assert!(usual > 10, "{usual}");
    for text in &hostile() {
        let map = scratch(text).out(&["map", "-o", "mermaid"]);
        for line in map.lines() {
            assert!(forms.iter().any(|form| form.is_match(line)), "{text}: {line}");
        }
        assert!(count(&map).abs_diff(usual) <= 4, "{text}: {map}");
    }
}

const MEMORY: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: in-context}
";

#[test]
fn an_object_more_adds_lines_and_changes_none() {
    let other = MEMORY.replace("notes", "a-notes").replace("team-a", "team");
    let scratch = Scratch::with(&[("a.yaml", MEMORY), ("b.yaml", &other)]);
    for format in ["text", "mermaid"] {
        let [before, after] = [&["map", "a.yaml"][..], &["map", "a.yaml", "b.yaml"]]
            .map(|arguments| scratch.out(&[arguments, &["-o", format]].concat()));
        for line in before.lines() {
            assert!(after.lines().any(|other| other == line), "{line}\n{after}");
        }
    }
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
    for format in ["text", "mermaid"] {
        let [one, two] = [["a.yaml", "b.yaml"], ["b.yaml", "a.yaml"]]
            .map(|[first, second]| scratch.out(&["map", first, second, "-o", format]));
        assert!(one.contains("of-one") && one.contains("of-two"), "{one}");
        assert_eq!(one, two);
    }
}

#[test]
fn of_two_declarations_the_later_one_is_shown() {
    let redis = MEMORY.replace("in-context", "redis, redis: {secretRef: {name: r}}");
    let agent = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\n\
                 spec: {model: m, memoryRef: {name: notes}}\n---\n\
                 apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-a, labels: {arkonis.dev/deployment: scout}}\n\
                 spec: {containers: [{name: agent, image: i}]}\n";
    let files = [("redis.yaml", redis.as_str()), ("in-context.yaml", MEMORY), ("pod.yaml", agent)];
    let scratch = Scratch::with(&files);
    for (order, counts, other) in [
        (["redis.yaml", "in-context.yaml"], "backend: in-context", "redis"),
        (["in-context.yaml", "redis.yaml"], "backend: redis", "in-context"),
    ] {
        let map = scratch.out(&["map", order[0], order[1], "pod.yaml"]);
        assert!(map.contains(counts) && map.contains("Pod team-a/p → ArkMemory team-a/notes"), "{map}");
        assert!(!map.contains(other) && !map.contains("by its own variables"), "{map}");
    }
}

#[test]
fn a_bare_host_is_another_store_in_each_namespace() {
    let memory = |namespace: &str, host: &str| {
        format!(
            "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Memory\nmetadata: {{name: m, namespace: {namespace}}}\n\
             spec: {{address: {{value: 'http://{host}:6379'}}}}\n"
        )
    };
    for (host, stores) in [("redis", 2), ("redis.a.svc", 1), ("10.0.0.1", 1), ("[fd00::1]", 1)] {
        let scratch = Scratch::with(&[("a.yaml", &memory("a", host)), ("b.yaml", &memory("b", host))]);
        let map = scratch.out(&["map", "-o", "mermaid", "a.yaml", "b.yaml"]);
        assert_eq!(map.matches("[(").count(), stores, "{map}");
        assert_eq!(map.contains("(namespace a)"), stores == 2, "{map}");
    }
}

#[test]
fn memory_of_two_platforms_with_one_name_is_two_nodes() {
    let object = |version: &str, kind: &str, name: &str, spec: &str| {
        format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: a}}\nspec: {spec}\n---\n"
        )
    };
    let (ark, orloj) = ("ark.mckinsey.com/v1alpha1", "orloj.dev/v1");
    let objects = [
        object(ark, "Memory", "notes", "{address: {value: 'http://one.example.com'}}"),
        object(ark, "Query", "q", "{input: x, memory: {name: notes}}"),
        object(
            orloj,
            "Memory",
            "notes",
            "{type: vector, provider: pgvector, endpoint: 'postgres://u@two.example.com/n'}",
        ),
        object(orloj, "Agent", "scribe", "{model_ref: m, prompt: p, memory: {ref: notes, allow: [read]}}"),
    ];
    let scratch = Scratch::with(&[("all.yaml", &objects.concat())]);
    let map = scratch.out(&["map", "-o", "mermaid", "all.yaml"]);
    for line in [
        "user__ark__Query__a__q --> memory__ark__Memory__a__notes",
        "memory__ark__Memory__a__notes -->|\"no TLS\"| host__one_2E_example_2E_com",
        "user__orloj__Agent__a__scribe --> memory__orloj__Memory__a__notes",
        "memory__orloj__Memory__a__notes -->|\"no TLS\"| host__two_2E_example_2E_com",
    ] {
        assert!(map.lines().any(|own| own.trim() == line), "{line}\n{map}");
    }
    let text = scratch.out(&["map", "all.yaml"]);
    assert!(text.contains("Query a/q → Memory a/notes (platform ark)"), "{text}");
    assert!(
        text.contains("Agent a/scribe [would run without memory] → Memory a/notes (platform orloj)"),
        "{text}"
    );
}

#[test]
fn a_pod_may_name_several_memories_by_its_own_variables() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: a, labels: {arkonis.dev/deployment: x}}\n\
               spec:\n  containers:\n  - {name: one, image: i, env: [{name: AGENT_MEMORY_BACKEND, value: redis}, \
               {name: AGENT_MEMORY_REDIS_URL, value: 'redis://one.example.com'}]}\n  - {name: two, image: i, env: \
               [{name: AGENT_MEMORY_BACKEND, value: redis}, {name: AGENT_MEMORY_REDIS_URL, value: 'redis://two.example.com'}]}\n";
    let scratch = Scratch::with(&[("pod.yaml", pod)]);
    let map = scratch.out(&["map", "-o", "mermaid", "pod.yaml"]);
    for memory in ["p", "p_2"] {
        let memory = format!("memory__arkonis__own_variables_of_Pod__a__{memory}");
        assert_eq!(map.matches(&format!("user__Pod__a__p --> {memory}\n")).count(), 1, "{map}");
        assert_eq!(map.matches(&format!("{memory} -->|\"no TLS\"| host__")).count(), 1, "{map}");
    }
}

/// Sixty agents of a memory resource are one box too many for a picture.
#[test]
fn a_map_of_more_than_sixty_boxes_is_a_table_whose_names_stay_in_comments() {
    for text in &hostile() {
        let object = |kind: &str, name: &str, spec: serde_json::Value| json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": text}, "spec": spec});
        let agent = |number: usize| {
            object(
                "ArkAgent",
                &format!("a{number}"),
                json!({"model": "m", "systemPrompt": "p", "memoryRef": {"name": text}}),
            )
        };
        let memory = object("ArkMemory", text, json!({"backend": text}));
        let objects: Vec<_> = (0..60).map(agent).chain([memory]).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let scratch = Scratch::with(&[("objects.json", &list.to_string())]);
        let map = scratch.out(&["map", "-o", "mermaid"]);
        let comments =
            map.strip_prefix("flowchart LR\n  note[\"the map has 6").and_then(|map| map.split_once('\n'));
        let (_, comments) = comments.expect(&map);
        assert!(comments.lines().count() > 60, "{text}: {map}");
        assert!(comments.lines().all(|line| line.starts_with("  %%")), "{text}: {map}");
        let directive = map.matches("%%").count() > comments.lines().count();
        assert!(!(directive || map.contains('`') || map.contains('<')), "{text}: {map}");
    }
}

#[test]
fn sixty_boxes_are_a_picture_and_a_part_of_more_is_too() {
    let memory = |number: usize, namespace: &str| {
        MEMORY.replace("notes", &format!("m{number}")).replace("team-a", namespace) + "---\n"
    };
    let sixty: String = (0..60).map(|number| memory(number, "team-a")).collect();
    let scratch = Scratch::with(&[("a.yaml", &sixty), ("b.yaml", &memory(60, "team-b"))]);
    let count = |arguments: &[&str]| {
        let map = scratch.out(&[&["map", "-o", "mermaid"], arguments].concat());
        map.matches("[\"ArkMemory m").count()
    };
    assert_eq!(count(&["a.yaml"]), 60);
    assert_eq!(count(&["."]), 0);
    assert_eq!(count(&[".", "--namespace", "team-b"]), 1);
}
