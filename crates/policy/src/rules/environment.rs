//! `environment`: whether a pod may set the variables of its memory itself.

use memgate_model::memory_view::Why;
use memgate_model::typed_rule::{JudgedView, RuleOutcome, Sentence, TypedRule};
use memgate_primitives::plain_text::cut;

use super::words::{MAX_CHARS, fields};
use crate::reader::Reader;

#[derive(Debug)]
struct Environment {
    forbids_overrides: bool,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["overrides"])?;
    let overrides = fields.choice("overrides", &[("forbid", true), ("allow", false)]);
    Some(Box::new(Environment { forbids_overrides: overrides == Some(true) }))
}

impl TypedRule for Environment {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        if !self.forbids_overrides {
            return;
        }
        for own in &judged.view.own_variables {
            let (name, declared) = (own.name.clone(), own.declared.clone());
            let say =
                move || format!("{} is set by the pod and differs from {declared}", cut(&name, MAX_CHARS));
            outcome.add(own.field.clone(), Sentence::later("differs", say), &own.name);
        }
        if let Some(field) = &judged.view.env_from {
            outcome.add_unknown(field.clone(), Why::SetByPod("envFrom".to_owned()));
        }
    }

    fn paths(&self) -> Vec<&str> {
        vec!["environment"]
    }

    fn applies(&self, judged: &JudgedView<'_>) -> bool {
        judged.view.sources.iter().any(|source| !source.view.is_undeclared())
    }
}
