//! `endpoint`: where memory may be reached.

use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_model::memory_view::{ENDPOINTS, EndpointSource, EndpointView, HostView};
use memgate_model::typed_rule::{JudgedView, RuleOutcome, Sentence, TypedRule};

use super::host_glob::HostGlob;
use super::words::{MAX_CHARS, MAX_ENTRIES, fields};
use crate::reader::{Fields, Reader};
use crate::text::{Shown, a_or_b};

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the rule")]
struct Endpoint {
    schemes: Option<Schemes>,
    hosts: Option<Vec<HostGlob>>,
    ports: Option<Vec<u16>>,
    must_be_encrypted: bool,
    forbids_loopback: bool,
    forbids_private: bool,
    /// Whether it must be in the cluster, or must not.
    in_cluster: Option<bool>,
    must_be_secret: bool,
}

/// The schemes that are allowed.
#[derive(Debug)]
struct Schemes {
    /// As they are compared.
    plain: BTreeSet<String>,
    /// How a message about another one ends.
    instead: Arc<str>,
}

/// A sentence, and what it judged.
type Fault = (Sentence, String);

const FIELDS: [&str; 8] =
    ["schemes", "hosts", "ports", "tls", "loopback", "private", "inCluster", "fromSecret"];

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &FIELDS)?;
    let forbids = |field| fields.choice(field, &[("forbid", true), ("allow", false)]) == Some(true);
    let schemes = fields.texts("schemes", MAX_ENTRIES, MAX_CHARS);
    Some(Box::new(Endpoint {
        schemes: schemes
            .map(|texts| Schemes::of(&texts.iter().map(|(text, _)| (*text).to_owned()).collect::<Vec<_>>())),
        hosts: fields.get("hosts").map(|it| it.each(MAX_ENTRIES, MAX_CHARS, HostGlob::read)),
        ports: ports(&fields),
        must_be_encrypted: fields.choice("tls", &[("require", true)]) == Some(true),
        forbids_loopback: forbids("loopback"),
        forbids_private: forbids("private"),
        in_cluster: fields
            .choice("inCluster", &[("require", Some(true)), ("forbid", Some(false)), ("allow", None)])
            .flatten(),
        must_be_secret: fields.get("fromSecret").and_then(|it| it.flag()) == Some(true),
    }))
}

fn ports(fields: &Fields<'_>) -> Option<Vec<u16>> {
    let elements = fields.get("ports")?.list(1, MAX_ENTRIES);
    let port = |element: &Reader<'_>| u16::try_from(element.integer(1, i64::from(u16::MAX))?).ok();
    Some(elements.iter().filter_map(port).collect())
}

impl TypedRule for Endpoint {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        for (path, endpoint) in judged.view.endpoints() {
            self.judge_one((path, endpoint), judged, outcome);
        }
    }

    fn paths(&self) -> Vec<&str> {
        let count = if self.reads_address() { ENDPOINTS.len() } else { 1 };
        ENDPOINTS.into_iter().take(count).collect()
    }
}

impl Endpoint {
    /// Judges one endpoint of the view, at this path.
    fn judge_one(
        &self,
        (path, endpoint): (&str, &EndpointView),
        judged: &JudgedView<'_>,
        outcome: &mut RuleOutcome,
    ) {
        let pointer = judged.view.pointer(path);
        let is_ambiguous = endpoint.is_ambiguous();
        let why = if endpoint.unknown.is_none() || is_ambiguous {
            let of_scheme = self.scheme_fault(endpoint, judged);
            let of_address = self.address_faults(endpoint, judged);
            let why = match &endpoint.unknown {
                None => endpoint.port_unknown.as_ref().filter(|_| self.ports.is_some()),
                why => why.as_ref().filter(|_| of_address.is_empty() && self.reads_unambiguous_address()),
            };
            for (message, value) in of_scheme.into_iter().chain(of_address) {
                // Each judges the whole endpoint: another one in the same host, or in the same words, is a new violation.
                outcome.add(pointer.clone(), message, format!("{:x} {value}", endpoint.digest));
            }
            why
        } else {
            endpoint.unknown.as_ref().filter(|_| self.reads_address())
        };
        if let Some(why) = why {
            outcome.add_unknown_of(pointer.clone(), why.clone(), endpoint.digest);
        }
        // That is judged by its source alone.
        let may_be_literal = matches!(endpoint.from, EndpointSource::Secret | EndpointSource::Derived);
        if self.must_be_secret && path == "endpoint" && !may_be_literal {
            outcome.add(pointer, "the endpoint must come from a Secret", endpoint.from.name());
        }
    }

