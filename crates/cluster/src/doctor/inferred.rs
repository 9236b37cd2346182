//! Infers from the live objects with which settings and components memgate was installed, and what `memgate manifests` would
//! install with them: what a live installation is compared with.

use std::collections::BTreeSet;

use crate::cluster_state::Installation;
use crate::webhook_entry::WebhookEntry;
use memgate_install::component::Component;
use memgate_install::install_plan::{InstallPlan, PodSettings, WebhookEndpoint};
use memgate_install::metadata::NAME;
use memgate_install::objects::Objects;
use memgate_model::family::Family;
use memgate_model::settings::Settings;
use memgate_platforms::default_settings;
use memgate_primitives::review_path::Phase;

/// The entry for pods that require their memory.
pub(super) const REQUIRED_PODS: &str = "required.pods.memgate.dev";

/// The settings of an installation: those of the Deployment's flags, as `parse` reads a command line. Without
/// flags, the families of which the configurations name a kind or a sort of pods, or all.
pub fn settings(found: &Installation, parse: fn(&[&str]) -> Option<Settings>) -> Settings {
    let known = ["--family=", "--orloj-", "--sympozium-", "--policy-exclude-namespace=", "--cluster-domain="];
    let flags = found.arguments().filter(|arg| known.iter().any(|known| arg.starts_with(known)));
    let flags: Vec<&str> = std::iter::once(NAME).chain(flags).collect();
    let settings = parse(&flags).unwrap_or_else(default_settings);
    if flags.iter().any(|flag| flag.starts_with("--family=")) {
        return settings;
    }
    let by_entry = registered(&found.all_own_entries());
    if by_entry.is_empty() { settings } else { Settings { families: by_entry, ..settings } }
}

/// The components of an installation, as far as they change permissions and entries.
pub fn components(found: &Installation) -> BTreeSet<Component> {
    let is_not_builtin =
        |argument: &str| argument.strip_prefix("--certs=").is_some_and(|mode| mode != "builtin");
    let entries = found.all_own_entries();
    let strict: Vec<String> = memgate_platforms::ALL
        .into_iter()
        .filter(|family| family.pods.honour_required)
        .flat_map(pod_entries)
        .collect();
    let (of_pods, others): (Vec<&WebhookEntry>, Vec<&WebhookEntry>) =
        entries.iter().partition(|entry| strict.contains(&entry.name));
    let replicas =
        found.deployment.as_ref().found().and_then(|deployment| deployment.pointer("/spec/replicas"));
    let is_alone = replicas.is_some_and(|replicas| *replicas == 1);
    let is_open = |entry: &&WebhookEntry| !entry.fails_closed || entry.name == REQUIRED_PODS;
    let is_there = |name: &str| entries.iter().any(|entry| entry.name == name);
    let has_flag = |flag: &str| found.arguments().any(|argument| argument == flag);
    let chosen = [
        (Component::Policies, is_there("policies.memgate.dev")),
        (Component::PolicyStrict, entries.iter().any(|entry| entry.name.starts_with("strict."))),
        (Component::SingleNode, is_alone && !others.is_empty() && others.iter().all(is_open)),
        (Component::FailClosed, !of_pods.is_empty() && of_pods.iter().all(|entry| entry.fails_closed)),
        (Component::CertFiles, found.arguments().any(is_not_builtin)),
        (Component::AfterReady, has_flag("--register-after-ready")),
        (Component::NoEvents, has_flag("--no-events")),
        (Component::ArkBrokers, has_flag("--ark-brokers")),
        (Component::Templates, is_there("templates.memgate.dev")),
    ];
    chosen.into_iter().filter_map(|(component, is_on)| is_on.then_some(component)).collect()
}

/// The families other than `own` whose pods the entry for pods that require their memory leaves alone.
pub fn elsewhere(found: &Installation, own: &[&'static Family]) -> Vec<&'static Family> {
    let entries = found.own_entries(Phase::Mutate).unwrap_or_default();
    let Some(required) = entries.iter().find(|entry| entry.name == REQUIRED_PODS) else { return Vec::new() };
    let others = memgate_platforms::ALL.into_iter().filter(|family| !own.contains(family));
    others.filter(|family| leaves(required, family)).collect()
}

/// Whether the entry for pods that require their memory leaves those of a family to another installation.
pub(super) fn leaves(required: &WebhookEntry, family: &Family) -> bool {
    let name = format!("not-{}", family.name);
    required.match_conditions.iter().any(|condition| condition.name == name)
}

/// The names of the entries for a family's pods.
fn pod_entries(family: &'static Family) -> impl Iterator<Item = String> {
    family.pods.selectors.iter().map(|pods| format!("{}.pods.memgate.dev", pods.name))
}

/// The families of which these entries name a kind or a sort of pods.
pub fn registered(entries: &[WebhookEntry]) -> Vec<&'static Family> {
    memgate_platforms::ALL.into_iter().filter(|family| is_registered(entries, family)).collect()
}

fn is_registered(entries: &[WebhookEntry], family: &'static Family) -> bool {
    let groups: BTreeSet<&str> =
        family.kinds.validated.iter().map(|kind| kind.group).filter(|group| !group.is_empty()).collect();
    entries.iter().any(|entry| {
        let mut named = entry.rules.iter().flat_map(|rule| rule.api_groups.iter().flatten());
        named.any(|group| groups.contains(group.as_str()))
            || pod_entries(family).any(|name| name == entry.name)
    })
}

/// How memgate was installed, as far as the live objects show it.
#[derive(Debug)]
pub struct InstalledAs<'a> {
    /// The name of the cluster-wide objects.
    pub name: &'a str,
    /// The namespace that memgate runs in.
    pub namespace: &'a str,
    /// The components.
    pub components: BTreeSet<Component>,
    /// The families that another installation has.
    pub elsewhere: Vec<&'static Family>,
}

