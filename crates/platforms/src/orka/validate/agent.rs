//! Validates an Agent. Its names of tools and memgate's annotations are validated for Tasks and Namespaces too.

use crate::orka::prelude::*;
use crate::orka::setting::{
    AgentTool, MAX_CHARS, NO_ROOM_MESSAGE, SECTION_HEADER_BYTES, Setting, SettingValue, are_off,
    is_memory_tool,
};

use super::{warn, warn_within, with_field};

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let agent = subject.object;
    let runtime = agent.at(&["spec", "runtime"]);
    let mut findings = annotation_findings(agent, runtime.is_some_and(Tree::is_object), state.budget());
    if runtime.is_none() {
        findings.extend(approvals(subject, state.budget()));
    }
    let tools: Vec<AgentTool<'_>> = AgentTool::read_all(agent).collect();
    let enabled = tools.iter().filter(|tool| tool.enabled);
    findings.extend(
        enabled.filter_map(|tool| misspelled(tool.name, subject.namespace, || tool.pointer("name"), state)),
    );
    let memory_tools = || tools.iter().filter(|tool| is_memory_tool(tool.name));
    match runtime {
        None => {
            let mut disabled = memory_tools().filter(|tool| !tool.enabled).peekable();
            if disabled.peek().is_some() && !are_off(agent, subject.namespace, state) {
                findings.extend(disabled.map(|tool| tool.disabled(state.budget())));
            }
        }
        Some(runtime) if runtime.text_at(&["type"]).is_some_and(|name| !name.is_empty()) => {
            let enabled = memory_tools().filter(|tool| tool.enabled);
            findings.extend(enabled.map(|tool| tool.unreachable(state.budget())));
        }
        Some(_) => {}
    }
    findings
}

/// Reports memory tools that need an approval. The platform accepts such an Agent and fails every Task that
/// uses it.
fn approvals(subject: &Subject<'_>, work: &Budget<'_>) -> Vec<Finding> {
    let list = subject.object.at(&["spec", "coordination", "approvalRequiredTools"]);
    let tools = list.map(Tree::elements).unwrap_or_default().iter().enumerate();
    let texts = tools.filter_map(|(index, tool)| Some((index, tool.text()?)));
    let list = Pointer::new("/spec/coordination/approvalRequiredTools");
    let agent: Arc<str> = quoted_key(name(subject)).into();
    let finding = |(index, text): (usize, &str)| {
        let (agent, tool) = (agent.clone(), excerpt(text.trim()));
        let message = move |at: &Pointer| {
            let tool = quoted_key(&tool);
            with_field(
                at,
                &format!("agent {agent} approvalRequiredTools cannot include built-in tool {tool}"),
            )
        };
        Finding::deny_within(work, &APPROVAL_BUILTIN, list.index(index), message)
            .fingerprint_value(text)
            .anywhere()
            .help("take it out; only tools of your own can ask for approval, and memories are reviewed before they count")
    };
    texts.filter(|(_, text)| is_memory_tool(text.trim())).map(finding).collect()
}

/// The name, or the prefix from which the apiserver will generate it.
fn name<'t>(subject: &Subject<'t>) -> &'t str {
    let generate_name = || subject.object.text_at(&["metadata", "generateName"]);
    match subject.name {
        "" => generate_name().unwrap_or_default(),
        name => name,
    }
}

impl AgentTool<'_> {
    fn disabled(&self, work: &Budget<'_>) -> Finding {
        let message = "memory tools stay on for ai Tasks; enabled: false has no effect";
        warn_within(work, &TOOL_DISABLE_NO_EFFECT, self.pointer("enabled"), move || message)
            .help("annotate memgate.dev/orka-memory-tools: \"false\"")
    }

    fn unreachable(&self, work: &Budget<'_>) -> Finding {
        let message = "spec.tools never reaches a built-in runtime (newer Orka fails the Task); see defaultAllowedTools";
        warn_within(work, &TOOL_RUNTIME, self.pointer("name"), move || message).help(
            "name the tool in spec.runtime.defaultAllowedTools, and there the runtime's native tools too: \
             a list that is not empty replaces them",
        )
    }
}

