//! What the objects of this family refer to.

use super::prelude::*;
use memgate_model::edge::{Edge, Key, Named, Site, Wanted, memory_used};

use crate::references::{CONFIG_MAPS, SECRETS};

use super::block::is_brought;
use super::embedder::Embedder;
use super::validate::users::Users;

const WAITS: &str = "the whole agent waits for it";
const REFUSED: &str = "kagent does not accept the ModelConfig without it";

static HARNESSES: [&Kind; 2] = [&HARNESS, &MOVED_HARNESS];
static NEWER_AGENTS: [&Kind; 1] = [&NEWER_AGENT];
static OF_AGENTS: [&Kind; 1] = [&HARNESS];
static OF_OLDER: [&Kind; 1] = [&MODEL_CONFIG];
static OF_NEWER: [&Kind; 1] = [&NEWER_MODEL_CONFIG];

/// Finds objects by the memory that they use.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

/// The rows.
pub(crate) static EDGES: [Edge; 15] = [
    embedder(older("/spec/declarative/memory/modelConfig")),
    summarizer(older("/spec/declarative/context/compaction/summarizer/modelConfig")),
    embedder(newer(&HARNESSES, "/spec/kagent/memory/modelConfigRef/name")),
    summarizer(newer(&HARNESSES, "/spec/kagent/compaction/summarizer/modelConfigRef/name")),
    embedder(newer(&NEWER_AGENTS, "/spec/harness/kagent/memory/modelConfigRef/name")),
    summarizer(newer(&NEWER_AGENTS, "/spec/harness/kagent/compaction/summarizer/modelConfigRef/name")),
    embedder(newer(&NEWER_AGENTS, "/spec/harness/inline/kagent/memory/modelConfigRef/name")),
    summarizer(newer(&NEWER_AGENTS, "/spec/harness/inline/kagent/compaction/summarizer/modelConfigRef/name")),
    harness("/spec/harnessRef/name"),
    harness("/spec/harness/ref/name"),
    api_key(&MODEL_CONFIGS, Key::At("/spec/apiKeySecretKey")).only_if(|site, it| is_key(site, it, false)),
    api_key(
        &OF_OLDER,
        Key::Lacking(|_, it| lacks_token(it).filter(|_| PAIR.iter().any(|key| !it.has_data_key(key)))),
    )
    .only_if(|site, it| is_key(site, it, true)),
    api_key(&OF_NEWER, Key::Lacking(|_, it| lacks_token(it))).only_if(|site, it| is_key(site, it, true)),
    Edge::new(&MODEL_CONFIGS, "/spec/tls/caCertSecretRef", &SECRETS)
        .where_it_matters(is_embedder)
        .warns(&SECRET_MISSING, REFUSED)
        .with_key(Key::At("/spec/tls/caCertSecretKey"), &SECRET_KEY_MISSING),
    Edge::new(&MODEL_CONFIGS, "/spec/foundry/endpointFrom/name", &CONFIG_MAPS)
        .where_it_matters(is_embedder)
        .only_if(|_, config| Embedder::new(Line::Older, config).provider() == "Foundry")
        .warns(&CONFIG_MAP_MISSING, REFUSED)
        .with_key(Key::Beside("key"), &CONFIG_MAP_MISSING),
];

/// A row of the ModelConfig that embeds.
const fn embedder(edge: Edge) -> Edge {
    edge.of_memory().warns(&EMBEDDER_NOT_FOUND, WAITS)
}

/// A row of the ModelConfig that summarizes.
const fn summarizer(edge: Edge) -> Edge {
    edge.warns(&SUMMARIZER_NOT_FOUND, WAITS)
}

const fn older(path: &'static str) -> Edge {
    let edge = Edge::new(&AGENTS, path, &OF_OLDER).only_if(is_declared).found_by(model_config);
    Edge { other_groups: &OF_NEWER, ..edge }
}

const fn newer(from: &'static [&'static Kind], path: &'static str) -> Edge {
    let edge = Edge::new(from, path, &OF_NEWER).only_if(is_name).found_by(model_config);
    Edge { other_groups: &OF_OLDER, ..edge }
}

const fn harness(path: &'static str) -> Edge {
    Edge::new(&NEWER_AGENTS, path, &OF_AGENTS)
        .of_memory()
        .only_if(is_name)
        .where_some()
        .warns(&HARNESS_NOT_FOUND, WAITS)
}

fn is_declared(site: &Site<'_, Tree>, agent: &Tree) -> bool {
    is_name(site, agent) && !is_brought(&AGENT, agent)
}

/// A name that no object can have is the concern of another rule.
fn is_name(site: &Site<'_, Tree>, _object: &Tree) -> bool {
    is_dns_subdomain(site.text)
}

/// The ModelConfig. An object of a version that moved to another group may name one of either.
fn model_config<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let line = if wanted.edge.to == OF_NEWER { Line::Newer } else { Line::Older };
    let Named { namespace, name, .. } = wanted.named;
    line.find_model_config((namespace, name), is_moved_version(wanted.by), state)
}

/// Whether an object has the version of 1.x in the group of 0.x.
fn is_moved_version(object: &Tree) -> bool {
    let version = object.text_at(&["apiVersion"]).and_then(|version| version.split_once('/'));
    version == Some((OLDER_GROUP, NEWER_VERSION))
}

/// The keys by which Bedrock is called: a token, or in 0.x a pair.
const TOKEN: &str = "AWS_BEARER_TOKEN_BEDROCK";
const PAIR: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

fn lacks_token<'t>(secret: &Object) -> Option<&'t str> {
    (!secret.has_data_key(TOKEN)).then_some(TOKEN)
}

const fn api_key(from: &'static [&'static Kind], key: Key) -> Edge {
    let edge = Edge::new(from, "/spec/apiKeySecret", &SECRETS).warns(&SECRET_MISSING, REFUSED);
    edge.with_key(key, &SECRET_KEY_MISSING).where_it_matters(is_embedder)
}

/// Whether an object embeds with a ModelConfig.
fn is_embedder(config: &Subject<'_>, state: &mut StateReader<'_>) -> bool {
    Users::first_of(config, state).first().is_some()
}

/// Whether kagent reads the Secret of a ModelConfig, and whether it is one for Bedrock.
fn is_key(site: &Site<'_, Tree>, config: &Tree, is_for_bedrock: bool) -> bool {
    let embedder = Embedder::new(Line::Older, config);
    let is_bedrock = embedder.provider() == "Bedrock";
    is_bedrock == is_for_bedrock && !embedder.passes_keys_through() && is_dns_subdomain(site.text)
}
