//! Patches of kustomizations, which `check` judges in part without rendering.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::run::Scratch;
use crate::sets::memory;

const HEAD: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\n";

/// The ArkMemory that these patches are for, without a namespace as they are.
fn base() -> String {
    memory("backend: in-context").replace(", namespace: team-a", "")
}

/// A kustomization of an ArkMemory `notes`, with these files.
fn overlay(kustomization: &str, files: &[(&str, &str)]) -> Scratch {
    let base = base();
    let kustomization = format!("resources: [memory.yaml]\n{kustomization}");
    let own = [("memory.yaml", base.as_str()), ("kustomization.yaml", kustomization.as_str())];
    let scratch = Scratch::with(&[&own, files].concat());
    fs::create_dir(scratch.path().join(".git")).expect("made");
    scratch
}

/// Denials, warnings and notes as `severity code file:line`, without notes of the command itself.
fn found(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let report = scratch.json(&[&["check", "-o", "json"], words].concat());
    let text = |value: &Value| value.as_str().unwrap_or_default().trim_start_matches("./").to_owned();
    let finding = |it: &Value| {
        let place = (text(&it["severity"]), text(&it["code"]), text(&it["file"]));
        format!("{} {} {}:{}", place.0, place.1, place.2, it["line"])
    };
    report["findings"].as_array().expect("findings").iter().map(finding).collect()
}

/// A text as the content of a block.
fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["    ", line, "\n"]).collect()
}

#[test]
fn each_form_of_a_patch_is_judged() {
    let wrong =
        "spec:\n  backend: reddis\n  vectorStore:\n    endpont: http://x\n    $patch: merge\n  redis: null\n";
    let merge = format!("{HEAD}{wrong}");
    let ops = "- op: replace\n  path: /spec/backend\n  value: reddis\n- {op: move, from: /metadata/labels/a, path: /spec/vectorStore/endpont}\n";
    let json = r#"[{"op": "replace", "path": "/spec/backend", "value": "reddis"},
        {"op": "add", "path": "/spec/vectorStore", "value": {"endpont": "a"}}]"#;
    let target = "target: {kind: ArkMemory, name: notes}";
    let in_file = ["deny arkonis/backend-unknown p.yaml:5", "warn arkonis/unknown-field p.yaml:7"];
    let of_ops = ["deny arkonis/backend-unknown p.yaml:3", "warn arkonis/unknown-field p.yaml:4"];
    let rows: [(String, &str, [&str; 2]); 9] = [
        ("patches: [{path: p.yaml}]\n".to_owned(), &merge, in_file),
        ("patchesStrategicMerge: [./p.yaml]\n".to_owned(), &merge, in_file),
        (
            format!("patches: [{{{target}, path: p.yaml}}]\n"),
            wrong,
            ["deny arkonis/backend-unknown p.yaml:2", "warn arkonis/unknown-field p.yaml:4"],
        ),
        (format!("patches: [{{{target}, path: p.yaml}}]\n"), ops, of_ops),
        (format!("patchesJson6902: [{{{target}, path: p.yaml}}]\n"), ops, of_ops),
        (
            format!("patchesJson6902: [{{{target}, path: p.yaml}}]\n"),
            json,
            ["deny arkonis/backend-unknown p.yaml:1", "warn arkonis/unknown-field p.yaml:2"],
        ),
        (
            format!("patches:\n- patch: |-\n{}", indented(&merge)),
            "",
            [
                "deny arkonis/backend-unknown kustomization.yaml:8",
                "warn arkonis/unknown-field kustomization.yaml:10",
            ],
        ),
        (
            format!("patchesStrategicMerge:\n- |\n{}", indented(&merge)),
            "",
            [
                "deny arkonis/backend-unknown kustomization.yaml:8",
                "warn arkonis/unknown-field kustomization.yaml:10",
            ],
        ),
        (
            format!("patches:\n- {target}\n  patch: |\n{}", indented(ops)),
            "",
            [
                "deny arkonis/backend-unknown kustomization.yaml:7",
                "warn arkonis/unknown-field kustomization.yaml:8",
            ],
        ),
    ];
    for (kustomization, patch, expected) in rows {
        let files = [("p.yaml", patch)];
        let scratch = overlay(&kustomization, if patch.is_empty() { &[] } else { &files });
        assert_eq!(found(&scratch, &["."]), expected, "{kustomization}");
    }
    // One line in quotes: at least the line.
    let quoted = r#"patches: [{target: {kind: ArkMemory}, patch: "[{\"op\": \"add\", \"path\": \"/spec/backend\", \"value\": \"reddis\"}]"}]"#;
    assert_eq!(found(&overlay(quoted, &[]), &["."]), ["deny arkonis/backend-unknown kustomization.yaml:2"]);
}

