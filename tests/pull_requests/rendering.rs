//! `--base` together with `--render`: charts and overlays as they were where the branch began.

use crate::repository::{Repository, denied};

/// What helm does with these charts: it prints their templates with the value of each file that it is given.
pub(crate) const HELM: &str = r#"values="$2/values.yaml"; [ "$3" = --values ] && values="$4"
for file in "$2"/templates/*; do echo "---"; sed "s/{{BACKEND}}/$(cat "$values")/" "$file"; done"#;

/// What kustomize does with these overlays: it prints the base beside them, which need not be among the inputs.
const KUSTOMIZE: &str = r#"cat "$2"/../../base/*.txt"#;

const CHART: &str = "apiVersion: v2\nname: agents\nversion: 0.1.0\n";

fn templated(name: &str) -> String {
    denied(name).replace("backend: redis", "backend: {{BACKEND}}")
}

/// A branch with a chart of which the base has all but one template.
pub(crate) fn charted() -> Repository {
    let repository = Repository::new();
    repository.write("chart/Chart.yaml", CHART);
    repository.write("chart/values.yaml", "redis");
    // No manifest by its name: what is read of the base for helm is more than what a check reads.
    repository.write("chart/templates/_old.tpl", &templated("old"));
    repository.write("prod.yaml", "redis");
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("chart/templates/new.tpl", &templated("new"));
    repository.commit();
    repository.stand_in("helm", HELM);
    repository
}

#[test]
fn counts_what_a_branch_brings_to_a_chart() {
    let repository = charted();
    for arguments in [&["."][..], &["chart"], &["chart", "--values", "prod.yaml"]] {
        let checked = repository.check(&[&["--base", "main", "--render"], arguments].concat());
        assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
        // The stand-in does not name its templates, so both stand at the chart, where the new one is shown.
        assert_eq!(checked.findings.len(), 1, "{:?} {}", checked.findings, checked.stderr);
        assert!(
            checked.tells("chart/Chart.yaml:1:1: ", "deny [arkonis/redis-required]"),
            "{:?}",
            checked.findings
        );
        assert!(!checked.stderr.contains("error"), "{}", checked.stderr);
    }
}

#[test]
fn takes_the_values_of_the_base() {
    let repository = charted();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.write("prod.yaml", "in-context");
    repository.commit();
    // What is wrong comes by a value.
    repository.write("prod.yaml", "redis");
    let check = |values: &str| repository.check(&["--base", "HEAD", "--render", "--values", values, "chart"]);
    assert_eq!(check("prod.yaml").code, Some(1));
    // A file that the base does not have is the same for both.
    repository.write("other.yaml", "redis");
    let checked = check("other.yaml");
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("", "already in HEAD"), "{:?}", checked.findings);
}

#[test]
fn has_all_that_an_overlay_refers_to() {
    let repository = Repository::new();
    repository.write("base/memory.txt", &denied("notes"));
    repository.write("overlays/prod/kustomization.yaml", "resources: [../../base]\n");
    repository.commit();
    repository.stand_in("kustomize", KUSTOMIZE);
    let check = || repository.check(&["--base", "HEAD", "--render", "overlays"]);
    let checked = check();
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(
        checked.tells("overlays/prod/kustomization.yaml:1:1: ", "already in HEAD"),
        "{:?}",
        checked.findings
    );
    repository.write("base/more.txt", &format!("---\n{}", denied("more")));
    assert_eq!(check().code, Some(1));
}

/// Dependencies of charts are often not committed.
#[test]
fn says_what_cannot_be_rendered_at_the_base() {
    let repository = charted();
    let fails = "case \"$2\" in *memgate-base-*) echo \"Error: $2/charts is missing at redis://app:hunter2@r\" >&2; exit 1;; esac";
    repository.stand_in("helm", &format!("{fails}\n{HELM}"));
    let checked = repository.check(&["--base", "main", "--render", "."]);
    assert_eq!(checked.code, Some(1));
    assert_eq!(checked.findings.len(), 1, "{:?}", checked.findings);
    let note = "note: 1 error at the base, so findings there count as new: chart/Chart.yaml: helm template \
                chart: Error: chart/charts is missing at redis://";
    assert!(checked.stderr.contains(note), "{}", checked.stderr);
    assert!(!checked.stderr.contains("hunter2"), "{}", checked.stderr);
}

/// Also without rendering a patch is judged with the resources of its kustomization, at the base too.
#[test]
fn compares_patches_with_the_resources_of_the_base() {
    let repository = Repository::new();
    repository.write("base/kustomization.yaml", "resources: [memory.yaml]\n");
    repository.write("base/memory.yaml", &denied("notes"));
    let patch = |name: &str| {
        format!(
            "- target: {{kind: ArkMemory, name: {name}}}\n  patch: '[{{op: remove, path: /spec/redis}}]'\n"
        )
    };
    let kustomization = "resources: [../../base]\npatches:\n".to_owned() + &patch("note");
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
    repository.write("overlays/prod/kustomization.yaml", &(kustomization + &patch("nots")));
    assert_eq!(check().code, Some(1));
}

const MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\nspec: {backend: in-context}\n";
const AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\nspec: {model: m, systemPrompt: s, memoryRef: {name: notes}}\n";

/// Files: paths and texts.
type Files<'f> = &'f [(&'f str, &'f str)];

/// What a chart or an overlay makes that is not rendered may be what an agent names.
#[test]
fn what_moves_to_where_it_is_not_rendered_may_be_there() {
    let template = MEMORY.replace("name: notes, namespace: team-a", "name: {{ .Release.Name }}");
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
    for (files, expected) in [(chart, 0), (overlay, 0), (elsewhere, 1), (others, 1), (&[], 1)] {
        let repository = Repository::new();
        repository.write("memory.yaml", MEMORY);
        repository.write("agent.yaml", AGENT);
        repository.commit();
        repository.git(&["checkout", "--quiet", "-b", "feature"]);
        std::fs::remove_file(repository.path.join("memory.yaml")).expect("is there");
        for (name, text) in files {
            repository.write(name, text);
        }
        repository.commit();
        let checked = repository.check(&["--base", "main", "."]);
        assert_eq!(checked.code, Some(expected), "{files:?}: {:?} {}", checked.findings, checked.stderr);
    }
}

/// A Flux Kustomization that a kustomization lists, rendered at the base as in the work tree.
#[test]
fn what_breaks_through_a_kustomization_that_is_rendered_is_denied() {
    let flux = |memory: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: apps, namespace: flux-system}}\n\
             spec:\n  path: ./apps\n  postBuild: {{substitute: {{memory: {memory}}}}}\n"
        )
    };
    let repository = Repository::new();
    repository.write("apps/memory.yaml", MEMORY);
    repository.write("apps/agent.yaml", &AGENT.replace("name: notes", "name: \"${memory}\""));
    repository.write("clusters/kustomization.yaml", "resources: [apps.yaml]\n");
    repository.write("clusters/apps.yaml", &flux("notes"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("clusters/apps.yaml", &flux("notez"));
    repository.commit();
    repository.stand_in("kustomize", "cat \"$2\"/apps.yaml");
    let checked = repository.check(&["--base", "main", "--render", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    let place = "${memory} is \"notez\" in clusters/apps.yaml:6; broken by this branch: it named ArkMemory \"notes\" before";
    assert!(checked.tells("./apps/agent.yaml:4:", place), "{:?}", checked.findings);
}

/// What an overlay changes together with its base is not known without rendering, so it only warns. Where no overlay changes
/// the name, the namespace or the reference, a rename is denied.
#[test]
fn what_an_overlay_changes_together_with_its_base_is_not_broken() {
    let patch = |target: &str, path: &str, value: &str| {
        format!(
            "patches:\n- target: {{{target}}}\n  patch: '[{{op: replace, path: {path}, value: {value}}}]'\n"
        )
    };
    let refers =
        |agent: &str| patch(&format!("kind: ArkAgent, name: {agent}"), "/spec/memoryRef/name", "new");
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
    let rows: [(&str, String, Files<'_>, i32); 14] = [
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
        ("name", patch("kind: ArkMemory", "/metadata/name", "notes"), &[("base/memory.yaml", &renamed)], 0),
        (
            "prefix",
            "namePrefix: not\n".to_owned(),
            &[("base/memory.yaml", &memory("name: es, namespace: team-a"))],
            0,
        ),
        ("transformer", "transformers: [t.yaml]\n".to_owned(), &[("base/memory.yaml", &renamed)], 0),
        ("namespace", "namespace: team-a\n".to_owned(), &[("base/memory.yaml", &homeless)], 0),
        (
            "namespace by a patch",
            patch("kind: ArkMemory", "/metadata/namespace", "team-a"),
            &[("base/memory.yaml", &homeless)],
            0,
        ),
        ("other field", patch("kind: ArkAgent", "/spec/model", "m2"), &[("base/memory.yaml", &renamed)], 1),
        ("other agent", refers("other"), &[("base/memory.yaml", &renamed)], 1),
        (
            "other name",
            patch("kind: ArkMemory", "/metadata/name", "third"),
            &[("base/memory.yaml", &renamed)],
            1,
        ),
        (
            "other namespace",
            "namespace: team-b\n".to_owned(),
            &[("base/memory.yaml", &memory("name: new"))],
            1,
        ),
        ("nothing", String::new(), &[("base/memory.yaml", &renamed)], 1),
    ];
    for (what, rest, files, expected) in rows {
        let repository = Repository::new();
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
        let severity = if expected == 0 { "warn" } else { "deny" };
        let is_said = checked.tells("./base/agent.yaml:4:", severity);
        assert!(is_said, "{what}: {:?}", checked.findings);
    }
}

/// Which patch removes an object is said, and not that its base has lost it.
#[test]
fn what_a_patch_removes_is_said_to_be_removed_by_it() {
    let repository = Repository::new();
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
    // kustomize, as far as this overlay needs it.
    let print =
        "[ -f \"$2\"/gone.yaml ] || cat \"$2\"/../base/memory.yaml; echo ---; cat \"$2\"/../base/agent.yaml";
    repository.stand_in("kustomize", print);
    let checked = repository.check(&["--base", "main", "--render", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    let place = "broken by this branch: ArkMemory \"notes\" is removed by prod/gone.yaml";
    assert!(checked.tells("base/agent.yaml:4:", place), "{:?}", checked.findings);
}
