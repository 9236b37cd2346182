//! Logs the failures of steps that are repeated, each failure only once.

use std::collections::BTreeMap;

/// The last failure of each step that fails.
#[derive(Debug, Default)]
pub(super) struct FailureLog(BTreeMap<String, String>);

impl FailureLog {
    /// Logs that a step has failed, unless it failed in the same way the last time.
    pub(super) fn failed(&mut self, step: &str, text: String) {
        if self.0.get(step) != Some(&text) {
            tracing::warn!(error = text, "failed to {step}; going on with what is known");
            self.0.insert(step.to_owned(), text);
        }
    }

    /// Logs that a step has succeeded, if it failed before.
    pub(super) fn succeeded(&mut self, step: &str) {
        if self.0.remove(step).is_some() {
            tracing::info!("could {step} again");
        }
    }

    /// The last failure of a step.
    #[cfg(test)]
    pub(super) fn last(&self, step: &str) -> &str {
        self.0.get(step).map_or("", String::as_str)
    }

    /// Whether no step fails.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