/// The kinds of all platforms, without a group in the target too where only one platform has the kind.
#[test]
fn the_kinds_of_all_platforms_are_judged() {
    let mut platforms = BTreeSet::new();
    for family in memgate_platforms::ALL {
        let stand_in = &family.definitions.stand_in;
        let kinds = family.kinds.validated.iter().filter(|kind| !family.kinds.misnamed.contains(kind));
        for kind in kinds.filter(|kind| !kind.group.is_empty() && !stand_in.unreleased.contains(kind)) {
            let (group, name) = (kind.group, kind.kind);
            let object =
                format!("apiVersion: {}\nkind: {name}\nmetadata: {{name: notes}}\n", kind.api_version());
            let kustomization = format!(
                "patches:\n- path: p.yaml\n- target: {{group: {group}, kind: {name}}}\n  path: ops.yaml\n"
            );
            let merge = format!("{object}spec:\n  qqqq: 1\n");
            let ops = "- {op: add, path: /spec/qqqq, value: 1}\n";
            let scratch = Scratch::with(&[
                ("kustomization.yaml", &format!("resources: [https://example.com/x]\n{kustomization}")),
                ("p.yaml", &merge),
                ("ops.yaml", ops),
            ]);
            let found = found(&scratch, &["."]);
            let code = stand_in.unknown_field.name;
            let expected = [format!("warn {code} ops.yaml:1"), format!("warn {code} p.yaml:5")];
            if found == expected {
                platforms.insert(family.name);
            } else {
                // A definition may keep all fields.
                assert!(found.is_empty(), "{name}: {found:?}");
            }
        }
    }
    assert_eq!(platforms.len(), memgate_platforms::ALL.len(), "{platforms:?}");
}

#[test]
fn pods_and_workloads_are_judged_as_far_as_their_form_goes() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - name: c\n        image: 5\n";
    let scratch = Scratch::with(&[
        (
            "kustomization.yaml",
            "resources: [https://example.com/x]\npatches:\n- path: p.yaml\n- target: {kind: Pod, name: a}\n  path: ops.yaml\n",
        ),
        ("p.yaml", deployment),
        (
            "ops.yaml",
            "- {op: add, path: /spec/containers/0/image, value: 5}\n- {op: add, path: /spec/containers/-, value: {name: c}}\n",
        ),
    ]);
    assert_eq!(found(&scratch, &["."]), ["deny memgate/schema ops.yaml:1", "deny memgate/schema p.yaml:9"]);
}

/// What a whole object needs, what a patch deletes and what a later step fills in is not wrong.
#[test]
fn a_good_patch_has_no_finding() {
    let merge = format!(
        "{HEAD}spec:\n  backend: ${{BACKEND}}\n  redis:\n    ttlSeconds: null\n    $retainKeys: [ttlSeconds]\n  vectorStore:\n    $patch: delete\n"
    );
    let ops = "- {op: remove, path: /spec/redis}\n- {op: add, path: /spec/redis/ttlSeconds, value: 5}\n- {op: move, from: /spec/redis, path: /metadata/annotations/a~1b}\n- {op: add, path: /metadata/labels/1, value: a}\n";
    let agent = "- {op: add, path: /spec/memory/allow/-, value: read}\n- {op: add, path: /spec/memory/allow/999999, value: read}\n";
    let scratch = overlay(
        "patches:\n- path: p.yaml\n- target: {kind: ArkMemory, name: notes}\n  path: ops.yaml\n- target: {group: orloj.dev, kind: Agent, name: '.*'}\n  path: agent.yaml\n",
        &[("p.yaml", &merge), ("ops.yaml", ops), ("agent.yaml", agent)],
    );
    let loud: Vec<String> =
        found(&scratch, &["."]).into_iter().filter(|it| !it.starts_with("note")).collect();
    assert!(loud.is_empty(), "{loud:?}");
    // A patch that was judged is not nothing.
    let alone = Scratch::with(&[
        ("kustomization.yaml", "resources: [https://example.com/x]\npatches: [{path: p.yaml}]\n"),
        ("p.yaml", HEAD),
    ]);
    assert_eq!(alone.run(&["check", "."]).status.code(), Some(0));
}

