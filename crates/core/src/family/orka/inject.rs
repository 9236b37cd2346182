//! What the worker of an AI Task lacks to have its memory settings.
//!
//! Up to three plain variables at the head of the worker's `env`, and nothing else: no label,
//! volume or container. What the pod already says wins. No pod is ever refused.

mod chain;
mod selector_value;
mod worker;

use std::sync::Arc;

use crate::family::pod::{Added, Injection, Place, env_pointer, insert_env, maker};
use crate::model::decision::Reason;
use crate::model::edit::{EnvSource, EnvVar, Origin};
use crate::model::event::InvolvedObject;
use crate::model::finding::{Finding, quoted};
use crate::model::pod::{self, Pod};
use crate::model::pointer::Pointer;
use crate::model::snapshot::StateReader;

use self::chain::{Chain, Resolved, Unknown};
use self::worker::Worker;
use super::api::{KNOWN_TASK, LABELS, TASK_LABEL, WORKER};
use super::codes::{LOOKUP_FAILED, POD_ENV_CONFLICT, POD_NO_TOKEN};
use super::setting::{Setting, Value};

/// What the pod lacks; `None` when it is no AI worker.
#[must_use]
pub fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let worker = Worker::of(pod)?;
    let misfits = worker.misfits(pod, namespace);
    if !misfits.is_empty() {
        return Some(Injection { warnings: misfits, ..Injection::nothing(Reason::Conflict) });
    }
    Some(match Chain::find(&worker, namespace, state) {
        Ok(chain) => fill(pod, &worker, chain),
        Err(unknown) => not_known(&unknown),
    })
}

/// The Task of the worker, or else what made the pod.
#[must_use]
pub fn referrer(pod: &Pod<'_>, namespace: &str, state: &StateReader<'_>) -> Option<InvolvedObject> {
    let worker = Worker::of(pod).filter(|worker| worker.task_namespace == namespace)?;
    let task = state.peek(&KNOWN_TASK, namespace, worker.task_name);
    task.map(|task| InvolvedObject::of(&KNOWN_TASK, task)).or_else(|| maker(pod, namespace))
}

/// The namespace that an AI worker says it belongs to.
#[must_use]
pub fn home<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    Worker::of(pod).map(|worker| worker.task_namespace)
}

/// Whether a pod is any of Orka's: it is left alone then, whatever else its labels ask for.
#[must_use]
pub fn is_of_orka(pod: &Pod<'_>) -> bool {
    let labels = pod.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(LABELS)))
}

/// The label of the pod that leads to everything else.
fn task_label() -> Pointer {
    Pointer::new("/metadata/labels").key(TASK_LABEL)
}

/// Half of what is said about a Task is worse than nothing: an Agent's opt-out is final.
fn not_known(unknown: &Unknown) -> Injection {
    let message = format!("{} {} could not be looked up", unknown.kind, quoted(&unknown.name));
    let finding = Finding::warn(&LOOKUP_FAILED, task_label(), message);
    Injection::unmet(Reason::ReferenceUnknown, finding)
}

/// Compares what the pod has with what the annotations want, and adds what is missing.
fn fill(pod: &Pod<'_>, worker: &Worker<'_, '_>, mut chain: Chain<'_>) -> Injection {
    let mut plan = Plan { worker, missing: Vec::new(), warnings: Vec::new(), resolved: 0 };
    let enabled = chain.resolve(Setting::Enabled);
    let stays_off = match worker.last(Setting::Enabled.variable()) {
        Some((_, existing)) => {
            existing.literal().is_some_and(|text| Setting::Enabled.of_literal(text) == Value::Switch(false))
        }
        None => enabled.as_ref().is_some_and(|enabled| enabled.value == Value::Switch(false)),
    };
    plan.want(Setting::Enabled, enabled);
    if !stays_off {
        for setting in [Setting::Limit, Setting::MaxChars] {
            plan.want(setting, chain.resolve(setting));
        }
        plan.warnings.extend(no_token(pod, worker));
    }
    plan.warnings.extend(chain.warnings);
    plan.warnings.extend(literal_problems(worker));
    plan.carry_out()
}

