//! What the cluster offers: the version of its apiserver, and the platforms' kinds.

use std::collections::BTreeSet;

use clap::Parser as _;

use crate::cli::doctor::check::{Check, few};
use crate::cli::doctor::evidence::{Installation, Seen, Served};
use crate::cli::entry::{Entry, entries};
use crate::cli::settings::SettingsArgs;
use crate::deploy::components::Component;
use crate::deploy::metadata::NAME;
use crate::family;
use crate::model::family::Family;
use crate::model::kind::Kind;
use crate::model::settings::Settings;

/// The first version that starts sidecars before other containers, and ends them with these.
/// Source: Kubernetes documentation, Sidecar Containers (on by default since 1.29).
const OLDEST: (u32, u32) = (1, 29);

/// Judges the cluster for these families.
#[must_use]
pub fn checks(found: &Installation, families: &[&'static Family]) -> Vec<Check> {
    let mut checks = vec![version(&found.version)];
    match &found.served {
        Seen::Found(served) => checks.extend(families.iter().map(|family| platform(*family, served))),
        Seen::Absent => {}
        Seen::Unknown(why) => checks.push(Check::unknown("platforms", "", why.clone())),
    }
    checks
}

fn version(version: &Seen<(u32, u32)>) -> Check {
    const ID: &str = "apiserver";
    match version {
        Seen::Found(version) if *version < OLDEST => {
            let ((major, minor), (old_major, old_minor)) = (*version, OLDEST);
            let message = format!(
                "Kubernetes {major}.{minor} knows no native sidecars: with a memory sidecar a Job never ends"
            );
            Check::fail(ID, "", message).help(format!("update to {old_major}.{old_minor} or later"))
        }
        Seen::Found((major, minor)) => Check::ok(ID, "", format!("Kubernetes {major}.{minor}")),
        Seen::Absent => Check::unknown(ID, "", "the apiserver does not tell its version"),
        Seen::Unknown(why) => Check::unknown(ID, "", why.clone()),
    }
}

/// Whether a platform is installed, in the versions that memgate reads.
fn platform(family: &'static Family, served: &Served) -> Check {
    const ID: &str = "platforms";
    let subject = format!("family {}", family.name);
    let kinds: BTreeSet<&Kind> =
        family.validated.iter().copied().filter(|kind| !kind.group.is_empty()).collect();
    let versions = |kind: &Kind| -> Vec<String> {
        let of_kind = |((group, _), plurals): &(&(String, String), &BTreeSet<String>)| {
            group == kind.group && plurals.contains(kind.plural)
        };
        served.iter().filter(of_kind).map(|((_, version), _)| version.clone()).collect()
    };
    let mut good = Vec::new();
    let mut odd = Vec::new();
    for kind in kinds {
        let versions = versions(kind);
        if versions.iter().any(|version| version == kind.version) {
            good.push(format!("{}.{}", kind.plural, kind.group));
        } else if !versions.is_empty() {
            let (plural, group, wanted) = (kind.plural, kind.group, kind.version);
            odd.push(format!("{plural}.{group} in {} and not in {wanted}", versions.join(", ")));
        }
    }
    if !odd.is_empty() {
        let message = format!("the cluster serves {}", few(&odd));
        return Check::fail(ID, subject, message).help("see whether a newer memgate knows these versions");
    }
    if good.is_empty() {
        return Check::ok(ID, subject, "not installed; memgate picks it up when it comes");
    }
    Check::ok(ID, subject, format!("installed: {}", few(&good)))
}

/// What the Deployment's flags choose.
#[derive(Debug, clap::Parser)]
struct Flags {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// The settings that an installation has: those of the Deployment's flags. Without it, the families of
/// which the configurations name a kind or a sort of pods, or all.
#[must_use]
pub fn settings(found: &Installation) -> Settings {
    let known = ["--family=", "--orloj-", "--sympozium-"];
    let flags = arguments(found).filter(|arg| known.iter().any(|known| arg.starts_with(known)));
    let flags: Vec<&str> = std::iter::once(NAME).chain(flags.map(String::as_str)).collect();
    let settings = Flags::try_parse_from(&flags).ok().and_then(|flags| flags.settings.settings().ok());
    let settings = settings.unwrap_or_default();
    if flags.iter().any(|flag| flag.starts_with("--family=")) {
        return settings;
    }
    let by_entry: Vec<&'static Family> =
        family::ALL.into_iter().filter(|family| is_registered(found, *family)).collect();
    if by_entry.is_empty() { settings } else { Settings { families: by_entry, ..settings } }
}

/// What differs from the default, as far as it changes rights and entries.
#[must_use]
pub fn components(found: &Installation) -> BTreeSet<Component> {
    let own = |argument: &String| argument.strip_prefix("--certs=").is_some_and(|mode| mode != "builtin");
    let entries = all_entries(found);
    let strict: Vec<String> =
        family::ALL.into_iter().filter(|family| family.honours_required).flat_map(pod_entries).collect();
    let (of_pods, others): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|entry| strict.contains(&entry.name));
    let deployment = found.deployment.found().and_then(|deployment| deployment.spec.as_ref());
    let is_alone = deployment.is_some_and(|spec| spec.replicas == Some(1));
    let chosen = [
        (Component::SingleNode, is_alone && !others.is_empty() && others.iter().all(|entry| !entry.fails)),
        (Component::FailClosed, !of_pods.is_empty() && of_pods.iter().all(|entry| entry.fails)),
        (Component::CertFiles, arguments(found).any(own)),
        (Component::NoEvents, arguments(found).any(|argument| argument == "--no-events")),
        (Component::Templates, entries.iter().any(|entry| entry.name == "templates.memgate.dev")),
    ];
    chosen.into_iter().filter_map(|(component, is_on)| is_on.then_some(component)).collect()
}

/// The live entries of both configurations.
fn all_entries(found: &Installation) -> Vec<Entry> {
    let mut all = found.own_mutating().map(|config| entries(config.webhooks.as_ref())).unwrap_or_default();
    all.extend(found.own_validating().into_iter().flat_map(|config| entries(config.webhooks.as_ref())));
    all
}

/// The names of the entries for a family's pods.
fn pod_entries(family: &'static Family) -> impl Iterator<Item = String> {
    family.pod_selectors.iter().map(|pods| format!("{}.pods.memgate.dev", pods.name))
}

/// The arguments of the Deployment's containers.
fn arguments(found: &Installation) -> impl Iterator<Item = &String> {
    let deployment = found.deployment.found().and_then(|deployment| deployment.spec.as_ref());
    let containers = deployment.and_then(|spec| Some(spec.template.spec.as_ref()?.containers.as_slice()));
    containers.unwrap_or_default().iter().flat_map(|container| container.args.iter().flatten())
}

fn is_registered(found: &Installation, family: &'static Family) -> bool {
    let groups: BTreeSet<&str> =
        family.validated.iter().map(|kind| kind.group).filter(|group| !group.is_empty()).collect();
    all_entries(found).into_iter().any(|entry| {
        let mut named = entry.rules.iter().flat_map(|rule| rule.api_groups.iter().flatten());
        named.any(|group| groups.contains(group.as_str()))
            || pod_entries(family).any(|name| name == entry.name)
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::cli::doctor::check::Status;
    use crate::cli::doctor::evidence::Listed;
    use crate::cli::doctor::expected::tests::{installed, object};
    use crate::cli::doctor::expected::{expected, first, rendered};
    use crate::family;

    fn served(rows: &[(&str, &str, &str)]) -> Seen<Served> {
        let mut served = Served::new();
        for (group, version, plural) in rows {
            let plurals = served.entry(((*group).to_owned(), (*version).to_owned())).or_default();
            plurals.insert((*plural).to_owned());
        }
        Seen::Found(served)
    }

    fn judged(version: (u32, u32), rows: &[(&str, &str, &str)]) -> Vec<(Status, String)> {
        let found =
            Installation { version: Seen::Found(version), served: served(rows), ..Installation::default() };
        checks(&found, &[&family::orloj::FAMILY])
            .into_iter()
            .map(|check| (check.status, check.message))
            .collect()
    }

    #[test]
    fn asks_for_native_sidecars() {
        assert_eq!(judged((1, 36), &[])[0], (Status::Ok, "Kubernetes 1.36".to_owned()));
        assert_eq!(judged((1, 28), &[])[0].0, Status::Fail);
    }

    #[test]
    fn tells_platforms_that_are_there_and_those_in_other_versions() {
        let (status, said) = &judged((1, 36), &[])[1];
        assert!(*status == Status::Ok && said.starts_with("not installed"), "{said}");
        let (status, said) =
            &judged((1, 36), &[("orloj.dev", "v1", "memories"), ("orloj.dev", "v2", "memories")])[1];
        assert!(*status == Status::Ok && said == "installed: memories.orloj.dev", "{said}");
        let (status, said) = &judged((1, 36), &[("orloj.dev", "v2", "memories")])[1];
        assert!(*status == Status::Fail && said.contains("memories.orloj.dev in v2 and not in v1"), "{said}");
    }

    #[test]
    fn learns_the_components_from_what_is_installed() {
        for chosen in [
            &[][..],
            &[Component::SingleNode],
            &[Component::KindDev],
            &[Component::FailClosed],
            &[Component::SingleNode, Component::FailClosed],
            &[Component::NoEvents, Component::Templates],
            &[Component::CertFiles],
        ] {
            let chosen: BTreeSet<Component> = chosen.iter().copied().collect();
            let objects = rendered("home", &family::ALL, chosen.clone()).expect("it renders");
            let expected = expected("home", &family::ALL, chosen.clone()).expect("it renders");
            let deployment = first(&objects, "Deployment").expect("it reads").expect("it is there");
            let found = Installation {
                name: "memgate".to_owned(),
                mutating: Seen::Found(Listed { items: vec![expected.mutating], cut: false }),
                validating: Seen::Found(Listed { items: vec![expected.validating], cut: false }),
                deployment: Seen::Found(deployment),
                ..Installation::default()
            };
            // A replica alone asks for nothing else of what is compared.
            let chosen: BTreeSet<_> = chosen.into_iter().filter(|one| *one != Component::KindDev).collect();
            assert_eq!(components(&found), chosen);
        }
    }

    #[test]
    fn learns_the_settings_from_what_is_installed() {
        assert_eq!(settings(&Installation::default()), Settings::default());
        let expected = installed(&[&family::ark::FAMILY, &family::orka::FAMILY]);
        let mut found = Installation {
            name: "memgate".to_owned(),
            mutating: Seen::Found(Listed { items: vec![expected.mutating], cut: false }),
            validating: Seen::Found(Listed { items: vec![expected.validating], cut: false }),
            ..Installation::default()
        };
        assert_eq!(settings(&found).families, [&family::ark::FAMILY, &family::orka::FAMILY]);
        let mut deployment: Deployment = object(&[&family::orloj::FAMILY], "Deployment");
        let pod = deployment.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).expect("a pod");
        let args = pod.containers[0].args.as_mut().expect("arguments");
        args.push("--orloj-job-namespace=jobs".to_owned());
        found.deployment = Seen::Found(deployment);
        let settings = settings(&found);
        assert_eq!(settings.families, [&family::orloj::FAMILY]);
        assert_eq!(settings.orloj.job_namespaces, ["jobs"]);
    }
}
