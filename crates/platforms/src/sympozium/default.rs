//! The defaults of an AgentRun. Upstream's controller applies them only in memory: the stored run lacks
//! them, and its later readers use no memory, budget and circuit breaker.

use std::sync::Arc;

use crate::inject::resource_name;
use crate::prelude::*;
use memgate_model::edit::{Edit, Entry, Op, Origin, Value};
use memgate_model::request::Operation;
use memgate_primitives::pointer::Path;
use serde_json::Value as Json;

use super::api::agent::{agent_ref, has_memory, inherits_skills, is_celln, skills};
use super::api::{AGENT_RUN, ENSEMBLE_LABEL, label};
use super::lookup;

/// The skills and the Ensemble of the run's Agent, for a new run that does not set them.
pub(crate) fn default(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Edit> {
    let run = subject.object;
    let is_new_run = *subject.kind == AGENT_RUN && subject.operation == Operation::Create;
    // Upstream refuses runs of Celln for skills.
    if !is_new_run || is_celln(run) || run.misfit(&subject.kind.schema, Path::Root).is_some() {
        return Vec::new();
    }
    let Some(name) = agent_ref(run) else { return Vec::new() };
    let Lookup::Found(agent) = lookup::agent(subject.namespace, name, state) else { return Vec::new() };
    ensemble_label(run, agent).into_iter().chain(agents_skills(run, agent)).collect()
}

fn ensemble_label(run: &Tree, agent: &Object) -> Option<Edit> {
    let ensemble = label(agent.tree(), ENSEMBLE_LABEL)?;
    let labels = Pointer::new("/metadata/labels");
    let mut op = Op::Add;
    let (pointer, value) = match run.at(&["metadata", "labels"]) {
        None => (labels, Value::Entry(Entry(ENSEMBLE_LABEL.to_owned(), ensemble.to_owned()))),
        Some(own @ Tree::Texts(_)) if label(run, ENSEMBLE_LABEL).is_none() => {
            if own.has_key(ENSEMBLE_LABEL) {
                op = Op::Replace;
            }
            (labels.key(ENSEMBLE_LABEL), Value::Text(ensemble.to_owned()))
        }
        Some(_) => return None,
    };
    run.get("metadata").filter(|metadata| metadata.is_object())?;
    let field = format!("metadata.labels[{ENSEMBLE_LABEL}]");
    let origins = vec![Origin { resource: resource_name("Agent", agent), field: field.into(), rule: "" }];
    Some(Edit { op, pointer, value, origins })
}

/// The Agent's skills, if memory is among them. Upstream's controller handles the other skills.
fn agents_skills(run: &Tree, agent: &Object) -> Option<Edit> {
    let op = match run.at(&["spec", "skills"]) {
        None => Op::Add,
        Some(Tree::List(own)) if own.is_empty() => Op::Replace,
        Some(_) => return None,
    };
    if !inherits_skills(run) || !has_memory(agent.tree()) {
        return None;
    }
    run.get("spec").filter(|spec| spec.is_object())?;
    let list = skills(agent.tree()).iter().map(skill).collect::<Option<Vec<Json>>>()?;
    let resource = resource_name("Agent", agent);
    let origin = |index| Origin {
        resource: Arc::clone(&resource),
        field: format!("spec.skills[{index}]").into(),
        rule: "",
    };
    let origins = (0..list.len()).map(origin).collect();
    Some(Edit { op, pointer: Pointer::new("/spec/skills"), value: Value::Tree(Json::Array(list)), origins })
}

/// A skill of the Agent as JSON, with all its fields except those that are `null`, which the apiserver
/// drops; `None` if it is not an object.
fn skill(skill: &Tree) -> Option<Json> {
    let mut fields = skill.whole()?;
    fields.retain(|_, value| !value.is_null());
    if let Some(Json::Object(params)) = fields.get_mut("params") {
        params.retain(|_, value| !value.is_null());
    }
    Some(Json::Object(fields))
}
