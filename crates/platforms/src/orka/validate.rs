//! Validates an Agent, a Task, a Namespace or a MemoryBackend.
//!
//! These are the platform's own running objects, and its CRDs check their form. So no rule here reads a field of the
//! wrong type or depends on one, and misspelled fields are not reported. Findings on one value have the order of the
//! calls below.
//!
//! The kind MemoryBackend is not released yet and may change, so findings about it only warn. Where its CRD is installed, the
//! schema refuses most of these faults itself.

mod agent;
mod task;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::prelude::*;
use crate::endpoint_view::ambiguous_host;

/// All findings about the subject. Findings on one value have a fixed order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let kind = subject.kind;
    if subject.operation == Operation::Delete {
        return Vec::new();
    }
    if *kind == AGENT {
        agent::findings(subject, state)
    } else if *kind == TASK {
        task::findings(subject, state)
    } else if *kind == MEMORY_BACKEND {
        backend_findings(subject)
    } else if *kind == NAMESPACE {
        namespace(subject, state)
    } else {
        Vec::new()
    }
}

/// Validates a Namespace. A bad annotation only warns, so that it cannot block a namespace.
fn namespace(subject: &Subject<'_>, state: &StateReader<'_>) -> Vec<Finding> {
    let findings = agent::annotation_findings(subject.object, false, state.budget()).into_iter();
    findings.map(|finding| Finding { severity: Severity::Warn, ..finding }).collect()
}

/// A message that names its field.
fn with_field(pointer: &Pointer, message: &str) -> String {
    let field = quoted_text(&pointer.field());
    let field = field.trim_matches('"');
    if message.contains(field) { message.to_owned() } else { format!("{field}: {message}") }
}

/// The type of a Task; `None` for one that the schema refuses. Only workers of Orka's own have a memory section.
fn task_type(task: &Tree) -> Option<&'static str> {
    let name = task.text_at(&["spec", "type"])?;
    [TASK_TYPE_AI, CONTAINER, AGENT_TYPE].into_iter().find(|known| *known == name)
}

/// The type of Tasks that run any container.
const CONTAINER: &str = "container";

/// The type of Tasks that run an agent in a pool of runtimes.
const AGENT_TYPE: &str = "agent";

/// The allowed length of an endpoint, in characters. Source: the definition in the platform's pull request 331.
const ENDPOINT_CHARS: std::ops::RangeInclusive<usize> = 9..=2048;

/// Names that mean this machine or this cluster.
const LOCAL_NAMES: [&str; 5] = ["localhost", "local", "svc", "metadata", "instance-data"];

/// The suffixes of names in a cluster or a private network.
const LOCAL_SUFFIXES: [&str; 4] = [".localhost", ".local", ".internal", ".svc"];

const ENDPOINT: &str = "/spec/deployment/endpoint";

fn backend_findings(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = backend_name(subject).into_iter().collect();
    findings.extend(protocol(subject));
    findings.extend(store(subject));
    let endpoint = subject.object.text_at(&["spec", "deployment", "endpoint"]);
    if let Some(endpoint) = endpoint {
        findings.extend(not_https_url(endpoint).or_else(|| ambiguous_host(endpoint, ENDPOINT)));
        findings.extend(private_endpoint(endpoint));
    }
    findings
}

fn backend_name(subject: &Subject<'_>) -> Option<Finding> {
    let name = subject.object.text_at(&["metadata", "name"])?;
    let message = "MemoryBackend metadata.name must be default";
    (name != "default").then(|| warn(&BACKEND_NAME, "/metadata/name", message))
}

fn protocol(subject: &Subject<'_>) -> Option<Finding> {
    let protocol = |object: &'_ Tree| {
        let protocol = object.at(&["spec", "protocol"]).filter(|protocol| protocol.is_object())?;
        let text = |field: &Tree| field.text().map(str::to_owned);
        let fields = ["omsVersion", "profile"].map(|name| protocol.get(name).map(text));
        // A field of the wrong type is not compared.
        (!fields.contains(&Some(None))).then_some(fields)
    };
    let (new, old) = (protocol(subject.object)?, protocol(subject.old?)?);
    let message = "spec.protocol is immutable";
    (new != old).then(|| warn(&BACKEND_PROTOCOL_IMMUTABLE, "/spec/protocol", message))
}