#[test]
fn a_patch_that_is_named_is_judged_in_part_too() {
    let patch = format!("{HEAD}spec:\n  vectorStore: {{endpont: a}}\n");
    let scratch = overlay("patches: [{path: patches/p.yaml}]\n", &[("patches/p.yaml", &patch)]);
    let expected = ["warn arkonis/unknown-field patches/p.yaml:5"];
    for path in
        ["patches/p.yaml", "patches/*.yaml", "patches", "./patches/../patches/p.yaml", "kustomization.yaml"]
    {
        let found = found(&scratch, &[path]);
        assert_eq!(
            found.iter().map(|it| it.replace("patches/../", "")).collect::<Vec<_>>(),
            expected,
            "{path}"
        );
    }
    assert!(found(&scratch, &["memory.yaml"]).is_empty());
}

#[test]
fn comments_rules_and_fixes_work_in_patches() {
    let ignored =
        format!("{HEAD}spec:\n  # memgate: ignore[arkonis/backend-unknown] later\n  backend: reddis\n");
    let inline = "patches:\n- patch: |\n    apiVersion: arkonis.dev/v1alpha1\n    kind: ArkMemory\n    metadata: {name: notes}\n    spec:\n      # memgate: ignore[arkonis/backend-unknown] later\n      backend: reddis\n- path: p.yaml\n";
    let scratch = overlay(inline, &[("p.yaml", &ignored)]);
    let expected =
        ["note arkonis/backend-unknown kustomization.yaml:9", "note arkonis/backend-unknown p.yaml:6"];
    assert_eq!(found(&scratch, &["."]), expected);

    let wrong = format!("{HEAD}spec:\n  backend: reddis\n");
    let ops = "- {op: replcae, path: /spec/backend, value: redis}\n- {op: add, path: /spec/vectorStore/endpont, value: a}\n";
    let kustomization =
        "patches:\n- path: p.yaml\n- target: {kind: ArkMemory, name: notes}\n  path: ops.yaml\n";
    let scratch = overlay(kustomization, &[("p.yaml", &wrong), ("ops.yaml", ops)]);
    fs::write(
        scratch.path().join(".memgate.yaml"),
        "rules: [{codes: ['arkonis/*'], paths: [p.yaml], severity: warn}]\n",
    )
    .expect("written");
    let all = [
        "warn arkonis/unknown-field ops.yaml:2",
        "deny memgate/patch-invalid ops.yaml:1",
        "warn arkonis/backend-unknown p.yaml:5",
    ];
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    assert_eq!(sorted(found(&scratch, &[])), sorted(all.map(str::to_owned).to_vec()));
    scratch.run(&["check", "--fix"]);
    assert_eq!(scratch.read("p.yaml"), wrong.replace("reddis", "redis"));
    assert_eq!(scratch.read("ops.yaml"), ops.replace("replcae", "replace").replace("endpont", "endpoint"));
}

/// One patch of two overlays is judged once.
#[test]
fn a_patch_that_two_overlays_share_is_judged_once() {
    let overlay = |name: &str| {
        format!("resources: [../base]\npatches: [{{path: ../base/p.yaml}}]\nnamePrefix: {name}-\n")
    };
    let scratch = Scratch::with(&[
        ("base/kustomization.yaml", "resources: [memory.yaml]\n"),
        ("base/memory.yaml", &base()),
        ("base/p.yaml", &format!("{HEAD}spec:\n  backend: reddis\n")),
        ("a/kustomization.yaml", &overlay("a")),
        ("b/kustomization.yaml", &overlay("b")),
    ]);
    assert_eq!(found(&scratch, &["."]), ["deny arkonis/backend-unknown base/p.yaml:5"]);
}

