//! Injects memory settings into the worker of an AI Task.
//!
//! The injection adds up to four plain variables at the front of the worker's `env`, and never refuses a
//! pod.

pub(super) mod find;

use super::prelude::*;
use crate::inject::env::{ExistingEnv, Variable};
use crate::inject::own::{MemoryVariableNames, OwnVariables};
use memgate_model::pod::{self};

use self::find::{ResolvedSetting, SettingSources, Worker, title};
use super::setting::{ENABLED, LIMIT, MAX_CHARS, Setting, SettingValue, TOOLS};

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
    let (wanted, warnings) = want(pod, worker, sources, work);
    let Some(wanted) = wanted else { return Injection { warnings, ..Injection::nothing(Reason::NoMemory) } };
    let mut injection = merge(pod, wanted, work, |conflict: &Conflict<'_>| {
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
    let (wanted, _) = want(pods[0], worker, sources, state.budget());
    let Some(wanted) = wanted else { return OwnVariables::default() };
    let wanted = wanted.containers.first().map(|it| it.env.as_ref()).unwrap_or_default();
    OwnVariables::read(worker.index, pods, wanted, NAMES, None)
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

/// The prefix of all variables. Variables of the pod without it are skipped.
const PREFIX: &str = "ORKA_";

/// The names of all variables. None of them is judged that no annotation wants: a Task may set it.
const NAMES: MemoryVariableNames<'static> =
    MemoryVariableNames { prefixes: &[PREFIX], names: &[], open: None };

/// What the worker should have, `None` without any setting, and warnings about the pod.
fn want<'p, 's: 'p>(
    pod: &Pod<'_>,
    worker: &Worker<'p, 'p>,
    mut sources: SettingSources<'s>,
    work: &Budget<'_>,
) -> (Option<WantedByPod<'p>>, Vec<Finding>) {
    let enabled = sources.resolve(&ENABLED);
    let disabled = match worker.container.variable(ENABLED.variable) {
        Some((_, existing)) => {
            existing.literal().is_some_and(|text| ENABLED.read_literal(text) == SettingValue::Switch(false))
        }
        None => enabled.as_ref().is_some_and(|enabled| enabled.value == SettingValue::Switch(false)),
    };
    let mut resolved = vec![(&ENABLED, enabled)];
    let mut warnings = Vec::new();
    if !disabled {
        resolved.extend([&LIMIT, &MAX_CHARS].map(|setting| (setting, sources.resolve(setting))));
        warnings.extend(no_token(pod, worker));
    }
    resolved.push((&TOOLS, sources.resolve(&TOOLS)));
    warnings.extend(sources.warnings);
    warnings.extend(literal_problems(worker, work));
    let resolved = resolved.into_iter().filter_map(|(setting, resolved)| Some((setting, resolved?)));
    let resolved: Vec<_> = resolved.collect();
    let existing = ExistingEnv::read(worker.container, &[PREFIX]);
    let mut memory: Vec<String> = Vec::new();
    for (setting, resolved) in &resolved {
        let path = title(resolved.source, '/');
        if existing.get(setting.variable).is_none() && !memory.contains(&path) {
            memory.push(path);
        }
    }
    let variables: Vec<_> =
        resolved.into_iter().map(|(setting, resolved)| variable(setting, &resolved)).collect();
    if variables.is_empty() {
        return (None, warnings);
    }
    let containers = vec![WantedByContainer::variables(worker.index, worker.container, existing, variables)];
    (Some(WantedByPod { memory, containers, ..WantedByPod::default() }), warnings)
}

/// A variable that also accepts a literal that the worker reads as the same value. The value of a literal
/// that the kubelet expands is unknown.
fn variable(setting: &'static Setting, resolved: &ResolvedSetting<'_>) -> Variable<'static> {
    let key = format!("metadata.annotations[{}]", setting.annotation);
    let origin = field_origin(&Arc::from(title(resolved.source, ' ')), key);
    let value = resolved.value;
    Variable::literal(setting.variable, value.to_string(), origin)
        .equal_if(move |text| !text.contains("$(") && setting.read_literal(text) == value)
}

/// Warnings about existing literals.
fn literal_problems(worker: &Worker<'_, '_>, work: &Budget<'_>) -> Vec<Finding> {
    let list = env::pointer(worker.index);
    let problem = |(index, variable): (usize, &pod::EnvVarView<'_>)| {
        let setting = Setting::from_variable(variable.name.as_deref()?)?;
        let literal = variable.literal()?;
        let problem = setting.literal_problem(literal)?;
        let pointer = list.index(index).key("value");
        let message = move |at: &Pointer| format!("{}: {problem}", at.field());
        Some(Finding::warn_within(work, setting.literal_code, pointer, message))
    };
    worker.container.env.iter().flatten().enumerate().filter_map(problem).collect()
}

fn no_token(pod: &Pod<'_>, worker: &Worker<'_, '_>) -> Option<Finding> {
    let automounted = pod.spec.as_ref().and_then(|spec| spec.automount_service_account_token);
    let without = automounted == Some(false) && !worker.has_token();
    let pointer = Pointer::new("/spec/automountServiceAccountToken");
    let message = "the worker has no token: memory requests will get 401";
    without.then(|| Finding::warn(&POD_NO_TOKEN, pointer, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orka::codes::LOOKUP_FAILED;
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
