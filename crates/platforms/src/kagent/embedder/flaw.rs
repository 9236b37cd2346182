//! Why a ModelConfig cannot embed.

use crate::kagent::api::Line;
use crate::kagent::block::{pointer, with_texts};
use crate::kagent::codes::{
    EMBEDDER_CHAT_MODEL, EMBEDDER_DIMENSIONS, EMBEDDER_INCOMPLETE, EMBEDDER_PROVIDER,
};
use memgate_model::finding::Code;
use memgate_primitives::pointer::Pointer;

use super::Embedder;

/// Why a ModelConfig cannot embed.
#[derive(Debug, Clone)]
pub(crate) struct Flaw {
    /// The rule.
    pub(crate) code: &'static Code,
    /// The field of the ModelConfig.
    pub(crate) pointer: Pointer,
    /// What is wrong.
    pub(crate) message: String,
}

impl Flaw {
    fn new(code: &'static Code, path: &[&str], message: impl Into<String>) -> Self {
        Self { code, pointer: pointer(path), message: message.into() }
    }
}

impl Embedder<'_> {
    /// The first reason why it cannot embed.
    pub(crate) fn flaw(&self) -> Option<Flaw> {
        self.wrong_provider()
            .or_else(|| self.incomplete())
            .or_else(|| self.chat_model())
            .or_else(|| self.wrong_dimensions())
    }

    /// A provider without embeddings.
    /// Source: kagent 0.10, `go/adk/pkg/embedding/embedding.go`; kagent 1.0, `go/core/internal/translator`.
    fn wrong_provider(&self) -> Option<Flaw> {
        let provider = self.provider();
        let message = match (self.line, provider) {
            (_, "Anthropic") | (Line::Older, "AnthropicVertexAI" | "SAPAICore") => {
                format!("provider \"{provider}\" has no embeddings in kagent; memories cannot be stored")
            }
            (Line::Older, "GeminiVertexAI") => {
                format!(
                    "provider \"{provider}\" does not embed in kagent 0.x, requests go to OpenAI (issue 2376)"
                )
            }
            (Line::Newer, "AnthropicVertexAI" | "GeminiVertexAI" | "SAPAICore" | "Mistral") => {
                format!(
                    "provider \"{provider}\" does not compile in kagent 1.0; no agent of the Harness starts"
                )
            }
            (Line::Newer, "Foundry") => return self.anthropic_foundry(),
            _ => return None,
        };
        Some(Flaw::new(&EMBEDDER_PROVIDER, &["spec", "provider"], message))
    }

    fn anthropic_foundry(&self) -> Option<Flaw> {
        const PATH: [&str; 3] = ["spec", "foundry", "apiFormat"];
        let message = "Foundry models with apiFormat \"Anthropic\" have no embeddings";
        let is_anthropic = self.object.text_at(&PATH) == Some("Anthropic");
        is_anthropic.then(|| Flaw::new(&EMBEDDER_PROVIDER, &PATH, message))
    }

    /// A field that is missing. The definition does not require it, since chats do not need it, or since it only
    /// checks each section by itself.
    fn incomplete(&self) -> Option<Flaw> {
        let provider = self.provider();
        let section = match provider {
            "AzureOpenAI" => Some("azureOpenAI"),
            "Ollama" => Some("ollama"),
            "Bedrock" => Some("bedrock"),
            "Foundry" => Some("foundry"),
            _ => None,
        };
        let missing = |path: &[&str], message: String| Some(Flaw::new(&EMBEDDER_INCOMPLETE, path, message));
        if let Some(section) = section.filter(|section| self.object.at(&["spec", section]).is_none()) {
            let message =
                format!("spec.{section} is required for provider \"{provider}\"; kagent refuses the agent");
            return missing(&["spec", section], message);
        }
        if provider == "AzureOpenAI" && self.filled(self.model_path()).is_none() {
            return missing(
                self.model_path(),
                "spec.azureOpenAI.azureDeployment is required for embeddings".into(),
            );
        }
        if provider == "Gemini" && self.filled(&["spec", "apiKeySecret"]).is_none() {
            let message = "spec.apiKeySecret is required for provider \"Gemini\"; the agent cannot start";
            return missing(&["spec", "apiKeySecret"], message.into());
        }
        self.object.text_at(&["spec", "model"]).filter(|model| model.trim().is_empty())?;
        missing(&["spec", "model"], "spec.model is empty; the agent cannot start".into())
    }

    fn chat_model(&self) -> Option<Flaw> {
        let model = self.model().filter(|model| is_chat_model(self.provider(), model))?;
        let message = with_texts([model], |[model]| {
            format!("{model} is a chat model; name an embedding model, such as text-embedding-3-small")
        });
        Some(Flaw::new(&EMBEDDER_CHAT_MODEL, self.model_path(), message))
    }

    fn wrong_dimensions(&self) -> Option<Flaw> {
        let model = self.model()?;
        let without_dimensions = "takes no dimensions parameter; use text-embedding-3-small";
        let has_base_url = self.filled(&["spec", "openAI", "baseUrl"]).is_some();
        let problem = match self.provider() {
            "OpenAI" if has_base_url => None,
            "OpenAI" | "AzureOpenAI" | "Foundry" => {
                (model == "text-embedding-ada-002").then_some(without_dimensions)
            }
            "Ollama" => is_narrow(model).then_some("gives 384 dimensions; kagent needs 768 or more"),
            "Bedrock" => {
                let is_titan = model.starts_with("arn:") || model.contains("titan-embed");
                (!is_titan).then_some("is no Titan model; kagent sends Titan requests only")
            }
            _ => None,
        }?;
        let message = with_texts([model], |[model]| format!("{model} {problem}"));
        Some(Flaw::new(&EMBEDDER_DIMENSIONS, self.model_path(), message))
    }
}