#[test]
fn a_patch_for_an_object_that_is_not_there_warns_only_where_that_is_known() {
    let of = |kustomization: &str, name: &str| {
        let patch = HEAD.replace("notes", name);
        let text = format!(
            "{kustomization}\npatches:\n- path: p.yaml\n- target: {{kind: ArkMemory, name: {name}}}\n  path: q.yaml\n"
        );
        let scratch = Scratch::with(&[
            ("base/kustomization.yaml", "resources: [memory.yaml]\nnamePrefix: x-\n"),
            ("base/memory.yaml", &base()),
            ("plain/kustomization.yaml", "resources: [memory.yaml]\n"),
            ("plain/memory.yaml", &base()),
            ("over/kustomization.yaml", &text),
            ("over/p.yaml", &patch),
            ("over/q.yaml", "- {op: remove, path: /spec/redis}\n"),
        ]);
        let missing = found(&scratch, &["."]).into_iter().filter(|it| it.contains("patch-target-missing"));
        missing
            .map(|it| it.rsplit_once(' ').map_or(String::new(), |(_, place)| place.to_owned()))
            .collect::<Vec<_>>()
    };
    let both = ["over/kustomization.yaml:4", "over/p.yaml:3"];
    assert_eq!(of("resources: [../plain]", "nots"), both);
    assert_eq!(of("resources: [../base]", "nots"), both);
    for (kustomization, name) in [
        ("resources: [../plain]", "notes"),
        ("resources: [../base]", "notes"),
        ("resources: [../base]", "x-notes"),
        ("resources: [../plain]", "\"${NAME}\""),
        ("resources: [../plain, https://example.com/x]", "nots"),
        ("resources: [../plain]\ngenerators: [g.yaml]", "nots"),
        ("resources: [../plain]\nhelmCharts: [{name: x}]", "nots"),
        ("resources: [../plain]\ntransformers: [g.yaml]", "nots"),
        ("resources: [../plain, ../over]", "nots"),
        ("kind: Component\nresources: [../plain]", "nots"),
    ] {
        assert!(of(kustomization, name).is_empty(), "{kustomization} {name}");
    }
}

/// An object of this name in another namespace than that of the patch is not there.
#[test]
fn a_patch_for_an_object_of_another_namespace_warns() {
    let missing = |namespace: &str, base: &str, target: &str| {
        let (own, over) = (format!("name: notes{namespace}"), format!("name: notes{target}"));
        let scratch = Scratch::with(&[
            ("base/kustomization.yaml", &format!("resources: [memory.yaml]\n{base}")),
            (
                "base/memory.yaml",
                &format!("{}spec: {{backend: in-context}}\n", HEAD.replace("name: notes", &own)),
            ),
            (
                "over/kustomization.yaml",
                &format!(
                    "resources: [../base]\nnamespace: last\npatches:\n- path: p.yaml\n- target: {{kind: ArkMemory, {over}}}\n  patch: '[]'\n"
                ),
            ),
            ("over/p.yaml", &HEAD.replace("name: notes", &over)),
        ]);
        found(&scratch, &["."]).iter().filter(|it| it.contains("patch-target-missing")).count()
    };
    for (namespace, base, target, expected) in [
        ("", "", "", 0),
        ("", "", ", namespace: default", 0),
        (", namespace: a", "", ", namespace: a", 0),
        (", namespace: a", "", ", namespace: b", 2),
        ("", "", ", namespace: last", 2),
        ("", "namespace: b\n", ", namespace: b", 0),
        ("", "namespace: b\n", "", 0),
        (", namespace: \"${A}\"", "", ", namespace: b", 0),
        (", namespace: a", "", ", namespace: \"${A}\"", 0),
    ] {
        assert_eq!(missing(namespace, base, target), expected, "{namespace} {base} {target}");
    }
}

