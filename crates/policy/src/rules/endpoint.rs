//! `endpoint`: where memory may be reached.

use memgate_model::cel_view::{CelSide, InCel, Sayable};
use memgate_model::finding::Cause;
use memgate_model::memory_view::{EndpointSource, EndpointView, HostView, Why};
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::in_cel::{VALUE, text};
use super::super::reader::{Fields, Reader};
use super::super::text::{number, use_a_or_b, value};
use super::host_glob::HostGlob;
use super::words::{MAX_CHARS, MAX_ENTRIES, fields};

#[derive(Debug)]
struct Endpoint {
    schemes: Option<Vec<String>>,
    hosts: Option<Vec<HostGlob>>,
    ports: Option<Vec<u16>>,
    forbids_loopback: bool,
    forbids_private: bool,
    in_cluster: Option<InCluster>,
    must_be_secret: bool,
}

/// Whether an endpoint must be in the cluster, or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InCluster {
    Require,
    Forbid,
}

const NOT_ALLOWED: &str = "is not among the allowed hosts";

const FIELDS: [&str; 7] = ["schemes", "hosts", "ports", "loopback", "private", "inCluster", "fromSecret"];

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &FIELDS)?;
    let forbids = |field| fields.choice(field, &[("forbid", true), ("allow", false)]) == Some(true);
    let schemes = fields.texts("schemes", MAX_ENTRIES, MAX_CHARS);
    Some(Box::new(Endpoint {
        schemes: schemes.map(|texts| texts.into_iter().map(|(text, _)| text.to_owned()).collect()),
        hosts: hosts(&fields),
        ports: ports(&fields),
        forbids_loopback: forbids("loopback"),
        forbids_private: forbids("private"),
        in_cluster: fields
            .choice(
                "inCluster",
                &[
                    ("require", Some(InCluster::Require)),
                    ("forbid", Some(InCluster::Forbid)),
                    ("allow", None),
                ],
            )
            .flatten(),
        must_be_secret: fields.get("fromSecret").and_then(|it| it.flag()) == Some(true),
    }))
}

fn hosts(fields: &Fields<'_>) -> Option<Vec<HostGlob>> {
    Some(fields.get("hosts")?.each(MAX_ENTRIES, MAX_CHARS, |text| {
        HostGlob::new(text).ok_or_else(|| {
            let message =
                format!("{} fits no host; ** stands in front only, as in **.example.com", quoted(text));
            (Cause::Invalid, message)
        })
    }))
}

fn ports(fields: &Fields<'_>) -> Option<Vec<u16>> {
    let elements = fields.get("ports")?.list(1, MAX_ENTRIES);
    let port = |element: &Reader<'_>| u16::try_from(element.integer(1, i64::from(u16::MAX))?).ok();
    Some(elements.iter().filter_map(port).collect())
}

impl TypedRule for Endpoint {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let Some(endpoint) = &judged.view.endpoint else { return };
        let pointer = judged.view.pointer("endpoint");
        match &endpoint.unknown {
            Some(why) if endpoint.is_ambiguous() => {
                self.judge_ambiguous(endpoint, why, &pointer, judged, outcome);
            }
            Some(why) if self.reads_address() => {
                outcome.add_unknown_of(pointer.clone(), why.clone(), endpoint.digest);
            }
            Some(_) => {}
            None => self.judge_address(endpoint, &pointer, judged, outcome),
        }
        // Each judges the whole endpoint: another one in the same host, or in the same words, is a new violation.
        for violation in &mut outcome.violations {
            violation.value = format!("{:x} {}", endpoint.digest, violation.value);
        }
        // That is judged by its source alone, as in an exported policy.
        let may_be_literal = matches!(endpoint.from, EndpointSource::Secret | EndpointSource::Derived);
        if self.must_be_secret && !may_be_literal {
            outcome.add(pointer, "the endpoint must come from a Secret", endpoint.from.name());
        }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        if self.reads_address() {
            let _no_table_has_it = said.entries(side, "endpoint", "endpoint");
        }
        if self.must_be_secret
            && let Sayable::Entries(from) = side.at("endpoint.from")
        {
            let list = format!("{from}.filter(it, !({VALUE} in ['secret', 'derived']))");
            said.add(list, vec![text("the endpoint must come from a Secret")]);
        }
    }

    fn reads_other_objects(&self) -> bool {
        true
    }
}

impl Endpoint {
    fn reads_address(&self) -> bool {
        self.schemes.is_some()
            || self.hosts.is_some()
            || self.ports.is_some()
            || self.forbids_loopback
            || self.forbids_private
            || self.in_cluster.is_some()
    }