/// Whether a model of this provider is known as a chat model. Chat models of Ollama do embed.
fn is_chat_model(provider: &str, model: &str) -> bool {
    let model = model.to_lowercase();
    let name = model.rsplit('/').next().unwrap_or_default();
    let starts_with = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let is_one_of = |names: &[&str]| name.split('-').next().is_some_and(|first| names.contains(&first));
    let is_chat = match provider {
        "OpenAI" | "AzureOpenAI" | "Foundry" => {
            starts_with(&["gpt-", "chatgpt-", "codex-", "claude-", "llama-", "mistral-"])
                || is_one_of(&["o1", "o3", "o4"])
        }
        "Gemini" => starts_with(&["gemini-", "gemma"]),
        _ => false,
    };
    is_chat && !name.contains("embed")
}

/// Whether a model of Ollama has vectors of 384 values. Source: the library of Ollama.
fn is_narrow(model: &str) -> bool {
    matches!(
        model.split_once(':').unwrap_or((model, "")),
        ("all-minilm", _) | ("snowflake-arctic-embed", "22m" | "33m") | ("granite-embedding", "30m")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_chat_models() {
        const OPENAI: [&str; 3] = ["OpenAI", "AzureOpenAI", "Foundry"];
        for (providers, models, is_chat) in [
            (&OPENAI[..], "gpt-4o GPT-5 openai/gpt-4.1-mini chatgpt-4o-latest codex-mini claude-3 o1", true),
            (&OPENAI, "o1-mini o3 o3-pro o4-mini meta/llama-3 mistral-large a/b/o4", true),
            (
                &OPENAI,
                "text-embedding-3-small gpt-embed mistral-embed o1x o5 o30 gpt4 vectors gpt-4o/x",
                false,
            ),
            (&OPENAI, "gemini-2.5-flash gemma3 llama3 my-gpt-4o o", false),
            (&["Gemini"], "gemini-2.5-flash models/gemini-2.0-flash gemma gemma-3-27b-it Gemma3", true),
            (&["Gemini"], "gemini-embedding-001 embeddinggemma text-embedding-004 gpt-4o geminix", false),
            (
                &["Ollama", "Bedrock", "Unknown"],
                "gpt-4o llama3.2 gemini-2.5-flash gemma3 mistral-large",
                false,
            ),
        ] {
            for (provider, model) in
                providers.iter().flat_map(|it| models.split(' ').map(move |model| (it, model)))
            {
                assert_eq!(is_chat_model(provider, model), is_chat, "{provider}: {model}");
            }
        }
        for empty in ["", "/", "gpt-4o/"] {
            assert!(!is_chat_model("OpenAI", empty), "{empty}");
        }
    }

    #[test]
    fn recognises_narrow_models() {
        for (model, narrow) in [
            ("all-minilm", true),
            ("all-minilm:latest", true),
            ("all-minilm:", true),
            ("snowflake-arctic-embed:22m", true),
            ("snowflake-arctic-embed:33m", true),
            ("snowflake-arctic-embed:335m", false),
            ("snowflake-arctic-embed", false),
            ("granite-embedding:30m", true),
            ("granite-embedding:278m", false),
            ("nomic-embed-text", false),
            ("all-minilm-2", false),
            ("", false),
        ] {
            assert_eq!(is_narrow(model), narrow, "{model}");
        }
    }
}
