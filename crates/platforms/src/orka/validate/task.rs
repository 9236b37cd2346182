//! Validates a Task and its variables.

use crate::orka::prelude::*;
use crate::orka::setting::{ENABLED, Setting, TOOLS, TaskVariable, is_off, parse_bool, switch};

use super::agent::{annotation_findings, misspelled};
use super::{CONTAINER, task_type, warn, warn_within, with_field};

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let task = subject.object;
    let task_type = task_type(task);
    let is_ai = task_type == Some(TASK_TYPE_AI);
    let agent_ref = task.at(&["spec", "agentRef"]);
    let has_agent = agent_ref.is_none_or(Tree::is_object).then_some(agent_ref.is_some());
    let env = TaskVariable::read_all(task);
    let mut findings = annotation_findings(task, task_type.is_some() && !is_ai, state.budget());
    findings.extend(variable_findings(&env, task_type, has_agent, state.budget()));
    if is_ai {
        findings.extend(agent(subject, &env, state));
        findings.extend(tools(subject, state));
    }
    findings
}

/// Findings that depend on the Task's Agent.
fn agent(subject: &Subject<'_>, env: &[TaskVariable<'_>], state: &mut StateReader<'_>) -> Vec<Finding> {
    let Some((namespace, name)) = agent_ref(subject.object) else { return Vec::new() };
    let home = namespace.unwrap_or(subject.namespace);
    let (mut findings, mut in_state) = (Vec::new(), None);
    match state.get(&STATE_AGENT, home, name) {
        Lookup::Found(agent) => {
            for opt_out in OPT_OUTS.iter().filter(|opt_out| is_off(opt_out.setting, agent.tree())) {
                let at = annotation_pointer(opt_out.setting.annotation);
                let of_task = [
                    opt_out.turned_on_by_env(subject.object, env, name),
                    opt_out.turned_on_by_annotation(subject.object, name),
                ];
                let found = of_task.into_iter().flatten();
                findings.extend(found.map(|it| it.elsewhere(agent, at.clone(), "opted out of here")));
            }
            in_state = Some(agent);
        }
        Lookup::Unknown(()) | Lookup::Absent => {}
    }
    if home != subject.namespace {
        findings.push(agent_in_other_namespace(subject.namespace, home).and_elsewhere(|| {
            let at = Pointer::new("/metadata/namespace");
            Some(Elsewhere::of(in_state?, at, "it is in this namespace"))
        }));
    }
    findings
}

/// A setting that an Agent can switch off for all of its Tasks.
struct OptOut {
    setting: &'static Setting,
    what: &'static str,
    env: &'static Code,
    annotation: &'static Code,
}

static OPT_OUTS: [OptOut; 2] = [
    OptOut { setting: &ENABLED, what: "memory context", env: &OPT_OUT_ENV, annotation: &OPT_OUT_ANNOTATION },
    OptOut {
        setting: &TOOLS,
        what: "the memory tools",
        env: &OPT_OUT_TOOLS_ENV,
        annotation: &OPT_OUT_TOOLS_ANNOTATION,
    },
];

