//! Names of the cluster: whether a pod finds the Services of its memory, and whether a proxy gets the requests to them. And
//! names of variables: whether those that a value uses are defined before it.
//!
//! Only literals are known. What comes from a Secret or a ConfigMap is not judged.

use crate::prelude::*;
use memgate_model::pod::EnvVarView;
use memgate_primitives::plain_text::{shown_key, shown_name};

use super::{Surroundings, Verdict, elements, json};
use crate::common::{POD_DNS, POD_ENV_ORDER, POD_PROXY};
use crate::endpoint_view::{self, Server, WrittenEndpoint};
use crate::inject::env::pointer;
use crate::inject::{WantedByContainer, WantedByPod};
use crate::url::{ip, server};

/// The policy of a pod that asks the cluster's DNS although it has its node's network.
const WITH_HOST_NETWORK: &str = "ClusterFirstWithHostNet";

/// The address of the cluster's DNS on each node. Source: Kubernetes documentation, using NodeLocal DNSCache.
const NODE_LOCAL_DNS: &str = "169.254.20.10";

/// Judges the variables of a pod.
pub(super) fn judge(pod: &Pod<'_>, wanted: &WantedByPod<'_>, work: &Budget<'_>, verdict: &mut Verdict) {
    let dns = WithoutNames::of(pod);
    let mut lost = None;
    for container in &wanted.containers {
        let is_named = dns.is_none() || lost.is_some();
        let is_direct = container.existing.proxies.is_empty();
        if !(is_named && is_direct) {
            if !work.steps(u32::try_from(container.env.len()).unwrap_or(u32::MAX)) {
                return;
            }
            let all: Vec<WrittenEndpoint> = container.addresses().map(endpoint_view::read).collect();
            lost = lost.or_else(|| dns.as_ref()?.first_of(&all));
            verdict.warnings.extend(container.proxied(&all));
        }
        verdict.unmet.extend(container.used_before_defined(work));
    }
    if let Some((dns, host)) = dns.zip(lost) {
        verdict.unmet.push(dns.finding(&host, wanted.host_network_dns));
    }
}

impl Surroundings<'_> {
    /// The finding that the pod does not find the host of a URL, with this code where its node's network is the cause.
    pub(crate) fn unresolved(&self, url: &str, host_network: &'static Code) -> Option<Finding> {
        let dns = WithoutNames::of(self.pod)?;
        let host = dns.first_of(&[endpoint_view::read(url)])?;
        Some(dns.finding(&host, Some(host_network)))
    }
}

/// Why a pod does not ask the cluster's DNS, and what it finds without.
struct WithoutNames<'p> {
    policy: &'p str,
    host_network: bool,
    /// The names with an address of the pod's own.
    own: BTreeSet<String>,
}

impl<'p> WithoutNames<'p> {
    /// `None` for a pod that asks it. Source: kubernetes/kubernetes, `GetPodDNS`, where a pod with its node's network falls
    /// back to `Default`.
    fn of(pod: &'p Pod<'_>) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let host_network = spec.host_network.unwrap_or(false);
        let policy = spec.dns_policy.as_deref().unwrap_or_default();
        let is_lost = match policy {
            "None" => !names_cluster(&json(spec.dns_config)),
            "Default" => true,
            "" | "ClusterFirst" => host_network,
            _ => false,
        };
        if !is_lost {
            return None;
        }
        let aliases = json(spec.host_aliases);
        let own = elements(&aliases).iter().flat_map(|alias| elements(&alias["hostnames"]));
        let own = own.filter_map(Json::as_str).map(plain_host).collect();
        Some(Self { policy, host_network, own })
    }

    /// The first name of the cluster that has no address here.
    fn first_of(&self, all: &[WrittenEndpoint]) -> Option<String> {
        let mut hosts = all.iter().flat_map(|written| &written.servers).map(|it| plain_host(&it.host));
        hosts.find(|host| is_of_cluster(host) && !self.own.contains(host))
    }

    fn finding(&self, host: &str, host_network: Option<&'static Code>) -> Finding {
        let at = Pointer::new("/spec/dnsPolicy");
        if let Some(code) = host_network.filter(|_| self.host_network) {
            let message = "with hostNetwork the names of memory Services need it";
            return Finding::warn(code, at, format!("must be {WITH_HOST_NETWORK}: {message}"));
        }
        let (setting, instead) = if self.host_network {
            ("hostNetwork".to_owned(), WITH_HOST_NETWORK)
        } else {
            (format!("\"{}\"", self.policy), "ClusterFirst, or dnsConfig with the cluster's DNS")
        };
        let message = format!("with {setting} the name {} has no address; use {instead}", quoted(host));
        Finding::warn(&POD_DNS, at, message)
    }
}

/// Whether a pod that brings its own DNS asks that of the cluster.
fn names_cluster(config: &Json) -> bool {
    let texts = |field: &str| elements(&config[field]).iter().filter_map(Json::as_str);
    let is_of_cluster = |search: &str| {
        let search = plain_host(search);
        let (first, rest) = search.split_once('.').unwrap_or_default();
        search == "cluster.local" || first == "svc" || rest.starts_with("svc.")
    };
    texts("searches").any(is_of_cluster) || texts("nameservers").any(|server| server == NODE_LOCAL_DNS)
}

