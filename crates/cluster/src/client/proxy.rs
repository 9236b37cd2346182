//! The proxy between a command and the apiserver: which one, as kubectl chooses it, and its errors in words.
//!
//! kube compares NO_PROXY with the address of the proxy rather than with that of the apiserver, and its errors quote
//! addresses with the password, so it gets a proxy that is chosen here.

use std::error::Error;
use std::iter::successors;

use axum::http::Uri;
use axum::http::uri::Scheme;
use hyper_util::client::proxy::matcher::Matcher;

use memgate_certs::library_error::explained;
use memgate_primitives::causes::cause;

/// The schemes of proxies. The apiserver's name is always resolved by a SOCKS proxy, so `socks5h` is the same.
const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// The proxy of a client.
#[derive(Debug, Clone)]
pub(super) struct Proxy {
    /// Its address, as it is called.
    pub(super) uri: Uri,
    /// Where its address comes from.
    origin: &'static str,
}

/// The variables of the environment that name a proxy.
#[derive(Debug, Default)]
pub(super) struct ProxyVariables {
    /// HTTPS_PROXY.
    pub(super) proxy: String,
    /// NO_PROXY.
    pub(super) exceptions: String,
}

impl ProxyVariables {
    pub(super) fn read() -> Self {
        let read = |name: &str| {
            let names = [name.to_owned(), name.to_lowercase()];
            let mut values = names.into_iter().filter_map(|name| std::env::var(name).ok());
            values.find(|value| !value.trim().is_empty()).unwrap_or_default()
        };
        Self { proxy: read("HTTPS_PROXY"), exceptions: read("NO_PROXY") }
    }
}

impl Proxy {
    /// The proxy for an apiserver: that of its kubeconfig whatever NO_PROXY says, else that of the environment.
    ///
    /// # Errors
    /// When the address cannot be one of a proxy. It is not quoted, since it may hold a password.
    pub(super) fn choose(
        of_kubeconfig: Option<&str>,
        variables: &ProxyVariables,
        apiserver: &Uri,
    ) -> Result<Option<Self>, String> {
        let (address, origin) = match (of_kubeconfig.unwrap_or_default().trim(), variables.proxy.trim()) {
            ("", "") => return Ok(None),
            ("", _) if variables.excepts(apiserver) => return Ok(None),
            ("", address) => (address, "HTTPS_PROXY"),
            (address, _) => (address, "proxy-url"),
        };
        let uri = parsed(address).ok_or_else(|| {
            format!("{origin} is not the address of a proxy: give http://, https:// or socks5:// with a host and a port")
        })?;
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if has_user && uri.scheme_str() == Some("socks5") {
            return Err(format!(
                "{origin} has a user for a SOCKS proxy, and memgate cannot log in to one: name an HTTP proxy, or one without a login"
            ));
        }
        Ok(Some(Self { uri, origin }))
    }

    /// The address without a user and password, and where it comes from.
    fn shown(&self) -> String {
        let (scheme, host) = (self.uri.scheme_str().unwrap_or_default(), self.uri.host().unwrap_or_default());
        let port = self.uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        format!("the proxy {scheme}://{host}{port} ({})", self.origin)
    }

