//! Logs the failures of steps that are repeated, each failure only once.

use std::collections::BTreeMap;
use std::error::Error;

use crate::library_error::explained;

/// The last failure of each step that fails.
#[derive(Debug, Default)]
pub struct FailureLog(BTreeMap<String, String>);

impl FailureLog {
    /// Logs that a step has failed, unless it failed in the same way the last time, or that it succeeded again. Returns what
    /// it gave.
    pub fn log<T>(
        &mut self,
        step: &str,
        result: Result<T, impl Into<Box<dyn Error + Send + Sync>>>,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                if self.0.remove(step).is_some() {
                    tracing::info!("could {step} again");
                }
                Some(value)
            }
            Err(error) => {
                let text = explained(&*error.into());
                if self.0.get(step) != Some(&text) {
                    tracing::warn!(error = text, "failed to {step}; going on with what is known");
                    self.0.insert(step.to_owned(), text);
                }
                None
            }
        }
    }

    /// The last failure of a step; empty when it does not fail.
    #[cfg(test)]
    pub(crate) fn last(&self, step: &str) -> &str {
        self.0.get(step).map_or("", String::as_str)
    }
}