    /// Judges an endpoint whose host clients read in different ways. It is not among any allowed hosts, and an
    /// address that is loopback or private in our reading stays forbidden.
    fn judge_ambiguous(
        &self,
        endpoint: &EndpointView,
        why: &Why,
        pointer: &Pointer,
        judged: &Judged<'_>,
        outcome: &mut RuleOutcome,
    ) {
        self.judge_scheme(endpoint, pointer, judged, outcome);
        let before = outcome.violations.len();
        if let Some(host) = endpoint.hosts.first().filter(|_| self.hosts.is_some()) {
            add(outcome, pointer, judged, host, NOT_ALLOWED);
        }
        for host in &endpoint.hosts {
            for text in self.address_faults(host) {
                add(outcome, pointer, judged, host, text);
            }
        }
        let reads_more = self.ports.is_some()
            || self.forbids_loopback
            || self.forbids_private
            || self.in_cluster.is_some();
        if outcome.violations.len() == before && reads_more {
            outcome.add_unknown_of(pointer.clone(), why.clone(), endpoint.digest);
        }
    }

    fn judge_scheme(
        &self,
        endpoint: &EndpointView,
        pointer: &Pointer,
        judged: &Judged<'_>,
        outcome: &mut RuleOutcome,
    ) {
        let scheme = endpoint.scheme.as_deref().unwrap_or_default();
        if let Some(schemes) =
            self.schemes.as_ref().filter(|schemes| !schemes.iter().any(|it| is_scheme(it, scheme)))
        {
            let (shown, instead) = (value(judged, scheme), use_a_or_b(schemes));
            outcome.add(pointer.clone(), format!("endpoint scheme {shown} is not allowed{instead}"), scheme);
        }
    }

    fn judge_address(
        &self,
        endpoint: &EndpointView,
        pointer: &Pointer,
        judged: &Judged<'_>,
        outcome: &mut RuleOutcome,
    ) {
        self.judge_scheme(endpoint, pointer, judged, outcome);
        for host in &endpoint.hosts {
            let fits =
                |globs: &Vec<HostGlob>| globs.iter().any(|glob| glob.matches(&host.host, judged.budget));
            if self.hosts.as_ref().is_some_and(|globs| !fits(globs)) {
                add(outcome, pointer, judged, host, NOT_ALLOWED);
            }
        }
        self.judge_ports(endpoint, pointer, judged, outcome);
        for host in &endpoint.hosts {
            for text in self.faults(host) {
                add(outcome, pointer, judged, host, text);
            }
        }
    }

    /// What is wrong with where a host is.
    fn faults(&self, host: &HostView) -> impl Iterator<Item = &'static str> {
        let in_cluster = match self.in_cluster {
            Some(InCluster::Require) if !host.in_cluster => Some("is outside the cluster"),
            Some(InCluster::Forbid) if host.in_cluster => Some("is inside the cluster"),
            _ => None,
        };
        self.address_faults(host).chain(in_cluster)
    }

    /// What is wrong with the address of a host.
    fn address_faults(&self, host: &HostView) -> impl Iterator<Item = &'static str> + use<> {
        let is_private = host.private || host.link_local;
        let loopback = (self.forbids_loopback && host.loopback).then_some("is a loopback address");
        let private = (self.forbids_private && is_private).then_some("is a private address");
        [loopback, private].into_iter().flatten()
    }

    fn judge_ports(
        &self,
        endpoint: &EndpointView,
        pointer: &Pointer,
        judged: &Judged<'_>,
        outcome: &mut RuleOutcome,
    ) {
        let Some(ports) = &self.ports else { return };
        if let Some(why) = &endpoint.port_unknown {
            return outcome.add_unknown_of(pointer.clone(), why.clone(), endpoint.digest);
        }
        let own = endpoint.scheme.as_deref().and_then(port_of_scheme);
        for port in endpoint.hosts.iter().filter_map(|host| host.port.or(own)) {
            if !ports.contains(&port) {
                let shown = number(judged, &port.to_string());
                outcome.add(
                    pointer.clone(),
                    format!("endpoint port {shown} is not allowed"),
                    port.to_string(),
                );
            }
        }
    }
}

fn add(outcome: &mut RuleOutcome, pointer: &Pointer, judged: &Judged<'_>, host: &HostView, text: &str) {
    let shown = value(judged, &host.host);
    outcome.add(pointer.clone(), format!("endpoint host {shown} {text}"), &host.host);
}

fn is_scheme(wanted: &str, scheme: &str) -> bool {
    let plain = |text: &str| {
        if text.eq_ignore_ascii_case("postgres") { "postgresql".to_owned() } else { text.to_lowercase() }
    };
    plain(wanted) == plain(scheme)
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
