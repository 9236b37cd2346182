//! Where memory is reached, read from the text of an endpoint: a URL, `host:port` or a connection string.
//!
//! The view has every host that the text names, since a client may use any of them. It has nothing from userinfo and
//! query except the hosts in the query of a database URL. A host that clients read in two ways is unknown.

use crate::common::HOST_AMBIGUOUS;
use crate::prelude::*;
use crate::url::{
    AddressRange, MAX_HOSTS, Reading, is_scheme, is_web, port_number, reading_of_hosts, reading_of_url,
    server,
};
use memgate_model::memory_view::{ENCRYPTED_SCHEMES, HostView};
use memgate_primitives::credential::masked;
use memgate_primitives::percent::percent_decoded;

/// The scheme of Postgres, which has two spellings.
const POSTGRES: &str = "postgresql";

/// The modes in which a client of Postgres sends nothing in clear text. Source: PostgreSQL documentation, libpq, sslmode.
const ENCRYPTED_MODES: [&str; 3] = ["require", "verify-ca", "verify-full"];

/// The parameters that name hosts, in URLs and in other connection strings. Some hold a whole connection string, which
/// no host is. Source: PostgreSQL documentation, libpq, parameter key words; pgjdbc, PGProperty; SQLAlchemy, dialects.
const HOST_PARAMETERS: [&str; 4] = ["host", "hostaddr", "pghost", "odbc_connect"];

/// The view of an endpoint; `namespace` is the namespace of the object that has it.
pub fn parse(from: EndpointSource, text: &str, namespace: &str, state: &mut StateReader<'_>) -> EndpointView {
    if text.contains("$(") {
        return EndpointView::unknown(from, Why::Placeholder).of(text);
    }
    let WrittenEndpoint { scheme, servers, path, encrypts, reading } = read(text);
    let servers = if servers.is_empty() { vec![Server::default()] } else { servers };
    let mut host = |server: &Server| host_view(&server.host, port_number(&server.port), namespace, state);
    let (hosts, path) = match reading {
        Reading::Different => {
            (vec![HostView { host: shown_host(text, &servers), ..HostView::default() }], None)
        }
        Reading::Same | Reading::Unusual | Reading::Odd => (servers.iter().map(&mut host).collect(), path),
    };
    let unknown = (reading != Reading::Same).then_some(Why::TwoReadings);
    let tls = Some(encrypts);
    EndpointView { scheme, hosts, path, tls, unknown, ..EndpointView::new(from) }.of(text)
}

/// The warning about a URL of which clients read different hosts. The reading of a connection string in another form
/// is the provider's own.
pub(crate) fn ambiguous_host(text: &str, pointer: impl Into<Pointer>) -> Option<Finding> {
    let is_url = text.contains(":/") || text.contains(":\\");
    if !is_url || text.contains("$(") || read(text).reading <= Reading::Unusual {
        return None;
    }
    let pointer = pointer.into();
    let message = format!(
        "{}: clients read its host in different ways; write scheme://host:port/path",
        pointer.field()
    );
    Some(Finding::warn(&HOST_AMBIGUOUS, pointer, message))
}

/// Reads an endpoint. A client may use any of its hosts.
pub(crate) fn read(text: &str) -> WrittenEndpoint {
    let trimmed = text.trim();
    if is_pairs(trimmed) { read_pairs(trimmed) } else { read_url(trimmed, reading_of_url(text)) }
}

/// The host of a text that clients read in different ways, as messages show it: the characters of a host that it begins
/// with, and `…`, so that it equals no host. With an `@` in the text, which part is a credential depends on the client.
fn shown_host(text: &str, servers: &[Server]) -> String {
    /// More than a message shows.
    const MAX_CHARS: usize = 253;
    let host = servers.first().filter(|_| !text.contains('@')).map_or("", |server| server.host.as_str());
    let is_of_host = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    host.chars().take_while(is_of_host).take(MAX_CHARS).chain(['…']).collect()
}

/// The parts of an endpoint, as they are written.
pub(crate) struct WrittenEndpoint {
    /// In small letters.
    pub(crate) scheme: Option<String>,
    /// Empty if the text does not name a host.
    pub(crate) servers: Vec<Server>,
    path: Option<String>,
    /// Whether clients encrypt what they send.
    encrypts: bool,
    reading: Reading,
}

/// A host with its port. An empty host means the client's own machine, as for Go's dialer and the Postgres drivers.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) host: String,
    /// It may be empty.
    pub(crate) port: String,
}

