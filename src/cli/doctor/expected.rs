//! What `memgate manifests` installs by default: what a live installation is compared with.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::deploy::components::Component;
use crate::deploy::install_plan::{InstallPlan, Part, WebhookEndpoint};
use crate::deploy::render;
use crate::manifest::document::parse;
use crate::manifest::source::Source;
use crate::model::family::Family;

/// The objects that are compared.
#[derive(Debug)]
pub struct Expected {
    /// The mutating calls.
    pub mutating: MutatingWebhookConfiguration,
    /// The validating calls.
    pub validating: ValidatingWebhookConfiguration,
    /// The rights in the whole cluster.
    pub everywhere: Vec<PolicyRule>,
    /// The rights in memgate's own namespace.
    pub at_home: Vec<PolicyRule>,
}

/// The objects for these families and with these components, in this namespace.
///
/// # Errors
/// When they cannot be rendered, which would be a fault of memgate's.
pub fn expected(
    namespace: &str,
    families: &[&'static Family],
    components: BTreeSet<Component>,
) -> anyhow::Result<Expected> {
    let objects = rendered(namespace, families, components)?;
    let roles: Option<ClusterRole> = first(&objects, "ClusterRole")?;
    let role: Option<Role> = first(&objects, "Role")?;
    Ok(Expected {
        mutating: first(&objects, "MutatingWebhookConfiguration")?.unwrap_or_default(),
        validating: first(&objects, "ValidatingWebhookConfiguration")?.unwrap_or_default(),
        everywhere: roles.and_then(|role| role.rules).unwrap_or_default(),
        at_home: role.and_then(|role| role.rules).unwrap_or_default(),
    })
}

/// Every object that is installed.
pub(super) fn rendered(
    namespace: &str,
    families: &[&'static Family],
    components: BTreeSet<Component>,
) -> anyhow::Result<Vec<Value>> {
    let plan = InstallPlan {
        namespace: namespace.to_owned(),
        image: concat!("memgate:", env!("CARGO_PKG_VERSION")).to_owned(),
        endpoint: WebhookEndpoint::Service,
        ca: None,
        flags: Vec::new(),
        families: families.to_vec(),
        components,
    };
    let text = render(&plan, &Part::ALL).context("failed to render what would be installed")?;
    let parsed = parse(&Arc::new(Source::new("memgate manifests", text)));
    Ok(parsed.documents.iter().map(|document| document.value().clone()).collect())
}

pub(super) fn first<T: DeserializeOwned>(objects: &[Value], kind: &str) -> anyhow::Result<Option<T>> {
    let found = objects.iter().find(|object| object.get("kind").and_then(Value::as_str) == Some(kind));
    let read = found.map(|object| serde_json::from_value(object.clone()));
    read.transpose().with_context(|| format!("failed to read the {kind} that would be installed"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::family;

    /// What is installed, for tests that change it.
    pub(in crate::cli::doctor) fn installed(families: &[&'static Family]) -> Expected {
        expected("home", families, BTreeSet::new()).expect("it renders")
    }

    /// One object of it.
    pub(in crate::cli::doctor) fn object<T: DeserializeOwned>(families: &[&'static Family], kind: &str) -> T {
        let objects = rendered("home", families, BTreeSet::new()).expect("it renders");
        first(&objects, kind).expect("it reads").expect("it is there")
    }

    #[test]
    fn knows_what_is_installed() {
        let expected = installed(&family::ALL);
        assert!(expected.mutating.webhooks.is_some_and(|webhooks| webhooks.len() > 5));
        assert!(expected.validating.webhooks.is_some_and(|webhooks| webhooks.len() > 2));
        assert!(!expected.everywhere.is_empty());
    }
}
