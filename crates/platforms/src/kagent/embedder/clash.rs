//! Two ModelConfigs that one agent uses, for its chat and for its memory, and that need two values of one setting.

use crate::kagent::prelude::*;

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
        let (text, values) = match self {
            Self::ChatWins(variable) => {
                ("embeddings use {bare} of chat ModelConfig {}, not of {}", [variable, chat, embedder])
            }
            Self::EmbedderWins(variable) => {
                ("chat uses {bare} of ModelConfig {}, not of {}", [variable, embedder, chat])
            }
            Self::TwoKeys(host) => {
                ("{} and {} give two keys for {bare}; kagent 1.0 refuses the Agent", [embedder, chat, host])
            }
        };
        filled(text, values)
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
        let host = Endpoint::parse(url).name();
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
        let [chat, embedder] = [chat, embedder].map(|it| it.ollama_base().to_ascii_lowercase());
        let differ = chat.trim_end_matches('/') != embedder.trim_end_matches('/');
        return differ.then_some(Clash::EmbedderWins(OLLAMA_BASE));
    }
    let host = chat.host().filter(|host| embedder.host().as_ref() == Some(host))?;
    let is_same_header = chat.key_header()? == embedder.key_header()?;
    (is_same_header && chat.key()? != embedder.key()?).then_some(Clash::TwoKeys(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kagent::api::MODEL_CONFIG;
    use memgate_model::tree::Tree;

    const KEYS: [&str; 2] =
        [r#""apiKeySecret": "a", "apiKeySecretKey": "k""#, r#""apiKeySecret": "b", "apiKeySecretKey": "k""#];

    /// The clash of a chat model and an embedder with these specs.
    fn clash(line: Line, specs: [&str; 2]) -> Option<Clash> {
        let trees = specs.map(|spec| {
            let text = format!(r#"{{"spec": {{{spec}}}}}"#);
            Tree::parse(&text, &MODEL_CONFIG.schema).expect("a ModelConfig")
        });
        let [chat, embedder] = trees.each_ref().map(|tree| Embedder::new(line, tree));
        Embedder::clash(line, &chat, &embedder)
    }

    /// The clash of two of a provider, with these specs and different keys.
    fn with_keys(line: Line, specs: [(&str, &str); 2]) -> Option<Clash> {
        let [chat, embedder] = specs.map(|(provider, rest)| format!(r#""provider": "{provider}"{rest}"#));
        clash(line, [&format!("{chat}, {}", KEYS[0]), &format!("{embedder}, {}", KEYS[1])])
    }

    #[test]
    fn gives_the_chat_model_the_variable_in_0x() {
        for (provider, variable) in [
            ("OpenAI", "OPENAI_API_KEY"),
            ("AzureOpenAI", "AZURE_OPENAI_API_KEY"),
            ("Gemini", "GOOGLE_API_KEY"),
            ("Foundry", "FOUNDRY_API_KEY"),
        ] {
            let found = with_keys(Line::Older, [(provider, ""); 2]);
            assert_eq!(found, Some(Clash::ChatWins(variable)), "{provider}");
        }
        let through = r#", "apiKeyPassthrough": true"#;
        let exchanged = r#", "openAI": {"tokenExchange": {}}"#;
        for specs in [
            [("OpenAI", ""), ("Gemini", "")],
            [("Anthropic", ""); 2],
            [("OpenAI", through), ("OpenAI", "")],
            [("OpenAI", ""), ("OpenAI", exchanged)],
        ] {
            assert_eq!(with_keys(Line::Older, specs), None, "{specs:?}");
        }
        assert_eq!(clash(Line::Older, [KEYS[0]; 2]), None);
        assert_eq!(clash(Line::Older, KEYS), Some(Clash::ChatWins("OPENAI_API_KEY")));
        assert_eq!(clash(Line::Older, [KEYS[0], r#""apiKeySecret": "b""#]), None);
    }

    #[test]
    fn compares_hosts_of_ollama_and_regions_of_bedrock() {
        let ollama = |host: &str| format!(r#""provider": "Ollama", "ollama": {{"host": "{host}"}}"#);
        for (chat, embedder, differ) in [
            ("ollama:11434", "http://ollama:11434", false),
            ("", "localhost:11434", false),
            ("", "ollama:11434", true),
            ("https://ollama", "ollama", true),
        ] {
            let specs = [ollama(chat), ollama(embedder)];
            let specs = specs.each_ref().map(String::as_str);
            let found = [Line::Older, Line::Newer].map(|line| clash(line, specs));
            let expected = [Clash::ChatWins(OLLAMA_BASE), Clash::EmbedderWins(OLLAMA_BASE)];
            assert_eq!(found, expected.map(|clash| differ.then_some(clash)), "{chat} {embedder}");
        }
        let bedrock = |region: &str| format!(r#""provider": "Bedrock", "bedrock": {{"region": "{region}"}}"#);
        for (chat, embedder, differ) in [("a", "b", true), ("a", "a", false), ("a", "", false)] {
            let specs = [bedrock(chat), bedrock(embedder)];
            let found = clash(Line::Older, specs.each_ref().map(String::as_str));
            assert_eq!(found, differ.then_some(Clash::ChatWins("AWS_REGION")), "{chat} {embedder}");
        }
    }

    #[test]
    fn refuses_two_keys_for_a_host_in_1x() {
        let [here, upper, there] = [
            r#", "azureOpenAI": {"azureEndpoint": "https://team.example.com:443/x"}"#,
            r#", "azureOpenAI": {"azureEndpoint": "HTTPS://TEAM.EXAMPLE.COM"}"#,
            r#", "azureOpenAI": {"azureEndpoint": "https://other.example.com"}"#,
        ]
        .map(|section| ("AzureOpenAI", section));
        let foundry = r#", "foundry": {"endpoint": "https://team.example.com/api"}"#;
        let anthropic =
            r#", "foundry": {"endpoint": "https://team.example.com/api", "apiFormat": "Anthropic"}"#;
        let from_map = r#", "foundry": {"endpointFrom": {"name": "a", "key": "b"}}"#;
        let gateway = r#", "openAI": {"baseUrl": "https://api.openai.com./v2"}"#;
        for (specs, host) in [
            ([("OpenAI", ""); 2], Some("api.openai.com")),
            ([("OpenAI", ""), ("OpenAI", gateway)], Some("api.openai.com")),
            ([("Gemini", ""); 2], Some("generativelanguage.googleapis.com")),
            ([here, upper], Some("team.example.com")),
            ([here, ("Foundry", foundry)], Some("team.example.com")),
            ([here, there], None),
            ([("Foundry", anthropic), here], None),
            ([("Foundry", from_map); 2], None),
            ([("OpenAI", ""), ("Gemini", "")], None),
            ([("Bedrock", ""); 2], None),
        ] {
            let expected = host.map(|host| Clash::TwoKeys(host.to_owned()));
            assert_eq!(with_keys(Line::Newer, specs), expected, "{specs:?}");
        }
        assert_eq!(clash(Line::Newer, [KEYS[0]; 2]), None);
    }

    #[test]
    fn says_which_value_counts() {
        let message = |clash: Clash| clash.message("chat", "embed");
        assert_eq!(
            message(Clash::ChatWins("OPENAI_API_KEY")),
            "embeddings use OPENAI_API_KEY of chat ModelConfig \"chat\", not of \"embed\""
        );
        assert_eq!(
            message(Clash::EmbedderWins(OLLAMA_BASE)),
            "chat uses OLLAMA_API_BASE of ModelConfig \"embed\", not of \"chat\""
        );
        assert_eq!(
            message(Clash::TwoKeys("api.openai.com".to_owned())),
            "\"embed\" and \"chat\" give two keys for api.openai.com; kagent 1.0 refuses the Agent"
        );
    }
}
