//! The map of `memgate map`.

use crate::run::Scratch;

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
    let [before, after] =
        [&["map", "a.yaml"][..], &["map", "a.yaml", "b.yaml"]].map(|arguments| scratch.out(arguments));
    for line in before.lines() {
        assert!(after.lines().any(|other| other == line), "{line}\n{after}");
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
    let [one, two] = [["a.yaml", "b.yaml"], ["b.yaml", "a.yaml"]]
        .map(|[first, second]| scratch.out(&["map", first, second]));
    assert!(one.contains("of-one") && one.contains("of-two"), "{one}");
    assert_eq!(one, two);
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
    let text = scratch.out(&["map", "all.yaml"]);
    assert!(text.contains("Query a/q → Memory a/notes (platform ark)"), "{text}");
    assert!(
        text.contains("Agent a/scribe [would run without memory] → Memory a/notes (platform orloj)"),
        "{text}"
    );
}
