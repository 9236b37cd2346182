//! Validates the variables of a Task.

use memgate_model::finding::{Code, Finding, excerpt};
use memgate_primitives::budget::Budget;
use memgate_primitives::fix::Fix;
use memgate_primitives::pointer::Pointer;

use super::super::codes::{ENV_AGENT_FORGED, ENV_DUPLICATE, ENV_LITERAL_TOKEN, ENV_NO_EFFECT, ENV_RESERVED};
use super::super::setting::Setting;
use super::super::task_variable::TaskVariable;
use super::{TaskType, with_field};

/// The prefix of all variables that Orka reads.
const PREFIX: &str = "ORKA_";

/// The variable with the name of the Agent.
const AGENT_NAME: &str = "ORKA_AGENT_NAME";

/// The variables that the controller sets after those of the Task, or instead of them.
const RESERVED: [&str; 7] = [
    "ORKA_TASK_NAME", "ORKA_TASK_NAMESPACE", "ORKA_TASK_UID", "ORKA_CONTROLLER_URL", "ORKA_RESULT_ENDPOINT",
    "ORKA_AI_TOOLS", "ORKA_COORDINATION_ENABLED",
];

fn warn_at(
    work: &Budget<'_>,
    code: &'static Code,
    pointer: Pointer,
    message: impl Fn() -> String + Send + Sync + 'static,
) -> Finding {
    Finding::warn_within(work, code, pointer, move |at| with_field(at, &message()))
}

/// All findings about the variables that do not depend on the Agent. `has_agent` is `None` where the reference to it has
/// the wrong type.
pub(super) fn findings(
    variables: &[TaskVariable<'_>],
    task_type: Option<TaskType>,
    has_agent: Option<bool>,
    work: &Budget<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<Setting> = Vec::new();
    // Most variables do not concern Orka.
    for variable in variables.iter().filter(|variable| variable.name.starts_with(PREFIX)) {
        if let Some(setting) = Setting::from_variable(variable.name) {
            findings.extend(check_setting(variable, setting, task_type, work));
            if seen.contains(&setting) {
                let name = excerpt(variable.name);
                let message = move || format!("duplicate {name}; the last one wins");
                let finding = warn_at(work, &ENV_DUPLICATE, variable.pointer(Some("name")), message);
                findings.push(finding.fix(Some(Fix::RemoveRepeated)));
            } else {
                seen.push(setting);
            }
        }
        findings.extend(set_by_controller(variable, task_type, has_agent, work));
        findings.extend(literal_token(variable, work));
    }
    findings
}

fn check_setting(
    variable: &TaskVariable<'_>,
    setting: Setting,
    task_type: Option<TaskType>,
    work: &Budget<'_>,
) -> Option<Finding> {
    match task_type? {
        TaskType::Ai => {
            let literal = variable.literal()?;
            let problem = setting.literal_problem(literal)?;
            let literal = excerpt(literal);
            let message = move || setting.about(problem, &literal);
            Some(warn_at(work, setting.literal_code(), variable.value_pointer(), message))
        }
        other => {
            let name = excerpt(variable.name);
            let message = move || format!("{name} has no effect on a Task of type {}", other.name());
            Some(warn_at(work, &ENV_NO_EFFECT, variable.pointer(Some("name")), message))
        }
    }
}

/// Warns about variables that the controller sets itself.
fn set_by_controller(
    variable: &TaskVariable<'_>,
    task_type: Option<TaskType>,
    has_agent: Option<bool>,
    work: &Budget<'_>,
) -> Option<Finding> {
    let name = variable.name;
    let is_agent_name = name == AGENT_NAME;
    match task_type? {
        TaskType::Ai if is_agent_name && has_agent == Some(false) => {
            let message = "ORKA_AGENT_NAME without spec.agentRef forges the agent name on memory proposals";
            Some(warn_at(work, &ENV_AGENT_FORGED, variable.pointer(Some("name")), move || message.to_owned()))
        }
        TaskType::Ai | TaskType::Container
            if RESERVED.contains(&name) || (is_agent_name && has_agent == Some(true)) =>
        {
            let name = excerpt(name);
            let message = move || format!("{name} is set by the Orka controller; this value is ignored");
            Some(warn_at(work, &ENV_RESERVED, variable.pointer(Some("name")), message))
        }
        TaskType::Ai | TaskType::Container | TaskType::Agent => None,
    }
}

fn literal_token(variable: &TaskVariable<'_>, work: &Budget<'_>) -> Option<Finding> {
    variable.token()?;
    let message = "ORKA_SA_TOKEN holds a literal token; use valueFrom.secretKeyRef";
    Some(warn_at(work, &ENV_LITERAL_TOKEN, variable.value_pointer(), move || message.to_owned()))
}
