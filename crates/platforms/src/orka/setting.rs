//! The settings of the worker, three for the memory section and one for the memory tools: the format of the
//! annotations, and how the worker reads its variables.
//! Also the tools that an Agent lists and the variables of a Task, on which the settings depend.

use std::fmt;

use super::prelude::*;

/// The size of the heading above the memories. A section of this size or less has no room for a memory.
pub(crate) const SECTION_HEADER_BYTES: i64 = 165;

/// The message about a size that only fits the heading.
pub(crate) const NO_ROOM_MESSAGE: &str =
    "leaves no room for any memory (the section header alone is 165 bytes)";

/// One of the four settings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The annotation that sets it.
    pub(crate) annotation: &'static str,
    /// The variable from which the worker reads it.
    pub(crate) variable: &'static str,
    /// The code for an annotation with an invalid value.
    pub(crate) annotation_code: &'static Code,
    /// The code for a literal with a problem.
    pub(crate) literal_code: &'static Code,
    /// The default and the maximum in the worker; `None` for a switch.
    bounds: Option<[i64; 2]>,
}

/// Whether the prompt has a memory section.
pub(crate) static ENABLED: Setting = Setting {
    annotation: ENABLED_ANNOTATION,
    variable: "ORKA_MEMORY_CONTEXT_ENABLED",
    annotation_code: &ANNOTATION_ENABLED,
    literal_code: &ENV_ENABLED,
    bounds: None,
};

/// The maximum number of memories in the section.
pub(crate) static LIMIT: Setting = Setting {
    annotation: LIMIT_ANNOTATION,
    variable: "ORKA_MEMORY_CONTEXT_LIMIT",
    annotation_code: &ANNOTATION_LIMIT,
    literal_code: &ENV_LIMIT,
    bounds: Some([5, 8]),
};

/// The maximum number of bytes in the section. The platform calls them "chars".
pub(crate) static MAX_CHARS: Setting = Setting {
    annotation: MAX_CHARS_ANNOTATION,
    variable: "ORKA_MEMORY_CONTEXT_MAX_CHARS",
    annotation_code: &ANNOTATION_MAX_CHARS,
    literal_code: &ENV_MAX_CHARS,
    bounds: Some([6000, 6000]),
};

/// Whether the worker adds memory tools that are in no tool list. Workers of releases up to v0.1.3 do not know this
/// setting and add them.
pub(crate) static TOOLS: Setting = Setting {
    annotation: TOOLS_ANNOTATION,
    variable: "ORKA_MEMORY_TOOLS_AUTO_ENABLE",
    annotation_code: &ANNOTATION_TOOLS,
    literal_code: &ENV_TOOLS,
    bounds: None,
};

/// The value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingValue {
    /// On or off.
    Switch(bool),
    /// A bound.
    Bound(i64),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => on.fmt(f),
            Self::Bound(number) => number.fmt(f),
        }
    }
}

impl Setting {
    /// Every setting, in the order in which the variables are written.
    pub(crate) const ALL: [&'static Self; 4] = [&ENABLED, &LIMIT, &MAX_CHARS, &TOOLS];

    /// The setting of this annotation.
    pub(crate) fn from_annotation(key: &str) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|setting| setting.annotation == key)
    }

    /// The setting of this variable.
    pub(crate) fn from_variable(name: &str) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|setting| setting.variable == name)
    }

    /// Whether it is on or off, and not a bound.
    pub(crate) const fn is_switch(&self) -> bool {
        self.bounds.is_none()
    }

    /// Parses the value of an annotation.
    ///
    /// # Errors
    /// A message with the expected and the actual value.
    pub(crate) fn parse_annotation(&self, text: &str) -> Result<SettingValue, String> {
        let Some([_, max]) = self.bounds else {
            let switch = parse_bool(text).map(SettingValue::Switch);
            return switch.ok_or_else(|| format!("must be \"true\" or \"false\", got {}", quoted_text(text)));
        };
        let bound = parse_bound(text, max).map(SettingValue::Bound);
        bound.ok_or_else(|| format!("must be an integer from 1 to {max}, got {}", quoted_text(text)))
    }

    /// Reads a literal as the worker does: anything but `false` is on, and a bad bound is replaced by the default
    /// or the maximum.
    pub(crate) fn read_literal(&self, literal: &str) -> SettingValue {
        match self.bounds {
            None => SettingValue::Switch(parse_bool(literal) != Some(false)),
            Some([default, max]) => {
                SettingValue::Bound(parse_positive(literal).map_or(default, |number| number.min(max)))
            }
        }
    }

    /// The message about a literal value of the variable that the worker does not read as it is written.
    pub(crate) fn literal_problem(&self, literal: &str) -> Option<String> {
        if literal.is_empty() || literal.contains("$(") {
            return None;
        }
        let problem = match (self.bounds, parse_positive(literal)) {
            (None, _) if parse_bool(literal).is_some() => return None,
            (None, _) => {
                let what = if *self == TOOLS { "the memory tools" } else { "memory" };
                format!("does not disable {what}; only \"false\" does")
            }
            (Some([default, _]), None) => format!("is not a positive integer; the worker uses {default}"),
            (Some([_, max]), Some(number)) if number > max => {
                format!("is above {max}; the worker uses {max}")
            }
            (_, Some(number)) if *self == MAX_CHARS && number <= SECTION_HEADER_BYTES => {
                NO_ROOM_MESSAGE.to_owned()
            }
            _ => return None,
        };
        Some(format!("{} {} {problem}", self.variable, quoted_text(literal)))
    }
}

/// Whether an object switches this setting off. A Task cannot override an Agent's "off".
pub(crate) fn is_off(setting: &Setting, object: &Tree) -> bool {
    switch(setting, object) == Some(false)
}

