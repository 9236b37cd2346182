//! `--base` and what kubectl and helm build: charts and overlays as they were where the branch began.

use crate::repository::{Repository, denied};

const CHART: &str = "apiVersion: v2\nname: agents\nversion: 0.1.0\n";

fn templated(name: &str) -> String {
    denied(name).replace("backend: redis", "backend: {{ .Values.backend }}")
}

/// A branch with a chart of which the base has all but one template.
pub(crate) fn charted() -> Repository {
    let repository = Repository::with_programs();
    repository.write("chart/Chart.yaml", CHART);
    repository.write("chart/values.yaml", "backend: redis\n");
    repository.write("chart/templates/old.yaml", &templated("old"));
    repository.write("prod.yaml", "backend: redis\n");
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("chart/templates/new.yaml", &templated("new"));
    repository.commit();
    repository
}

#[test]
#[ignore = "needs kubectl and helm"]
fn counts_what_a_branch_brings_to_a_chart() {
    let repository = charted();
    for arguments in [&["."][..], &["chart"], &["chart", "--values", "chart=prod.yaml"]] {
        let checked = repository.check(&[&["--base", "main"], arguments].concat());
        let (findings, notes) = (&checked.findings, &checked.stderr);
        assert_eq!(checked.code, Some(1), "{findings:?} {notes}");
        assert_eq!(findings.len(), 2, "{findings:?} {notes}");
        assert!(
            checked.tells("chart/templates/new.yaml:4:", "deny [arkonis/redis-required]"),
            "{findings:?}"
        );
        assert!(checked.tells("chart/templates/old.yaml:4:", "already in main"), "{findings:?}");
        assert!(!notes.contains("error"), "{notes}");
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn takes_the_values_of_the_base() {
    let repository = charted();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.write("prod.yaml", "backend: in-context\n");
    repository.commit();
    // What is wrong comes by a value.
    repository.write("prod.yaml", "backend: redis\n");
    let check = |values: &str| repository.check(&["--base", "HEAD", "--values", values, "chart"]);
    assert_eq!(check("chart=prod.yaml").code, Some(1));
    // A file that the base does not have is the same for both.
    repository.write("other.yaml", "backend: redis\n");
    let checked = check("chart=other.yaml");
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("", "already in HEAD"), "{:?}", checked.findings);
}

#[test]
#[ignore = "needs kubectl and helm"]
fn has_all_that_an_overlay_refers_to() {
    let repository = Repository::with_programs();
    repository.write("base/kustomization.yaml", "resources: [memory.yaml]\n");
    repository.write("base/memory.yaml", &denied("notes"));
    repository.write("overlays/prod/kustomization.yaml", "resources: [../../base]\n");
    repository.commit();
    let check = || repository.check(&["--base", "HEAD", "overlays"]);
    let checked = check();
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("base/memory.yaml:4:", "already in HEAD"), "{:?}", checked.findings);
    repository.write("base/more.yaml", &denied("more"));
    repository.write("base/kustomization.yaml", "resources: [memory.yaml, more.yaml]\n");
    assert_eq!(check().code, Some(1));
}

