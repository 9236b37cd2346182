//! A branch cannot hide a manifest from its check: what the base judged, and what is new, is judged or denied.

use std::fs;
use std::os::unix::fs::symlink;

use crate::repository::{Checked, Repository, denied};

/// What a branch does with `deploy/mem.yaml`, which is in the base, or which it brings.
type Hide = fn(&Repository);

/// A kustomization in this folder that names the manifest in this field.
fn kustomization(repository: &Repository, folder: &str, field: &str) {
    let field = if folder == "." { field.replace("../deploy", "deploy") } else { field.to_owned() };
    repository.write(&format!("{folder}/cm.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n");
    repository.write(&format!("{folder}/kustomization.yaml"), &format!("resources: [cm.yaml]\n{field}\n"));
}

fn moved(repository: &Repository, to: &str) {
    let path = repository.path.join(to);
    fs::create_dir_all(path.parent().expect("has one")).expect("a directory");
    fs::rename(repository.path.join("deploy/mem.yaml"), path).expect("is there");
}

fn text(repository: &Repository) -> String {
    fs::read_to_string(repository.path.join("deploy/mem.yaml")).expect("is there")
}

/// Changes the text of the manifest.
fn rewrite(repository: &Repository, from: &str, to: &str) {
    let before = text(repository);
    assert!(before.contains(from), "{before}");
    repository.write("deploy/mem.yaml", &before.replacen(from, to, 1));
}

/// Fields of a kustomization that take the manifest as something else than an object.
const FIELDS: [&str; 15] = [
    "configMapGenerator: [{name: x, files: [../deploy/mem.yaml]}]",
    "configMapGenerator: [{name: x, files: [mem.txt=../deploy/mem.yaml]}]",
    "configMapGenerator: [{name: x, envs: [../deploy/mem.yaml]}]",
    "secretGenerator: [{name: x, files: [../deploy/mem.yaml]}]",
    "patches: [{path: ../deploy/mem.yaml, target: {kind: ConfigMap}}]",
    "patches: [{path: ../deploy/mem.yaml}]",
    "patchesStrategicMerge: [../deploy/mem.yaml]",
    "patchesJson6902: [{path: ../deploy/mem.yaml, target: {version: v1, kind: ConfigMap, name: cm}}]",
    "crds: [../deploy/mem.yaml]",
    "configurations: [../deploy/mem.yaml]",
    "openapi: {path: ../deploy/mem.yaml}",
    "generators: [../deploy/mem.yaml]",
    "transformers: [../deploy/mem.yaml]",
    "validators: [../deploy/mem.yaml]",
    "replacements: [{path: ../deploy/mem.yaml}]",
];

/// Other ways.
const WAYS: [(&str, Hide); 23] = [
    ("a hidden file", |it| moved(it, "deploy/.mem.yaml")),
    ("a hidden folder", |it| moved(it, ".deploy/mem.yaml")),
    ("a folder in a hidden one", |it| moved(it, "deploy/.a/b/mem.yaml")),
    (".github", |it| moved(it, ".github/mem.yaml")),
    ("upper case", |it| moved(it, "deploy/mem.YAML")),
    ("text", |it| moved(it, "deploy/mem.txt")),
    ("a second extension", |it| moved(it, "deploy/mem.yaml.bak")),
    ("no extension", |it| moved(it, "deploy/mem")),
    ("a tilde", |it| moved(it, "deploy/mem.yaml~")),
    ("a template's extension", |it| moved(it, "deploy/mem.yaml.tmpl")),
    ("a folder like that of a volume", |it| moved(it, "deploy/..2026/mem.yaml")),
    ("values of a chart", |it| {
        moved(it, "deploy/values-mem.yaml");
        it.write("deploy/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
    }),
    ("a file of a chart", |it| {
        moved(it, "deploy/files/mem.yaml");
        it.write("deploy/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
    }),
    ("values for tests of a chart", |it| {
        moved(it, "deploy/ci/mem-values.yaml");
        it.write("deploy/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
    }),
    ("a template of a library", |it| {
        moved(it, "deploy/templates/mem.yaml");
        it.write("deploy/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\ntype: library\n");
    }),
    ("a template that helm ignores", |it| {
        moved(it, "deploy/templates/mem.yaml");
        it.write("deploy/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
        it.write("deploy/.helmignore", "mem.yaml\n");
    }),
    ("a chart in a chart that is not used", |it| {
        moved(it, "deploy/charts/b/templates/mem.yaml");
        it.write("deploy/charts/b/Chart.yaml", "apiVersion: v2\nname: b\nversion: 0.1.0\ntype: library\n");
        it.write("deploy/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
    }),
    ("a second document of a kustomization", |it| {
        let manifest = text(it);
        fs::remove_file(it.path.join("deploy/mem.yaml")).expect("is there");
        it.write("deploy/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n");
        it.write("deploy/kustomization.yaml", &format!("resources: [cm.yaml]\n---\n{manifest}"));
    }),
    ("a second document of a chart", |it| {
        let manifest = text(it);
        fs::remove_file(it.path.join("deploy/mem.yaml")).expect("is there");
        it.write("deploy/Chart.yaml", &format!("apiVersion: v2\nname: a\nversion: 0.1.0\n---\n{manifest}"));
    }),
    ("a second document of values", |it| {
        let manifest = text(it);
        fs::remove_file(it.path.join("deploy/mem.yaml")).expect("is there");
        it.write("deploy/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
        it.write("deploy/values.yaml", &format!("a: 1\n---\n{manifest}"));
    }),
    ("a component that nothing uses", |it| {
        let kind = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [mem.yaml]\n";
        it.write("deploy/kustomization.yaml", kind);
    }),
    ("a remote base", |it| {
        it.write("deploy/kustomization.yaml", "resources: [mem.yaml, 'https://example.com/a.yaml']\n");
    }),
    ("a patch that deletes", |it| {
        let manifest = text(it);
        let (head, _) = manifest.split_once("spec:").expect("has one");
        it.write("docs/gone.yaml", &format!("$patch: delete\n{head}"));
        it.write(
            "docs/kustomization.yaml",
            "resources: [../deploy/mem.yaml]\npatches: [{path: gone.yaml}]\n",
        );
    }),
];

/// Ways to take away what the base judged, in which its text is no manifest any more.
const UNREADABLE: [(&str, Hide); 10] = [
    ("a broken end behind an anchor", |it| {
        rewrite(it, "apiVersion:", "&a apiVersion:");
        rewrite(it, "redis}", "redis");
    }),
    ("a broken end behind an escaped key", |it| {
        let manifest = text(it);
        it.write(
            "deploy/mem.yaml",
            &format!("\"\\u0061{}a: [\n", manifest.replacen("apiVersion", "piVersion\"", 1)),
        );
    }),
    ("a template", |it| {
        it.write("deploy/mem.yaml", &format!("{{{{ if true }}}}\n{}{{{{ end }}}}\n", text(it)));
    }),
    ("a kind for later", |it| rewrite(it, "kind: ArkMemory", "kind: ${KIND}")),
    ("both for later", |it| {
        rewrite(it, "kind: ArkMemory", "kind: ${KIND}");
        rewrite(it, "arkonis.dev/v1alpha1", "${API}");
    }),
    ("a list for later", |it| {
        let item = text(it).replace('\n', "\n  ");
        it.write("deploy/mem.yaml", &format!("apiVersion: v1\nkind: ${{L}}\nitems:\n- {}\n", item.trim()));
    }),
    ("items for later", |it| it.write("deploy/mem.yaml", "apiVersion: v1\nkind: List\nitems: ${X}\n")),
    ("both for later, in JSON", |it| {
        let json = r#"{"apiVersion": "${A}", "kind": "${K}", "metadata": {"name": "other-one"}}"#;
        it.write("deploy/mem.yaml", json);
    }),
    ("moved to what cannot be read", |it| {
        let manifest = text(it);
        fs::remove_file(it.path.join("deploy/mem.yaml")).expect("is there");
        it.write(
            "deploy/more.yaml",
            &format!("{manifest}---\na: [\n").replace("kind: ArkMemory", "kind: ${K}"),
        );
    }),
    ("wide characters", |it| {
        let wide: Vec<u8> = text(it).encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write(it.path.join("deploy/mem.yaml"), [&[0xFF, 0xFE], &*wide].concat()).expect("a file");
    }),
];

/// A repository with the manifest on its main branch, or one whose branch brings it.
fn repository(is_new: bool, with_programs: bool) -> Repository {
    let repository = if with_programs { Repository::with_programs() } else { Repository::new() };
    repository.write("deploy/other.yaml", &denied("other"));
    let manifest = denied("notes");
    if !is_new {
        repository.write("deploy/mem.yaml", &manifest);
    }
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("deploy/mem.yaml", &manifest);
    repository
}

fn check(repository: &Repository, flags: &[&str]) -> Checked {
    repository.commit();
    repository.check(&[&["--base", "main"], flags].concat())
}

/// Expects that what is hidden denies.
fn expect_denied(checked: &Checked, what: &str) {
    let is_told = checked.tells("", "deny [memgate/not-judged] ArkMemory \"notes\" is not judged any more");
    let (findings, said) = (&checked.findings, &checked.stderr);
    assert!(matches!(checked.code, Some(1 | 2)) && is_told, "{what}: {findings:?} {said}");
}

#[test]
fn without_programs_too() {
    for is_new in [false, true] {
        for (what, hide) in WAYS {
            let repository = repository(is_new, false);
            hide(&repository);
            expect_denied(&check(&repository, &["."]), &format!("{what}, new: {is_new}"));
        }
        for field in FIELDS {
            let repository = repository(is_new, false);
            kustomization(&repository, "docs", field);
            expect_denied(&check(&repository, &["."]), &format!("{field}, new: {is_new}"));
        }
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn as_the_programs_build_it() {
    let mut is_built = 0;
    for is_new in [false, true] {
        for (what, hide) in WAYS {
            let repository = repository(is_new, true);
            hide(&repository);
            expect_denied(&check(&repository, &["."]), &format!("{what}, new: {is_new}"));
        }
        for field in FIELDS {
            let repository = repository(is_new, true);
            kustomization(&repository, ".", field);
            for paths in [&["."][..], &["deploy"]] {
                let checked = check(&repository, paths);
                expect_denied(&checked, &format!("{field}, new: {is_new}, {paths:?}"));
                is_built += usize::from(checked.code == Some(1));
                repository.write("a.txt", &paths.concat());
            }
        }
    }
    // The others are refused, or kustomize does not take them.
    assert!(is_built >= 24, "{is_built}");
}

#[test]
fn what_cannot_be_read_any_more_is_not_removed() {
    for (what, hide) in UNREADABLE {
        let repository = repository(false, false);
        hide(&repository);
        let checked = check(&repository, &["."]);
        let (findings, said) = (&checked.findings, &checked.stderr);
        let is_told = checked.tells("", "deny [memgate/not-judged]");
        assert!(is_told, "{what}: {findings:?} {said}");
        assert!(!said.contains("removed by this branch"), "{what}: {said}");
    }
}

/// What the base did not judge either is not hidden, and what is judged elsewhere is not missing.
#[test]
#[ignore = "needs kubectl and helm"]
fn what_is_not_hidden_is_no_denial() {
    let overlay: Hide = |it| {
        moved(it, "base/mem.yaml");
        it.write("base/kustomization.yaml", "resources: [mem.yaml]\n");
        it.write("prod/kustomization.yaml", "resources: [../base]\nnamePrefix: prod-\nnamespace: team-b\n");
    };
    let ways: [(&str, Hide, &str); 9] = [
        ("a base with a prefix", overlay, ""),
        ("the same file twice", |it| kustomization(it, "docs", ""), ""),
        ("another folder", |it| moved(it, "more/mem.yaml"), ""),
        (
            "a chart",
            |it| {
                moved(it, "chart/templates/mem.yaml");
                it.write("chart/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
            },
            "",
        ),
        (
            "a name of the chart",
            |it| {
                moved(it, "chart/templates/mem.yaml");
                let manifest =
                    fs::read_to_string(it.path.join("chart/templates/mem.yaml")).expect("is there");
                it.write("chart/templates/mem.yaml", &manifest.replace("notes", "{{ .Release.Name }}-notes"));
                it.write("chart/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n");
            },
            "removed by this branch: ArkMemory team-a/notes (deploy/mem.yaml)",
        ),
        (
            "a new patch",
            |it| {
                let manifest = text(it);
                let (head, _) = manifest.split_once("spec:").expect("has one");
                it.write("patch.yaml", &format!("{head}spec: {{contextWindow: 5}}\n"));
                it.write(
                    "kustomization.yaml",
                    "resources: [deploy/mem.yaml]\npatches: [{path: patch.yaml}]\n",
                );
            },
            "",
        ),
        (
            "removed",
            |it| fs::remove_file(it.path.join("deploy/mem.yaml")).expect("is there"),
            "removed by this branch: ArkMemory team-a/notes (deploy/mem.yaml)",
        ),
        ("a page", |it| it.write("README.md", &format!("# notes\n\n```yaml\n{}```\n", text(it))), ""),
        (
            "what git ignores",
            |it| {
                it.write(".gitignore", ".cache\n");
                it.write(".cache/mem.yaml", &denied("cached"));
            },
            "",
        ),
    ];
    for (what, change, note) in ways {
        let repository = repository(false, true);
        change(&repository);
        let checked = check(&repository, &["."]);
        let (findings, said) = (&checked.findings, &checked.stderr);
        assert!(!checked.tells("", "memgate/not-judged"), "{what}: {findings:?} {said}");
        assert!(said.contains(note) && said.contains("removed by") != note.is_empty(), "{what}: {said}");
    }
    // Examples that were never judged may change and move.
    let repository = repository(true, true);
    fs::remove_file(repository.path.join("deploy/mem.yaml")).expect("is there");
    repository.write(".examples/a.yaml", &denied("example"));
    repository.commit();
    repository.git(&["branch", "--force", "main"]);
    repository.write(".examples/a.yaml", &denied("example").replace("redis", "in-context"));
    assert_eq!(check(&repository, &["."]).code, Some(0));
    repository.git(&["branch", "--force", "main"]);
    repository.git(&["mv", ".examples", ".samples"]);
    assert_eq!(check(&repository, &["."]).code, Some(0));
}

/// Without a base, they are named, and fail a strict run.
#[test]
fn every_run_names_what_looks_checkable() {
    for (name, is_named) in [
        (".deploy/mem.yaml", true),
        ("deploy/.a/mem.yaml", true),
        ("deploy/.mem.yaml", true),
        ("deploy/mem.YAML", true),
        ("deploy/mem.txt", true),
        ("deploy/mem.yaml.bak", true),
        ("deploy/mem", true),
        (".git/mem.yaml", false),
    ] {
        let repository = repository(true, false);
        moved(&repository, name);
        let checked = repository.check(&["."]);
        assert_eq!(checked.code, Some(1), "{name}: the other one is denied");
        assert_eq!(checked.stderr.contains("not read: "), is_named, "{name}: {}", checked.stderr);
        repository.write("deploy/other.yaml", &denied("other").replace("redis", "in-context"));
        assert_eq!(repository.check(&["."]).code, Some(0), "{name}");
        assert_eq!(repository.check(&[".", "--strict"]).code, Some(i32::from(is_named)), "{name}");
    }
    let repository = repository(true, false);
    repository.write("deploy/other.yaml", &denied("other").replace("redis", "in-context"));
    fs::remove_file(repository.path.join("deploy/mem.yaml")).expect("is there");
    repository.write("README.md", &format!("# notes\n\n```yaml\n{}```\n", denied("notes")));
    repository.write("main.go", &format!("const a = `\n{}`\n", denied("notes")));
    symlink("README.md", repository.path.join("notes.md")).expect("a link");
    let checked = repository.check(&[".", "--strict"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert!(!checked.stderr.contains("not read"), "{}", checked.stderr);
}

/// A copy that was never judged does not stand for the manifest that is hidden.
#[test]
fn a_copy_of_the_text_does_not_help() {
    let repository = repository(false, false);
    repository.write("deploy/.copy.yaml", &denied("notes"));
    repository.commit();
    repository.git(&["branch", "--force", "main"]);
    fs::remove_file(repository.path.join("deploy/.copy.yaml")).expect("is there");
    moved(&repository, "deploy/.mem.yaml");
    expect_denied(&check(&repository, &["."]), "a copy");
}