/// The value of a switch that an object sets; `None` if it is absent or invalid.
pub(crate) fn switch(setting: &Setting, object: &Tree) -> Option<bool> {
    annotation(object, setting.annotation).and_then(parse_bool)
}

/// `true` or `false`, in any case.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A number from 1 to `max`, without sign or leading zeros.
fn parse_bound(text: &str, max: i64) -> Option<i64> {
    let text = text.trim();
    let plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| plain && (1..=max).contains(number))
}

/// A positive 64-bit integer as the worker reads it, with or without a sign.
fn parse_positive(text: &str) -> Option<i64> {
    text.trim().parse().ok().filter(|number| *number > 0)
}

/// Whether a trimmed name is a memory tool.
pub(super) fn is_memory_tool(name: &str) -> bool {
    MEMORY_TOOLS.contains(&name)
}

/// An entry of an Agent's `spec.tools`.
pub(super) struct AgentTool<'t> {
    index: usize,
    /// The name, trimmed.
    pub(super) name: &'t str,
    pub(super) enabled: bool,
}

impl<'t> AgentTool<'t> {
    /// The tools that have a name, and no field of the wrong type.
    pub(super) fn read_all(agent: &'t Tree) -> impl Iterator<Item = Self> {
        let list = agent.list_at(&["spec", "tools"]);
        list.iter().enumerate().filter_map(|(index, tool)| {
            let name = tool.get("name")?.text()?.trim();
            let enabled = match tool.get("enabled") {
                None => true,
                Some(Tree::Boolean(enabled)) => *enabled,
                Some(_) => return None,
            };
            Some(Self { index, name, enabled })
        })
    }

    pub(super) fn pointer(&self, field: &'static str) -> Pointer {
        let spec = Path::Key(&Path::Root, "spec");
        Path::Key(&Path::Index(&Path::Key(&spec, "tools"), self.index), field).pointer()
    }
}

/// Whether an Agent, or else its namespace, switches the memory tools off.
pub(super) fn are_off(agent: &Tree, namespace: &str, state: &mut StateReader<'_>) -> bool {
    let on = switch(&TOOLS, agent).or_else(|| of_namespace(namespace, state));
    on == Some(false)
}

/// The switch of the memory tools in a namespace, if the namespace is known and sets it.
pub(super) fn of_namespace(namespace: &str, state: &mut StateReader<'_>) -> Option<bool> {
    switch(&TOOLS, state.get(&NAMESPACE, "", namespace).found()?.tree())
}

/// The variable with the token of the worker.
const TOKEN: &str = "ORKA_SA_TOKEN";

/// One variable of a Task.
pub(super) struct TaskVariable<'t> {
    index: usize,
    pub(super) name: &'t str,
    value: Option<&'t str>,
    /// Whether it has neither a source nor a value of the wrong type.
    is_literal: bool,
}

impl<'t> TaskVariable<'t> {
    /// The variables that have a name.
    pub(super) fn read_all(task: &'t Tree) -> Vec<Self> {
        let list = task.list_at(&["spec", "env"]);
        let variable = |(index, variable): (usize, &'t Tree)| {
            let name = variable.get("name")?.text()?;
            let value = variable.get("value");
            let is_literal =
                variable.get("valueFrom").is_none() && value.is_none_or(|value| value.text().is_some());
            Some(Self { index, name, value: value.and_then(Tree::text), is_literal })
        };
        list.iter().enumerate().filter_map(variable).collect()
    }

    /// The literal, if it is known before the pod runs.
    pub(super) fn literal(&self) -> Option<&'t str> {
        let literal = self.value.unwrap_or_default();
        (self.is_literal && !literal.contains("$(")).then_some(literal)
    }

    /// The token of the worker, if this variable has it in clear text.
    pub(super) fn token(&self) -> Option<&'t str> {
        self.literal().filter(|literal| self.name == TOKEN && !literal.is_empty())
    }

    /// The pointer to the value, or else to the variable.
    pub(super) fn value_pointer(&self) -> Pointer {
        self.pointer(self.value.map(|_| "value"))
    }

    /// The pointer to a field, or to the variable.
    pub(super) fn pointer(&self, field: Option<&'static str>) -> Pointer {
        let spec = Path::Key(&Path::Root, "spec");
        let env = Path::Key(&spec, "env");
        let variable = Path::Index(&env, self.index);
        field.map_or(variable, |field| Path::Key(&variable, field)).pointer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_annotations_strictly() {
        for (text, number) in
            [(" 8 ", Some(8)), ("1", Some(1)), ("+1", None), ("01", None), ("9", None), ("", None)]
        {
            assert_eq!(LIMIT.parse_annotation(text).ok(), number.map(SettingValue::Bound), "{text}");
        }
        assert_eq!(ENABLED.parse_annotation(" False"), Ok(SettingValue::Switch(false)));
        assert!(ENABLED.parse_annotation("0").is_err());
    }

    #[test]
    fn reads_literals_as_the_worker_does() {
        for (text, number) in [("+7", 7), ("007", 7), ("9", 8), ("0", 5), ("5.0", 5), ("1_000", 5), ("", 5)] {
            assert_eq!(LIMIT.read_literal(text), SettingValue::Bound(number), "{text}");
        }
        let beyond = "9223372036854775808";
        assert_eq!(MAX_CHARS.read_literal(beyond), SettingValue::Bound(6000));
        let problem = MAX_CHARS.literal_problem(beyond).expect("a problem");
        assert!(problem.ends_with(" is not a positive integer; the worker uses 6000"), "{problem}");
        assert_eq!(ENABLED.read_literal("no"), SettingValue::Switch(true));
    }
}
