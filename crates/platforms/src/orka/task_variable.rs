//! The variables of a Task, as its worker gets them.

use memgate_model::tree::Tree;
use memgate_primitives::pointer::{Path, Pointer};

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