    /// What an error says about the proxy. The types of these errors are not public, so their texts are read.
    pub(super) fn explain(&self, error: &(dyn Error + 'static)) -> Option<String> {
        let of_proxy = successors(Some(error), |error| cause(*error)).find_map(|error| {
            let text = error.to_string();
            let text = ["tunnel error: ", "SOCKS error: "].iter().find_map(|start| text.strip_prefix(start));
            text.map(|text| (text.to_owned(), error))
        });
        let (text, error) = of_proxy?;
        let proxy = self.shown();
        Some(match cause(error).filter(|_| text == "failed to create underlying connection") {
            Some(cause) => format!("no connection to {proxy}: {}", explained(cause)),
            None => format!("{proxy} does not connect to the apiserver: {text}"),
        })
    }
}

impl ProxyVariables {
    /// Whether NO_PROXY names the apiserver.
    fn excepts(&self, apiserver: &Uri) -> bool {
        // The library has * for names only.
        let is_all = self.exceptions.split(',').any(|exception| exception.trim() == "*");
        let matcher = Matcher::builder().all("http://proxy").no(self.exceptions.as_str()).build();
        is_all || matcher.intercept(apiserver).is_none()
    }
}

/// The address of a proxy; one without a scheme is an HTTP proxy.
fn parsed(address: &str) -> Option<Uri> {
    let has_scheme = address.contains("://");
    let uri: Uri = if has_scheme { address.parse() } else { format!("http://{address}").parse() }.ok()?;
    let is_known = uri.scheme_str().is_some_and(|scheme| SCHEMES.contains(&scheme));
    if !is_known || uri.host().is_none_or(str::is_empty) {
        return None;
    }
    let mut parts = uri.into_parts();
    if parts.scheme.as_ref().is_some_and(|scheme| scheme.as_str() == "socks5h") {
        parts.scheme = Scheme::try_from("socks5").ok();
    }
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(of_kubeconfig: &str, proxy: &str, exceptions: &str, apiserver: &str) -> Option<String> {
        let variables = ProxyVariables { proxy: proxy.to_owned(), exceptions: exceptions.to_owned() };
        let apiserver = apiserver.parse().expect("an address");
        let proxy = Proxy::choose(Some(of_kubeconfig), &variables, &apiserver).expect("no error");
        proxy.map(|proxy| proxy.shown())
    }

    #[test]
    fn the_kubeconfig_wins_over_the_environment() {
        let api = "https://10.1.2.3:6443";
        assert_eq!(chosen("", "", "", api), None);
        let of_kubeconfig = Some("the proxy socks5://a:1 (proxy-url)".to_owned());
        assert_eq!(chosen("socks5h://a:1", "http://b:2", "*", api), of_kubeconfig);
        let of_environment = Some("the proxy http://b:2 (HTTPS_PROXY)".to_owned());
        assert_eq!(chosen(" ", "b:2", "", api), of_environment);
        assert_eq!(chosen("", "http://user:hunter2@b:2/path?token=x", "", api), of_environment);
    }

    /// The exceptions are for the address of the apiserver; that of the proxy does not matter.
    #[test]
    fn exceptions_name_the_apiserver() {
        for (exceptions, apiserver, excepted) in [
            ("10.0.0.0/8, localhost,", "https://10.1.2.3:6443", true),
            ("10.0.0.0/8", "https://11.1.2.3:6443", false),
            (",,", "https://10.1.2.3:6443", false),
            (".example.com", "https://api.example.com", true),
            ("example.com", "https://api.example.com:6443", true),
            ("ple.com", "https://api.example.com", false),
            ("*", "https://api.example.com", true),
            ("*", "https://10.1.2.3:6443", true),
            ("localhost, *", "https://[::1]:6443", true),
            ("proxy.example.com", "https://api.other.com", false),
            ("::1", "https://[::1]:6443", true),
        ] {
            let chosen = chosen("", "http://proxy.example.com:3128", exceptions, apiserver);
            assert_eq!(chosen.is_none(), excepted, "{exceptions} and {apiserver}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_not_quoted() {
        let apiserver = "https://api".parse().expect("an address");
        let not_one = "proxy-url is not the address of a proxy";
        for (address, expected) in [
            ("ftp://user:hunter2@b", not_one),
            ("http://", not_one),
            ("http://user:hunter2@", not_one),
            ("a b", not_one),
            ("socks4://user:hunter2@b", not_one),
            ("socks5h://user:hunter2@b", "proxy-url has a user for a SOCKS proxy"),
        ] {
            let error = Proxy::choose(Some(address), &ProxyVariables::default(), &apiserver);
            let error = error.expect_err(address);
            assert!(error.starts_with(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
