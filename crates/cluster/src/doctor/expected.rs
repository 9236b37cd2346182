//! What `memgate manifests` would install: what a live installation is compared with.

use std::collections::BTreeSet;

use memgate_install::component::Component;
use memgate_install::install_plan::{InstallPlan, WebhookEndpoint};
use memgate_install::objects::Objects;
use memgate_model::family::Family;

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
    })
}

#[cfg(test)]
pub(super) mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;

    /// An installation in the namespace `home` with these components.
    pub(in crate::doctor) fn at_home(components: BTreeSet<Component>) -> InstalledAs<'static> {
        InstalledAs { name: "memgate", namespace: "home", components, elsewhere: Vec::new() }
    }

    /// What is installed, for tests that change it.
    pub(in crate::doctor) fn installed(families: &[&'static Family]) -> Objects {
        objects(&at_home(BTreeSet::new()), families)
    }

    /// One object of an installation.
    pub(in crate::doctor) fn first<T: DeserializeOwned>(objects: Objects, kind: &str) -> T {
        let mut documents = objects.documents().into_iter().map(|(_, object)| object);
        let object = documents.find(|object| object.get("kind").and_then(Value::as_str) == Some(kind));
        serde_json::from_value(object.expect("it is there")).expect("it reads")
    }

    /// One object of what is installed.
    pub(in crate::doctor) fn object<T: DeserializeOwned>(families: &[&'static Family], kind: &str) -> T {
        first(objects(&at_home(BTreeSet::new()), families), kind)
    }

    #[test]
    fn knows_what_is_installed() {
        let expected = installed(&memgate_platforms::ALL);
        assert!(expected.mutating.webhooks.is_some_and(|webhooks| webhooks.len() > 5));
        assert!(expected.validating.webhooks.is_some_and(|webhooks| webhooks.len() > 2));
        assert!(expected.cluster_role.rules.is_some_and(|rules| !rules.is_empty()));
    }
}