impl OptOut {
    /// Reports a variable that switches the setting on. The last variable of that name counts. A Task that
    /// Orka created is never refused, since users cannot correct it.
    fn turned_on_by_env(&self, task: &Tree, env: &[TaskVariable<'_>], agent: &str) -> Option<Finding> {
        let last = env.iter().rev().find(|variable| variable.name == self.setting.variable)?;
        let literal = last.literal().filter(|literal| parse_bool(literal) != Some(false))?;
        let made_by_orka = [PARENT_LABEL, SCHEDULED_LABEL].iter().any(|key| label(task, key).is_some());
        let pointer = last.value_pointer();
        let message = with_field(
            &pointer,
            &format!("turns {} on, which Agent {} opts out of", self.what, quoted(agent)),
        );
        let finding = Finding::deny(self.env, pointer, message)
            .help("write \"false\", or take the variable out")
            .fingerprint_value(literal)
            .anywhere();
        let severity = if made_by_orka { Severity::Warn } else { Severity::Deny };
        Some(Finding { severity, ..finding })
    }

    fn turned_on_by_annotation(&self, task: &Tree, agent: &str) -> Option<Finding> {
        let pointer = annotation_pointer(self.setting.annotation);
        let message = format!("ignored: Agent {} opts out of {}", quoted(agent), self.what);
        let on = switch(self.setting, task) == Some(true);
        on.then(|| warn(self.annotation, pointer, &message))
    }
}

fn agent_in_other_namespace(own: &str, home: &str) -> Finding {
    let (own, home) = (quoted(own), quoted(home));
    let message = format!(
        "Agent is in {home}, Task in {own}: refused when namespace isolation is enforced; memory stays in {own}"
    );
    warn(&AGENT_CROSS_NAMESPACE, "/spec/agentRef/namespace", &message)
}

fn tools(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let list = subject.object.list_at(&["spec", "ai", "tools"]);
    let pointer = Pointer::new("/spec/ai/tools");
    let tools = list.iter().enumerate().filter_map(|(index, tool)| Some((index, tool.text()?.trim())));
    let home = subject.namespace;
    tools.filter_map(|(index, tool)| misspelled(tool, home, || pointer.index(index), state)).collect()
}

/// The prefix of all variables that Orka reads.
const PREFIX: &str = "ORKA_";

/// The variable with the name of the Agent.
const AGENT_NAME: &str = "ORKA_AGENT_NAME";

/// The variables that the controller sets after those of the Task, or instead of them.
const RESERVED: [&str; 7] = [
    "ORKA_TASK_NAME", "ORKA_TASK_NAMESPACE", "ORKA_TASK_UID", "ORKA_CONTROLLER_URL", "ORKA_RESULT_ENDPOINT",
    "ORKA_AI_TOOLS", "ORKA_COORDINATION_ENABLED",
];

/// All findings about the variables that do not depend on the Agent. `has_agent` is `None` where the reference to it has
/// the wrong type.
pub(super) fn variable_findings(
    variables: &[TaskVariable<'_>],
    task_type: Option<&'static str>,
    has_agent: Option<bool>,
    work: &Budget<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<&Setting> = Vec::new();
    // Most variables do not concern Orka.
    for variable in variables.iter().filter(|variable| variable.name.starts_with(PREFIX)) {
        if let Some(setting) = Setting::from_variable(variable.name) {
            findings.extend(check_setting(variable, setting, task_type, work));
            if seen.contains(&setting) {
                let name = excerpt(variable.name);
                let message = move || format!("duplicate {name}; the last one wins");
                let finding = warn_within(work, &ENV_DUPLICATE, variable.pointer(Some("name")), message);
                findings.push(finding.fix(Some(Fix::RemoveRepeated)));
            } else {
                seen.push(setting);
            }
        }
        findings.extend(near_miss(variable, work));
        findings.extend(set_by_controller(variable, task_type, has_agent, work));
        findings.extend(literal_token(variable, work));
    }
    findings
}

fn check_setting(
    variable: &TaskVariable<'_>,
    setting: &'static Setting,
    task_type: Option<&'static str>,
    work: &Budget<'_>,
) -> Option<Finding> {
    match task_type? {
        TASK_TYPE_AI => {
            let literal = variable.literal()?;
            let problem = setting.literal_problem(literal)?;
            Some(warn_within(work, setting.literal_code, variable.value_pointer(), move || problem.clone()))
        }
        other => {
            let name = excerpt(variable.name);
            let message = move || format!("{name} has no effect on a Task of type {other}");
            Some(warn_within(work, &ENV_NO_EFFECT, variable.pointer(Some("name")), message))
        }
    }
}

/// How the names of the variables of memory begin.
const PREFIX_OF_MEMORY: &str = "ORKA_MEMORY";

/// Warns about a name that only Orka can have given and that its worker does not read.
fn near_miss(variable: &TaskVariable<'_>, work: &Budget<'_>) -> Option<Finding> {
    if !variable.name.starts_with(PREFIX_OF_MEMORY) || Setting::from_variable(variable.name).is_some() {
        return None;
    }
    let shown = excerpt(variable.name);
    let message = move |_: &Pointer| {
        let known = Setting::ALL.map(|setting| setting.variable);
        let meant = known.into_iter().min_by_key(|known| strsim::osa_distance(&shown, known));
        format!("{shown} is no name that Orka's worker reads{}", did_you_mean(meant))
    };
    Some(Finding::warn_within(work, &ENV_NEAR_MISS, variable.pointer(Some("name")), message))
}

/// Warns about variables that the controller sets itself.
fn set_by_controller(
    variable: &TaskVariable<'_>,
    task_type: Option<&'static str>,
    has_agent: Option<bool>,
    work: &Budget<'_>,
) -> Option<Finding> {
    let name = variable.name;
    let is_agent_name = name == AGENT_NAME;
    match task_type? {
        TASK_TYPE_AI if is_agent_name && has_agent == Some(false) => {
            let message = "ORKA_AGENT_NAME without spec.agentRef forges the agent name on memory proposals";
            Some(warn_within(work, &ENV_AGENT_FORGED, variable.pointer(Some("name")), move || message))
        }
        TASK_TYPE_AI | CONTAINER
            if RESERVED.contains(&name) || (is_agent_name && has_agent == Some(true)) =>
        {
            let name = excerpt(name);
            let message = move || format!("{name} is set by the Orka controller; this value is ignored");
            Some(warn_within(work, &ENV_RESERVED, variable.pointer(Some("name")), message))
        }
        _ => None,
    }
}

fn literal_token(variable: &TaskVariable<'_>, work: &Budget<'_>) -> Option<Finding> {
    variable.token()?;
    let message = "ORKA_SA_TOKEN holds a literal token; use valueFrom.secretKeyRef";
    Some(warn_within(work, &ENV_LITERAL_TOKEN, variable.value_pointer(), move || message))
}
