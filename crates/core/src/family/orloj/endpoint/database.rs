//! Which database a Postgres URL leads to, as Postgres drivers read it.
//! Source: PostgreSQL documentation, libpq, connection URIs.

use crate::family::url::{Endpoint, server};
use crate::model::percent::percent_decoded;

use super::is_postgres;

/// The port of Postgres.
const POSTGRES_PORT: &str = "5432";

/// A database, equal for two URLs that mean the same tables.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Database {
    /// Hosts and ports.
    servers: String,
    name: String,
}

impl Database {
    /// The database as one text; equal only for equal databases.
    pub(in super::super) fn key(&self) -> String {
        format!("{}:{}/{}", self.servers.len(), self.servers, self.name)
    }
}

/// The database of a Postgres URL. `None` for a URL without host or name, which the reading machine fills in, and for
/// a text that is too long.
pub(in super::super) fn database(endpoint: &str) -> Option<Database> {
    /// Longer texts are not URLs that users write.
    const MAX_READ_BYTES: usize = 4096;
    if !is_postgres(endpoint) || endpoint.len() > MAX_READ_BYTES {
        return None;
    }
    let url = Endpoint::parse(endpoint);
    let parameter = |name| url.parameters().find(|(known, _)| known == name).map(|(_, value)| value);
    let path = url.path.strip_prefix('/');
    let name = first([path, parameter("dbname"), Some(url.user), parameter("user")])?;
    let hosts = first([Some(url.servers), parameter("host")])?;
    let port = parameter("port").filter(|port| !port.is_empty()).unwrap_or(POSTGRES_PORT);
    let hosts = percent_decoded(hosts);
    let servers: Option<Vec<_>> = hosts.split(',').map(|host| spelling(host, port)).collect();
    Some(Database { servers: servers?.join(","), name: percent_decoded(name).into_owned() })
}

/// The first text that is not empty.
fn first<const N: usize>(texts: [Option<&str>; N]) -> Option<&str> {
    texts.into_iter().flatten().find(|text| !text.is_empty())
}

/// A host and its port, in one spelling; `None` without a host.
fn spelling(host_and_port: &str, default_port: &str) -> Option<String> {
    let (host, port) = server(host_and_port);
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let port = if port.is_empty() { default_port } else { port };
    (!host.is_empty()).then(|| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(endpoint: &str) -> Option<String> {
        database(endpoint).map(|Database { servers, name }| format!("{servers}/{name}"))
    }

    #[test]
    fn compares_databases() {
        let one = database("postgres://a@Db.svc/notes?sslmode=off");
        let found = one.as_ref().expect("a database");
        assert_eq!((found.servers.as_str(), found.name.as_str()), ("db.svc:5432", "notes"));
        for other in [
            "postgresql://b:x@db.svc:5432/notes",
            "postgres://db.svc./notes#x",
            "postgres://notes@db.svc",
            "postgres://notes:x@db.svc/?application_name=a",
            "postgres:///notes?host=db.svc",
            "postgres://notes@/?host=db.svc&port=5432",
            "postgres://db.svc?user=notes",
            "postgres://u@db.svc?dbname=notes",
            "postgres://db.svc/n%6ftes",
        ] {
            assert_eq!(database(other), one, "{other}");
        }
    }

    #[test]
    fn reads_hosts_and_ports() {
        for (endpoint, expected) in [
            ("postgres://u@[::1]:6000/x", Some("::1:6000/x")),
            ("postgres:///x?host=::1&port=6000", Some("::1:6000/x")),
            ("postgres://a:1,b/x", Some("a:1,b:5432/x")),
            ("postgres:///x?host=%2Frun%2Fpg", Some("/run/pg:5432/x")),
            ("postgres://h", None),
            ("postgres://u@/x", None),
            ("postgres:///x", None),
            ("postgres://u:p@:5432/x", None),
            ("host=db dbname=notes", None),
        ] {
            assert_eq!(shown(endpoint).as_deref(), expected, "{endpoint}");
        }
    }
}