/// Reads a URL, or an endpoint without scheme; `reading` is how clients read its authority.
fn read_url(text: &str, mut reading: Reading) -> WrittenEndpoint {
    let url = Endpoint::parse(text.strip_prefix("//").unwrap_or(text));
    // A text in place of a scheme may be a credential.
    let scheme = url.scheme.filter(|scheme| is_scheme(scheme));
    let scheme = scheme.map(|scheme| match scheme.to_lowercase().as_str() {
        "postgres" => POSTGRES.to_owned(),
        other => other.to_owned(),
    });
    let listed = percent_decoded(url.servers);
    let is_web = scheme.as_deref().is_some_and(is_web);
    let in_query: Vec<_> = url.parameters().filter(|_| !is_web).collect();
    let ports = last(&in_query, "port").or_else(|| last(&in_query, "pgport")).map(percent_decoded);
    let ports: Vec<&str> = ports.iter().flat_map(|ports| ports.split(',')).collect();
    let mut servers = Vec::new();
    if !listed.is_empty() {
        add_servers(&listed, &ports, &mut servers);
    }
    for (_, hosts) in in_query.iter().filter(|(name, _)| is_host_parameter(name)) {
        let hosts = percent_decoded(hosts);
        reading = reading.max(reading_of_hosts(&hosts));
        add_servers(&hosts, &ports, &mut servers);
    }
    let encrypts = match scheme.as_deref() {
        Some(POSTGRES) => requires_tls(&in_query),
        scheme => scheme.is_some_and(|scheme| ENCRYPTED_SCHEMES.contains(&scheme)),
    };
    WrittenEndpoint {
        scheme,
        path: public_path(url.path),
        encrypts,
        reading: reading.max(of_servers(&servers, &ports)),
        servers,
    }
}

/// Whether the parameters of a connection string require TLS for every host: each mode among those that are repeated,
/// or that stand in a list with one for each host. In capitals the parameter is none of libpq's, so it only takes away.
fn requires_tls<K: AsRef<str>, V: AsRef<str>>(parameters: &[(K, V)]) -> bool {
    let modes = parameters.iter().filter(|(name, _)| name.as_ref().eq_ignore_ascii_case("sslmode"));
    let is_set = parameters.iter().any(|(name, _)| name.as_ref() == "sslmode");
    let modes: Vec<_> = modes.map(|(_, modes)| percent_decoded(modes.as_ref())).collect();
    let mut each = modes.iter().flat_map(|modes| modes.split(','));
    is_set && each.all(|mode| ENCRYPTED_MODES.contains(&mode))
}

/// Reads `key=value` pairs as Postgres drivers do.
fn read_pairs(text: &str) -> WrittenEndpoint {
    let pairs = key_value_pairs(text);
    let ports: Vec<&str> = last(&pairs, "port").into_iter().flat_map(|ports| ports.split(',')).collect();
    let (mut servers, mut reading) = (Vec::new(), Reading::Same);
    for (_, hosts) in pairs.iter().filter(|(key, _)| is_host_parameter(key)) {
        reading = reading.max(reading_of_hosts(hosts));
        add_servers(hosts, &ports, &mut servers);
    }
    let (reading, encrypts) = (reading.max(of_servers(&servers, &ports)), requires_tls(&pairs));
    WrittenEndpoint { scheme: Some(POSTGRES.to_owned()), servers, path: None, encrypts, reading }
}

/// Whether a parameter has hosts. Some drivers ignore the case of its name.
fn is_host_parameter(name: &str) -> bool {
    HOST_PARAMETERS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Very many hosts are not compared, nor are those with a port in a parameter that is no number.
fn of_servers(servers: &[Server], ports: &[&str]) -> Reading {
    let is_port = |port: &&str| port.is_empty() || port_number(port).is_some();
    let is_known = servers.len() <= MAX_HOSTS && ports.iter().all(is_port);
    if is_known { Reading::Same } else { Reading::Different }
}

/// The last value with this name; earlier ones are ignored.
fn last<'p, K: AsRef<str>, V: AsRef<str>>(pairs: &'p [(K, V)], name: &str) -> Option<&'p str> {
    pairs
        .iter()
        .rev()
        .find(|(key, _)| key.as_ref().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_ref())
}

/// Adds each host of a list, also with the port at the same index of `ports`, or the only port: with two ports, some
/// clients use one and some the other.
fn add_servers(list: &str, ports: &[&str], servers: &mut Vec<Server>) {
    // One host too many tells that there are too many.
    let room = (MAX_HOSTS + 1).saturating_sub(servers.len());
    for (index, listed) in list.split(',').take(room).enumerate() {
        let (host, port) = server(listed.trim());
        let elsewhere = ports.get(index).or_else(|| ports.first().filter(|_| ports.len() == 1));
        let elsewhere = elsewhere.copied().filter(|it| !it.is_empty() && *it != port);
        let own = Some(port).filter(|port| !port.is_empty() || elsewhere.is_none());
        let server = |port: &str| Server { host: host.to_owned(), port: port.to_owned() };
        servers.extend(own.into_iter().chain(elsewhere).map(server));
    }
}