/// A file below a kustomization that does not list it is not what the kustomization builds.
#[test]
#[ignore = "needs kubectl and helm"]
fn a_memory_that_a_kustomization_does_not_list_any_more_is_broken() {
    let repository = Repository::with_programs();
    let both = "resources: [agent.yaml, memory.yaml]\n";
    repository.write("app/kustomization.yaml", both);
    repository.write("app/memory.yaml", &denied("notes").replace("redis", "in-context"));
    let agent = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\n\
                 spec: {model: m, systemPrompt: x, memoryRef: {name: notes}}\n";
    repository.write("app/agent.yaml", agent);
    repository.commit();
    repository.write("app/kustomization.yaml", "resources: [agent.yaml]\n");
    let checked = repository.check(&["--base", "HEAD", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("app/agent.yaml:4:", "app/memory.yaml has it, but no kustomization lists it"));
    assert!(checked.tells("app/agent.yaml:4:", "broken by this branch"), "{:?}", checked.findings);
    repository.write("app/kustomization.yaml", both);
    let checked = repository.check(&["--base", "HEAD", "."]);
    assert_eq!((checked.code, checked.findings.len()), (Some(0), 0), "{:?}", checked.findings);
}

/// Dependencies of charts are often not committed.
#[test]
#[ignore = "needs kubectl and helm"]
fn says_what_cannot_be_rendered_at_the_base() {
    let repository = Repository::with_programs();
    repository.write("chart/Chart.yaml", CHART);
    let fails = "{{ fail \"charts is missing at redis://app:hunter2@r\" }}\n".to_owned();
    repository.write("chart/templates/a.yaml", &(fails + &denied("new")));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("chart/templates/a.yaml", &denied("new"));
    repository.commit();
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert_eq!(checked.findings.len(), 1, "{:?}", checked.findings);
    let note =
        "note: 1 error at the base, so findings there count as new: chart/Chart.yaml: helm template chart: ";
    assert!(
        checked.stderr.contains(note) && checked.stderr.contains("charts is missing"),
        "{}",
        checked.stderr
    );
    assert!(!checked.stderr.contains("hunter2"), "{}", checked.stderr);
}

/// A target of a patch that leads nowhere is known if it did so at the base.
#[test]
#[ignore = "needs kubectl and helm"]
fn compares_the_targets_of_patches() {
    let repository = Repository::with_programs();
    repository.write("base/kustomization.yaml", "resources: [memory.yaml]\n");
    repository.write("base/memory.yaml", MEMORY);
    let kustomization =
        "resources: [../../base]\npatches:\n".to_owned() + &patch("name: note", "/spec", "{}");
    repository.write("overlays/prod/kustomization.yaml", &kustomization);
    repository.commit();
    let check = || repository.check(&["--base", "HEAD", "--fail-on", "warn", "overlays"]);
    let checked = check();
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(
        checked.tells("overlays/prod/kustomization.yaml:3:", "already in HEAD"),
        "{:?}",
        checked.findings
    );
    repository
        .write("overlays/prod/kustomization.yaml", &(kustomization + &patch("name: nots", "/spec", "{}")));
    assert_eq!(check().code, Some(1));
}

/// An element of `patches` that replaces a field.
fn patch(target: &str, path: &str, value: &str) -> String {
    format!("- target: {{{target}}}\n  patch: |\n    - {{op: replace, path: {path}, value: {value}}}\n")
}

const MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\nspec: {backend: in-context}\n";
const AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\nspec: {model: m, systemPrompt: s, memoryRef: {name: notes}}\n";

/// Files: paths and texts.
type Files<'f> = &'f [(&'f str, &'f str)];

/// What a branch moves into a chart or an overlay is found there, or may be there if it is not built.
#[test]
#[ignore = "needs kubectl and helm"]
fn what_moves_into_a_unit_is_there() {
    let template = MEMORY.replace("notes", "{{ .Chart.Name | replace \"agents\" \"notes\" }}");
    let moved = MEMORY.replace(", namespace: team-a", "");
    let chart: Files<'_> = &[("chart/Chart.yaml", CHART), ("chart/templates/memory.yaml", &template)];
    let overlay: Files<'_> = &[
        ("o/kustomization.yaml", "namespace: team-a\nresources: [memory.yaml]\n"),
        ("o/memory.yaml", &moved),
    ];
    let elsewhere: Files<'_> = &[
        ("o/kustomization.yaml", "namespace: team-b\nresources: [memory.yaml]\n"),
        ("o/memory.yaml", &moved),
    ];
    let others: Files<'_> =
        &[("chart/Chart.yaml", CHART), ("chart/templates/a.yaml", "kind: {{ .Values.kind }}\n")];
    for (files, flag, expected) in [
        (chart, "--strict", 0),
        (chart, "--no-render", 1),
        (overlay, "--strict", 0),
        (overlay, "--no-render", 1),
        (elsewhere, "--strict", 1),
        (elsewhere, "--no-render", 1),
        (others, "--strict", 1),
        (&[], "--strict", 1),
    ] {
        let repository = Repository::with_programs();
        repository.write("memory.yaml", MEMORY);
        repository.write("agent.yaml", AGENT);
        repository.commit();
        repository.git(&["checkout", "--quiet", "-b", "feature"]);
        std::fs::remove_file(repository.path.join("memory.yaml")).expect("is there");
        for (name, text) in files {
            repository.write(name, text);
        }
        repository.commit();
        let checked = repository.check(&["--base", "main", ".", flag]);
        let (findings, notes) = (&checked.findings, &checked.stderr);
        assert_eq!(checked.code, Some(expected), "{flag} {files:?}: {findings:?} {notes}");
    }
}

