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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Whether the prompt has a memory section.
    Enabled,
    /// The maximum number of memories in the section.
    Limit,
    /// The maximum number of bytes in the section. The platform calls them "chars".
    MaxChars,
    /// Whether the worker adds memory tools that are in no tool list. Workers of releases up to v0.1.3 do not
    /// know this setting and add them.
    Tools,
}

/// The value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingValue {
    /// On or off.
    Switch(bool),
    /// A bound.
    Bound(i64),
}

/// Why the worker does not read a literal as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiteralProblem {
    /// It does not switch anything off.
    NotASwitch,
    /// It is not a positive number.
    NotPositive,
    /// It is larger than the maximum.
    AboveMaximum,
    /// It leaves no room for any memory.
    NoRoom,
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
    pub(crate) const ALL: [Self; 4] = [Self::Enabled, Self::Limit, Self::MaxChars, Self::Tools];

    /// The annotation that sets it.
    pub(crate) const fn annotation(self) -> &'static str {
        match self {
            Self::Enabled => ENABLED_ANNOTATION,
            Self::Limit => LIMIT_ANNOTATION,
            Self::MaxChars => MAX_CHARS_ANNOTATION,
            Self::Tools => TOOLS_ANNOTATION,
        }
    }

    /// The variable from which the worker reads it.
    pub(crate) const fn variable(self) -> &'static str {
        match self {
            Self::Enabled => "ORKA_MEMORY_CONTEXT_ENABLED",
            Self::Limit => "ORKA_MEMORY_CONTEXT_LIMIT",
            Self::MaxChars => "ORKA_MEMORY_CONTEXT_MAX_CHARS",
            Self::Tools => "ORKA_MEMORY_TOOLS_AUTO_ENABLE",
        }
    }

    /// The setting of this annotation.
    pub(crate) fn from_annotation(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.annotation() == key)
    }

    /// The setting of this variable.
    pub(crate) fn from_variable(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.variable() == name)
    }

    /// The code for an annotation with an invalid value.
    pub(crate) const fn annotation_code(self) -> &'static Code {
        match self {
            Self::Enabled => &ANNOTATION_ENABLED,
            Self::Limit => &ANNOTATION_LIMIT,
            Self::MaxChars => &ANNOTATION_MAX_CHARS,
            Self::Tools => &ANNOTATION_TOOLS,
        }
    }

    /// Parses the value of an annotation.
    ///
    /// # Errors
    /// A message with the expected and the actual value.
    pub(crate) fn parse_annotation(self, text: &str) -> Result<SettingValue, String> {
        let value = match self {
            Self::Enabled | Self::Tools => parse_bool(text).map(SettingValue::Switch),
            Self::Limit | Self::MaxChars => parse_bound(text, self.max()).map(SettingValue::Bound),
        };
        value.ok_or_else(|| match self {
            Self::Enabled | Self::Tools => {
                format!("must be \"true\" or \"false\", got {}", quoted_text(text))
            }
            Self::Limit | Self::MaxChars => {
                format!("must be an integer from 1 to {}, got {}", self.max(), quoted_text(text))
            }
        })
    }

    /// Reads a literal as the worker does: anything but `false` is on, and a bad bound is replaced by the default
    /// or the maximum.
    pub(crate) fn read_literal(self, literal: &str) -> SettingValue {
        match self {
            Self::Enabled | Self::Tools => SettingValue::Switch(parse_bool(literal) != Some(false)),
            Self::Limit | Self::MaxChars => SettingValue::Bound(match parse_positive(literal) {
                Some(number) => number.min(self.max()),
                None => self.default(),
            }),
        }
    }

    /// The problem of a literal value of the variable, if it has one.
    pub(crate) fn literal_problem(self, literal: &str) -> Option<LiteralProblem> {
        if literal.is_empty() || literal.contains("$(") {
            return None;
        }
        match (self, parse_positive(literal)) {
            (Self::Enabled | Self::Tools, _) => {
                parse_bool(literal).is_none().then_some(LiteralProblem::NotASwitch)
            }
            (_, None) => Some(LiteralProblem::NotPositive),
            (_, Some(number)) if number > self.max() => Some(LiteralProblem::AboveMaximum),
            (Self::MaxChars, Some(number)) if number <= SECTION_HEADER_BYTES => Some(LiteralProblem::NoRoom),
            _ => None,
        }
    }

    /// The code for a literal with a problem.
    pub(crate) const fn literal_code(self) -> &'static Code {
        match self {
            Self::Enabled => &ENV_ENABLED,
            Self::Limit => &ENV_LIMIT,
            Self::MaxChars => &ENV_MAX_CHARS,
            Self::Tools => &ENV_TOOLS,
        }
    }

    /// The message about a literal with this problem.
    pub(crate) fn about(self, problem: LiteralProblem, literal: &str) -> String {
        let text = match problem {
            LiteralProblem::NotASwitch if self == Self::Tools => {
                "does not disable the memory tools; only \"false\" does".to_owned()
            }
            LiteralProblem::NotASwitch => "does not disable memory; only \"false\" does".to_owned(),
            LiteralProblem::NotPositive => {
                format!("is not a positive integer; the worker uses {}", self.default())
            }
            LiteralProblem::AboveMaximum => {
                format!("is above {max}; the worker uses {max}", max = self.max())
            }
            LiteralProblem::NoRoom => NO_ROOM_MESSAGE.to_owned(),
        };
        format!("{} {} {text}", self.variable(), quoted_text(literal))
    }

    /// The maximum in the worker; unused for a switch.
    const fn max(self) -> i64 {
        match self {
            Self::Enabled | Self::Tools => 0,
            Self::Limit => 8,
            Self::MaxChars => 6000,
        }
    }

    /// The default in the worker; unused for a switch.
    const fn default(self) -> i64 {
        match self {
            Self::Enabled | Self::Tools => 0,
            Self::Limit => 5,
            Self::MaxChars => 6000,
        }
    }
}

