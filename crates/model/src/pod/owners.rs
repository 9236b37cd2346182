//! The owners of a pod, read once, when they are needed. Owners that no decision uses are not kept.

use std::cell::OnceCell;

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
        /// Whether it is the one that made the pod.
        controller: bool = "controller",
    }
}

/// The owner references of a pod.
#[derive(Debug)]
pub struct Owners<'a> {
    raw: &'a RawValue,
    read: OnceCell<Option<Summary>>,
}

/// What is asked about owners.
#[derive(Debug, Default)]
struct Summary {
    is_empty: bool,
    has_job: bool,
    /// Whether an owner says that it made the pod.
    has_controller: bool,
    /// The first one that does, if it is complete.
    controller: Option<Controller>,
}

/// The owner that made a pod. Its texts are no longer than valid ones.
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
        Ok(Self { raw: Deserialize::deserialize(deserializer)?, read: OnceCell::new() })
    }
}

impl Owners<'_> {
    /// The first owner that says that it made the pod, if it is complete.
    #[must_use]
    pub fn controller(&self) -> Option<&Controller> {
        self.summary()?.controller.as_ref()
    }

    /// Whether a Job is among the owners, or there are none.
    #[must_use]
    pub fn allow_job(&self) -> bool {
        self.summary().is_some_and(|summary| summary.is_empty || summary.has_job)
    }

    /// `None` when this is not a list of owners.
    fn summary(&self) -> Option<&Summary> {
        self.read.get_or_init(|| summary(self.raw)).as_ref()
    }
}

fn summary(raw: &RawValue) -> Option<Summary> {
    let mut summary = Summary { is_empty: true, ..Summary::default() };
    visit_elements(Some(raw), |owner: Owner<'_>| {
        summary.is_empty = false;
        summary.has_job |= owner.kind.as_deref() == Some("Job");
        if owner.controller == Some(true) && !summary.has_controller {
            summary.has_controller = true;
            summary.controller = controller(owner);
        }
    })?;
    Some(summary)
}

/// The apiserver has not validated the pod yet, and the event queue keeps these texts: they are bounded.
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
