use super::*;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;

/// A base with two objects: a custom resource, and a workload whose lists merge by keys.
const BASE: &[(&str, &str)] = &[
    ("base/kustomization.yaml", "resources: [memory.yaml, pod.yaml]\n"),
    (
        "base/memory.yaml",
        "apiVersion: e.example/v1\nkind: Memory\nmetadata: {name: notes}\nspec:\n  backend: redis\n  tags: [a, b]\n",
    ),
    (
        "base/pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: one\n    image: x:1\n    env:\n    \
         - {name: A, value: a}\n    - {name: B, value: b}\n  - name: two\n    image: y\n",
    ),
];

const MEMORY: &str = "apiVersion: e.example/v1\nkind: Memory\nmetadata: {name: notes}\n";

/// Files with their texts.
type Written<'f> = &'f [(&'f str, &'f str)];

/// The place that is found for a field of an object that the kustomization `o` makes: its file, line, and text.
fn found(files: Written<'_>, object: &str, pointer: &str) -> Option<String> {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in BASE.iter().chain(files) {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }
    let source = Arc::new(Source::new("printed", object));
    let object = values(&source, &mut Vec::new()).remove(0);
    let mut files = Files::default();
    let spot = spot_in(&directory.path().join("o"), object.value(), &Pointer::new(pointer), &mut files)?;
    let (source, span) = (spot.source(), spot.caret());
    let name = source.name().strip_prefix(&*directory.path().to_string_lossy()).expect("below").to_owned();
    Some(format!("{}:{} {}", name.trim_start_matches('/'), span.line, source.slice(span)))
}

/// A kustomization with other files, a printed object, a field in it, and the place where its value is found.
type Row<'t> = (&'t str, Written<'t>, &'t str, &'t str, &'t str);

