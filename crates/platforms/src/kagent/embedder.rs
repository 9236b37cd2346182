//! A ModelConfig as an embedder: what computes vectors with it, and whether it can.

pub(crate) mod clash;

use super::prelude::*;

/// The provider of a ModelConfig without one.
const PROVIDER_DEFAULT: &str = "OpenAI";

/// The base URL of Ollama for a ModelConfig without a host.
const OLLAMA_DEFAULT: &str = "http://localhost:11434";

/// A ModelConfig, read as far as it concerns embeddings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Embedder<'t> {
    /// The line of kagent that reads it.
    pub(crate) line: Line,
    object: &'t Tree,
}

/// Where a provider receives the text of memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination<'t> {
    /// The URL or host in this field.
    Written(&'static [&'static str], &'t str),
    /// A URL that follows from the provider.
    Derived(Cow<'static, str>),
    /// The value of a key of a `ConfigMap`, which this field names.
    ConfigMap { path: &'static [&'static str], name: &'t str, key: &'t str },
}

impl<'t> Embedder<'t> {
    /// A ModelConfig of this line.
    pub(crate) const fn new(line: Line, object: &'t Tree) -> Self {
        Self { line, object }
    }

    /// `spec.provider`, with the default of the definition.
    pub(crate) fn provider(&self) -> &'t str {
        self.object.text_at(&["spec", "provider"]).unwrap_or(PROVIDER_DEFAULT)
    }

    /// The field with the name of the model that embeds.
    pub(crate) fn model_path(&self) -> &'static [&'static str] {
        match self.provider() {
            "AzureOpenAI" => &["spec", "azureOpenAI", "azureDeployment"],
            _ => &["spec", "model"],
        }
    }

    /// The name of the model that embeds.
    pub(crate) fn model(&self) -> Option<&'t str> {
        self.object.text_at(self.model_path())
    }

    /// Where the text of memories goes; `None` if the ModelConfig does not say it, or if its provider does not embed.
    /// Source: kagent 0.10, `go/adk/pkg/embedding/embedding.go`.
    pub(crate) fn endpoint(&self) -> Option<Destination<'t>> {
        const OPENAI: &str = "https://api.openai.com/v1";
        let derived = |url: &'static str| Some(Destination::Derived(url.into()));
        match self.provider() {
            "OpenAI" => self.written(&["spec", "openAI", "baseUrl"]).or_else(|| derived(OPENAI)),
            "AzureOpenAI" => self.written(&["spec", "azureOpenAI", "azureEndpoint"]),
            "Ollama" => self.written(&["spec", "ollama", "host"]).or_else(|| derived(OLLAMA_DEFAULT)),
            "Gemini" => derived("https://generativelanguage.googleapis.com"),
            // Its requests go to OpenAI by mistake.
            "GeminiVertexAI" if self.line == Line::Older => derived(OPENAI),
            "Bedrock" => {
                let region = self.region()?;
                let url = format!("https://bedrock-runtime.{region}.amazonaws.com");
                Some(Destination::Derived(url.into()))
            }
            "Foundry" => self.written(&["spec", "foundry", "endpoint"]).or_else(|| self.foundry_config_map()),
            _ => None,
        }
    }

    fn written(&self, path: &'static [&'static str]) -> Option<Destination<'t>> {
        self.filled(path).map(|text| Destination::Written(path, text))
    }

    fn foundry_config_map(&self) -> Option<Destination<'t>> {
        const PATH: &[&str] = &["spec", "foundry", "endpointFrom"];
        let source = self.object.at(PATH)?;
        let (name, key) = (source.text_at(&["name"])?, source.text_at(&["key"])?);
        Some(Destination::ConfigMap { path: PATH, name, key })
    }

    /// The text of a field, unless it is empty.
    fn filled(&self, path: &[&str]) -> Option<&'t str> {
        self.object.filled_at(path)
    }

    /// The region of Bedrock.
    fn region(&self) -> Option<&'t str> {
        self.filled(&["spec", "bedrock", "region"])
    }

    /// The Secret of the key for the provider, and the key's name in it, unless requests take it from elsewhere.
    fn key(&self) -> Option<(&'t str, &'t str)> {
        let is_elsewhere =
            self.passes_keys_through() || self.object.at(&["spec", "openAI", "tokenExchange"]).is_some();
        let secret = self.filled(&["spec", "apiKeySecret"]).filter(|_| !is_elsewhere)?;
        Some((secret, self.filled(&["spec", "apiKeySecretKey"])?))
    }

    /// Whether requests have the key of the agent's caller.
    pub(crate) fn passes_keys_through(&self) -> bool {
        self.object.at(&["spec", "apiKeyPassthrough"]) == Some(&Tree::Boolean(true))
    }
}