    fn reads_address(&self) -> bool {
        self.schemes.is_some() || self.hosts.is_some() || self.reads_unambiguous_address()
    }

    /// Whether it reads more of an address than what is judged of an ambiguous one.
    fn reads_unambiguous_address(&self) -> bool {
        self.ports.is_some()
            || self.must_be_encrypted
            || self.forbids_loopback
            || self.forbids_private
            || self.in_cluster.is_some()
    }

    fn scheme_fault(&self, endpoint: &EndpointView, judged: &JudgedView<'_>) -> Option<Fault> {
        let scheme = endpoint.scheme.as_deref().unwrap_or_default();
        let Schemes { plain: allowed, instead } = self.schemes.as_ref()?;
        (!allowed.contains(&plain(scheme))).then(|| {
            let (shown, instead) = (Shown::of(judged, scheme), Arc::clone(instead));
            let say = move || format!("endpoint scheme {} is not allowed{instead}", shown.value());
            (Sentence::later("scheme", say), scheme.to_owned())
        })
    }

    /// What is wrong with the rest of an address: messages, each with what it judged. A host that clients read in
    /// different ways is not among any allowed hosts, and an address that is loopback, private or without encryption in
    /// our reading stays forbidden.
    fn address_faults(&self, endpoint: &EndpointView, judged: &JudgedView<'_>) -> Vec<Fault> {
        let is_ambiguous = endpoint.is_ambiguous();
        let of_host = |host: &HostView, text: &'static str| {
            let shown = Shown::of(judged, &host.host);
            let say = move || format!("endpoint host {} {text}", shown.value());
            (Sentence::later(text, say), host.host.clone())
        };
        let mut faults = Vec::new();
        if let Some(globs) = &self.hosts {
            let fits = |host: &HostView| globs.iter().any(|glob| glob.matches(&host.host, judged.budget));
            let hosts = endpoint.hosts.iter().take(if is_ambiguous { 1 } else { usize::MAX });
            let wrong = hosts.filter(|host| is_ambiguous || !fits(host));
            faults.extend(wrong.map(|host| of_host(host, "is not among the allowed hosts")));
        }
        if let Some(ports) = self.ports.as_ref().filter(|_| !is_ambiguous && endpoint.port_unknown.is_none())
        {
            let own = endpoint.scheme.as_deref().and_then(port_of_scheme);
            let used = endpoint.hosts.iter().filter_map(|host| host.port.or(own));
            faults.extend(used.filter(|port| !ports.contains(port)).map(|port| {
                let (port, shown) = (port.to_string(), Shown::of(judged, &port.to_string()));
                let say = move || format!("endpoint port {} is not allowed", shown.number());
                (Sentence::later("port", say), port)
            }));
        }
        if self.must_be_encrypted && endpoint.tls == Some(false) {
            faults.push(("the endpoint is not encrypted".into(), String::new()));
        }
        let must_be = self.in_cluster.filter(|_| !is_ambiguous);
        for host in &endpoint.hosts {
            let is_private = host.private || host.link_local;
            for (is_wrong, text) in [
                (self.forbids_loopback && host.loopback, "is a loopback address"),
                (self.forbids_private && is_private, "is a private address"),
                (must_be == Some(true) && !host.in_cluster, "is outside the cluster"),
                (must_be == Some(false) && host.in_cluster, "is inside the cluster"),
            ] {
                faults.extend(is_wrong.then(|| of_host(host, text)));
            }
        }
        faults
    }
}

impl Schemes {
    fn of(written: &[String]) -> Self {
        Self {
            plain: written.iter().map(|it| plain(it)).collect(),
            instead: format!("; use {}", a_or_b(written)).into(),
        }
    }
}

/// A scheme as it is compared.
fn plain(scheme: &str) -> String {
    if scheme.eq_ignore_ascii_case("postgres") { "postgresql".to_owned() } else { scheme.to_lowercase() }
}

/// The port where an address of this scheme has none.
fn port_of_scheme(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        "postgresql" | "postgres" => Some(5432),
        "redis" | "rediss" => Some(6379),
        _ => None,
    }
}