fn all_are_found(rows: &[Row<'_>]) {
    for (kustomization, files, object, pointer, expected) in rows {
        let own = [("o/kustomization.yaml", *kustomization)];
        let found = found(&[&own[..], files].concat(), object, pointer);
        assert_eq!(found.as_deref(), Some(*expected), "{kustomization}");
    }
}

fn other(name: &str) -> String {
    format!(
        "{{apiVersion: e.example/v1, kind: Memory, metadata: {{name: {name}}}, spec: {{backend: other}}}}"
    )
}

#[test]
fn each_layer_that_sets_a_value_is_found() {
    let patch = format!("{MEMORY}spec:\n  backend: other\n");
    let block = format!(
        "resources: [../base]\npatches:\n- patch: |-\n    {}\n",
        patch.trim().replace('\n', "\n    ")
    );
    let component = "kind: Component\npatches:\n- target: {kind: Mem.*}\n  patch: |\n    - {op: replace, path: /spec/backend, value: other}\n";
    let replaced = "resources: [../base]\nconfigMapGenerator:\n- name: c\n  literals: [\"k=other\"]\nreplacements:\n- source: \
                    {kind: ConfigMap, name: c, fieldPath: data.k}\n  targets:\n  - select: {kind: Memory}\n    fieldPaths: \
                    [spec.backend]\n";
    let rows: &[Row<'_>] = &[
        (
            "resources: [../base]\n",
            &[],
            &other("notes").replace("other", "redis"),
            "/spec/backend",
            "base/memory.yaml:5 redis",
        ),
        (
            "resources: [../base]\npatches: [{path: p.yaml}]\n",
            &[("o/p.yaml", &patch)],
            &other("notes"),
            "/spec/backend",
            "o/p.yaml:5 other",
        ),
        (
            "resources: [../base]\npatchesStrategicMerge: [p.yaml]\n",
            &[("o/p.yaml", &patch)],
            &other("notes"),
            "/spec/backend",
            "o/p.yaml:5 other",
        ),
        (&block, &[], &other("notes"), "/spec/backend", "o/kustomization.yaml:8 other"),
        (
            "resources: [../base]\ncomponents: [../c]\n",
            &[("c/kustomization.yaml", component)],
            &other("notes"),
            "/spec/backend",
            "c/kustomization.yaml:5 other",
        ),
        (
            "resources: [../m]\nnamePrefix: p-\nnameSuffix: -s\n",
            &[("m/kustomization.yaml", &block), ("m/x", "")],
            &other("p-notes-s"),
            "/spec/backend",
            "m/kustomization.yaml:8 other",
        ),
        (
            "resources: [../base]\npatchesJson6902:\n- target: {kind: Memory, name: notes}\n  path: p.json\n",
            &[("o/p.json", "[{\"op\": \"replace\", \"path\": \"/spec/backend\", \"value\": \"other\"}]")],
            &other("notes"),
            "/spec/backend",
            "o/p.json:1 \"other\"",
        ),
        (replaced, &[], &other("notes"), "/spec/backend", "o/kustomization.yaml:4 \"k=other\""),
        (
            "resources: [../base, c.yaml]\nreplacements: [{path: r.yaml}]\n",
            &[
                ("o/c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {ttl: \"-5\"}\n"),
                (
                    "o/r.yaml",
                    "source: {kind: ConfigMap, name: c, fieldPath: data.ttl}\ntargets:\n- select: {name: notes}\n  \
                     fieldPaths: [spec.backend]\n",
                ),
            ],
            &other("notes").replace("other", "-5"),
            "/spec/backend",
            "o/c.yaml:4 \"-5\"",
        ),
        (
            "resources: [../base]\nreplacements: [{path: r.yaml}]\n",
            &[(
                "o/r.yaml",
                "source: {kind: X, name: y}\ntargets:\n- select: {name: notes}\n  fieldPaths: [spec.backend]\n",
            )],
            &other("notes"),
            "/spec/backend",
            "o/r.yaml:1 source: {kind: X, name: y}",
        ),
        (
            "resources: [../base]\npatches:\n- {patch: '[{op: add, path: /spec/backend, value: other}]', target: {kind: Memory}}\n",
            &[],
            &other("notes"),
            "/spec/backend",
            "o/kustomization.yaml:3 other",
        ),
    ];
    all_are_found(rows);
}

#[test]
fn the_part_of_a_name_that_is_wrong_is_found() {
    all_are_found(&[
        (
            "resources: [../base]\nnamePrefix: p-\nnameSuffix: _S\n",
            &[],
            &other("p-notes_S"),
            "/metadata/name",
            "o/kustomization.yaml:3 _S",
        ),
        (
            "resources: [../base]\nnamePrefix: P_\n",
            &[],
            &other("P_notes"),
            "/metadata/name",
            "o/kustomization.yaml:2 P_",
        ),
        (
            "resources: [../base]\nnamePrefix: p-\n",
            &[],
            &other("p-notes"),
            "/metadata/name",
            "base/memory.yaml:3 notes",
        ),
    ]);
}

#[test]
fn fields_of_a_kustomization_are_found() {
    let kustomization = "\
resources: [../base]
namespace: team-a
commonAnnotations: {a: x}
labels:
- pairs: {l: y}
images:
- name: x
  newTag: \"2\"
replicas:
- name: notes
  count: 3
configMapGenerator:
- name: made
  literals: [one=1]
  files: [two.txt, three=f.txt]
";
    let memory = "{apiVersion: e.example/v1, kind: Memory, metadata: {name: notes, namespace: team-a, annotations: {a: x}, labels: {l: y}}, spec: {replicas: 3}}";
    let pod =
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: one, image: 'x:2'}]}}";
    let made = "{apiVersion: v1, kind: ConfigMap, metadata: {name: made-0123456789, namespace: team-a}, data: {one: '1', two.txt: a, three: b}}";
    for (object, pointer, expected) in [
        (memory, "/metadata/namespace", "2 team-a"),
        (memory, "/metadata/annotations/a", "3 x"),
        (memory, "/metadata/labels/l", "5 y"),
        (memory, "/spec/replicas", "11 3"),
        (pod, "/spec/containers/0/image", "8 \"2\""),
        (made, "/data/one", "14 one=1"),
        (made, "/data/two.txt", "15 two.txt"),
        (made, "/data/three", "15 three=f.txt"),
        (made, "/metadata/name", "13 made"),
        (made, "", "13 name: made"),
    ] {
        let found = found(&[("o/kustomization.yaml", kustomization)], object, pointer);
        assert_eq!(found, Some(format!("o/kustomization.yaml:{expected}")), "{pointer}");
    }
}

