//! The keys of the settings file that only `memgate serve` reads: what is hardly ever changed.

use clap::error::{ContextKind, ContextValue};
use serde_json::Value;

use crate::cli::keys::Fault;
use memgate_manifest::document::Document;
use memgate_primitives::pointer::Pointer;

/// The flags of earlier builds that became keys, and the default of each.
const FORMER_FLAGS: [(&str, &str); 17] = [
    ("--audit-rate", "500"),
    ("--ca-validity", "8760h"),
    ("--drain", "100"),
    ("--key-algorithm", "p256"),
    ("--leaf-validity", "168h"),
    ("--max-body-bytes", "8Mi"),
    ("--max-bytes-in-flight", "40Mi"),
    ("--max-connections", "2048"),
    ("--max-reports", "10000"),
    ("--max-requests", "1024"),
    ("--queue-wait", "4ms"),
    ("--renew-fraction", "0.66"),
    ("--timeout-body", "10s"),
    ("--timeout-handshake", "5s"),
    ("--timeout-head", "10s"),
    ("--timeout-idle", "2m"),
    ("--timeout-write", "10s"),
];

/// The error about an unknown flag, if it became a key.
pub fn former_flag(error: &clap::Error) -> Option<anyhow::Error> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let (flag, default) = FORMER_FLAGS.iter().find(|(known, _)| known == flag)?;
    let key = key_of(flag);
    Some(anyhow::anyhow!("{flag} is a key of the settings file: {key}: {default}"))
}

/// `timeoutHead` of `--timeout-head`.
fn key_of(flag: &str) -> String {
    let mut words = flag.trim_start_matches('-').split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |key, word| {
        let (initial, rest) = word.split_at(1);
        key + &initial.to_uppercase() + rest
    })
}

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
        FORMER_FLAGS.iter().all(|(flag, _)| file.value().get(key_of(flag)).is_none())
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
    fn every_former_flag_is_a_key_with_its_default() {
        let schema: Value = serde_json::from_str(keys::SETTINGS).expect("JSON");
        for (flag, default) in FORMER_FLAGS {
            let described = &schema["properties"][key_of(flag)]["description"];
            assert!(described.as_str().is_some_and(|text| text.contains(default)), "{flag}: {described}");
        }
        let of_all_commands = ["families", "ark", "orloj", "sympozium"].len();
        let keys = schema["properties"].as_object().expect("keys").len();
        assert_eq!(keys, FORMER_FLAGS.len() + of_all_commands);
    }
}
