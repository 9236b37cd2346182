//! The endpoint of a memory.

use crate::memory_view::{MemoryView, Why, digest};
use memgate_primitives::named::named;

/// The schemes whose clients encrypt what they send. A client of Postgres does so in some of its modes.
pub const ENCRYPTED_SCHEMES: [&str; 4] = ["https", "rediss", "grpcs", "wss"];

/// The paths of the endpoints of a view.
pub const ENDPOINTS: [&str; 2] = ["endpoint", EMBEDDING];

const EMBEDDING: &str = "embedding.endpoint";

/// The end of a path of an endpoint, behind the endpoint itself: `.host`, or nothing; `None` for any other path.
pub fn below_endpoint(path: &str) -> Option<&str> {
    let below = ENDPOINTS.into_iter().find_map(|endpoint| path.strip_prefix(endpoint));
    below.filter(|below| below.is_empty() || below.starts_with('.'))
}

named! {
    /// Where the endpoint comes from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum EndpointSource {
        /// It is a literal in the object.
        Literal = "literal",
        /// It is a Service.
        Service = "service",
        /// It is in a Secret.
        Secret = "secret",
        /// It is in a `ConfigMap`.
        ConfigMap = "configMap",
        /// It is taken from the parameters of a query.
        Query = "query",
        /// The platform makes it.
        Derived = "derived",
    }
}

/// The endpoint of a memory, without userinfo and query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointView {
    /// Where it comes from.
    pub from: EndpointSource,
    /// The scheme in small letters; absent where none is written.
    pub scheme: Option<String>,
    /// Each host with its port; several in a DSN. Empty where none is known. Of a host that clients read in two ways,
    /// the text that messages show.
    pub hosts: Vec<HostView>,
    /// The path, if there is one.
    pub path: Option<String>,
    /// Whether clients encrypt what they send, as far as its text tells; absent where nothing of it is known.
    pub tls: Option<bool>,
    /// Why its hosts are not known.
    pub unknown: Option<Why>,
    /// Why the port is unknown, if the rest is known.
    pub port_unknown: Option<Why>,
    /// The Secret or `ConfigMap` that it is in.
    pub named: Option<String>,
    /// A digest of its whole text, or of what refers to it, for comparing it with the stored one. Never shown.
    pub digest: u64,
}

/// One host of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the view")]
pub struct HostView {
    /// In small letters, without brackets and final dot.
    pub host: String,
    /// The port that is written.
    pub port: Option<u16>,
    /// Whether it is the pod itself: a loopback or unspecified address, `localhost`.
    pub loopback: bool,
    /// Whether it is a literal address in a private range: RFC 1918, ULA.
    pub private: bool,
    /// Whether it is a literal link-local address.
    pub link_local: bool,
    /// Whether it is a name of the cluster.
    pub in_cluster: bool,
}

impl EndpointView {
    /// An endpoint without parts.
    pub const fn new(from: EndpointSource) -> Self {
        let hosts = Vec::new();
        Self {
            from,
            scheme: None,
            hosts,
            path: None,
            tls: None,
            unknown: None,
            port_unknown: None,
            named: None,
            digest: 0,
        }
    }

    /// An endpoint of which only the source is known.
    pub fn unknown(from: EndpointSource, why: Why) -> Self {
        Self { unknown: Some(why), ..Self::new(from) }
    }

    /// One that is in this key of this Secret or `ConfigMap`.
    pub fn in_object(from: EndpointSource, (name, key): (&str, &str)) -> Self {
        let is_secret = from == EndpointSource::Secret;
        let why = if is_secret { Why::EndpointInSecret } else { Why::EndpointInConfigMap };
        Self { named: Some(name.to_owned()), ..Self::unknown(from, why).of(&format!("{name}/{key}")) }
    }

    /// The same with the digest of this text.
    #[must_use]
    pub fn of(mut self, text: &str) -> Self {
        self.digest = digest(text);
        self
    }

    /// Whether clients read its host in different ways. Such a host is never among the allowed ones.
    pub fn is_ambiguous(&self) -> bool {
        self.unknown == Some(Why::TwoReadings)
    }

    /// The URL with one of its hosts, from the parts of the view; absent without a scheme, or if the hosts are not known.
    pub fn url(&self, of: &HostView) -> Option<String> {
        let scheme = self.scheme.as_deref().filter(|_| self.unknown.is_none())?;
        let host = if of.host.contains(':') { format!("[{}]", of.host) } else { of.host.clone() };
        let port = of.port.map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{scheme}://{host}{port}{}", self.path.as_deref().unwrap_or_default()))
    }
}

impl MemoryView {
    /// The endpoint that a path is, or is part of.
    pub fn endpoint_at(&self, path: &str) -> Option<&EndpointView> {
        let is_of_embedding = path.starts_with(EMBEDDING);
        below_endpoint(path).and(if is_of_embedding {
            self.embedding_endpoint.as_ref()
        } else {
            self.endpoint.as_ref()
        })
    }

    /// The endpoint at this path of [`ENDPOINTS`].
    pub fn endpoint_at_mut(&mut self, path: &str) -> &mut Option<EndpointView> {
        if path == EMBEDDING { &mut self.embedding_endpoint } else { &mut self.endpoint }
    }

    /// The endpoints with their paths, each address once: of two in one place the first.
    pub fn endpoints(&self) -> impl Iterator<Item = (&'static str, &EndpointView)> {
        let is_same =
            self.embedding_endpoint == self.endpoint && self.pointer(EMBEDDING) == self.pointer("endpoint");
        let paths = ENDPOINTS.into_iter().filter(move |path| *path != EMBEDDING || !is_same);
        paths.filter_map(|path| Some((path, self.endpoint_at(path)?)))
    }
}
