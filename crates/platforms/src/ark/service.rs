//! Resolves a `serviceRef` to a Service, one of its ports, and a URL.

use crate::prelude::*;
use crate::url;

use super::value::ValueSource;

/// The domain of all Services, as the platform writes it. The platform ignores the cluster's real domain.
pub(crate) const SERVICE_DOMAIN: &str = ".svc.cluster.local";

/// A `serviceRef` that names a Service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceRef<'t> {
    /// The name of the Service.
    pub(crate) name: &'t str,
    /// Its namespace: that of the Memory, unless the reference names another one.
    pub(crate) namespace: &'t str,
    /// The port, of any type; `None` if it is absent or an empty string.
    pub(crate) port: Option<&'t Tree>,
    /// The path.
    pub(crate) path: Option<&'t str>,
}

/// One port of a Service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Port<'s> {
    /// The name; empty for the only port of a Service.
    pub(crate) name: &'s str,
    /// The number.
    pub(crate) number: i64,
    target: Option<i64>,
}

impl<'t> ServiceRef<'t> {
    /// Reads a `serviceRef` of a Memory in this namespace; `None` if it has no name.
    pub(crate) fn read(source: &ValueSource<'t>, namespace: &'t str) -> Option<Self> {
        Some(Self {
            name: source.text("name")?,
            namespace: source.text("namespace").unwrap_or(namespace),
            port: source.tree.get("port").filter(|port| port.text() != Some("")),
            path: source.text("path"),
        })
    }

    /// The Service.
    pub(crate) fn look_up<'s>(&self, state: &mut StateReader<'s>) -> Lookup<'s> {
        state.get_if_known(&SERVICE, self.namespace, self.name)
    }

    /// The number of the Service's port that the reference means.
    pub(crate) fn port_of(&self, service: &Object) -> Option<i64> {
        let ports = ports(service.tree());
        let meant = match self.port {
            None => ports.first().copied(),
            Some(port) => {
                let named = port.text().and_then(|name| port_by_name(&ports, name));
                named.or_else(|| port_by_number(&ports, port_number(port)?))
            }
        };
        meant.map(|port| port.number)
    }

    /// The port, if it is given as a number, quoted or not.
    pub(crate) fn given_number(&self) -> Option<i64> {
        port_number(self.port?)
    }

    /// The URL with this port number, or without a port.
    pub(crate) fn url(&self, port: Option<i64>) -> String {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let path = self.path.map(clean_path).unwrap_or_default();
        format!("http://{}.{}{SERVICE_DOMAIN}{port}{path}", self.name, self.namespace)
    }
}

/// A port given as a number, quoted or not.
fn port_number(port: &Tree) -> Option<i64> {
    match port {
        Tree::Integer(number) => Some(*number).filter(|number| (1..=65535).contains(number)),
        Tree::Text(text) => url::port_number(text).filter(|number| *number > 0).map(i64::from),
        _ => None,
    }
}

/// The ports of a Service, in their order.
pub(crate) fn ports(service: &Tree) -> Vec<Port<'_>> {
    let ports = service.list_at(&["spec", "ports"]);
    let port = |tree| {
        let number = Tree::get(tree, "port")?.integer()?;
        let name = tree.text_at(&["name"]).unwrap_or_default();
        Some(Port { name, number, target: tree.get("targetPort").and_then(Tree::integer) })
    };
    ports.iter().filter_map(port).collect()
}

/// The port of this name.
pub(crate) fn port_by_name<'s>(ports: &[Port<'s>], name: &str) -> Option<Port<'s>> {
    ports.iter().find(|port| port.name == name).copied()
}

/// The port that a number refers to: the port with that number, else the first port with that target port, else the
/// only port.
pub(crate) fn port_by_number<'s>(ports: &[Port<'s>], number: i64) -> Option<Port<'s>> {
    let exact = ports.iter().find(|port| port.number == number);
    let target = || ports.iter().find(|port| port.target == Some(number));
    let only = || if let [only] = ports { Some(only) } else { None };
    exact.or_else(target).or_else(only).copied()
}

/// The value that replaces a port number; `None` to remove the port. The platform looks a port up by its name, and
/// uses the first port if the reference has none.
pub(crate) fn fix_port(number: i64, service: Lookup<'_>) -> Option<String> {
    let port = service.found().and_then(|service| port_by_number(&ports(service.tree()), number));
    port.map_or_else(
        || Some(number.to_string()),
        |port| Some(port.name.to_owned()).filter(|name| !name.is_empty()),
    )
}

/// Cleans a path as Go's `path.Clean` does: one leading slash, and no empty parts, `.` or `..`.
pub(super) fn clean_path(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::clean_path;

    #[test]
    fn cleans_paths() {
        for (path, clean) in [
            ("v1", "/v1"),
            ("/v1/", "/v1"),
            ("//a/./b/../c", "/a/c"),
            ("/", "/"),
            ("../..", "/"),
            ("a//b", "/a/b"),
        ] {
            assert_eq!(clean_path(path), clean, "{path}");
        }
    }
}
