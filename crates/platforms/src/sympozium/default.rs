//! The default of an AgentRun: the Ensemble of its Agent. Upstream's controller applies it only in memory: the stored run
//! lacks it, and its later readers use no budget and no circuit breaker.
//!
//! The skills of the Agent, which the controller applies too, are none: with two packs whose sidecars have one volume,
//! Sympozium's own webhook refuses a run that has them.

use super::prelude::*;
use memgate_model::edit::{Entry, Value};

use super::lookup;

/// The label with the Ensemble of the run's Agent, for a new run without it.
pub(crate) fn default(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Edit> {
    let run = subject.object;
    let is_new_run = *subject.kind == AGENT_RUN && subject.operation == Operation::Create;
    if !is_new_run || is_celln(run) || run.misfit(&subject.kind.schema, Path::Root).is_some() {
        return Vec::new();
    }
    let agent = agent_ref(run).and_then(|name| lookup::agent(subject.namespace, name, state).found());
    agent.and_then(|agent| ensemble_label(run, agent)).into_iter().collect()
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