/// Whether an object switches this setting off. A Task cannot override an Agent's "off".
pub(crate) fn is_off(setting: Setting, object: &Tree) -> bool {
    switch(setting, object) == Some(false)
}

/// The value of a switch that an object sets; `None` if it is absent or invalid.
pub(crate) fn switch(setting: Setting, object: &Tree) -> Option<bool> {
    annotation(object, setting.annotation()).and_then(parse_bool)
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
    let on = switch(Setting::Tools, agent).or_else(|| of_namespace(namespace, state));
    on == Some(false)
}

/// The switch of the memory tools in a namespace, if the namespace is known and sets it.
pub(super) fn of_namespace(namespace: &str, state: &mut StateReader<'_>) -> Option<bool> {
    switch(Setting::Tools, state.get(&NAMESPACE, "", namespace).found()?.tree())
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
            assert_eq!(Setting::Limit.parse_annotation(text).ok(), number.map(SettingValue::Bound), "{text}");
        }
        assert_eq!(Setting::Enabled.parse_annotation(" False"), Ok(SettingValue::Switch(false)));
        assert!(Setting::Enabled.parse_annotation("0").is_err());
    }

    #[test]
    fn reads_literals_as_the_worker_does() {
        for (text, number) in [("+7", 7), ("007", 7), ("9", 8), ("0", 5), ("5.0", 5), ("1_000", 5), ("", 5)] {
            assert_eq!(Setting::Limit.read_literal(text), SettingValue::Bound(number), "{text}");
        }
        let beyond = "9223372036854775808";
        assert_eq!(Setting::MaxChars.read_literal(beyond), SettingValue::Bound(6000));
        assert_eq!(Setting::MaxChars.literal_problem(beyond), Some(LiteralProblem::NotPositive));
        assert_eq!(Setting::Enabled.read_literal("no"), SettingValue::Switch(true));
    }
}
