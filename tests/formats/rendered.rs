//! What a kustomize prints, in each format: findings stand in the files from which it comes, and `--fix` corrects these.

use std::fs;
use std::process::Output;

use crate::repositories::programs;
use crate::run::Scratch;

/// The formats, each with the words by which it names the place in the base that both overlays share.
const FORMATS: [(&str, &str); 7] = [
    ("text", "--> base/memory.yaml:7:5"),
    ("concise", "base/memory.yaml:7:5: warn"),
    ("json", "\"file\": \"base/memory.yaml\""),
    ("github", "file=base/memory.yaml,line=7"),
    ("gitlab", "\"path\": \"base/memory.yaml\""),
    ("sarif", "\"uri\": \"base/memory.yaml\""),
    ("junit", "base/memory.yaml:7:5"),
];

const BASE: [(&str, &str); 5] = [
    ("base/kustomization.yaml", "resources: [memory.yaml, agent.yaml]\n"),
    (
        "base/memory.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\nspec:\n  backend: redis\n  redis:\n    \
         ttlSecnds: 60\n    secretRef: {name: notes-redis}\n",
    ),
    (
        "base/agent.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: a}\nspec:\n  model: m\n  systemPrompt: x\n  memoryRef:\n    \
         name: notes\n",
    ),
    ("overlays/dev/kustomization.yaml", "namespace: team-d\nresources: [../../base]\n"),
    (
        "overlays/prod/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: team-p\nresources: [../../base]\npatches:\n\
         - path: merge.yaml\n- target: {kind: ArkMemory}\n  patch: |-\n    - op: add\n      path: /spec/redis/maxEntriez\n      \
         value: 5\n",
    ),
];

const MERGE: (&str, &str) = (
    "overlays/prod/merge.yaml",
    "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\nspec:\n  backend: reddis\n",
);

