//! The platforms: one folder and one row each, and the list of the rows.
//!
//! A row ([`Family`]) at the head of each folder is all that the rest of memgate knows about the platform.
//! Platforms never use each other. They share the modules beside them: [`message`] for
//! wording, [`references`] for objects that are missing, [`url`], [`endpoint_view`] and `container_view` for the views that
//! policies judge, and the injection engine, [`inject`].
//! [`common`] holds the codes that do not belong to a platform.

pub mod ark;
pub mod arkonis;
pub mod common;
pub mod container_view;
pub mod endpoint_view;
pub mod inject;
pub mod kagent;
pub mod message;
pub mod orka;
pub mod orloj;
pub mod other_references;
mod packed;
mod prelude;
pub mod references;
pub mod spellings;
pub mod sympozium;
pub mod url;
mod workloads;

use std::borrow::Cow;
use std::collections::BTreeMap;

use memgate_model::family::{Family, Kinds};
use memgate_model::kind::{Kind, NAMESPACE, SECRET};
use memgate_model::page::{Pages, unpacked};
use memgate_model::platform_settings::PlatformSettings;
use memgate_model::settings::{PolicySettings, Settings};
use serde_json::Value;

use self::inject::INJECT_LABEL;

use crate::inject::viable::node::RUNTIME_CLASS;

/// The pages of codes.
static PAGES: Pages = Pages::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/pages"))));

/// Every platform, in the order in which several that know one pod add to it.
pub static ALL: [&Family; 6] =
    [&arkonis::FAMILY, &ark::FAMILY, &orloj::FAMILY, &orka::FAMILY, &sympozium::FAMILY, &kagent::FAMILY];

/// The settings of an installation that chooses nothing: every platform is enabled.
pub fn default_settings() -> Settings {
    Settings {
        families: ALL.to_vec(),
        namespace: None,
        platforms: PlatformSettings::default(),
        policies: PolicySettings::default(),
    }
}

/// The CustomResourceDefinitions of memgate's own kinds, of policies and exemptions.
pub fn policy_crds() -> Cow<'static, str> {
    packed::packed!("policy.yaml")
}

/// The platform of this name.
pub fn find(name: &str) -> Option<&'static Family> {
    ALL.into_iter().find(|family| family.name == name)
}

/// All platforms: those of [`ALL`], then those of `enabled` that are not in it. Policies may name each of them,
/// whether it is enabled or not.
pub fn known(enabled: &[&'static Family]) -> Vec<&'static Family> {
    let others = enabled.iter().copied().filter(|family| !ALL.contains(family));
    ALL.into_iter().chain(others).collect()
}

/// The platform that validates objects of this group and kind, with its row for the kind.
pub fn validated(
    families: &[&'static Family],
    group: &str,
    kind: &str,
) -> Option<(&'static Family, &'static Kind)> {
    families.iter().find_map(|family| {
        let mut kinds = family.kinds.validated.iter().chain(family.kinds.misnamed).copied();
        Some((*family, kinds.find(|known| known.is(group, kind))?))
    })
}

/// Whether the metadata of a pod has what the entries of the webhooks select: labels or the annotation of an agent, or
/// memgate's own label.
pub fn selects_pod(families: &[&'static Family], metadata: &Value) -> bool {
    let texts = |field: &str| metadata.get(field).and_then(Value::as_object).into_iter().flatten();
    let labels =
        texts("labels").map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
    let labels: BTreeMap<String, String> = labels.collect();
    let has_annotation = |name: &'static str| texts("annotations").any(|(key, _)| key == name);
    let mut selectors = families.iter().flat_map(|family| family.pods.selectors);
    labels.contains_key(INJECT_LABEL) || selectors.any(|selector| selector.selects(&labels, has_annotation))
}

/// The prefix that an annotation's key must have for an object of this group and kind to be validated;
/// `None` if every object is validated.
pub fn needed_annotation(families: &[&'static Family], group: &str, kind: &str) -> Option<&'static str> {
    let mut kinds = families.iter().flat_map(|family| family.kinds.validated_if_annotated);
    kinds.find(|(known, _)| known.is(group, kind)).map(|(_, start)| *start)
}

/// The kind under which an object of this group and kind enters the state; `None` if no decision of
/// these platforms looks it up. Deployments and RuntimeClasses enter it from files only.
pub fn state_kind(families: &[&'static Family], group: &str, kind: &str) -> Option<&'static Kind> {
    state_kinds(families).chain([&workloads::DEPLOYMENT, &RUNTIME_CLASS]).find(|known| known.is(group, kind))
}

/// Every kind of which a cluster's objects enter the state, possibly more than once.
pub fn state_kinds<'f>(families: &'f [&'static Family]) -> impl Iterator<Item = &'static Kind> + use<'f> {
    let looked_up = |family: &&'static Family| {
        let Kinds { watched, in_files, fetched, .. } = &family.kinds;
        let in_files = in_files.iter().map(|(kind, _)| kind);
        watched.iter().chain(in_files).chain(*fetched).copied()
    };
    families.iter().flat_map(looked_up).chain([&SECRET, &NAMESPACE])
}
