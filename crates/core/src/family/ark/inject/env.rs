//! The variables that a container is to have, and how they compare with those that are there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::model::edit::{EnvSource, EnvVar, Origin};
use crate::model::pod;

use super::target::{Header, Reach, escaped};

/// What all variables start with: most variables of a pod are told apart by it.
const COMMON_START: &str = "ARK_MEMORY_";

/// A variable, and the field of the Memory that it comes from.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: Cow<'static, str>,
    source: EnvSource,
    field: Cow<'static, str>,
}

impl Variable {
    fn new(name: &'static str, source: EnvSource, field: &'static str) -> Self {
        Self { name: name.into(), source, field: field.into() }
    }

    fn literal(name: &'static str, text: &str, field: &'static str) -> Self {
        Self::new(name, EnvSource::Value(escaped(text)), field)
    }

    pub(super) fn env_var(&self) -> EnvVar {
        EnvVar { name: self.name.clone(), source: self.source.clone() }
    }

    /// The origin, given the Memory as `Kind namespace/name`. A variable without a field comes from
    /// the pod itself.
    pub(super) fn origin(&self, memory: &Arc<str>) -> Origin {
        let (resource, rule) = match self.field.as_ref() {
            "" => ("".into(), "the pod's annotation for the timeout"),
            _ => (Arc::clone(memory), ""),
        };
        Origin { resource, field: self.field.clone(), rule }
    }

    /// Whether a variable that is there says the same.
    fn equals(&self, existing: &pod::EnvVar<'_>) -> bool {
        let reference: Option<Value> = pod::read(existing.value_from);
        match (&self.source, existing.value_from) {
            (EnvSource::Value(wanted), None) => existing.value.as_deref().unwrap_or_default() == wanted,
            (EnvSource::ValueFrom(wanted), Some(_)) => is_same(serde_json::to_value(wanted), reference),
            (EnvSource::ConfigMap(wanted), Some(_)) => is_same(serde_json::to_value(wanted), reference),
            _ => false,
        }
    }
}

fn is_same(wanted: serde_json::Result<Value>, existing: Option<Value>) -> bool {
    wanted.ok().zip(existing).is_some_and(|(wanted, existing)| plain(wanted) == plain(existing))
}

/// Without what means the same when it is left out.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let says = |key: &str, value: &Value| !value.is_null() && (key != "optional" || *value != false);
            let kept = fields.into_iter().filter(|(key, value)| says(key, value));
            Value::Object(kept.map(|(key, value)| (key, plain(value))).collect())
        }
        other => other,
    }
}

/// All variables, in their order.
pub(super) fn variables(
    reach: &Reach<'_>,
    address: EnvSource,
    timeout: Option<u16>,
    headers: &[Header<'_>],
) -> Vec<Variable> {
    let mut variables = vec![
        Variable::literal("ARK_MEMORY_NAME", &reach.memory.name, "metadata.name"),
        Variable::literal("ARK_MEMORY_NAMESPACE", &reach.namespace, "metadata.namespace"),
        Variable::new("ARK_MEMORY_URL", address, "spec.address"),
    ];
    let seconds = timeout.map(|seconds| seconds.to_string());
    variables.extend(seconds.map(|text| Variable::literal("ARK_MEMORY_HTTP_TIMEOUT_SECONDS", &text, "")));
    if !headers.is_empty() {
        let names: Vec<&str> = headers.iter().map(|header| header.name).collect();
        variables.push(Variable::literal("ARK_MEMORY_HEADERS", &names.join(","), "spec.headers"));
    }
    variables.extend(headers.iter().map(|header| Variable {
        name: header.variable.clone().into(),
        source: header.source.clone(),
        field: format!("spec.headers[{}].value", header.index).into(),
    }));
    variables
}

/// How the variables of a container compare with the wanted ones.
#[derive(Debug)]
pub(super) struct Compared<'v> {
    /// Not there.
    pub(super) missing: Vec<&'v Variable>,
    /// There with other content: where, and the name.
    pub(super) different: Vec<(usize, &'v str)>,
}

/// Compares. Of several variables of one name the last counts, as for the kubelet.
pub(super) fn compare<'v>(existing: &[pod::EnvVar<'_>], wanted: &'v [Variable]) -> Compared<'v> {
    let named =
        existing.iter().enumerate().filter_map(|(index, entry)| Some((entry.name.as_deref()?, index)));
    let last: BTreeMap<&str, usize> = named.filter(|(name, _)| name.starts_with(COMMON_START)).collect();
    let mut compared = Compared { missing: Vec::new(), different: Vec::new() };
    for variable in wanted {
        let at = last.get(variable.name.as_ref()).copied();
        match at.and_then(|at| Some((at, existing.get(at)?))) {
            None => compared.missing.push(variable),
            Some((_, entry)) if variable.equals(entry) => {}
            Some((at, _)) => compared.different.push((at, variable.name.as_ref())),
        }
    }
    compared
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::plain;

    #[test]
    fn takes_what_is_left_out_for_its_default() {
        let full = json!({"secretKeyRef": {"name": "a", "key": "k", "optional": false}, "fieldRef": null});
        assert_eq!(plain(full), json!({"secretKeyRef": {"name": "a", "key": "k"}}));
        let optional = json!({"secretKeyRef": {"name": "a", "key": "k", "optional": true}});
        assert_eq!(plain(optional.clone()), optional);
    }
}
