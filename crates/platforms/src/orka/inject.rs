//! Injects memory settings into the worker of an AI Task.
//!
//! The injection adds up to four plain variables at the front of the worker's `env`, and never refuses a
//! pod.

mod find;
pub(super) mod recognise;
mod want;

use crate::inject::elsewhere::origin_place;
use crate::inject::own::OwnVariables;
use crate::inject::{Conflict, controller_of, merge};
use memgate_model::event::InvolvedObject;
use memgate_model::finding::Finding;
use memgate_model::injection::Injection;
use memgate_model::kind::NAMESPACE;
use memgate_model::pod::Pod;
use memgate_model::reason::Reason;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;

use self::find::SettingSources;
use self::recognise::Worker;
use super::api::{LABEL_PREFIX, STATE_AGENT, STATE_TASK};
use super::codes::POD_ENV_CONFLICT;

/// What to add to the pod; `None` if it is not an AI worker.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let worker = Worker::find(pod)?;
    let contradictions = worker.contradictions(pod, namespace);
    if !contradictions.is_empty() {
        return Some(Injection { warnings: contradictions, ..Injection::nothing(Reason::Conflict) });
    }
    Some(match SettingSources::look_up(&worker, namespace, state) {
        Ok(sources) => merge_settings(pod, &worker, sources, state.budget()),
        // Settings from only some of the objects could override an Agent's opt-out, which is final.
        Err(unmet) => *unmet,
    })
}

fn merge_settings(
    pod: &Pod<'_>,
    worker: &Worker<'_, '_>,
    sources: SettingSources<'_>,
    work: &Budget<'_>,
) -> Injection {
    let (wanted, warnings) = want::want(pod, worker, sources, work);
    let Some(wanted) = wanted else { return Injection { warnings, ..Injection::nothing(Reason::NoMemory) } };
    let mut injection = merge(wanted, work, |conflict: &Conflict<'_>| {
        let message = format!("{} is already set in the pod; annotation ignored", conflict.variable.name);
        let (origin, kinds) = (&conflict.variable.origin, [&STATE_TASK, &STATE_AGENT, &NAMESPACE]);
        Finding::warn(&POD_ENV_CONFLICT, conflict.entry.clone(), message)
            .and_elsewhere(|| origin_place(origin, &kinds))
    });
    injection.warnings.extend(warnings);
    injection
}

/// The variables that a worker sets itself; empty where no annotation wants any.
pub(super) fn own_variables(
    worker: &Worker<'_, '_>,
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> OwnVariables {
    let Ok(sources) = SettingSources::look_up(worker, namespace, state) else {
        return OwnVariables::default();
    };
    let (wanted, _) = want::want(pods[0], worker, sources, state.budget());
    let Some(wanted) = wanted else { return OwnVariables::default() };
    let wanted = wanted.containers.first().map(|it| it.env.as_ref()).unwrap_or_default();
    OwnVariables::read(worker.index, pods, wanted, want::NAMES, None)
}

/// The Task of the worker, or else the pod's controller.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let worker = Worker::find(pod).filter(|worker| worker.task_namespace == namespace)?;
    let task = state.peek(&STATE_TASK, namespace, worker.task_name);
    task.map(|task| InvolvedObject::of(&STATE_TASK, task)).or_else(|| controller_of(pod, namespace))
}

/// The namespace that an AI worker declares in its variables.
pub(crate) fn declared_namespace<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    Worker::find(pod).map(|worker| worker.task_namespace)
}

/// Whether a pod belongs to Orka, worker or not. Such a pod stays unchanged, whatever its other labels ask
/// for.
pub(crate) fn is_orka_pod(pod: &Pod<'_>) -> bool {
    let labels = pod.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(LABEL_PREFIX)))
}

#[cfg(test)]
mod tests {
    use super::super::codes::LOOKUP_FAILED;
    use super::*;
    use memgate_model::snapshot::Snapshot;

    #[test]
    fn adds_nothing_when_the_task_cannot_be_looked_up() {
        let pod = r#"{
            "metadata": {"labels": {"orka.ai/task": "a", "orka.ai/task-type": "ai"}},
            "spec": {"containers": [{"name": "worker", "env": [
                {"name": "ORKA_TASK_NAME", "value": "a"},
                {"name": "ORKA_TASK_NAMESPACE", "value": "team"},
                {"name": "ORKA_CONTROLLER_URL", "value": "http://orka"}
            ]}]}
        }"#;
        let pod = Pod::parse(pod).expect("a pod");
        let snapshot = Snapshot::new(crate::default_settings());
        let work = Budget::default();
        let mut state = StateReader::new(&snapshot, &work);
        let injection = inject(&pod, "team", &mut state).expect("a worker");
        assert!(injection.edits.is_empty());
        let finding = injection.unmet.first().expect("a word about it").clone();
        assert_eq!(finding.code, &LOOKUP_FAILED);
        assert_eq!(
            finding.message(),
            "metadata.labels[orka.ai/task]: Task \"team/a\" could not be looked up"
        );
        let asked: Vec<&str> = state.into_unknown().iter().map(|reference| reference.kind.kind).collect();
        assert_eq!(asked, ["Namespace", "Task"]);
    }
}
