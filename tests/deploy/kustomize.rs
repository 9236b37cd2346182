//! `deploy/kustomize` against the renderer, object by object.

use memgate_install::component::{Component, contradiction};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::generate::{components, families, folder};
use crate::objects::{Objects, base, compare, printed, read};
use crate::support::assets::{Assets, SearchPaths};
use crate::support::release::Release;

#[test]
#[ignore = "needs Go, for kubectl"]
fn the_base_is_what_the_renderer_prints() {
    compare("the base", base(), kustomize(&folder().join("base")));
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn the_default_is_what_the_renderer_prints() {
    compare("the default", printed(&[]), kustomize(&folder().join("default")));
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn each_family_is_what_the_renderer_prints() {
    for family in &families() {
        compare(family, printed(&["--component", family, "--no-policies"]), built("base", &[family]));
    }
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn each_family_with_policies_is_what_the_renderer_prints() {
    for name in memgate_platforms::ALL.map(|family| family.name) {
        let (family, policies) = (&*format!("family-{name}"), &*format!("policies/{name}"));
        let strict = &*format!("policy-strict/{name}");
        let folders = [family, "policies/common", policies, strict];
        compare(policies, printed(&["--component", family]), built("base", &folders[..3]));
        let flags = ["--component", family, "--component", "policy-strict"];
        compare(strict, printed(&flags), built("base", &folders));
    }
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn all_families_without_policies_are_what_the_renderer_prints() {
    let families = families();
    let families: Vec<&str> = families.iter().map(String::as_str).collect();
    compare("no policies", printed(&["--no-policies"]), built("base", &families));
}

/// A cluster rarely has all families; orka makes do without memory.
#[test]
#[ignore = "needs Go, for kubectl"]
fn each_family_can_fail_closed_alone() {
    for family in memgate_platforms::ALL.into_iter().filter(|family| family.pods.honour_required) {
        let name = family.name;
        let family = &*format!("family-{name}");
        let flags =
            ["--component", family, "--component", "ha", "--component", "fail-closed", "--no-policies"];
        let folder = format!("fail-closed/{name}");
        compare(&folder, printed(&flags), built("base", &[family, "ha", &folder]));
    }
}

/// Each way to get a certificate has a component of its own, since what names the namespace differs.
#[test]
#[ignore = "needs Go, for kubectl"]
fn a_second_installation_is_what_the_renderer_prints() {
    for (components, last) in [
        (&["family-ark", "templates", "network-policy"][..], "installation"),
        (&["family-ark", "cert-manager"], "installation/cert-manager"),
        (&["family-ark", "csi-driver"], "installation/csi-driver"),
        (&["family-ark", "cert-files", "service-monitor", "alerts", "dashboards"], "installation/cert-files"),
    ] {
        let flags: Vec<&str> = components.iter().flat_map(|name| ["--component", name]).collect();
        let flags = [&["--namespace=team-a", "--no-policies"], &flags[..]].concat();
        let written = built_in("base", components, "namespace: team-a", &[last]).expect("it can be built");
        compare(last, printed(&flags), written);
    }
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn a_second_installation_can_wait_for_a_replica() {
    let components = ["policy-strict", "after-ready"];
    let written = built_in("default", &components, "namespace: team-a", &["installation"]);
    let written = written.expect("it can be built");
    let flags = ["--namespace=team-a", "--component=policy-strict", "--component=after-ready"];
    compare("after-ready in team-a", printed(&flags), written);
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn the_default_can_be_a_second_installation() {
    let written = built_in("default", &[], "namespace: team-a", &["installation"]).expect("it can be built");
    compare("the default in team-a", printed(&["--namespace=team-a"]), written);
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn a_name_of_its_own_is_what_the_renderer_prints() {
    const RENAME: &str = "patches:\n- target: {kind: MutatingWebhookConfiguration, name: memgate}\n  \
                          options: {allowNameChange: true}\n  patch: |-\n    \
                          - {op: replace, path: /metadata/name, value: blue.team-a}";
    let last = ["installation/names", "installation/builtin"];
    let written = built_in("default", &[], RENAME, &last).expect("it can be built");
    compare("blue.team-a", printed(&["--name=blue.team-a"]), written);
    let own = format!("namespace: team-a\n{RENAME}");
    let written = built_in("default", &[], &own, &last).expect("it can be built");
    compare("blue.team-a in team-a", printed(&["--name=blue.team-a", "--namespace=team-a"]), written);
}

/// The patch of the README, and the flags of the renderer that it names.
#[test]
#[ignore = "needs Go, for kubectl"]
fn what_a_cluster_wants_of_pods_is_what_the_renderer_prints() {
    let readme = fs::read_to_string(folder().join("README.md")).expect("can be read");
    let (_, section) = readme.split_once("\n## The pods\n").expect("a section");
    let (flags, rest) =
        section.split_once("`memgate manifests ").expect("flags").1.split_once('`').expect("flags");
    let patch = rest.split_once("```yaml\n").and_then(|(_, rest)| rest.split_once("```")).expect("a patch").0;
    let written = built_in("default", &[], patch, &[]).expect("it can be built");
    compare("the pods", printed(&flags.split_whitespace().collect::<Vec<_>>()), written);
}

/// What a certificate's own component would have changed is not there.
#[test]
#[ignore = "needs Go, for kubectl"]
fn the_wrong_component_for_a_second_installation_fails() {
    for (component, last) in [("cert-files", "installation"), ("ha", "installation/cert-manager")] {
        let failure = built_in("base", &["family-ark", component], "namespace: team-a", &[last]);
        let failure = failure.expect_err("something is missing");
        assert!(failure.contains("unable to find field"), "{component}, {last}: {failure}");
    }
}

/// Entries would lack the condition, or ask about the wrong namespace.
#[test]
#[ignore = "needs Go, for kubectl"]
fn after_ready_in_the_wrong_place_fails() {
    for folder in ["policy-strict", "policy-strict/orka", "fail-closed", "fail-closed/ark"] {
        let failure = built_in("default", &["after-ready", folder], "", &[]).expect_err("it is too late");
        assert!(failure.contains("list-after-ready-behind"), "{folder}: {failure}");
    }
    let last = ["installation", "components/after-ready"];
    let failure = built_in("default", &[], "namespace: team-a", &last).expect_err("it is too late");
    assert!(failure.contains("after-ready': testing value /metadata/name failed"), "{failure}");
}

#[test]
#[ignore = "needs Go, for kubectl"]
fn each_component_is_what_the_renderer_prints() {
    for component in choices() {
        holds(&[component]);
    }
}

/// In the order in which the README lists them, components can be combined: all at once, save those
/// that contradict each other.
#[test]
#[ignore = "needs Go, for kubectl"]
fn all_components_together_are_what_the_renderer_prints() {
    let pairs = [
        [Component::Ha, Component::CertManager],
        [Component::SingleNode, Component::CsiDriver],
        [Component::KindDev, Component::CertFiles],
    ];
    for rivals in pairs {
        // What one of them refuses, a single node does not.
        let is_alone = rivals.contains(&Component::SingleNode);
        let combines = |component: &Component| match component {
            Component::FailClosed => false,
            // kustomize cannot pass over a configuration without an entry that fails closed.
            Component::PolicyStrict | Component::AfterReady => !is_alone,
            _ => rivals.contains(component) || !pairs.as_flattened().contains(component),
        };
        holds(&choices().into_iter().filter(combines).collect::<Vec<_>>());
    }
}

/// Neither is in Git, where a tool would put it back when it changed.
#[test]
fn no_certificate_and_no_ca_bundle_is_ever_written() {
    for component in [None].into_iter().chain(choices().into_iter().map(Some)) {
        let ha = (component == Some(Component::FailClosed)).then_some(Component::Ha);
        let names: Vec<_> = component.into_iter().chain(ha).map(Component::name).collect();
        let flags: Vec<_> = names.iter().flat_map(|name| ["--component", name]).collect();
        for (name, object) in printed(&flags) {
            let text = object.to_string();
            assert!(!text.contains("\"caBundle\":") && !text.contains("-----BEGIN"), "{names:?}: {name}");
            assert_ne!(object["kind"], "Secret", "{names:?}: {name}");
        }
    }
}

#[test]
fn there_is_a_component_for_each_folder() {
    let folders = fs::read_dir(components()).expect("is a folder");
    let mut folders: Vec<_> = folders
        .map(|entry| entry.expect("can be read").file_name().into_string().expect("is text"))
        .collect();
    folders.sort();
    let mut known: Vec<_> = Component::all().map(|component| component.name().into_owned()).collect();
    known.sort();
    assert_eq!(folders, known);
}

#[test]
fn the_readme_names_each_component_in_order() {
    let readme = fs::read_to_string(folder().join("README.md")).expect("can be read");
    let table = readme.lines().skip_while(|line| !line.starts_with("| component")).skip(2);
    let rows = table.map_while(|line| line.strip_prefix("| ")?.split(" | ").next());
    let named: Vec<_> = rows.flat_map(|names| names.split(", ")).collect();
    assert_eq!(named, Component::all().map(Component::name).collect::<Vec<_>>());
}

/// Every component that the default lacks, in the order in which they are listed.
fn choices() -> Vec<Component> {
    let is_more = |component: &Component| !matches!(component, Component::Family(_) | Component::Policies);
    Component::all().filter(is_more).collect()
}

fn holds(components: &[Component]) {
    let mut components: BTreeSet<Component> = components.iter().copied().collect();
    if components.contains(&Component::FailClosed) {
        components.insert(Component::Ha);
    }
    assert_eq!(contradiction(&components), None);
    let names: Vec<_> = components.into_iter().map(Component::name).collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let flags: Vec<&str> = names.iter().flat_map(|name| ["--component", name]).collect();
    compare(&names.join(" and "), printed(&flags), built("default", &names));
}

/// What kustomize makes of a folder and some components.
fn built(folder: &str, names: &[&str]) -> Objects {
    built_in(folder, names, "", &[]).expect("it can be built")
}

/// The same with a component that a user wrote and others, by their folders, behind it; what kustomize says when that
/// fails.
fn built_in(folder: &str, names: &[&str], own: &str, last: &[&str]) -> Result<Objects, String> {
    // Below the root of the repository, wherever else cargo builds: a path of kustomize has to be relative.
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = repository.join("target/tmp");
    fs::create_dir_all(&target).expect("a folder can be made");
    let scratch = tempfile::tempdir_in(target).expect("a folder can be made");
    let steps = scratch.path().strip_prefix(repository).expect("it is in the repository");
    let root = "../".repeat(steps.iter().count()) + "deploy/kustomize";
    let mut components: Vec<_> = names.iter().map(|name| format!("{root}/components/{name}")).collect();
    if !own.is_empty() {
        let header = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component";
        fs::create_dir(scratch.path().join("own")).expect("a folder can be made");
        fs::write(scratch.path().join("own/kustomization.yaml"), format!("{header}\n{own}\n"))
            .expect("can be written");
        components.push("own".to_owned());
    }
    components.extend(last.iter().map(|folder| format!("{root}/{folder}")));
    let kustomization = json!({"resources": [format!("{root}/{folder}")], "components": components});
    fs::write(scratch.path().join("kustomization.yaml"), kustomization.to_string()).expect("can be written");
    run(scratch.path())
}

fn kustomize(folder: &Path) -> Objects {
    run(folder).expect("it can be built")
}

pub(crate) fn run(folder: &Path) -> Result<Objects, String> {
    let paths = SearchPaths::from_environment().expect("it names a release");
    let [printed, by_the_oldest] = [paths.release, Release::OLDEST].map(|release| {
        let kubectl =
            Assets::find(&SearchPaths { release, ..paths.clone() }).expect("there is a kubectl").kubectl;
        Command::new(kubectl).arg("kustomize").arg(folder).env_clear().output().expect("it starts")
    });
    let stderr = String::from_utf8_lossy(&printed.stderr);
    if !printed.status.success() || !stderr.is_empty() {
        assert!(
            !by_the_oldest.status.success(),
            "{}: only {} fails: {stderr}",
            folder.display(),
            paths.release.series
        );
        return Err(format!("{}: {stderr}", folder.display()));
    }
    assert!(
        printed.stdout == by_the_oldest.stdout,
        "{}: kubectl {} differs",
        folder.display(),
        Release::OLDEST.series
    );
    Ok(read(&String::from_utf8(printed.stdout).expect("is text")))
}
