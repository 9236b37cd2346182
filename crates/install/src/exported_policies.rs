//! MemoryPolicies as ValidatingAdmissionPolicies: one pair of policy and binding for each family and action.
//!
//! Rules about one object are translated to CEL, with memgate's message. Every other part is returned as [`LeftOut`],
//! with the reason.
//!
//! ```text
//! Policy ──rules──▶ Check, LeftOut ──policies──▶ ValidatingAdmissionPolicy and binding
//!        ──matching──▶ match constraints and conditions
//! ```

mod matching;
mod message;
mod policies;
mod rules;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use crate::{Error, yaml};
use memgate_model::family::Family;
use memgate_model::policy::{Action, Policies, Policy};
use memgate_primitives::pointer::Pointer;

use self::rules::Check;

/// The options of an export.
#[derive(Debug)]
pub struct ExportOptions<'o> {
    /// The families; a policy may be about fewer of them.
    pub families: &'o [&'static Family],
    /// The namespaces in which no policy judges.
    pub excluded_namespaces: &'o [String],
    /// The time for promotions.
    pub now: Timestamp,
}

/// The exported policies, and the parts that could not be exported.
#[derive(Debug, Default)]
pub struct Exported {
    /// Each policy with its binding.
    pub policies: Vec<[Value; 2]>,
    /// The parts that were not exported, in the order of the policies and their rules.
    pub left_out: Vec<LeftOut>,
}

/// A part of a policy that was not exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the policy.
    pub policy: String,
    /// The id of the rule, if it is about one.
    pub rule: Option<String>,
    /// The place in the policy.
    pub pointer: Pointer,
    /// Which part, of which objects.
    pub what: String,
    /// Why.
    pub reason: String,
    /// Whether memgate then reports more than the apiserver.
    pub is_loss: bool,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule.as_ref().map(|rule| format!("/{rule}")).unwrap_or_default();
        write!(f, "policy/{}{rule}: {}not exported: {}", self.policy, self.what, self.reason)
    }
}

/// Exports all policies.
pub fn export(policies: &Policies, options: &ExportOptions<'_>) -> Exported {
    let mut exported = Exported::default();
    for policy in policies.iter() {
        export_policy(policy, options, &mut exported);
    }
    exported
}

fn export_policy(policy: &Policy, options: &ExportOptions<'_>, exported: &mut Exported) {
    let families = options.families.iter().copied().filter(|family| {
        policy.matching.families.as_ref().is_none_or(|names| names.iter().any(|name| name == family.name))
    });
    let families: Vec<_> = families.collect();
    let mut checks: BTreeMap<(&'static Family, Action), Vec<Check>> = BTreeMap::new();
    for rule in &policy.rules {
        let (said, left_out) = rules::export(policy, rule, &families, options.now);
        for (family, check) in said {
            if let Some(kept) = check.kept() {
                checks.entry((family, Action::Warn)).or_default().push(kept);
            }
            checks.entry((family, check.action)).or_default().push(check);
        }
        exported.left_out.extend(left_out);
    }
    exported.left_out.extend(policy.defaults.iter().enumerate().map(|(index, default)| LeftOut {
        policy: policy.name.clone(),
        rule: None,
        pointer: Pointer::new("/spec/defaults").index(index),
        what: format!("default of {} of {} {}: ", default.field.as_str(), default.family, default.kind),
        reason: "a ValidatingAdmissionPolicy writes nothing".to_owned(),
        is_loss: true,
    }));
    let pairs = checks.into_iter().map(|((family, action), checks)| {
        policies::pair(policy, family, action, &checks, options.excluded_namespaces)
    });
    exported.policies.extend(pairs);
}

impl Exported {
    /// The policies and bindings as a stream of YAML documents.
    ///
    /// # Errors
    /// When an object cannot be written as YAML, which would be a bug of memgate's.
    pub fn render(&self) -> Result<String, Error> {
        yaml(self.policies.iter().flatten().cloned())
    }
}

#[cfg(test)]
mod tests;
