//! Infers from the live objects with which settings and components memgate was installed, and what `memgate manifests` would
//! install with them: what a live installation is compared with.

use std::collections::BTreeSet;

use crate::cluster_state::{Fetched, Installation};
use memgate_install::component::Component;
use memgate_install::install_plan::InstallPlan;
use memgate_install::metadata::{DEFAULT_NAMESPACE, NAME, default_name};
use memgate_model::family::Family;
use memgate_model::settings::Settings;
use memgate_platforms::default_settings;

/// The settings of an installation: those of the Deployment's flags, as `parse` reads a command line. Without
/// flags, the families of which the configurations name a kind, or all.
pub(super) fn settings(found: &Installation, parse: fn(&[&str]) -> Option<Settings>) -> Settings {
    // A file of the pods is not one of this machine.
    let known = ["--family=", "--settings={", "--policy-exclude-namespace=", "--cluster-domain="];
    let flags = found.arguments().filter(|arg| known.iter().any(|known| arg.starts_with(known)));
    let flags: Vec<&str> = std::iter::once(NAME).chain(flags).collect();
    let settings = parse(&flags).unwrap_or_else(default_settings);
    if flags.iter().any(|flag| flag.starts_with("--family=")) {
        return settings;
    }
    let by_entry: Vec<_> =
        memgate_platforms::ALL.into_iter().filter(|family| is_registered(found, family)).collect();
    if by_entry.is_empty() { settings } else { Settings { families: by_entry, ..settings } }
}

/// How memgate was installed, as far as the live objects show it: what changes entries.
pub(super) fn plan(found: &Installation, namespace: &str, families: Vec<&'static Family>) -> InstallPlan {
    let arguments: Vec<&str> = found.arguments().collect();
    let arguments = matches!(found.deployment, Fetched::Found(_)).then_some(&*arguments);
    let entries: Vec<&str> = found.all_own_entries().map(|entry| entry.name.as_str()).collect();
    InstallPlan::inferred(&found.name, namespace, families, arguments, &entries)
}

/// The flags of `memgate manifests` for a plan, each with a blank in front.
pub(super) fn flags(plan: &InstallPlan) -> String {
    let InstallPlan { namespace, name, families, components, .. } = plan;
    let mut flags = Vec::new();
    flags.extend((namespace != DEFAULT_NAMESPACE).then(|| format!(" -n {namespace}")));
    flags.extend((*name != default_name(namespace)).then(|| format!(" --name {name}")));
    let some = families.iter().filter(|_| families.len() < memgate_platforms::ALL.len());
    flags.extend(some.map(|family| format!(" --family {}", family.name)));
    let chosen = Component::ALL.iter().filter(|(_, component)| components.contains(component));
    flags.extend(chosen.map(|(name, _)| format!(" --component {name}")));
    flags.extend((!plan.policies).then(|| " --without policies".to_owned()));
    flags.extend((!plan.events).then(|| " --without events".to_owned()));
    flags.concat()
}

/// Whether an entry names a kind of a family.
fn is_registered(found: &Installation, family: &'static Family) -> bool {
    let groups: BTreeSet<&str> =
        family.kinds.validated.iter().map(|kind| kind.group).filter(|group| !group.is_empty()).collect();
    found.all_own_entries().any(|entry| {
        let mut named = entry.rules.iter().flatten().flat_map(|rule| rule.api_groups.iter().flatten());
        named.any(|group| groups.contains(group.as_str()))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;
    use memgate_install::objects::Objects;

    /// An installation of these families in the namespace `home`.
    fn at_home(families: &[&'static Family]) -> InstallPlan {
        let found = Installation { name: "memgate".to_owned(), ..Installation::default() };
        plan(&found, "home", families.to_vec())
    }

    /// What is installed, for tests that change it.
    pub(crate) fn installed(families: &[&'static Family]) -> Objects {
        memgate_install::objects(&at_home(families))
    }

    /// One object of what is installed.
    pub(crate) fn object<T: DeserializeOwned>(families: &[&'static Family], kind: &str) -> T {
        first(installed(families), kind)
    }

    fn first<T: DeserializeOwned>(objects: Objects, kind: &str) -> T {
        let mut documents = objects.documents().into_iter().map(|(_, object)| object);
        let object = documents.find(|object| object.get("kind").and_then(Value::as_str) == Some(kind));
        serde_json::from_value(object.expect("it is there")).expect("it reads")
    }

    #[test]
    fn learns_the_components_from_what_is_installed() {
        for (policies, events, components) in [
            (false, true, &[][..]),
            (false, false, &[Component::CertFiles]),
            (true, true, &[Component::CertManager]),
            (true, true, &[]),
            (true, true, &[Component::ArkBrokers]),
            (true, true, &[Component::PolicyStrict]),
        ] {
            let components: BTreeSet<Component> = components.iter().copied().collect();
            let chosen = || {
                let components = components.clone();
                InstallPlan { policies, events, components, ..at_home(&memgate_platforms::ALL) }
            };
            let expected = memgate_install::objects(&chosen());
            let found = Installation {
                name: "memgate".to_owned(),
                mutating: Fetched::Found(vec![expected.mutating]),
                validating: Fetched::Found(vec![expected.validating]),
                deployment: Fetched::Found(first(memgate_install::objects(&chosen()), "Deployment")),
                ..Installation::default()
            };
            let learnt = plan(&found, "home", Vec::new());
            assert_eq!((learnt.policies, learnt.events, learnt.components), (policies, events, components));
            let unread = Installation { deployment: Fetched::Unknown("no right".to_owned()), ..found };
            assert_eq!(plan(&unread, "home", Vec::new()).policies, policies);
        }
    }

    #[test]
    fn the_flags_print_the_plan() {
        let plan =
            InstallPlan { namespace: DEFAULT_NAMESPACE.to_owned(), ..at_home(&memgate_platforms::ALL) };
        assert_eq!(flags(&plan), "");
        let components = [Component::PolicyStrict].into();
        let plan = InstallPlan { components, policies: false, ..at_home(&[&memgate_platforms::ark::FAMILY]) };
        assert_eq!(
            flags(&plan),
            " -n home --name memgate --family ark --component policy-strict --without policies"
        );
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
