//! The Kubernetes objects that install memgate, as YAML.
//!
//! In goes a [`Plan`]; out comes one document per object, in the order in which they are applied.
//! Which kinds and labels belong to a family is for the caller to say. Nothing in here talks to a
//! cluster.

pub mod components;
mod entry;
mod families;
pub mod objects;
mod rbac;
mod self_guard;
pub mod twin;
mod webhooks;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use crate::deploy::components::Component;
use crate::deploy::objects::Objects;
use crate::model::kind::Kind;
use crate::model::selector::PodSelector;
use crate::model::twin::{Table, WrittenDefault};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The name of every object that memgate installs, save where two kinds would clash.
pub const NAME: &str = "memgate";

/// The two kinds of webhook configuration, as resources.
const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
/// The Secret with memgate's own CA.
const CA_SECRET: &str = "memgate-ca";

/// What is to be installed.
#[derive(Debug)]
pub struct Plan {
    /// The namespace that memgate runs in.
    pub namespace: String,
    /// The container image.
    pub image: String,
    /// How the apiserver reaches memgate.
    pub endpoint: Endpoint,
    /// The CA certificates, PEM, that the apiserver checks memgate's own against. Without them the
    /// field is left out, so that another tool can own it.
    pub ca: Option<Vec<u8>>,
    /// The families that are switched on, in their usual order.
    pub families: Vec<Rules>,
    /// What is to differ from the base.
    pub components: BTreeSet<Component>,
    /// Flags of `memgate serve` beyond those that every installation has.
    pub flags: Vec<String>,
}

/// How the apiserver reaches memgate.
#[derive(Debug)]
pub enum Endpoint {
    /// Through the Service that is installed with it.
    Service,
    /// At this URL, without a path; for development.
    Url(String),
}

/// What an installation has to know of one family.
#[derive(Debug)]
pub struct Rules {
    /// The family's name.
    pub name: &'static str,
    /// How its agent pods are told from all others.
    pub pods: &'static [PodSelector],
    /// Whether one of its pods can ask to be refused rather than started without its memory.
    pub honours_required: bool,
    /// Whether its resources are admitted when memgate does not answer.
    pub fail_open: bool,
    /// Kinds that get defaults.
    pub defaulted: Vec<&'static Kind>,
    /// Kinds that are validated.
    pub judged: Vec<&'static Kind>,
    /// Those of them of which only objects with an annotation whose key starts so are sent.
    pub marked: &'static [(&'static Kind, &'static str)],
    /// Kinds whose removal is looked at.
    pub memories: Vec<&'static Kind>,
    /// Kinds that decisions look up, and all of whose objects are watched.
    pub watched: &'static [&'static Kind],
    /// Kinds of which single objects are looked up.
    pub asked: &'static [&'static Kind],
    /// Rules that the apiserver can check by itself.
    pub twins: &'static [Table],
    /// Defaults that it can write by itself.
    pub written: &'static [WrittenDefault],
}

/// One part of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The namespace.
    Namespace,
    /// The service account and what it may do.
    Rbac,
    /// The policies that work without memgate.
    Policies,
    /// The Service, the Deployment and its disruption budget.
    Workload,
    /// The webhook configurations.
    Webhooks,
}

impl Part {
    /// Every part, in the order in which they are applied.
    pub const ALL: [Self; 5] = [Self::Namespace, Self::Rbac, Self::Policies, Self::Workload, Self::Webhooks];
}

/// The objects of a plan: the base, then its families, then its components.
#[must_use]
pub fn objects(plan: &Plan) -> Objects {
    let mut objects = Objects::base(plan);
    for family in &plan.families {
        families::add(&mut objects, plan, family);
    }
    objects.arguments().extend(plan.flags.iter().cloned());
    for component in &plan.components {
        components::change(&mut objects, plan, *component);
    }
    objects
}

/// Renders the parts of a plan as a stream of YAML documents.
///
/// # Errors
/// When an object cannot be written as YAML, which would be a fault of memgate's.
pub fn render(plan: &Plan, parts: &[Part]) -> Result<String, Error> {
    let mut text = String::new();
    for (_, document) in objects(plan).documents()?.iter().filter(|(part, _)| parts.contains(part)) {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string(document)?);
    }
    Ok(text)
}

/// Why objects cannot be written; a fault of memgate's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One of them is nothing that JSON can say.
    #[error("failed to build an object")]
    Json(#[from] serde_json::Error),
    /// One of them is nothing that YAML can say.
    #[error("failed to write an object as YAML")]
    Yaml(#[from] serde_saphyr::SerializeError),
}

/// Metadata of an object in memgate's namespace.
fn metadata(plan: &Plan) -> ObjectMeta {
    ObjectMeta { namespace: Some(plan.namespace.clone()), ..cluster_metadata() }
}

/// Metadata of a cluster-wide object.
fn cluster_metadata() -> ObjectMeta {
    ObjectMeta { name: Some(NAME.to_owned()), labels: Some(labels()), ..ObjectMeta::default() }
}

/// The labels of everything that is installed; they select memgate's pods as well.
fn labels() -> BTreeMap<String, String> {
    texts(&[("app.kubernetes.io/name", NAME)])
}

fn texts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