/// Why a ModelConfig cannot embed: the rule, the field of the ModelConfig, and what is wrong.
type Flaw = (&'static Code, Pointer, String);

fn flaw(code: &'static Code, path: &[&str], message: impl Into<String>) -> Flaw {
    (code, path.into(), message.into())
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
        Some(flaw(&EMBEDDER_PROVIDER, &["spec", "provider"], message))
    }

    fn anthropic_foundry(&self) -> Option<Flaw> {
        const PATH: [&str; 3] = ["spec", "foundry", "apiFormat"];
        let message = "Foundry models with apiFormat \"Anthropic\" have no embeddings";
        let is_anthropic = self.object.text_at(&PATH) == Some("Anthropic");
        is_anthropic.then(|| flaw(&EMBEDDER_PROVIDER, &PATH, message))
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
        let missing = |path: &[&str], message: String| Some(flaw(&EMBEDDER_INCOMPLETE, path, message));
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
        let text = "{text} is a chat model; name an embedding model, such as text-embedding-3-small";
        let message = filled(text, [model]);
        Some(flaw(&EMBEDDER_CHAT_MODEL, self.model_path(), message))
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
        Some(flaw(&EMBEDDER_DIMENSIONS, self.model_path(), filled("{text} {bare}", [model, problem])))
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
    use crate::kagent::api::MODEL_CONFIG;

    #[test]
    fn finds_where_the_text_goes() {
        for (spec, line, expected) in [
            ("{}", Line::Older, Some("https://api.openai.com/v1")),
            (r#"{"openAI": {"baseUrl": ""}}"#, Line::Older, Some("https://api.openai.com/v1")),
            (r#"{"openAI": {"baseUrl": "https://a"}}"#, Line::Newer, Some("spec.openAI.baseUrl=https://a")),
            (r#"{"provider": "Gemini"}"#, Line::Newer, Some("https://generativelanguage.googleapis.com")),
            (r#"{"provider": "Ollama", "ollama": {}}"#, Line::Older, Some("http://localhost:11434")),
            (
                r#"{"provider": "Ollama", "ollama": {"host": "a:1"}}"#,
                Line::Older,
                Some("spec.ollama.host=a:1"),
            ),
            (
                r#"{"provider": "Bedrock", "bedrock": {"region": "eu-west-1"}}"#,
                Line::Older,
                Some("https://bedrock-runtime.eu-west-1.amazonaws.com"),
            ),
            (r#"{"provider": "Bedrock"}"#, Line::Older, None),
            (r#"{"provider": "AzureOpenAI"}"#, Line::Older, None),
            (
                r#"{"provider": "AzureOpenAI", "azureOpenAI": {"azureEndpoint": "https://a"}}"#,
                Line::Older,
                Some("spec.azureOpenAI.azureEndpoint=https://a"),
            ),
            (
                r#"{"provider": "Foundry", "foundry": {"endpoint": "https://a"}}"#,
                Line::Older,
                Some("spec.foundry.endpoint=https://a"),
            ),
            (
                r#"{"provider": "Foundry", "foundry": {"endpointFrom": {"name": "a", "key": "b"}}}"#,
                Line::Older,
                Some("spec.foundry.endpointFrom=a/b"),
            ),
            (r#"{"provider": "Foundry", "foundry": {"endpointFrom": {"name": "a"}}}"#, Line::Older, None),
            (r#"{"provider": "GeminiVertexAI"}"#, Line::Older, Some("https://api.openai.com/v1")),
            (r#"{"provider": "GeminiVertexAI"}"#, Line::Newer, None),
            (r#"{"provider": "Anthropic"}"#, Line::Older, None),
        ] {
            let text = format!(r#"{{"spec": {spec}}}"#);
            let tree = Tree::parse(&text, &MODEL_CONFIG.schema).expect("a ModelConfig");
            let endpoint = Embedder::new(line, &tree).endpoint().map(|endpoint| match endpoint {
                Destination::Written(path, text) => format!("{}={text}", path.join(".")),
                Destination::Derived(url) => url.into_owned(),
                Destination::ConfigMap { path, name, key } => format!("{}={name}/{key}", path.join(".")),
            });
            assert_eq!(endpoint.as_deref(), expected, "{spec}");
        }
    }

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
