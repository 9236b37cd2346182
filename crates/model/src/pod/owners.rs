//! The owners of a pod, read when they are needed. Owners that no decision uses are not kept.

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use crate::view::{Place, Text, View, view};

use super::visit_elements;

/// The longest valid text in an owner reference: a group of 253 characters, a slash and a version of 63.
const MAX_FIELD_BYTES: usize = 317;

view! {
    /// An owner of a pod.
    Owner {
        /// Its API group and version.
        api_version: Text<'a> = "apiVersion",
        /// Its kind.
        kind: Text<'a> = "kind",
        /// Its name.
        name: Text<'a> = "name",
        /// Its uid.
        uid: Text<'a> = "uid",
        /// Whether it is the controller of the pod.
        controller: bool = "controller",
    }
}

/// The owner references of a pod, unread.
#[derive(Debug, Clone)]
pub struct Owners<'a>(&'a RawValue);

/// The owner that made a pod. Its texts are at most as long as valid ones.
#[derive(Debug, Clone)]
pub struct Controller {
    /// Its API group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl<'de: 'a, 'a> View<'de> for Owners<'a> {
    fn read<D: Deserializer<'de>>(deserializer: D, _place: &Place<'_>) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Self)
    }
}

impl Owners<'_> {
    /// The first owner that is marked as the pod's controller, if its fields are complete.
    pub fn controller(&self) -> Option<Controller> {
        let mut found = None;
        visit_elements(Some(self.0), |owner: Owner<'_>| {
            if owner.controller == Some(true) && found.is_none() {
                found = Some(controller(owner));
            }
        })?;
        found?
    }

    /// Whether a Job is among the owners, or there are none.
    pub fn allow_job(&self) -> bool {
        let (mut is_empty, mut has_job) = (true, false);
        let read = visit_elements(Some(self.0), |owner: Owner<'_>| {
            is_empty = false;
            has_job |= owner.kind.as_deref() == Some("Job");
        });
        read.is_some() && (is_empty || has_job)
    }
}

/// Bounds the length of the texts: the apiserver has not validated the pod yet, and the event queue keeps
/// them.
fn controller(owner: Owner<'_>) -> Option<Controller> {
    let text = |text: Option<Text<'_>>| {
        text.filter(|text| text.len() <= MAX_FIELD_BYTES).map(|text| text.0.into_owned())
    };
    Some(Controller {
        api_version: text(owner.api_version)?,
        kind: text(owner.kind)?,
        name: text(owner.name)?,
        uid: text(owner.uid)?,
    })
}
