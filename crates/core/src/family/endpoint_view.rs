//! Where memory is reached, read from the text of an endpoint: a URL, `host:port` or a connection string.
//!
//! Every host that the text names is in the view, for each of them may be the one that is used. Nothing of userinfo
//! and query is, but for the hosts that a Postgres URL has there.

mod host;
mod pairs;

use std::borrow::Cow;

use crate::family::url::{Endpoint, server};
use crate::model::credential::masked;
use crate::model::memory_view::{EndpointSource, EndpointView, HostView, Why};
use crate::model::percent::percent_decoded;
use crate::model::state_reader::StateReader;

/// The scheme of Postgres, which has two spellings.
const POSTGRES: &str = "postgresql";

/// The parameters with hosts of a Postgres URL and of other connection strings of Postgres.
/// Source: PostgreSQL documentation, libpq, parameter key words.
const HOST_PARAMETERS: [&str; 2] = ["host", "hostaddr"];

/// The view of an endpoint; `namespace` is that of the object that has it.
#[must_use]
pub fn parse(from: EndpointSource, text: &str, namespace: &str, state: &mut StateReader<'_>) -> EndpointView {
    let text = text.trim();
    if text.contains("$(") {
        return EndpointView::unknown(from, Why::Placeholder);
    }
    let found = if pairs::is_pairs(text) { read_pairs(text) } else { read_url(text) };
    let servers = if found.servers.is_empty() { vec![Server::default()] } else { found.servers };
    let mut host = |server: &Server| host::host_view(&server.host, port(&server.port), namespace, state);
    let hosts: Vec<HostView> = servers.iter().map(&mut host).collect();
    EndpointView { from, scheme: found.scheme, hosts, path: found.path, unknown: None, port_unknown: None }
}

/// What a text says, as it is written.
struct WrittenEndpoint {
    scheme: Option<String>,
    /// None of them where it names no host.
    servers: Vec<Server>,
    path: Option<String>,
}

/// A host with its port. Without either it is the machine that reads the text: so do Go's dialer and the drivers of
/// Postgres.
#[derive(Default)]
struct Server {
    host: String,
    port: String,
}

/// Reads a URL, or an endpoint without scheme.
fn read_url(text: &str) -> WrittenEndpoint {
    let url = Endpoint::parse(text.strip_prefix("//").unwrap_or(text));
    let scheme = url.scheme.map(|scheme| match scheme.to_lowercase().as_str() {
        "postgres" => POSTGRES.to_owned(),
        other => other.to_owned(),
    });
    let decoded = percent_decoded(url.servers);
    let (listed, path) = match behind_userinfo(text, &decoded) {
        Some(behind) => dialled(behind),
        None => (decoded, url.path),
    };
    let listed = listed.split(';').next().unwrap_or_default();
    let is_postgres = scheme.as_deref().is_some_and(|scheme| scheme.starts_with(POSTGRES));
    let in_query: Vec<_> = url.parameters().filter(|_| is_postgres).collect();
    let ports = last(&in_query, "port").map(percent_decoded);
    let ports: Vec<&str> = ports.iter().flat_map(|ports| ports.split(',')).collect();
    let mut servers = Vec::new();
    if !listed.is_empty() {
        add_servers(listed, &ports, &mut servers);
    }
    for (_, hosts) in in_query.iter().filter(|(name, _)| HOST_PARAMETERS.contains(&name.as_ref())) {
        add_servers(&percent_decoded(hosts), &ports, &mut servers);
    }
    WrittenEndpoint { scheme, servers, path: public_path(path) }
}

/// Reads `key=value` pairs as Postgres drivers do.
fn read_pairs(text: &str) -> WrittenEndpoint {
    let pairs = pairs::read(text);
    let ports: Vec<&str> = last(&pairs, "port").into_iter().flat_map(|ports| ports.split(',')).collect();
    let mut servers = Vec::new();
    for (_, hosts) in pairs.iter().filter(|(key, _)| HOST_PARAMETERS.contains(&key.as_ref())) {
        add_servers(hosts, &ports, &mut servers);
    }
    WrittenEndpoint { scheme: Some(POSTGRES.to_owned()), servers, path: None }
}

/// The last value of a name, which counts.
fn last<'p, K: AsRef<str>, V: AsRef<str>>(pairs: &'p [(K, V)], name: &str) -> Option<&'p str> {
    pairs.iter().rev().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value.as_ref())
}

/// Adds each host of a list. One without a port has the port at its place in the other list, of which a single one is
/// for all.
fn add_servers(list: &str, ports: &[&str], servers: &mut Vec<Server>) {
    for (index, listed) in list.split(',').enumerate() {
        let (host, port) = server(listed.trim());
        // What is left of it is no address, and could be a password.
        let (host, _) = host.split_once(':').filter(|_| !host::is_address(host)).unwrap_or((host, ""));
        let elsewhere = ports.get(index).or_else(|| ports.first().filter(|_| ports.len() == 1));
        let port = if port.is_empty() { elsewhere.copied().unwrap_or_default() } else { port };
        servers.push(Server { host: host.to_owned(), port: port.to_owned() });
    }
}

/// What follows the last `@`, where what stands in place of the hosts is none that anybody could reach: there userinfo
/// has a character that ends it, such as a slash in a password.
fn behind_userinfo<'t>(text: &'t str, servers: &str) -> Option<&'t str> {
    let is_server = |listed: &str| {
        let (host, port) = server(listed.trim());
        let is_host = !host.contains(':') || host::is_address(host);
        is_host && !host.contains('(') && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    if servers.split(',').all(is_server) {
        return None;
    }
    match text.rsplit_once('@') {
        Some((_, behind)) => Some(behind),
        None => text.contains('(').then_some(text),
    }
}

/// The hosts and the path of what stands behind userinfo; MySQL has the host in parentheses, behind a protocol.
/// Source: go-sql-driver/mysql, README, DSN.
fn dialled(text: &str) -> (Cow<'_, str>, &str) {
    let parts = text.split_once('(').and_then(|(protocol, rest)| {
        let is_protocol = protocol.bytes().all(|byte| byte.is_ascii_alphanumeric());
        rest.split_once(')').filter(|_| is_protocol)
    });
    match parts {
        Some((address, rest)) => (Cow::Borrowed(address), Endpoint::parse(rest).path),
        None => {
            let url = Endpoint::parse(text);
            (percent_decoded(url.servers), url.path)
        }
    }
}

/// A path without what may be a credential: behind a slash in a password, the rest of that is read as one.
fn public_path(path: &str) -> Option<String> {
    (!path.is_empty() && !path.contains('@')).then(|| masked(path).into_owned())
}

/// A port, if the text is one.
fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
#[path = "endpoint_view/tests.rs"]
mod tests;