/// A host as it is compared.
fn plain_host(host: &str) -> String {
    host.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// Whether only the DNS of a cluster has an address for this host: a name with `svc` behind service and namespace, or without
/// a dot.
fn is_of_cluster(host: &str) -> bool {
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name || host.is_empty() || host == "localhost" || ip(host).is_some() {
        return false;
    }
    let is_last = host.rsplit('.').next() == Some("svc");
    !host.contains('.') || is_last || host.split('.').skip(2).any(|label| label == "svc")
}

impl WantedByContainer<'_> {
    /// Where its variables say that memory is: an existing entry wins. Only literals are known.
    fn addresses(&self) -> impl Iterator<Item = &str> {
        self.env.iter().filter(|variable| variable.is_address).filter_map(|variable| {
            match self.existing.get(&variable.name) {
                Some((_, entry)) => entry.literal(),
                None => variable.literal_value(),
            }
        })
    }

    /// The proxies that also get the requests to its memory.
    fn proxied(&self, all: &[WrittenEndpoint]) -> Vec<Finding> {
        let proxies = &self.existing.proxies;
        let proxy = |scheme: &str| {
            let names: [&str; 4] = match scheme {
                "http" => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
                "https" => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
                _ => return None,
            };
            let set = names.into_iter().filter_map(|name| Some((name, proxies.get(name)?)));
            let mut set =
                set.filter(|(_, (_, entry))| entry.literal().is_some_and(|it| !it.trim().is_empty()));
            set.next().map(|(name, (index, _))| (*index, name))
        };
        let mut found = BTreeMap::new();
        for WrittenEndpoint { scheme, servers, .. } in all {
            let Some((scheme, (index, name))) = scheme.as_deref().and_then(|it| Some((it, proxy(it)?)))
            else {
                continue;
            };
            let default_port = if scheme == "http" { "80" } else { "443" };
            for Server { host, port } in servers {
                let host = plain_host(host);
                let port = if port.is_empty() { default_port } else { port };
                if is_of_cluster(&host) && !self.may_exempt(&host, port) {
                    found.entry(index).or_insert((name, host));
                }
            }
        }
        let finding = |(index, (name, host)): (usize, (&str, String))| {
            // Of what may be a key that was pasted here, only the start is shown.
            let exempt = match host.find(".svc") {
                _ if shown_name(&host) != host => "it",
                Some(at) => host.get(at..).unwrap_or_default(),
                None => &host,
            };
            let message =
                format!("{name} also takes requests to {}; add {exempt} to NO_PROXY", quoted(&host));
            Finding::warn(&POD_PROXY, pointer(self.index).index(index), message)
        };
        found.into_iter().map(finding).collect()
    }

    /// Whether no proxy gets the requests to a host, or that is not known.
    fn may_exempt(&self, host: &str, port: &str) -> bool {
        let entries =
            || ["NO_PROXY", "no_proxy"].into_iter().filter_map(|name| self.existing.proxies.get(name));
        let may = |entry: &EnvVarView<'_>| match entry.value.as_deref().filter(|_| entry.value_from.is_none())
        {
            Some(list) => list.contains("$(") || exempts(list, host, port),
            None => true,
        };
        entries().any(|(_, entry)| may(entry)) || entries().next().is_none() && self.has_other_sources()
    }

    /// Whether the container has variables from other sources, whose names are not known.
    fn has_other_sources(&self) -> bool {
        !elements(&json(self.container.env_from)).is_empty()
    }

    /// The variables of memory that use others which are defined behind them: the kubelet leaves `$(NAME)` as it is.
    /// Source: Kubernetes documentation, define dependent environment variables.
    fn used_before_defined(&self, work: &Budget<'_>) -> Vec<Finding> {
        let is_literal = |entry: &EnvVarView<'_>| entry.literal().is_some_and(|text| text.contains("$("));
        // The kubelet takes NAME from other sources too. What they define is not known.
        if !self.existing.iter().any(|(_, entry)| is_literal(entry)) || self.has_other_sources() {
            return Vec::new();
        }
        let mut first = BTreeMap::new();
        for (index, entry) in self.container.env.iter().flatten().enumerate() {
            first.entry(entry.name.as_deref().unwrap_or_default()).or_insert(index);
        }
        let ours = self.env.iter().filter(|_| work.steps(1));
        let ours = ours.filter_map(|variable| Some((variable, self.existing.get(&variable.name)?)));
        let found = ours.filter_map(|(variable, (at, entry))| {
            let is_behind = |name: &&str| first.get(name).is_some_and(|first| *first > at);
            let name = references(entry.literal()?).find(is_behind)?;
            let (own, name) = (shown_key(&variable.name), shown_key(name));
            let message =
                format!("{own} uses $({name}), which is defined behind it; put {name} in front of it");
            Some(Finding::warn(&POD_ENV_ORDER, pointer(self.index).index(at), message))
        });
        found.collect()
    }
}

/// Whether a list of hosts without a proxy has this one.
fn exempts(list: &str, host: &str, port: &str) -> bool {
    let entries = list.split(|c: char| c == ',' || c.is_whitespace());
    entries.filter(|entry| !entry.is_empty()).any(|entry| {
        let (name, own_port) = server(entry);
        let suffix = name.trim_start_matches('*').trim_matches('.');
        let before = host.len().checked_sub(suffix.len());
        let is_end = before.and_then(|it| host.get(it..)).is_some_and(|end| end.eq_ignore_ascii_case(suffix));
        let is_name =
            before == Some(0) || before.is_some_and(|it| host.get(..it).is_some_and(|it| it.ends_with('.')));
        let is_port = own_port.is_empty() || own_port == port;
        entry == "*" || !suffix.is_empty() && is_port && is_end && is_name
    })
}

/// The names of the variables whose values the kubelet puts into a text. Source: Kubernetes, `third_party/forked/golang/expansion`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, behind) = rest.split_once('$')?;
            if let Some(open) = behind.strip_prefix('(') {
                let (name, behind) = open.split_once(')')?;
                rest = behind;
                return Some(name);
            }
            rest = behind.strip_prefix('$').unwrap_or(behind);
        }
    })
}
