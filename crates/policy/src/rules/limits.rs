//! `limits`: how much of a node the containers that serve memory may take.

use std::cell::LazyCell;

use memgate_model::memory_view::ContainerView;
use memgate_model::typed_rule::{JudgedView, RuleOutcome, TypedRule};
use memgate_primitives::quantity::billionths;

use super::bounds::{Quantity, quantity};
use super::words::{MAX_CHARS, fields};
use crate::reader::Reader;
use crate::text::{Shown, name};

#[derive(Debug)]
struct Limits {
    required: Vec<&'static str>,
    max: Vec<(&'static str, Quantity)>,
}

/// The resources of which there are limits.
const RESOURCES: [(&str, &str); 2] = [("cpu", "cpu"), ("memory", "memory")];

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["required", "max"])?;
    let required = fields.texts("required", RESOURCES.len(), MAX_CHARS).unwrap_or_default();
    let required = required.iter().filter_map(|(_, element)| element.choice(&RESOURCES)).collect();
    let mut max = Vec::new();
    if let Some(limits) = fields.get("max").and_then(|it| self::fields(&it, &["cpu", "memory"])) {
        let of = |(name, _)| Some((name, quantity(&limits.get(name)?)?));
        max.extend(RESOURCES.into_iter().filter_map(of));
    }
    Some(Box::new(Limits { required, max }))
}

impl TypedRule for Limits {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        for container in &judged.view.containers {
            self.judge_container(container, judged, outcome);
        }
    }

    fn paths(&self) -> Vec<&str> {
        vec!["containers"]
    }
}

impl Limits {
    fn judge_container(&self, container: &ContainerView, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let shown = LazyCell::new(|| name(judged, &container.name));
        let place = container.field.key("resources").key("limits");
        for resource in self.required.iter().filter(|resource| !container.limits.contains_key(**resource)) {
            let message = format!("container {} has no {resource} limit", *shown);
            outcome.add(place.key(resource), message, &container.name);
        }
        for (resource, max) in &self.max {
            let Some(limit) = container.limits.get(*resource) else { continue };
            if billionths(limit).is_some_and(|limit| limit > max.billionths) {
                let (limit, max) = (Shown::of(judged, limit).number(), &max.text);
                let message = format!("{resource} limit {limit} of container {} is above {max}", *shown);
                outcome.add(place.key(resource), message, format!("{} {limit}", container.name));
            }
        }
    }
}