/// A path for the view; `None` if it may contain a credential. If a password contains a slash, the rest of the
/// password is read as a path.
fn public_path(path: &str) -> Option<String> {
    (!path.is_empty() && !path.contains('@')).then(|| masked(path).into_owned())
}

/// Whether a text begins with a `key=value` pair, and so is not an endpoint of another form.
fn is_pairs(text: &str) -> bool {
    let Some((key, _)) = text.split_once('=') else { return false };
    let key = key.trim();
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The pairs, up to the first text of another form.
fn key_value_pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while let Some((key, behind)) = rest.split_once('=') {
        let (value, behind) = pair_value(behind.trim_start());
        pairs.push((key.trim().to_owned(), value));
        rest = behind;
    }
    pairs
}

/// A value and the text after it. The value ends at white space unless it is in quotes. A backslash escapes the next
/// character.
fn pair_value(text: &str) -> (String, &str) {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted.is_some() => return (value, characters.as_str()),
            blank if quoted.is_none() && blank.is_whitespace() => {
                return (value, text.get(at..).unwrap_or_default());
            }
            other => value.push(other),
        }
    }
    (value, "")
}

/// The view of a host, given as it is written, without brackets. `namespace` is the namespace of the object that
/// names it.
fn host_view(host: &str, port: Option<u16>, namespace: &str, state: &mut StateReader<'_>) -> HostView {
    let host = host.trim().to_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    let Some(AddressRange { loopback, private, link_local }) = AddressRange::of(&host) else {
        let loopback = is_own_name(&host);
        let in_cluster = !loopback && is_in_cluster(&host, namespace, state);
        return HostView { port, loopback, in_cluster, host, ..HostView::default() };
    };
    HostView { port, loopback, private, link_local, in_cluster: false, host }
}

/// Whether a name leads to the pod itself: `localhost`, an empty host, or the socket of a process.
fn is_own_name(host: &str) -> bool {
    host.is_empty() || host.starts_with(['/', '@']) || host == "localhost" || host.ends_with(".localhost")
}

/// Whether a Service of the cluster exists. In a cluster it is looked up, since Services are not watched. For files, a
/// missing Service does not make the decision unknown.
fn is_service(namespace: &str, name: &str, state: &mut StateReader<'_>) -> bool {
    let service = if state.in_cluster(&SERVICE) {
        state.get(&SERVICE, namespace, name).found()
    } else {
        state.peek(&SERVICE, namespace, name)
    };
    service.is_some_and(|service| !is_external(service))
}

/// Whether a Service stands for a name elsewhere, to which clients are sent.
pub(crate) fn is_external(service: &Object) -> bool {
    service.tree().text_at(&["spec", "type"]) == Some("ExternalName")
}

/// Whether a name is that of a Service known to stand for a name elsewhere. It is not looked up: where it is not known, the
/// form of the name decides.
fn leads_elsewhere(namespace: &str, name: &str, state: &mut StateReader<'_>) -> bool {
    let service = state.quietly(|state| state.get_if_known(&SERVICE, namespace, name).found());
    service.is_some_and(is_external)
}

/// Whether a name is resolved inside the cluster. `service.namespace` without `svc` counts only if the namespace is
/// the object's own or the Service exists. A Service that stands for a name elsewhere does not count.
fn is_in_cluster(host: &str, namespace: &str, state: &mut StateReader<'_>) -> bool {
    let Some((name, rest)) = host.split_once('.') else { return !leads_elsewhere(namespace, host, state) };
    let domain = state.cluster_domain().trim_matches('.').to_lowercase();
    let service = host.strip_suffix(&domain).and_then(|host| host.strip_suffix('.')).unwrap_or(host);
    if let Some(named) = service.strip_suffix(".svc") {
        let (names, home) = named.rsplit_once('.').unwrap_or((named, "svc"));
        // The name of a pod may be in front.
        let name = names.rsplit('.').next().unwrap_or_default();
        return !leads_elsewhere(home, name, state);
    }
    match rest {
        rest if rest.contains('.') => false,
        rest if rest == namespace => !leads_elsewhere(rest, name, state),
        rest => is_service(rest, name, state),
    }
}