fn check(scratch: &Scratch, words: &[&str]) -> Output {
    let words = [&["check", "."], words].concat();
    scratch.command(&words).env("PATH", programs()).output().expect("memgate runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "needs kubectl and helm"]
fn no_format_names_a_program_as_a_file() {
    let broken = ("overlays/broken/kustomization.yaml", "resources: [../../base, none.yaml]\n");
    let printed = ("overlays/odd/kustomization.yaml", "resources: [configmap.yaml]\n");
    let other = ("overlays/odd/configmap.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
    let scratch = Scratch::with(&[&BASE[..], &[MERGE, broken, printed, other]].concat());
    for (format, base) in FORMATS {
        let output = check(&scratch, &["-o", format]);
        let found = text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{format}: {found}");
        assert!(found.contains(base), "{format}: {found}");
        for name in ["<kustomize", "%3Ckustomize", "&lt;kustomize"] {
            assert!(!found.contains(name), "{format}: {found}");
        }
        for file in ["overlays/prod/merge.yaml", "overlays/prod/kustomization.yaml"] {
            assert!(found.contains(file), "{format}: {file}: {found}");
        }
        // The text has errors on standard error.
        let errors = found + &text(&output.stderr);
        assert!(errors.contains("overlays/broken/kustomization.yaml"), "{format}: {errors}");
    }
    let page = text(&check(&scratch, &["-o", "html=page.html"]).stderr) + &scratch.read("page.html");
    assert!(!page.contains("<kustomize") && !page.contains("&lt;kustomize"), "the page");
}

#[test]
#[ignore = "needs kubectl and helm"]
fn each_object_of_a_base_has_a_test() {
    let scratch = Scratch::with(&[&BASE[..], &[MERGE]].concat());
    for (words, result) in [(&[][..], "<system-out>"), (&["--fail-on", "warn"], "<failure ")] {
        let found = text(&check(&scratch, &[words, &["-o", "junit"]].concat()).stdout);
        for namespace in ["team-d", "team-p"] {
            let test = format!("name=\"ArkMemory {namespace}/notes: arkonis/unknown-field\">{result}");
            assert!(found.contains(&test), "{test}: {found}");
        }
        assert!(!found.contains("/notes\"/>"), "none has passed: {found}");
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn no_command_names_a_program_as_a_file() {
    let fixed = BASE[1].1.replace("ttlSecnds: 60", "maxEntries: 6");
    let house = "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: house}\nspec:\n  rules:\n  \
                 - {id: never, backends: {allow: [in-context]}}\n";
    let files = [&BASE[..4], &[("base/memory.yaml", &*fixed), ("policies/house.yaml", house)]].concat();
    let scratch = Scratch::with(&files);
    let base = "base/memory.yaml:2";
    let stay = "overlays/stay/kustomization.yaml";
    fs::create_dir_all(scratch.path().join("overlays/stay")).expect("a directory");
    fs::write(scratch.path().join(stay), "namespace: team-s\nresources: [../../base]\n").expect("a file");
    for (words, expected) in [
        (&["view", "base", "overlays"][..], &[base][..]),
        (
            &["mutate", "base", "overlays"],
            &["\n# Source: overlays/dev/kustomization.yaml\n", "# Source: overlays/stay/"],
        ),
        (&["mutate", "--diff", "base", "overlays"], &["+++ b/overlays/stay/kustomization.yaml (rendered)\n"]),
        (&["what-if", "--policy", "policies", "base", "overlays"], &["base/memory.yaml:5"]),
        (
            &["what-if", "--policy", "policies", "base", "overlays", "-o", "json"],
            &["\"file\": \"base/memory.yaml\""],
        ),
        (&["audit", "--policy", "policies", "base", "overlays"], &["base/memory.yaml:5"]),
        (
            &["audit", "--policy", "policies", "base", "overlays", "-o", "github"],
            &["file=base/memory.yaml,line=5"],
        ),
        (&["map", "base", "overlays"], &["team-s"]),
    ] {
        let output = scratch.command(words).env("PATH", programs()).output().expect("memgate runs");
        let found = text(&output.stdout) + &text(&output.stderr);
        assert!(expected.iter().all(|it| found.contains(it)), "{words:?}: {found}");
        assert!(!found.contains("kustomize build"), "{words:?}: {found}");
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn a_fault_in_a_shared_base_is_found_once() {
    let scratch = Scratch::with(&[&BASE[..], &[MERGE]].concat());
    for (format, _) in FORMATS.iter().filter(|(format, _)| *format != "concise") {
        let found = text(&check(&scratch, &["-o", format]).stdout);
        let namespaces = if format.starts_with("json") { "team-p" } else { "namespaces: team-d, team-p" };
        let namespaces =
            if *format == "text" { namespaces } else { namespaces.trim_start_matches("namespaces: ") };
        assert!(found.contains(namespaces), "{format}: {found}");
    }
    let concise = text(&check(&scratch, &["-o", "concise"]).stdout);
    assert_eq!(concise.matches("ttlSecnds").count(), 1, "{concise}");
}

#[test]
#[ignore = "needs kubectl and helm"]
fn fix_corrects_the_files_from_which_objects_come_once() {
    let scratch = Scratch::with(&[&BASE[..], &[MERGE]].concat());
    let files = ["base/memory.yaml", "overlays/prod/merge.yaml", "overlays/prod/kustomization.yaml"];
    let before = files.map(|file| scratch.read(file));
    for code in [Some(0), Some(0)] {
        let output = check(&scratch, &["--fix"]);
        assert_eq!(output.status.code(), code, "{}{}", text(&output.stdout), text(&output.stderr));
        let [base, merge, kustomization] = files.map(|file| scratch.read(file));
        assert_eq!(base, before[0].replace("ttlSecnds", "ttlSeconds"));
        assert_eq!(merge, before[1].replace("reddis", "redis"));
        // A patch in a text of the kustomization stays as it is.
        assert_eq!(kustomization, before[2]);
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn comments_ignore_in_the_files_from_which_objects_come() {
    let comment = "    # memgate: ignore[arkonis/unknown-field] known\n";
    let base = BASE[1].1.replace("    ttlSecnds", &format!("{comment}    ttlSecnds"));
    let scratch = Scratch::with(&[&BASE[..], &[("base/memory.yaml", &base)]].concat());
    let found = text(&check(&scratch, &["-o", "concise"]).stdout);
    assert!(found.contains("base/memory.yaml:8:5: note [arkonis/unknown-field]"), "{found}");
}

#[test]
#[ignore = "needs kubectl and helm"]
fn a_reference_to_a_renamed_object_names_the_field_that_renames() {
    let generator = "resources: [../../base]\nnamespace: team-s\nsecretGenerator:\n- name: notes-redis\n  literals: [REDIS_URL=x]\n";
    for (kustomization, words, never) in [
        ("resources: [../../base]\nnamespace: team-s\nnamePrefix: p-\n", &["namePrefix"][..], "did you mean"),
        ("resources: [../../base]\nnamespace: team-s\nnameSuffix: -s\n", &["nameSuffix"], "exists in"),
        (generator, &["hash of a generator", "disableNameSuffixHash"], "did you mean"),
    ] {
        let own = ("overlays/own/kustomization.yaml", kustomization);
        let scratch = Scratch::with(&[&BASE[..4], &[own]].concat());
        fs::remove_dir_all(scratch.path().join("overlays/prod")).ok();
        let found = text(&check(&scratch, &[]).stdout);
        let group =
            found.split("\n\n").find(|it| it.contains("not found in")).expect("one is missing").to_owned();
        assert!(words.iter().all(|word| group.contains(word)), "{group}");
        assert!(group.contains("memgate schema kustomize") && !group.contains(never), "{group}");
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn an_overlay_without_an_end_and_one_on_a_remote_base_are_named() {
    let remote = "resources: [memory.yaml, \"https://user:hunter2@h.example/r//base?ref=v1\"]\n";
    let files = [
        ("o/kustomization.yaml", "resources: [memory.yaml, ../o]\n"),
        ("o/memory.yaml", BASE[1].1),
        ("r/kustomization.yaml", remote),
        ("r/memory.yaml", BASE[1].1),
    ];
    let scratch = Scratch::with(&files);
    let output = check(&scratch, &["-o", "concise"]);
    let notes = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{notes}");
    assert!(notes.contains("note: not checked: kustomization r: "), "{notes}");
    assert!(notes.contains("h.example/r//base?ref=v1") && !notes.contains("hunter2"), "{notes}");
    let found = text(&output.stdout);
    assert!(found.starts_with("o/kustomization.yaml:1:1: error [unreadable] "), "{found}");
    // Nothing else is there.
    fs::remove_dir_all(scratch.path().join("o")).expect("it is removed");
    assert_eq!(check(&scratch, &[]).status.code(), Some(3));
}

/// What two files say, which two kustomizations list.
fn two_apps(files: &[(&str, &str)], expected: i32, has: &str, lacks: &str) {
    let apps = [
        ("apps/a/kustomization.yaml", "namespace: team-a\nresources: [m.yaml]\n"),
        ("apps/b/kustomization.yaml", "namespace: team-b\nresources: [m.yaml]\n"),
    ];
    let scratch = Scratch::with(&[&apps[..], files].concat());
    let output = check(&scratch, &["--fail-on", "warn", "-o", "concise"]);
    let found = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(expected), "{found}");
    assert!(has.split(' ').all(|it| found.contains(it)), "{found}");
    assert!(lacks.is_empty() || !found.contains(lacks), "{found}");
}

#[test]
#[ignore = "needs kubectl and helm"]
fn kustomizations_share_nothing() {
    let memory = |name: &str| BASE_MEMORY.replace("notes", name);
    let (notes, other) = (memory("notes"), memory("other"));
    let both = format!("{notes}---\n{BASE_AGENT}");
    let lost = format!("{other}---\n{BASE_AGENT}");
    two_apps(&[("apps/a/m.yaml", &both), ("apps/b/m.yaml", &both)], 0, "", "object-repeated");
    two_apps(&[("apps/a/m.yaml", &lost), ("apps/b/m.yaml", &notes)], 1, "notes team-a", "");
    two_apps(&[("apps/a/m.yaml", &both), ("apps/b/m.yaml", &other)], 0, "", "not-found");
    // kustomize refuses an object that stands twice.
    let twice = [
        ("apps/a/kustomization.yaml", "namespace: team-a\nresources: [m.yaml, n.yaml]\n"),
        ("apps/a/m.yaml", &*notes),
        ("apps/a/n.yaml", &*notes),
        ("apps/b/m.yaml", &*notes),
    ];
    two_apps(&twice, 2, "apps/a/kustomization.yaml:1:1: error", "object-repeated");
}

#[test]
#[ignore = "needs kubectl and helm"]
fn a_name_that_no_prefix_makes_is_missing() {
    for (name, expected) in [("prod-notez", 1), ("prod-notes", 0)] {
        let agent = BASE_AGENT.replace("name: notes", &format!("name: {name}"));
        let agent = agent.replace("name: scout", "name: scout, namespace: team-a");
        let scratch = Scratch::with(&[
            ("mem/kustomization.yaml", "namePrefix: prod-\nnamespace: team-a\nresources: [m.yaml]\n"),
            ("mem/m.yaml", BASE_MEMORY),
            ("app/kustomization.yaml", "namespace: team-a\nresources: [a.yaml]\n"),
            ("app/a.yaml", &agent),
        ]);
        let output = check(&scratch, &["--fail-on", "warn", "-o", "concise"]);
        let found = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{found}");
        assert_eq!(found.contains("not-found"), expected == 1, "{found}");
    }
}

const BASE_MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\nspec: {backend: in-context}\n";
const BASE_AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout}\n\
                          spec: {model: m, systemPrompt: x, memoryRef: {name: notes}}\n";

const CHART: [(&str, &str); 4] = [
    ("charts/notes/Chart.yaml", "apiVersion: v2\nname: notes\nversion: 0.1.0\n"),
    ("charts/notes/values.yaml", "backend: redis\nttl: -1\nsecret: {name: own}\n"),
    (
        "charts/notes/templates/memory.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  backend: {{ .Values.backend }}\n  \
         redis:\n    ttlSeconds: {{ .Values.ttl }}\n    secretRef: {{ toYaml .Values.secret | nindent 6 }}\n",
    ),
    ("envs/prod.yaml", "ttl: -2\n"),
];

/// A HelmRelease with a name, and these lines in its chart and spec.
fn helm_release(name: &str, chart: &str, spec: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: team-f}}\nspec:\n  chart:\n    \
         spec:\n      chart: ./charts/notes\n      sourceRef: {{kind: GitRepository, name: r}}\n{chart}{spec}"
    )
}

/// An Application with a name, and these lines below `helm`.
fn application(name: &str, helm: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  destination: \
         {{namespace: team-a}}\n  source:\n    repoURL: https://h.example/r\n    path: charts/notes\n    helm:\n{helm}"
    )
}

#[test]
#[ignore = "needs kubectl and helm"]
fn a_chart_has_the_values_of_its_releases() {
    let secret = "secret: {name: s}";
    let mut wrong = Vec::new();
    for (name, file, expected) in [
        (
            "values",
            helm_release("a", "", &format!("  values:\n    {secret}\n    ttl: -5\n")),
            ("team-f/a", "r/x.yaml:11:10"),
        ),
        (
            "files",
            helm_release("a", "      valuesFiles: [envs/prod.yaml]\n", "  targetNamespace: t\n"),
            ("t/t-a", "envs/prod.yaml:1:6"),
        ),
        (
            "named",
            helm_release("a", "", "  releaseName: b\n  targetNamespace: t\n  values: {ttl: -5}\n"),
            ("t/b", "r/x.yaml:11:17"),
        ),
        ("without", helm_release("a", "", ""), ("team-f/a", "charts/notes/values.yaml:2:6")),
        (
            "file",
            application("a", "      valueFiles: [../../envs/prod.yaml]\n"),
            ("team-a/a", "envs/prod.yaml:1:6"),
        ),
        (
            "root",
            application("a", "      valueFiles: [/envs/prod.yaml]\n"),
            ("team-a/a", "envs/prod.yaml:1:6"),
        ),
        (
            "missing",
            application("a", "      valueFiles: [no.yaml]\n      ignoreMissingValueFiles: true\n"),
            ("team-a/a", "charts/notes/values.yaml:2:6"),
        ),
        (
            "text",
            application("a", "      values: |\n        a: 1\n        ttl: -5\n"),
            ("team-a/a", "r/x.yaml:12:14"),
        ),
        ("quoted", application("a", "      values: \"ttl: -5\"\n"), ("team-a/a", "r/x.yaml:10:21")),
        (
            "map",
            application(
                "a",
                "      releaseName: b\n      values: \"ttl: 1\"\n      valuesObject: {ttl: -5}\n",
            ),
            ("team-a/b", "r/x.yaml:12:27"),
        ),
        (
            "parameter",
            application(
                "a",
                "      valuesObject: {ttl: -3}\n      parameters:\n      - {name: ttl, value: \"-5\"}\n",
            ),
            ("team-a/a", "r/x.yaml:12:28"),
        ),
        (
            "sources",
            application("a", "      {}\n")
                .replace("  source:\n    repo", "  sources:\n  - {repoURL: x, ref: v}\n  - repo")
                .replace("      {}\n", "      valueFiles: [$v/envs/prod.yaml]\n"),
            ("team-a/a", "envs/prod.yaml:1:6"),
        ),
    ] {
        let scratch = Scratch::with(&[&CHART[..], &[("r/x.yaml", &*file)]].concat());
        fs::create_dir(scratch.path().join(".git")).expect("a repository");
        let found = text(&check(&scratch, &["-o", "json"]).stdout);
        let json: serde_json::Value = serde_json::from_str(&found).expect("is JSON");
        let all = json["findings"].as_array().expect("a list");
        let negative: Vec<String> = all
            .iter()
            .filter(|it| it["code"] == "arkonis/number-negative")
            .map(|it| {
                let file = it["file"].as_str().unwrap_or_default().trim_start_matches("./");
                format!(
                    "{}/{} {file}:{}:{}",
                    it["object"]["namespace"], it["object"]["name"], it["line"], it["column"]
                )
                .replace('"', "")
            })
            .collect();
        if negative != [format!("{} {}", expected.0, expected.1)] {
            wrong.push(format!("{name}: {negative:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs kubectl and helm"]
fn each_release_of_a_chart_is_one_and_one_in_an_overlay_stands_there() {
    let overlay = helm_release("c", "", "  values: {ttl: -5}\n");
    let files = [
        ("r/a.yaml", &*helm_release("a", "", "  values: {ttl: 1}\n")),
        ("r/b.yaml", &*application("b", "      valuesObject: {ttl: 2}\n")),
        ("overlays/p/release.yaml", &*overlay),
        ("overlays/p/kustomization.yaml", "namespace: team-o\nresources: [release.yaml]\n"),
        // These do not install the chart.
        ("r/d.yaml", &*helm_release("d", "", "").replace("GitRepository", "HelmRepository")),
        ("r/e.yaml", &*application("e", "      {}\n").replace("path: charts", "path: other")),
    ]
    .map(|(name, text)| (name, text.to_owned()));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let scratch = Scratch::with(&[&CHART[..], &files].concat());
    fs::create_dir(scratch.path().join(".git")).expect("a repository");
    let shown = text(&check(&scratch, &["-o", "concise"]).stdout);
    let negative: Vec<&str> = shown.lines().filter(|it| it.contains("number-negative")).collect();
    let [one] = negative.as_slice() else { panic!("{shown}") };
    assert!(one.starts_with("overlays/p/release.yaml:9:17: "), "{shown}");
    let output = scratch.command(&["view", "."]).env("PATH", programs()).output().expect("memgate runs");
    let shown = text(&output.stdout);
    for name in ["team-f/a", "team-a/b", "team-o/c"] {
        assert!(
            shown.contains(&format!("# ArkMemory {name} (charts/notes/templates/memory.yaml:1)")),
            "{shown}"
        );
    }
    assert_eq!(shown.matches("# ArkMemory").count(), 3, "{shown}");
}