fn store(subject: &Subject<'_>) -> Option<Finding> {
    const NAME: [&str; 3] = ["spec", "store", "name"];
    let (new, old) = (subject.object.text_at(&NAME)?, subject.old?.text_at(&NAME)?);
    let message = "spec.store.name is immutable";
    (new != old).then(|| warn(&BACKEND_STORE_IMMUTABLE, "/spec/store/name", message))
}

fn warn(code: &'static Code, pointer: impl Into<Pointer>, text: &str) -> Finding {
    let pointer = pointer.into();
    let message = with_field(&pointer, text);
    Finding::warn(code, pointer, message)
}

fn warn_within<T: AsRef<str>>(
    work: &Budget<'_>,
    code: &'static Code,
    pointer: Pointer,
    message: impl Fn() -> T + Send + Sync + 'static,
) -> Finding {
    Finding::warn_within(work, code, pointer, move |at| with_field(at, message().as_ref()))
}

fn not_https_url(endpoint: &str) -> Option<Finding> {
    let forbidden = |c: char| c.is_whitespace() || matches!(c, '@' | '?' | '#');
    let good = endpoint.starts_with("https://")
        && !endpoint.contains(forbidden)
        && ENDPOINT_CHARS.contains(&endpoint.chars().count());
    let message = "must be an https URL without credentials, query or fragment";
    (!good).then(|| warn(&BACKEND_ENDPOINT, ENDPOINT, message))
}

fn private_endpoint(endpoint: &str) -> Option<Finding> {
    let message = "private or cluster-local endpoints are rejected by the controller";
    is_private(Endpoint::parse(endpoint).host).then(|| warn(&BACKEND_ENDPOINT_PRIVATE, ENDPOINT, message))
}

fn is_private(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let without_zone = host.split('%').next().unwrap_or_default();
    match without_zone.parse() {
        Ok(IpAddr::V4(address)) => !is_public_v4(address),
        Ok(IpAddr::V6(address)) => !is_public_v6(address),
        Err(_) => {
            LOCAL_NAMES.contains(&host.as_str())
                || LOCAL_SUFFIXES.iter().any(|suffix| host.ends_with(suffix))
                || host.contains(".svc.")
        }
    }
}

/// Source: the IANA registry of special-purpose IPv4 addresses.
const fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || a >= 224
        || matches!((a, b), (100, 64..=127) | (198, 18 | 19))
        || matches!((a, b, c), (192, 0, 0) | (192, 88, 99)))
}

/// Whether an address is global unicast, outside the special-purpose blocks that embed IPv4 addresses or are
/// not routed.
/// Source: the IANA registry of special-purpose IPv6 addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    let [first, second, ..] = address.segments();
    let special =
        matches!((first, second), (0x2001, 0..=0x01ff | 0x0db8)) || first == 0x2002 || first == 0x3fff;
    first & 0xe000 == 0x2000 && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_private_hosts_from_public_ones() {
        for host in [
            "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
            "198.18.0.1", "224.0.0.1", "255.255.255.255", "203.0.113.9", "::1", "::", "fe80::1%25eth0",
            "fd00::1", "ff02::1", "2001:db8::1", "::ffff:10.0.0.1", "localhost", "LocalHost.", "local",
            "svc", "metadata", "instance-data", "a.localhost", "db.local", "x.internal", "memory.team.svc",
            "memory.svc.cluster.test", "metadata.google.internal",
        ] {
            assert!(is_private(host), "{host}");
        }
        for host in [
            "memory.example.com", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "svc.example.com",
            "localhost.example.com", "mylocal", "", "metadata.example.com", "172.32.0.1",
        ] {
            assert!(!is_private(host), "{host}");
        }
    }
}