/// What is wrong with the literals that are there already.
fn literal_problems(worker: &Worker<'_, '_>) -> Vec<Finding> {
    let problem = |(index, variable): (usize, &pod::EnvVar<'_>)| {
        let (code, message) =
            Setting::of_variable(variable.name.as_deref()?)?.problem(variable.literal()?)?;
        let pointer = env_pointer(worker.index).index(index).key("value");
        let message = format!("{}: {message}", pointer.field());
        Some(Finding::warn(code, pointer, message))
    };
    worker.env().iter().enumerate().filter_map(problem).collect()
}

fn no_token(pod: &Pod<'_>, worker: &Worker<'_, '_>) -> Option<Finding> {
    let automounted = pod.spec.as_ref().and_then(|spec| spec.automount_service_account_token);
    let without = automounted == Some(false) && !worker.has_token();
    let pointer = Pointer::new("/spec/automountServiceAccountToken");
    let message = "the worker has no token: memory requests will get 401";
    without.then(|| Finding::warn(&POD_NO_TOKEN, pointer, message))
}

/// What will be done to the worker.
struct Plan<'p, 'a, 's> {
    worker: &'p Worker<'p, 'a>,
    missing: Vec<(Setting, Resolved<'s>)>,
    warnings: Vec<Finding>,
    /// How many settings somebody has set.
    resolved: usize,
}

impl<'s> Plan<'_, '_, 's> {
    fn want(&mut self, setting: Setting, resolved: Option<Resolved<'s>>) {
        let Some(resolved) = resolved else { return };
        self.resolved += 1;
        let Some((index, existing)) = self.worker.last(setting.variable()) else {
            self.missing.push((setting, resolved));
            return;
        };
        let means_the_same = |text: &str| !text.contains("$(") && setting.of_literal(text) == resolved.value;
        if !existing.literal().is_some_and(means_the_same) {
            let message = format!("{} is already set in the pod; annotation ignored", setting.variable());
            let pointer = env_pointer(self.worker.index).index(index);
            self.warnings.push(Finding::warn(&POD_ENV_CONFLICT, pointer, message));
        }
    }

    fn carry_out(self) -> Injection {
        let conflict = self.warnings.iter().any(|finding| finding.code == &POD_ENV_CONFLICT);
        let mut added = Added::default();
        let mut names = Vec::new();
        let mut block = Vec::new();
        for (setting, resolved) in self.missing {
            let path = resolved.source.path();
            if !added.memory.contains(&path) {
                added.memory.push(path);
            }
            names.push(setting.variable().into());
            let source = EnvSource::Value(resolved.value.to_string());
            let origin = Origin {
                resource: Arc::from(resolved.source.title()),
                field: format!("metadata.annotations[{}]", setting.annotation()).into(),
                rule: "",
            };
            block.push((EnvVar { name: setting.variable().into(), source }, origin));
        }
        if !names.is_empty() {
            added.env.push((WORKER.to_owned(), names));
        }
        let edits = insert_env(self.worker.index, self.worker.container.env.as_deref(), block, Place::Front);
        let reason = match (edits.is_empty(), conflict, self.resolved) {
            (false, ..) => Reason::Injected,
            (true, true, _) => Reason::Conflict,
            (true, false, 0) => Reason::NoMemory,
            (true, false, _) => Reason::Complete,
        };
        Injection { warnings: self.warnings, edits, added, ..Injection::nothing(reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::snapshot::Snapshot;

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
        let snapshot = Snapshot::default();
        let mut state = StateReader::new(&snapshot);
        let injection = inject(&pod, "team", &mut state).expect("a worker");
        assert!(injection.edits.is_empty());
        let finding = injection.unmet.first().expect("a word about it").clone();
        assert_eq!(finding.code, &LOOKUP_FAILED);
        assert_eq!(finding.message, "Task \"team/a\" could not be looked up");
        let asked: Vec<&str> = state.into_unknown().iter().map(|reference| reference.kind.kind).collect();
        assert_eq!(asked, ["Namespace", "Task"]);
    }
}