/// All findings about the annotations; `no_effect` is set for an object that no worker of an AI Task reads.
pub(super) fn annotation_findings(object: &Tree, no_effect: bool, work: &Budget<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for setting in Setting::ALL {
        if let Some(value) = annotation(object, setting.annotation) {
            findings.extend(check_value(setting, value));
            if no_effect {
                let pointer = annotation_pointer(setting.annotation);
                let message = "has no effect: memory context exists only for Tasks of type ai";
                findings.push(warn(&ANNOTATION_NO_EFFECT, pointer, message).at_key());
            }
        }
    }
    findings.extend(unknown_keys(object).into_iter().map(|key| unknown_key(key, work)));
    findings
}

fn check_value(setting: &'static Setting, text: &str) -> Option<Finding> {
    let pointer = annotation_pointer(setting.annotation);
    match setting.parse_annotation(text) {
        Err(message) => {
            let message = with_field(&pointer, &message);
            Some(Finding::deny(setting.annotation_code, pointer, message).fingerprint_value(text))
        }
        Ok(SettingValue::Bound(number)) if *setting == MAX_CHARS && number <= SECTION_HEADER_BYTES => {
            Some(warn(&ANNOTATION_MAX_CHARS_TINY, pointer, NO_ROOM_MESSAGE))
        }
        Ok(_) => None,
    }
}

/// The unknown keys with the prefix of this family, in order, each once.
fn unknown_keys(object: &Tree) -> Vec<&str> {
    let annotations = object.at(&["metadata", "annotations"]).into_iter();
    let is_unknown =
        |key: &&str| key.starts_with(ANNOTATION_PREFIX) && Setting::from_annotation(key).is_none();
    let mut keys: Vec<&str> = annotations.flat_map(Tree::keys).filter(is_unknown).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn unknown_key(key: &str, work: &Budget<'_>) -> Finding {
    let at = annotation_pointer(key);
    let key = excerpt(key);
    let message = move || {
        let meant = nearest(&key, Setting::ALL.map(|setting| setting.annotation));
        format!("unknown annotation{}", did_you_mean(meant))
    };
    warn_within(work, &ANNOTATION_UNKNOWN, at, message).at_key()
}

/// Warns about a name that does not exist and is close to the name of a memory tool. The platform silently drops
/// such a tool. `name` is trimmed.
pub(super) fn misspelled(
    name: &str,
    namespace: &str,
    pointer: impl FnOnce() -> Pointer,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    if is_memory_tool(name) {
        return None;
    }
    let meant = nearest_memory_tool(name)?;
    // A tool with an invalid name cannot exist.
    if is_dns_subdomain(name) && !matches!(state.get(&TOOL, namespace, name), Lookup::Absent) {
        return None;
    }
    let name = excerpt(name);
    let message = move || format!("unknown tool {}; did you mean \"{meant}\"?", quoted_key(&name));
    Some(warn_within(state.budget(), &TOOL_TYPO, pointer(), message))
}

/// The nearest memory tool, at most two edits away. Other built-in tools are further away.
fn nearest_memory_tool(name: &str) -> Option<&'static str> {
    const MAX_EDITS: usize = 2;
    /// The longest name that is compared. Longer names are too far from all of them.
    const MAX_NAME_BYTES: usize = 32;
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let normalized = name.to_lowercase().replace('-', "_");
    // The length alone excludes most names.
    let may_be_near = |tool: &&str| tool.len().abs_diff(normalized.len()) <= MAX_EDITS;
    let near = MEMORY_TOOLS.into_iter().filter(may_be_near);
    let near = near.map(|tool| (strsim::levenshtein(&normalized, tool), tool));
    let near = near.filter(|(distance, _)| *distance <= MAX_EDITS);
    near.min_by_key(|(distance, _)| *distance).map(|(_, tool)| tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_tool_that_was_meant() {
        for (wrong, meant) in [
            ("recall-memory", Some("recall_memory")),
            ("Remember", Some("remember")),
            ("remembre", Some("remember")),
            ("search_transcripts", Some("search_transcript")),
            ("member", Some("remember")),
            ("memory", None),
            ("", None),
        ] {
            assert_eq!(nearest_memory_tool(wrong), meant, "{wrong}");
        }
    }
}