#[test]
fn elements_of_lists_are_found_by_what_they_are() {
    let patch = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: two\n    env:\n    - {name: C, \
                 value: c}\n";
    let files =
        [("o/kustomization.yaml", "resources: [../base]\npatches: [{path: p.yaml}]\n"), ("o/p.yaml", patch)];
    let object = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: two, image: y, env: [{name: C, value: c}]}, \
                  {name: one, image: 'x:1', env: [{name: B, value: b}, {name: A, value: a}]}]}}";
    for (pointer, expected) in [
        ("/spec/containers/0/image", "base/pod.yaml:12 y"),
        ("/spec/containers/0/env/0/value", "o/p.yaml:8 c"),
        ("/spec/containers/1/env/0/value", "base/pod.yaml:10 b"),
        ("/spec/containers/1/env/1/value", "base/pod.yaml:9 a"),
        ("/spec/containers/1/env/1/none", "base/pod.yaml:9 {name: A, value: a}"),
        ("/spec/none", "base/pod.yaml:4 spec"),
    ] {
        let found = found(&files, object, pointer);
        assert_eq!(found.as_deref(), Some(expected), "{pointer}");
    }
    let appended = "- {op: add, path: /spec/tags/-, value: c}\n- {op: add, path: /spec/tags/0, value: z}\n";
    let files = [
        ("o/kustomization.yaml", "resources: [../base]\npatches: [{path: p.yaml, target: {name: notes}}]\n"),
        ("o/p.yaml", appended),
    ];
    let object = format!("{MEMORY}spec: {{backend: redis, tags: [z, a, b, c]}}\n");
    for (pointer, expected) in [
        ("/spec/tags/0", "o/p.yaml:2 z"),
        ("/spec/tags/1", "base/memory.yaml:6 a"),
        ("/spec/tags/3", "o/p.yaml:1 c"),
        ("/spec/tags", "base/memory.yaml:6 tags"),
    ] {
        assert_eq!(found(&files, &object, pointer).as_deref(), Some(expected), "{pointer}");
    }
}

#[test]
fn what_a_patch_removes_or_replaces_stands_at_the_patch() {
    let merged = |spec: &str| format!("{MEMORY}spec:\n{spec}");
    let operation = |fields: &str| format!("- {{{fields}}}\n");
    let base = merged("  redis:\n    ref: {name: s}\n    ttl: 5\n  list: [{name: a, ref: s}]\n");
    let no_ref = "{redis: {ttl: 5}}";
    let rows = [
        (operation("op: remove, path: /spec/redis/ref"), no_ref, "/spec/redis/ref/name", "1 /spec/redis/ref"),
        (operation("op: remove, path: /spec/redis/ref"), no_ref, "/spec/redis", "1 /spec/redis/ref"),
        (operation("op: remove, path: /spec/redis"), "{}", "/spec/redis/ref", "1 /spec/redis"),
        (
            operation("op: replace, path: /spec/redis, value: {ttl: 5}"),
            no_ref,
            "/spec/redis/ref/name",
            "1 value",
        ),
        (operation("op: replace, path: /spec, value: {a: 5}"), "{a: 5}", "/spec/redis", "1 value"),
        (
            operation("op: move, from: /spec/redis/ref, path: /spec/x"),
            no_ref,
            "/spec/redis/ref/name",
            "1 /spec/redis/ref",
        ),
        (
            operation("op: move, from: /spec/redis/ref, path: /spec/x"),
            "{x: {name: s}}",
            "/spec/x/name",
            "1 /spec/x",
        ),
        (
            operation("op: copy, from: /metadata, path: /spec/x"),
            "{x: {name: s}}",
            "/spec/x/name",
            "1 /spec/x",
        ),
        (merged("  redis:\n    ref: null\n"), no_ref, "/spec/redis/ref/name", "6 null"),
        (merged("  redis:\n    ref: null\n"), no_ref, "/spec/redis", "6 null"),
        (merged("  redis: null\n"), "{}", "/spec/redis/ref/name", "5 null"),
        (merged("  redis:\n    $patch: delete\n"), "{}", "/spec/redis/ref", "6 delete"),
        (merged("  redis:\n    $patch: replace\n    ttl: 5\n"), no_ref, "/spec/redis/ref/name", "5 redis"),
        (merged("  list: [{name: a}]\n"), "{list: [{name: a}]}", "/spec/list/0/ref", "5 {name: a}"),
        // What is about something else stays where it is.
        (operation("op: remove, path: /spec/redis/ref"), no_ref, "/spec/redis/ttl", "7 5"),
        (operation("op: remove, path: /spec/redis/ref"), no_ref, "/spec/none", "4 spec"),
        (merged("  redis: {x: 1}\n"), "{redis: {ttl: 5, x: 1}}", "/spec/redis/ref", "6 ref"),
    ];
    for (patch, spec, pointer, expected) in rows {
        let files: Written<'_> = &[
            (
                "o/kustomization.yaml",
                "resources: [m.yaml]\npatches: [{path: p.yaml, target: {kind: Memory}}]\n",
            ),
            ("o/m.yaml", &base),
            ("o/p.yaml", &patch),
        ];
        let found = found(files, &format!("{MEMORY}spec: {spec}\n"), pointer).unwrap_or_default();
        let (_, place) = found.split_once(':').unwrap_or_default();
        let file = if expected.starts_with(['4', '7']) || expected.ends_with("6 ref") { "m" } else { "p" };
        assert_eq!(
            (found.split('.').next(), place),
            (Some(&*format!("o/{file}")), expected),
            "{patch} {pointer}"
        );
    }
}

