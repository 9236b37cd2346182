//! Two ModelConfigs that one agent uses, for its chat and for its memory, and that need two values of one setting.

use std::borrow::Cow;

use crate::family::url::Endpoint;

use super::super::api::Line;
use super::super::message::with_names;
use super::{Destination, Embedder, OLLAMA_DEFAULT};

/// The variable with the base URL of Ollama.
const OLLAMA_BASE: &str = "OLLAMA_API_BASE";

/// What a chat model and an embedder do to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clash {
    /// Embeddings use the chat model's value of this variable.
    ChatWins(&'static str),
    /// The chat uses the embedder's value of this variable.
    EmbedderWins(&'static str),
    /// There are two keys for requests to this host, which kagent refuses.
    TwoKeys(String),
}

impl Clash {
    /// The message about ModelConfigs of these names.
    pub(crate) fn message(&self, chat: &str, embedder: &str) -> String {
        with_names([chat, embedder], |[chat, embedder]| match self {
            Self::ChatWins(variable) => {
                format!("embeddings use {variable} of chat ModelConfig {chat}, not of {embedder}")
            }
            Self::EmbedderWins(variable) => {
                format!("chat uses {variable} of ModelConfig {embedder}, not of {chat}")
            }
            Self::TwoKeys(host) => {
                format!("{embedder} and {chat} give two keys for {host}; kagent 1.0 refuses the Agent")
            }
        })
    }
}

impl<'t> Embedder<'t> {
    /// How two ModelConfigs clash in an agent of this line.
    pub(crate) fn clash(line: Line, chat: &Self, embedder: &Self) -> Option<Clash> {
        match line {
            Line::Older => older(chat, embedder).map(Clash::ChatWins),
            Line::Newer => newer(chat, embedder),
        }
    }

    /// The base URL of Ollama.
    fn ollama_base(&self) -> Cow<'t, str> {
        match self.filled(&["spec", "ollama", "host"]) {
            None => OLLAMA_DEFAULT.into(),
            Some(host) if host.contains("://") => host.into(),
            Some(host) => format!("http://{host}").into(),
        }
    }

    /// The header of the provider's key. Source: kagent 1.0, tests of `CompileCredentials`.
    fn key_header(&self) -> Option<&'static str> {
        match self.provider() {
            "OpenAI" => Some("authorization"),
            "Foundry" if self.object.text_at(&["spec", "foundry", "apiFormat"]) == Some("Anthropic") => None,
            "AzureOpenAI" | "Foundry" => Some("api-key"),
            "Gemini" => Some("x-goog-api-key"),
            _ => None,
        }
    }

    /// The host of its requests, in lower case.
    fn host(&self) -> Option<String> {
        let destination = self.endpoint()?;
        let url = match &destination {
            Destination::Written(_, text) => text,
            Destination::Derived(url) => &**url,
            Destination::ConfigMap { .. } => return None,
        };
        let host = Endpoint::parse(url).host.trim_end_matches('.').to_ascii_lowercase();
        Some(host).filter(|host| !host.is_empty())
    }
}

/// The variable that both set to different values. The agent gets the value of the chat model.
/// Source: kagent 0.10, `adk_api_translator.go`, `mergeDeploymentData`.
fn older(chat: &Embedder<'_>, embedder: &Embedder<'_>) -> Option<&'static str> {
    let provider = Some(chat.provider()).filter(|provider| *provider == embedder.provider())?;
    let keys_differ = || chat.key().zip(embedder.key()).is_some_and(|(chat, embedder)| chat != embedder);
    let regions_differ =
        || chat.region().zip(embedder.region()).is_some_and(|(chat, embedder)| chat != embedder);
    let (variable, differ) = match provider {
        "OpenAI" => ("OPENAI_API_KEY", keys_differ()),
        "AzureOpenAI" => ("AZURE_OPENAI_API_KEY", keys_differ()),
        "Gemini" => ("GOOGLE_API_KEY", keys_differ()),
        "Foundry" => ("FOUNDRY_API_KEY", keys_differ()),
        "Ollama" => (OLLAMA_BASE, chat.ollama_base() != embedder.ollama_base()),
        "Bedrock" => ("AWS_REGION", regions_differ()),
        _ => return None,
    };
    differ.then_some(variable)
}

/// Requests to a host get one key for each header, and the last value of a variable counts.
/// Source: kagent 1.0, `CanonicalCredentials` and `DedupeEnv`.
fn newer(chat: &Embedder<'_>, embedder: &Embedder<'_>) -> Option<Clash> {
    if [chat, embedder].iter().all(|it| it.provider() == "Ollama") {
        return (chat.ollama_base() != embedder.ollama_base()).then_some(Clash::EmbedderWins(OLLAMA_BASE));
    }
    let host = chat.host().filter(|host| embedder.host().as_ref() == Some(host))?;
    let is_same_header = chat.key_header()? == embedder.key_header()?;
    (is_same_header && chat.key()? != embedder.key()?).then_some(Clash::TwoKeys(host))
}