/// A selector is compared with the objects: each text is a pattern, and labels count.
#[test]
fn a_target_may_be_a_pattern_or_select_by_labels() {
    let base = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: notes\n  labels: {app: x}\n  annotations: {b: c}\nspec: {backend: in-context}\n";
    let agent = "apiVersion: orloj.dev/v1\nkind: Memory\nmetadata: {name: other}\nspec: {}\n";
    let both = format!("{base}---\n{agent}");
    for (target, own, count) in [
        ("name: notes", "", 1),
        ("name: not.*", "", 1),
        ("name: .*", "", 2),
        ("kind: Ark.*", "", 1),
        ("kind: ArkMemory|SwarmMemory", "", 1),
        ("labelSelector: app=x", "", 1),
        ("labelSelector: 'app in (x, y)', annotationSelector: b=c", "", 1),
        ("labelSelector: app=y", "", 0),
        ("labelSelector: app=y", "namespace: a\n", 0),
        ("labelSelector: app=x", "commonLabels: {app: y}\n", 0),
        ("kind: ArkMemory, labelSelector: app=x", "commonLabels: {app: y}\n", 1),
        ("name: '['", "", 0),
    ] {
        let scratch = Scratch::with(&[
            ("base/kustomization.yaml", &format!("resources: [memory.yaml]\n{own}")),
            ("base/memory.yaml", &both),
            (
                "kustomization.yaml",
                &format!(
                    "resources: [base]\npatches:\n- target: {{{target}}}\n  patch: |\n    - {{op: add, path: /spec/qqqq, value: 1}}\n"
                ),
            ),
        ]);
        let found = found(&scratch, &["."]);
        let fields = found.iter().filter(|it| it.ends_with("kustomization.yaml:5"));
        assert_eq!(fields.count(), count, "{target} {own} {found:?}");
    }
}

/// A fix in a kustomization changes nothing but the bytes that are wrong, in whatever form the patch is.
#[test]
fn a_fix_changes_only_its_bytes_in_patches_of_a_kustomization() {
    let target = "target: {kind: ArkMemory}";
    let merge = indented(&format!(
        "# c\n{HEAD}spec:\n  # memgate: ignore[arkonis/unknown-field] as is\n  endpont: a\n  vectorStore: {{endpont:   a}}   # why\n"
    ));
    let text = format!(
        "# head\npatches:\n- patch: |-\n{merge}- {target}\n  patch: |\n    - op: replcae\n      path: /spec/vectorStore/endpont\n      value: 'a'\n- {target}\n  patch: '[{{\"op\": \"replace\", \"path\": \"/spec/backend\", \"value\": \"reddis\"}}]'\n- {target}\n  patch: >-\n    [{{\"op\": \"add\",\n    \"path\": \"/spec/vectorStore/endpont\", \"value\": \"a\"}}]\n"
    );
    let scratch = overlay(&text, &[]);
    scratch.run(&["check", "--fix", "."]);
    let fixed = text.replace("{endpont:", "{endpoint:").replace("Store/endpont", "Store/endpoint");
    let fixed = fixed.replace("replcae", "replace").replace("reddis", "redis");
    assert_eq!(scratch.read("kustomization.yaml"), format!("resources: [memory.yaml]\n{fixed}"));
}

/// No credential of a patch is shown, whichever finding shows its line.
#[test]
fn credentials_in_patches_are_not_shown() {
    let spec = "spec:\n  vectorStore:\n    apiKey: hunter2hunter2\n    password: [hunter2hunter2]\n";
    let merge = format!("{HEAD}{spec}");
    let indented = indented(&merge);
    let inline = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\npatches:\n- patch: |\n{indented}- target: {{kind: ArkMemory}}\n  patch: |\n    - {{op: add, path: /spec/vectorStore/apiKey, value: hunter2hunter2}}\n- patch: \"apiVersion: arkonis.dev/v1alpha1\\nkind: ArkMemory\\nspec:\\n  backend: reddis\\n  password: hunter2hunter2\\n\"\n- path: p.yaml\n- {{path: ops.yaml, target: {{kind: ArkMemory}}}}\n"
    );
    let ops = "- {op: add, path: /spec/vectorStore/apiKey, value: hunter2hunter2}\n";
    let scratch = Scratch::with(&[("kustomization.yaml", &inline), ("p.yaml", &merge), ("ops.yaml", ops)]);
    for format in
        ["text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown", "html=page.html"]
    {
        let output = scratch.run(&["check", "-v", "-o", format, "."]);
        let page = scratch.path().join("page.html");
        let page = fs::read_to_string(page).unwrap_or_default();
        let all = [
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
            page,
        ]
        .concat();
        assert!(!all.contains("hunter2"), "{format}: {all}");
        assert!(all.contains("unknown-field"), "{format}: {all}");
    }
}