#[test]
fn what_cannot_be_read_ends() {
    let object = format!("{MEMORY}spec: {{backend: redis}}\n");
    let found = |text: &str| found(&[("o/kustomization.yaml", text)], &object, "/spec/backend");
    for text in [
        "resources: [.]\n",
        "resources: [../o, ../o]\ncomponents: [../o]\n",
        "resources: [nothing.yaml, https://h.example/r?ref=v1, git@h.example:r, /dev/zero]\n",
        "resources: 1\npatches: {}\n",
        "a: [",
        "",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
    for patches in [
        "patches: [{path: /dev/zero}, {patch: 1}, {patch: 'a: ['}, {patch: '[1, {op: 1}, {op: add, path: 1}]', target: {name: '('}}, 5]",
        "patches: [{patch: '[{op: add, path: \"\", value: 1}, {op: add, path: x}]', target: {kind: Memory}}]",
        "replacements: [1, {source: 1}, {source: {kind: Memory, name: notes, fieldPath: spec.backend}, targets: [{select: {}, fieldPaths: [spec.backend]}]}]",
        "images: [1]\nreplicas: 1\nlabels: {}\nnamespace: 1\nnamePrefix: []\nconfigMapGenerator: [1]",
        "components: [.]\nresources: [., ../base]",
    ] {
        let text = if patches.contains("../base") {
            patches.to_owned()
        } else {
            format!("resources: [../base]\n{patches}\n")
        };
        let place = found(&text);
        assert!(place.is_some(), "{text}: {place:?}");
    }
}

/// So many that a search from each object through all patches would take minutes.
const VERY_MANY: usize = 10_000;

#[test]
fn very_many_objects_and_patches_are_read_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("a file");
    let object = |number, backend| {
        format!(
            "---\napiVersion: e.example/v1\nkind: Memory\nmetadata: {{name: m{number}}}\nspec: {{backend: {backend}}}\n"
        )
    };
    let all = |backend| (0..VERY_MANY).map(|number| object(number, backend)).collect::<String>();
    write("base.yaml", &all("redis"));
    write("p.yaml", &all("other"));
    let generic =
        "- {patch: '[{op: add, path: /x, value: 1}]', target: {labelSelector: a=b}}\n".repeat(VERY_MANY);
    write("kustomization.yaml", &format!("resources: [base.yaml]\npatches:\n- path: p.yaml\n{generic}"));
    let mut files = Files::default();
    for number in 0..VERY_MANY {
        let source = Arc::new(Source::new("printed", object(number, "other")));
        let value = values(&source, &mut Vec::new()).remove(0);
        let spot = spot_in(directory.path(), value.value(), &Pointer::new("/spec/backend"), &mut files);
        let spot = spot.expect("it is found");
        assert!(spot.source().name().ends_with("p.yaml"));
        assert_eq!(spot.caret().line, number * 5 + 5);
    }
}

/// Each object is compared with each operation until there is no room; then its file has to do.
#[test]
fn very_many_operations_for_very_many_objects_are_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("a file");
    let object = |number| {
        format!(
            "---\napiVersion: e.example/v1\nkind: Memory\nmetadata: {{name: m{number}}}\nspec: {{backend: redis}}\n"
        )
    };
    write("base.yaml", &(0..VERY_MANY).map(object).collect::<String>());
    write("p.yaml", &"- {op: add, path: /spec/other, value: 1}\n".repeat(VERY_MANY));
    write(
        "kustomization.yaml",
        "resources: [base.yaml]\npatches:\n- {path: p.yaml, target: {kind: Memory}}\n",
    );
    let mut files = Files::default();
    for number in 0..VERY_MANY {
        let source = Arc::new(Source::new("printed", object(number)));
        let value = values(&source, &mut Vec::new()).remove(0);
        let spot = spot_in(directory.path(), value.value(), &Pointer::new("/spec/backend"), &mut files);
        assert!(spot.is_some_and(|spot| spot.source().name().ends_with("base.yaml")));
    }
    assert!(files.overlays.steps < VERY_MANY);
}
