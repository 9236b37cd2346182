//! Just enough of a URL to judge an endpoint: scheme, userinfo and host. Nothing is ever dialled.

/// The parts of an endpoint that somebody wrote, whether it is a URL or a bare `host:port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint<'u> {
    /// What stands before `://`, as it is written.
    pub scheme: Option<&'u str>,
    /// Whether there is something before an `@` in front of the host.
    pub userinfo: bool,
    /// The host without port and brackets; may be empty.
    pub host: &'u str,
}

impl<'u> Endpoint<'u> {
    /// Takes an endpoint apart; never fails, since every part may be missing.
    #[must_use]
    pub fn of(text: &'u str) -> Self {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (userinfo, host_and_port) = match authority.rsplit_once('@') {
            Some((_, host)) => (true, host),
            None => (false, authority),
        };
        Self { scheme, userinfo, host: without_port(host_and_port) }
    }

    /// Whether the scheme is `http` or `https`, in any case, and there is a host.
    #[must_use]
    pub fn is_http(&self) -> bool {
        let http = |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        self.scheme.is_some_and(http) && self.has_host()
    }

    /// Whether there is a host without white space.
    #[must_use]
    pub fn has_host(&self) -> bool {
        !self.host.is_empty() && !self.host.contains(char::is_whitespace)
    }

    /// Whether the host ends in one of these suffixes, in any case, with a final dot or without.
    #[must_use]
    pub fn host_ends_with(&self, suffixes: &[&str]) -> bool {
        let host = self.host.trim_end_matches('.').to_ascii_lowercase();
        suffixes.iter().any(|suffix| host.ends_with(suffix))
    }
}

fn without_port(host_and_port: &str) -> &str {
    if let Some(bracketed) = host_and_port.strip_prefix('[') {
        return bracketed.split(']').next().unwrap_or_default();
    }
    host_and_port.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_endpoints_apart() {
        for (text, http, userinfo, host) in [
            ("http://qdrant.data.svc:6333", true, false, "qdrant.data.svc"),
            ("HTTPS://Host/path@x", true, false, "Host"),
            ("https://user:pass@host:1/", true, true, "host"),
            ("http://[::1]:6333", true, false, "::1"),
            ("qdrant:6333", false, false, "qdrant"),
            ("http://", false, false, ""),
            ("http://:80", false, false, ""),
            ("http://a b", false, false, "a b"),
            ("ftp://host", false, false, "host"),
        ] {
            let endpoint = Endpoint::of(text);
            assert_eq!(
                (endpoint.is_http(), endpoint.userinfo, endpoint.host),
                (http, userinfo, host),
                "{text}"
            );
        }
    }

    #[test]
    fn compares_hosts_without_case() {
        assert!(Endpoint::of("https://X.Pinecone.IO.:443/a").host_ends_with(&[".pinecone.io"]));
        assert!(!Endpoint::of("https://pinecone.io.example").host_ends_with(&[".pinecone.io"]));
    }
}
