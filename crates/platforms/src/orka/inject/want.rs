//! The variables that the worker should have, and warnings about it.

use std::sync::Arc;

use crate::inject::env::{self, ExistingEnv, Variable};
use crate::inject::own::MemoryVariableNames;
use crate::inject::{WantedByContainer, WantedByPod, field_origin};
use memgate_model::finding::{Finding, excerpt};
use memgate_model::pod::{self, Pod};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::super::codes::POD_NO_TOKEN;
use super::super::setting::{Setting, SettingValue};
use super::find::{ResolvedSetting, SettingSources, title};
use super::recognise::Worker;

/// The prefix of all variables. Variables of the pod without it are skipped.
const PREFIX: &str = "ORKA_";

/// The names of all variables. None of them is judged that no annotation wants: a Task may set it.
pub(super) const NAMES: MemoryVariableNames<'static> =
    MemoryVariableNames { prefixes: &[PREFIX], names: &[], open: None };

/// What the worker should have, `None` without any setting, and warnings about the pod.
pub(super) fn want<'p, 's: 'p>(
    pod: &Pod<'_>,
    worker: &Worker<'p, 'p>,
    mut sources: SettingSources<'s>,
    work: &Budget<'_>,
) -> (Option<WantedByPod<'p>>, Vec<Finding>) {
    let enabled = sources.resolve(Setting::Enabled);
    let disabled = match worker.container.variable(Setting::Enabled.variable()) {
        Some((_, existing)) => existing
            .literal()
            .is_some_and(|text| Setting::Enabled.read_literal(text) == SettingValue::Switch(false)),
        None => enabled.as_ref().is_some_and(|enabled| enabled.value == SettingValue::Switch(false)),
    };
    let mut resolved = vec![(Setting::Enabled, enabled)];
    let mut warnings = Vec::new();
    if !disabled {
        resolved
            .extend([Setting::Limit, Setting::MaxChars].map(|setting| (setting, sources.resolve(setting))));
        warnings.extend(no_token(pod, worker));
    }
    resolved.push((Setting::Tools, sources.resolve(Setting::Tools)));
    warnings.extend(sources.warnings);
    warnings.extend(literal_problems(worker, work));
    let resolved = resolved.into_iter().filter_map(|(setting, resolved)| Some((setting, resolved?)));
    let resolved: Vec<_> = resolved.collect();
    let existing = ExistingEnv::read(worker.container, &[PREFIX]);
    let mut memory: Vec<String> = Vec::new();
    for (setting, resolved) in &resolved {
        let path = title(resolved.source, '/');
        if existing.get(setting.variable()).is_none() && !memory.contains(&path) {
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
fn variable(setting: Setting, resolved: &ResolvedSetting<'_>) -> Variable<'static> {
    let key = format!("metadata.annotations[{}]", setting.annotation());
    let origin = field_origin(&Arc::from(title(resolved.source, ' ')), key);
    let value = resolved.value;
    Variable::literal(setting.variable(), value.to_string(), origin)
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
        let literal = excerpt(literal);
        let message = move |at: &Pointer| format!("{}: {}", at.field(), setting.about(problem, &literal));
        Some(Finding::warn_within(work, setting.literal_code(), pointer, message))
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
