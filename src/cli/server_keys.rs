//! The keys of the settings file that only `memgate serve` reads: what is hardly ever changed.

use serde_json::Value;

use crate::cli::keys::Fault;
use memgate_manifest::document::Document;
use memgate_primitives::pointer::Pointer;

/// The keys.
const KEYS: [&str; 17] = [
    "auditRate", "caValidity", "drain", "keyAlgorithm", "leafValidity", "maxBodyBytes", "maxBytesInFlight",
    "maxConnections", "maxReports", "maxRequests", "queueWait", "renewFraction", "timeoutBody",
    "timeoutHandshake", "timeoutHead", "timeoutIdle", "timeoutWrite",
];

/// The settings file, as far as it is about the server. [`crate::cli::keys::read`] has checked its keys.
#[derive(Debug, Default)]
pub struct ServerKeys(Option<Document>);

impl ServerKeys {
    /// The keys of a settings file, if there is one.
    pub const fn new(file: Option<Document>) -> Self {
        Self(file)
    }

    /// Whether the file has none of them.
    pub fn is_empty(&self) -> bool {
        let Self(Some(file)) = self else { return true };
        KEYS.iter().all(|key| file.value().get(*key).is_none())
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
    use serde_json::Value;

    use super::*;
    use crate::cli::keys;

    /// The keys of a settings file with this text.
    pub(in crate::cli) fn of(text: &str) -> ServerKeys {
        ServerKeys(values(&Arc::new(Source::new("settings.yaml", text)), &mut Vec::new()).into_iter().next())
    }

    #[test]
    fn are_the_keys_of_the_schema() {
        let schema: Value = serde_json::from_str(keys::SETTINGS).expect("JSON");
        let all = schema["properties"].as_object().expect("keys");
        assert!(KEYS.iter().all(|key| all.contains_key(*key)));
        let of_all_commands = ["families", "ark", "orloj", "sympozium"].len();
        assert_eq!(all.len(), KEYS.len() + of_all_commands);
    }
}
