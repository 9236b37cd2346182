//! The kind of object to which a patch applies.

use std::sync::Arc;

use super::missing::{Built, Present};
use crate::kustomization::Selector;
use crate::report::ObjectRef;
use memgate_manifest::document::Document;
use memgate_model::settings::Settings;
use memgate_model::workload;
use memgate_primitives::pointer::Pointer;

/// The object to which a patch applies, as far as it is known.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Whether the kustomization says it, and not the patch itself.
    pub(super) is_selected: bool,
    /// Whether it is of a kind of a platform.
    pub(super) is_of_platform: bool,
    /// Whether such an object is known to be missing: a patch for it changes nothing.
    pub(super) is_missing: bool,
}

impl Target {
    fn new([group, version, kind]: [&str; 3]) -> Self {
        let platform = memgate_platforms::validated(&memgate_platforms::ALL, group, kind);
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
            is_selected: false,
            is_of_platform: platform.is_some(),
            is_missing: false,
        }
    }

    /// A pod of a template.
    pub(super) fn pod() -> Self {
        Self::new(["", "v1", "Pod"])
    }

    /// The object that a patch names itself.
    pub(super) fn own(document: &Document) -> Option<Self> {
        let names = [document.group(), document.version(), document.kind()];
        let namespace = document.namespace().unwrap_or_default().to_owned();
        let name = document.name().to_owned();
        (!document.kind().is_empty()).then(|| Self { namespace, name, ..Self::new(names) })
    }

    /// The objects that a kustomization selects, one of each kind, if their kinds are known: from all of its objects, else from
    /// the selector. Without a group it is that of the objects with this name, else the only one that has such a kind.
    pub(super) fn selected(
        selector: &Selector,
        built: Option<&Built>,
        present: &Present,
        settings: &Settings,
    ) -> Vec<Self> {
        let selected = built.and_then(|built| built.selected(selector)).unwrap_or_default();
        if selected.is_empty() {
            let is_missing = built.is_some_and(|it| it.warning_of(selector, &Pointer::root()).is_some());
            let target = Self::of_kind(selector, present, settings);
            return target.map(|target| Self { is_missing, ..target }).into_iter().collect();
        }
        let targets = selected.iter().map(|(group, kind)| {
            let validated = memgate_platforms::validated(&settings.families, group, kind);
            let version = validated.map_or("v1", |(_, it)| it.version);
            Self::of_selector(selector, [group, version, kind])
        });
        targets.collect()
    }

    /// The same where the objects are not known.
    fn of_kind(selector: &Selector, present: &Present, settings: &Settings) -> Option<Self> {
        let kind = selector.kind.as_deref()?;
        let name = selector.name.as_deref().unwrap_or_default();
        let families = &settings.families;
        let validated =
            families.iter().flat_map(|family| family.kinds.validated.iter().map(move |it| (family, *it)));
        let validated =
            validated.filter(|(family, it)| it.kind == kind && !family.kinds.misnamed.contains(it));
        let built_in = workload::built_in().map(|it| (it.group, it.kind, "v1")).chain([("", "Pod", "v1")]);
        let mut known: Vec<(&str, &str)> = validated.map(|(_, it)| (it.group, it.version)).collect();
        known.extend(built_in.filter(|it| it.1 == kind).map(|(group, _, version)| (group, version)));
        match &selector.group {
            Some(group) => known.retain(|(it, _)| it == group),
            None => {
                let groups = present.groups(kind, name);
                if known.iter().any(|(group, _)| groups.contains(group)) {
                    known.retain(|(group, _)| groups.contains(group));
                }
            }
        }
        let [(group, version)] = known[..] else { return None };
        Some(Self::of_selector(selector, [group, version, kind]))
    }

    fn of_selector(selector: &Selector, [group, version, kind]: [&str; 3]) -> Self {
        let is_plain = |version: &&str| version.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let version = selector.version.as_deref().filter(is_plain).unwrap_or(version);
        let [namespace, name] =
            [&selector.namespace, &selector.name].map(|it| it.clone().unwrap_or_default());
        Self { namespace, name, is_selected: true, ..Self::new([group, version, kind]) }
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Its name in reports, and whether it counts as checked.
    pub(super) fn named(&self) -> (ObjectRef, bool) {
        (self.object_ref(), self.is_of_platform)
    }

    /// Its name in reports.
    pub(super) fn object_ref(&self) -> ObjectRef {
        ObjectRef {
            api_version: self.api_version().into(),
            kind: self.kind.as_str().into(),
            namespace: self.namespace.as_str().into(),
            name: self.name.as_str().into(),
            set: Arc::default(),
        }
    }
}
