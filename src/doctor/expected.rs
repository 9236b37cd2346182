//! What `memgate manifests` would install: what a live installation is compared with.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error as ThisError;

use crate::deploy::component::Component;
use crate::deploy::install_plan::{InstallPart, InstallPlan, WebhookEndpoint};
use crate::deploy::render;
use crate::manifest::document::parse;
use crate::manifest::source::Source;
use crate::model::family::Family;

/// Why there is nothing to compare with; a fault of memgate's.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The objects cannot be rendered.
    #[error("failed to render what would be installed")]
    Render(#[from] crate::deploy::Error),
    /// One of them is not what its kind says.
    #[error("failed to read the {kind} that would be installed")]
    Read {
        /// The kind.
        kind: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// How memgate was installed, as far as it shows and changes what is compared.
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

/// The objects that are compared.
#[derive(Debug)]
pub struct Expected {
    /// The mutating webhooks.
    pub mutating: MutatingWebhookConfiguration,
    /// The validating webhooks.
    pub validating: ValidatingWebhookConfiguration,
    /// The permissions in the whole cluster.
    pub cluster_rules: Vec<PolicyRule>,
    /// The permissions in memgate's own namespace.
    pub namespace_rules: Vec<PolicyRule>,
}

/// The objects of an installation with these families.
///
/// # Errors
/// When they cannot be rendered.
pub fn expected(installed: &InstalledAs<'_>, families: &[&'static Family]) -> Result<Expected, Error> {
    let objects = rendered(installed, families)?;
    let roles: Option<ClusterRole> = first(&objects, "ClusterRole")?;
    let role: Option<Role> = first(&objects, "Role")?;
    Ok(Expected {
        mutating: first(&objects, "MutatingWebhookConfiguration")?.unwrap_or_default(),
        validating: first(&objects, "ValidatingWebhookConfiguration")?.unwrap_or_default(),
        cluster_rules: roles.and_then(|role| role.rules).unwrap_or_default(),
        namespace_rules: role.and_then(|role| role.rules).unwrap_or_default(),
    })
}

/// Every object that is installed.
pub(super) fn rendered(
    installed: &InstalledAs<'_>,
    families: &[&'static Family],
) -> Result<Vec<Value>, Error> {
    let plan = InstallPlan {
        name: installed.name.to_owned(),
        namespace: installed.namespace.to_owned(),
        image: concat!("memgate:", env!("CARGO_PKG_VERSION")).to_owned(),
        endpoint: WebhookEndpoint::Service,
        ca: None,
        flags: Vec::new(),
        families: families.to_vec(),
        elsewhere: installed.elsewhere.clone(),
        components: installed.components.clone(),
    };
    let text = render(&plan, &InstallPart::ALL)?;
    let parsed = parse(&Arc::new(Source::new("memgate manifests", text)));
    Ok(parsed.documents.iter().map(|document| document.value().clone()).collect())
}

pub(super) fn first<T: DeserializeOwned>(objects: &[Value], kind: &str) -> Result<Option<T>, Error> {
    let found = objects.iter().find(|object| object.get("kind").and_then(Value::as_str) == Some(kind));
    let read = found.map(|object| serde_json::from_value(object.clone()));
    read.transpose().map_err(|source| Error::Read { kind: kind.to_owned(), source })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::family;

    /// An installation in the namespace `home` with these components.
    pub(in crate::doctor) fn at_home(components: BTreeSet<Component>) -> InstalledAs<'static> {
        InstalledAs { name: "memgate", namespace: "home", components, elsewhere: Vec::new() }
    }

    /// What is installed, for tests that change it.
    pub(in crate::doctor) fn installed(families: &[&'static Family]) -> Expected {
        expected(&at_home(BTreeSet::new()), families).expect("it renders")
    }

    /// One object of it.
    pub(in crate::doctor) fn object<T: DeserializeOwned>(families: &[&'static Family], kind: &str) -> T {
        let objects = rendered(&at_home(BTreeSet::new()), families).expect("it renders");
        first(&objects, kind).expect("it reads").expect("it is there")
    }

    #[test]
    fn knows_what_is_installed() {
        let expected = installed(&family::ALL);
        assert!(expected.mutating.webhooks.is_some_and(|webhooks| webhooks.len() > 5));
        assert!(expected.validating.webhooks.is_some_and(|webhooks| webhooks.len() > 2));
        assert!(!expected.cluster_rules.is_empty());
    }
}