/// A Flux Kustomization that a kustomization lists, rendered at the base as in the work tree.
#[test]
#[ignore = "needs kubectl and helm"]
fn what_breaks_through_a_kustomization_that_is_rendered_is_denied() {
    let flux = |memory: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: apps, namespace: flux-system}}\n\
             spec:\n  path: ./apps\n  postBuild: {{substitute: {{memory: {memory}}}}}\n"
        )
    };
    let repository = Repository::with_programs();
    repository.write("apps/memory.yaml", MEMORY);
    repository.write("apps/agent.yaml", &AGENT.replace("name: notes", "name: \"${memory}\""));
    repository.write("clusters/kustomization.yaml", "resources: [apps.yaml]\n");
    repository.write("clusters/apps.yaml", &flux("notes"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("clusters/apps.yaml", &flux("notez"));
    repository.commit();
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    let place = "ArkMemory \"notez\" not found in namespace \"team-a\"; did you mean \"notes\"?; broken by this branch: it named another one before";
    assert!(checked.tells("./apps/agent.yaml:4:", place), "{:?}", checked.findings);
}

/// An overlay that changes the name, the namespace or the reference together with its base breaks nothing.
#[test]
#[ignore = "needs kubectl and helm"]
fn what_an_overlay_changes_together_with_its_base_is_not_broken() {
    let patches =
        |target: &str, path: &str, value: &str| "patches:\n".to_owned() + &patch(target, path, value);
    let refers =
        |agent: &str| patches(&format!("kind: ArkAgent, name: {agent}"), "/spec/memoryRef/name", "new");
    let merged = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\n\
                  spec: {memoryRef: {name: new}}\n";
    let component =
        "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n".to_owned() + &refers("scout");
    let replaced = "replacements:\n- source: {kind: ArkMemory, name: new}\n  targets: [{select: {kind: ArkAgent}, \
                    fieldPaths: [spec.memoryRef.name]}]\n";
    let memory = |identity: &str| MEMORY.replace("name: notes, namespace: team-a", identity);
    let overlay = |rest: &str| format!("resources: [../base]\n{rest}");
    let renamed = memory("name: new, namespace: team-a");
    let homeless = memory("name: notes");
    let rows: [(&str, String, Files<'_>, i32); 13] = [
        ("reference", refers("scout"), &[("base/memory.yaml", &renamed)], 0),
        (
            "merged",
            "patches: [{path: p.yaml}]\n".to_owned(),
            &[("base/memory.yaml", &renamed), ("prod/p.yaml", merged)],
            0,
        ),
        (
            "component",
            "components: [../c]\n".to_owned(),
            &[("base/memory.yaml", &renamed), ("c/kustomization.yaml", &component)],
            0,
        ),
        ("replacement", replaced.to_owned(), &[("base/memory.yaml", &renamed)], 0),
        ("name", patches("kind: ArkMemory", "/metadata/name", "notes"), &[("base/memory.yaml", &renamed)], 0),
        (
            "prefix",
            "namePrefix: not\n".to_owned(),
            &[("base/memory.yaml", &memory("name: es, namespace: team-a"))],
            0,
        ),
        ("namespace", "namespace: team-a\n".to_owned(), &[("base/memory.yaml", &homeless)], 0),
        (
            "namespace by a patch",
            patches("kind: ArkMemory", "/metadata/namespace", "team-a"),
            &[("base/memory.yaml", &homeless)],
            0,
        ),
        ("other field", patches("kind: ArkAgent", "/spec/model", "m2"), &[("base/memory.yaml", &renamed)], 1),
        ("other agent", refers("other"), &[("base/memory.yaml", &renamed)], 1),
        (
            "other name",
            patches("kind: ArkMemory", "/metadata/name", "third"),
            &[("base/memory.yaml", &renamed)],
            1,
        ),
        // The agent is another object there, and references of new objects only warn.
        (
            "other namespace",
            "namespace: team-b\n".to_owned(),
            &[("base/memory.yaml", &memory("name: new"))],
            0,
        ),
        ("nothing", String::new(), &[("base/memory.yaml", &renamed)], 1),
    ];
    for (what, rest, files, expected) in rows {
        let repository = Repository::with_programs();
        repository.write("base/kustomization.yaml", "resources: [memory.yaml, agent.yaml]\n");
        repository.write("base/memory.yaml", MEMORY);
        repository.write("base/agent.yaml", AGENT);
        repository.write("prod/kustomization.yaml", &overlay(""));
        repository.commit();
        repository.git(&["checkout", "--quiet", "-b", "feature"]);
        repository.write("prod/kustomization.yaml", &overlay(&rest));
        for (name, text) in files {
            repository.write(name, text);
        }
        repository.commit();
        let checked = repository.check(&["--base", "main", "."]);
        assert_eq!(checked.code, Some(expected), "{what}: {:?} {}", checked.findings, checked.stderr);
        let is_denied = checked.tells("base/agent.yaml:4:", "deny");
        assert_eq!(is_denied, expected == 1, "{what}: {:?}", checked.findings);
    }
}

/// An object that a patch removes is gone from the output, so what names it is broken.
#[test]
#[ignore = "needs kubectl and helm"]
fn what_a_patch_removes_is_gone() {
    let repository = Repository::with_programs();
    repository.write("base/kustomization.yaml", "resources: [memory.yaml, agent.yaml]\n");
    repository.write("base/memory.yaml", MEMORY);
    repository.write("base/agent.yaml", AGENT);
    repository.write("prod/kustomization.yaml", "resources: [../base]\n");
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("prod/kustomization.yaml", "resources: [../base]\npatches: [{path: gone.yaml}]\n");
    let removal = "$patch: delete\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n\
                   metadata: {name: notes, namespace: team-a}\n";
    repository.write("prod/gone.yaml", removal);
    repository.commit();
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    let place = "broken by this branch: ArkMemory \"notes\" is gone";
    assert!(checked.tells("base/agent.yaml:4:", place), "{:?}", checked.findings);
}
