//! A ModelConfig as an embedder: what computes vectors with it, and whether it can.

pub(crate) mod clash;
pub(crate) mod flaw;

use std::borrow::Cow;

use memgate_model::tree::Tree;

use super::api::Line;

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
}