/// Nor in the diff of a fix, before and after it.
#[test]
fn credentials_in_patches_are_not_shown_in_diffs() {
    let spec = "spec:\n  vectorStore:\n    endpont: x\n    apiKey: hunter2hunter2\n";
    let text = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [https://example.com/x]\npatches:\n- patch: |\n{}",
        indented(&format!("{HEAD}{spec}"))
    );
    let scratch = Scratch::with(&[("kustomization.yaml", &text)]);
    let output = scratch.run(&["check", "--fix", "--diff", "."]);
    let diff = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(diff.contains("+        endpoint: x") && diff.contains("apiKey: ****"), "{diff}");
    assert!(!diff.contains("hunter2"), "{diff}");
}

/// Of ten thousand wrong operations fifty are reported, with one number of the others.
#[test]
fn very_many_operations_have_fifty_findings() {
    let mut ops = String::new();
    for number in 0..10_000 {
        let _infallible = writeln!(ops, "- {{op: add, path: /spec/redis/x{number}, value: 1}}");
    }
    let indented = indented(&ops);
    let target = "target: {kind: ArkMemory, name: notes}";
    let in_file = format!("patches: [{{{target}, path: ops.yaml}}]\n");
    let inline = format!("patches:\n- {target}\n  patch: |\n{indented}");
    for (kustomization, files) in [(in_file, vec![("ops.yaml", ops.as_str())]), (inline, vec![])] {
        let scratch = overlay(&kustomization, &files);
        assert_eq!(found(&scratch, &["."]).len(), 50);
        let output = scratch.run(&["check", "."]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.matches("more, not shown").count(), 1, "{stderr}");
        assert!(stderr.contains("9950 warnings more"), "{stderr}");
    }
}

/// An editor gets the findings of an open patch, and of the patches in an open kustomization, with its own text.
#[test]
fn an_editor_shows_findings_in_patches() {
    let scratch = overlay("patches: [{path: p.yaml}]\n", &[("p.yaml", HEAD)]);
    let input = scratch.path().join("edited");
    for (file, text) in [
        ("p.yaml", &b"a: \xff"[..]),
        ("kustomization.yaml", b"a: \xff"),
        ("kustomization.yaml", b"a: ["),
        ("kustomization.yaml", b"patches:\n- patch: |\n    a: [\n- patch: \"a: [\"\n"),
    ] {
        fs::write(&input, text).expect("written");
        let mut command = scratch.command(&["check", "--stdin-filename", file]);
        let output = command.stdin(fs::File::open(&input).expect("a file")).output().expect("runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let named = stderr.lines().filter(|it| it.starts_with("error") || it.starts_with("-->"));
        let named = named.filter(|it| it.contains(file)).count();
        assert_eq!(
            (output.status.code(), named),
            (Some(2), text.split(|it| *it == b'[').count().max(2) - 1),
            "{stderr}"
        );
    }
    let merge = format!("{HEAD}spec: {{bakend: redis}}\n");
    let inline = "resources: [memory.yaml]\npatches:\n- target: {kind: ArkMemory}\n  patch: |\n    - {op: add, path: /spec/bakend, value: redis}\n";
    for (file, text, line) in [("p.yaml", merge.as_str(), 4), ("kustomization.yaml", inline, 5)] {
        fs::write(&input, text).expect("written");
        let mut command = scratch.command(&["check", "-o", "json", "--stdin-filename", file]);
        let output = command.stdin(fs::File::open(&input).expect("a file")).output().expect("runs");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let findings = report["findings"].as_array().expect("findings");
        let shown: Vec<_> = findings.iter().map(|it| (it["file"].as_str(), it["line"].as_u64())).collect();
        assert_eq!(shown, [(Some(file), Some(line))], "{report}");
    }
}

/// Resources outside of the repository are not read, so nothing is known of them.
#[test]
fn resources_outside_of_the_repository_are_not_read() {
    let kustomization =
        "resources: [../../base]\npatches:\n- target: {kind: ArkMemory, name: note}\n  patch: '[]'\n";
    let scratch = Scratch::with(&[
        ("base/kustomization.yaml", "resources: [memory.yaml]\n"),
        ("base/memory.yaml", &memory("backend: in-context")),
        ("repository/overlay/kustomization.yaml", kustomization),
    ]);
    let place = "repository/overlay/kustomization.yaml:3";
    let warned = [format!("warn memgate/patch-target-missing {place}")];
    assert_eq!(found(&scratch, &["repository"]), warned);
    fs::create_dir(scratch.path().join("repository/.git")).expect("made");
    assert!(found(&scratch, &["repository"]).is_empty());
}
