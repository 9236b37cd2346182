//! A ModelConfig as an embedder: what computes vectors with it, and whether it can.

use memgate_model::finding::Code;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::api::Line;

/// The provider of a ModelConfig without one.
const PROVIDER_DEFAULT: &str = "OpenAI";

/// A ModelConfig, read as far as it concerns embeddings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Embedder<'t> {
    /// The line of kagent that reads it.
    pub(crate) line: Line,
    object: &'t Tree,
}

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

    /// The first reason why it cannot embed.
    pub(crate) fn flaw(&self) -> Option<Flaw> {
        None
    }
}
