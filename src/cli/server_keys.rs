//! The keys of the settings file that only `memgate serve` reads: what is hardly ever changed.

use serde_json::{Map, Value};

use crate::cli::keys::Fault;
use memgate_manifest::document::Document;
use memgate_primitives::pointer::Pointer;

/// The settings file, as far as it is about the server. [`crate::cli::keys::parse`] has checked its keys.
#[derive(Debug, Default)]
pub struct ServerKeys(Option<Document>);

impl ServerKeys {
    /// The keys of a settings file, if there is one.
    pub const fn new(file: Option<Document>) -> Self {
        Self(file)
    }

    /// All keys of the file.
    pub(in crate::cli) fn all(&self) -> Map<String, Value> {
        self.0.as_ref().and_then(|file| file.value().as_object()).cloned().unwrap_or_default()
    }

    /// Sets an option, if the file has its key.
    ///
    /// # Errors
    /// When the value cannot be used.
    pub(in crate::cli) fn set<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
        option: &mut T,
    ) -> anyhow::Result<()> {
        let Some(value) = self.0.as_ref().and_then(|file| file.value().get(key)) else { return Ok(()) };
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match parse(&text) {
            Ok(value) => *option = value,
            Err(message) => self.ensure(false, key, &message)?,
        }
        Ok(())
    }

    /// Checks an option, and else reports what is wrong with its key.
    ///
    /// # Errors
    /// When it is wrong.
    pub(in crate::cli) fn ensure(&self, is_right: bool, key: &str, message: &str) -> anyhow::Result<()> {
        if is_right {
            return Ok(());
        }
        let message = format!("{key}: {message}");
        match &self.0 {
            Some(file) => Err(Fault::new(Pointer::root().key(key), message).at(file).into()),
            None => Err(anyhow::anyhow!(message)),
        }
    }
}

#[cfg(test)]
pub(in crate::cli) mod tests {
    use std::sync::Arc;

    use memgate_manifest::document::values;
    use memgate_manifest::source::Source;

    use super::*;

    /// The keys of a settings file with this text.
    pub(in crate::cli) fn of(text: &str) -> ServerKeys {
        ServerKeys(values(&Arc::new(Source::new("settings.yaml", text)), &mut Vec::new()).into_iter().next())
    }
}