/// Every object of an installation with these families.
pub(super) fn objects(installed: &InstalledAs<'_>, families: &[&'static Family]) -> Objects {
    memgate_install::objects(&InstallPlan {
        name: installed.name.to_owned(),
        namespace: installed.namespace.to_owned(),
        image: concat!("memgate:", env!("CARGO_PKG_VERSION")).to_owned(),
        endpoint: WebhookEndpoint::Service,
        ca: None,
        runbooks: None,
        flags: Vec::new(),
        families: families.to_vec(),
        elsewhere: installed.elsewhere.clone(),
        components: installed.components.clone(),
        pods: PodSettings::default(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;
    use crate::cluster_state::Fetched;

    /// An installation in the namespace `home` with these components.
    pub(crate) fn at_home(components: BTreeSet<Component>) -> InstalledAs<'static> {
        InstalledAs { name: "memgate", namespace: "home", components, elsewhere: Vec::new() }
    }

    /// What is installed, for tests that change it.
    pub(crate) fn installed(families: &[&'static Family]) -> Objects {
        objects(&at_home(BTreeSet::new()), families)
    }

    /// One object of an installation.
    pub(crate) fn first<T: DeserializeOwned>(objects: Objects, kind: &str) -> T {
        let mut documents = objects.documents().into_iter().map(|(_, object)| object);
        let object = documents.find(|object| object.get("kind").and_then(Value::as_str) == Some(kind));
        serde_json::from_value(object.expect("it is there")).expect("it reads")
    }

    /// One object of what is installed.
    pub(crate) fn object<T: DeserializeOwned>(families: &[&'static Family], kind: &str) -> T {
        first(objects(&at_home(BTreeSet::new()), families), kind)
    }

    #[test]
    fn learns_the_components_from_what_is_installed() {
        for chosen in [
            &[][..],
            &[Component::SingleNode],
            &[Component::KindDev],
            &[Component::FailClosed],
            &[Component::SingleNode, Component::FailClosed],
            &[Component::NoEvents, Component::Templates, Component::AfterReady],
            &[Component::CertFiles],
            &[Component::Policies],
            &[Component::Policies, Component::ArkBrokers],
            &[Component::Policies, Component::SingleNode],
            &[Component::Policies, Component::PolicyStrict],
            &[Component::Policies, Component::PolicyStrict, Component::FailClosed],
        ] {
            let chosen: BTreeSet<Component> = chosen.iter().copied().collect();
            let expected = objects(&at_home(chosen.clone()), &memgate_platforms::ALL);
            let deployment = first(objects(&at_home(chosen.clone()), &memgate_platforms::ALL), "Deployment");
            let found = Installation {
                name: "memgate".to_owned(),
                mutating: Fetched::Found(vec![expected.mutating]),
                validating: Fetched::Found(vec![expected.validating]),
                deployment: Fetched::Found(deployment),
                ..Installation::default()
            };
            // A replica alone asks for nothing else of what is compared.
            let chosen: BTreeSet<_> = chosen.into_iter().filter(|one| *one != Component::KindDev).collect();
            assert_eq!(components(&found), chosen);
        }
    }

    #[test]
    fn learns_which_pods_are_left_to_another_installation() {
        let own: [&'static Family; 1] = [&memgate_platforms::orka::FAMILY];
        for elsewhere in [
            vec![],
            vec![&memgate_platforms::arkonis::FAMILY],
            vec![&memgate_platforms::ark::FAMILY, &memgate_platforms::orloj::FAMILY],
        ] {
            let installed = InstalledAs { elsewhere: elsewhere.clone(), ..at_home(BTreeSet::new()) };
            let mutating = objects(&installed, &own).mutating;
            let found = Installation {
                name: "memgate".to_owned(),
                mutating: Fetched::Found(vec![mutating]),
                ..Installation::default()
            };
            assert_eq!(super::elsewhere(&found, &own), elsewhere);
        }
    }

    #[test]
    fn learns_the_families_from_the_entries() {
        let parse = |flags: &[&str]| (flags == [NAME]).then(default_settings);
        assert_eq!(settings(&Installation::default(), parse), default_settings());
        let expected = installed(&[&memgate_platforms::ark::FAMILY, &memgate_platforms::orka::FAMILY]);
        let found = Installation {
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![expected.mutating]),
            validating: Fetched::Found(vec![expected.validating]),
            ..Installation::default()
        };
        assert_eq!(
            settings(&found, parse).families,
            [&memgate_platforms::ark::FAMILY, &memgate_platforms::orka::FAMILY]
        );
    }

    #[test]
    fn knows_what_is_installed() {
        let expected = installed(&memgate_platforms::ALL);
        assert!(expected.mutating.webhooks.is_some_and(|webhooks| webhooks.len() > 5));
        assert!(expected.validating.webhooks.is_some_and(|webhooks| webhooks.len() > 2));
        assert!(expected.cluster_role.rules.is_some_and(|rules| !rules.is_empty()));
    }
}
