//! What went wrong last at each step, so that it is told once.

use std::collections::BTreeMap;

/// What went wrong last, by step.
#[derive(Debug, Default)]
pub(super) struct Troubles(pub(super) BTreeMap<&'static str, String>);

impl Troubles {
    /// Tells what went wrong, unless that is what went wrong the last time.
    pub(super) fn note(&mut self, step: &'static str, text: String) {
        if self.0.get(step) != Some(&text) {
            tracing::warn!(error = text, "failed to {step}; going on with what is known");
            self.0.insert(step, text);
        }
    }

    /// Tells that a step could be done, when it could not before.
    pub(super) fn over(&mut self, step: &'static str) {
        if self.0.remove(step).is_some() {
            tracing::info!("could {step} again");
        }
    }
}
