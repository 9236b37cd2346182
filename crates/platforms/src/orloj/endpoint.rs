//! Reads the endpoint of a Memory or ModelEndpoint. memgate never connects to it.

use std::net::{IpAddr, Ipv6Addr};

use crate::url::{Endpoint, server};
use memgate_primitives::percent::{is_percent_encoded, percent_decoded};

/// Whether this is a URL with a Postgres scheme.
pub(super) fn is_postgres(endpoint: &str) -> bool {
    endpoint.starts_with("postgres://") || endpoint.starts_with("postgresql://")
}

/// Whether a Postgres driver can read this: a Postgres URL, or `key=value` pairs.
pub(super) fn is_connection_string(endpoint: &str) -> bool {
    is_postgres(endpoint) || (!starts_with_scheme(endpoint) && endpoint.contains('='))
}

/// Whether a text starts with `scheme://` (RFC 3986, section 3.1).
fn starts_with_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// The class of an address that Orloj's dialer refuses, as Orloj names the class, with the address.
/// Source: OrlojHQ/orloj, runtime/safenet.go.
pub(super) fn blocked_address(endpoint: &str) -> Option<(&'static str, String)> {
    let host = Endpoint::parse(endpoint).host;
    if is_localhost(host) {
        return Some(("loopback", host.to_owned()));
    }
    let address = address(endpoint)?;
    Some((address_class(address)?, address.to_string()))
}

/// Whether the host is the machine itself.
pub(super) fn is_loopback(endpoint: &str) -> bool {
    is_localhost(Endpoint::parse(endpoint).host)
        || address(endpoint).is_some_and(|address| address.is_loopback())
}

fn is_localhost(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
}

/// The IP address of a host: a dotted quad, or IPv6 in brackets. An IPv4 address mapped into IPv6 counts as IPv4.
fn address(endpoint: &str) -> Option<IpAddr> {
    let host = Endpoint::parse(endpoint).host;
    match host.parse::<IpAddr>().ok()? {
        // Only a host in brackets can contain a colon.
        IpAddr::V6(address) => Some(IpAddr::V6(address).to_canonical()),
        IpAddr::V4(_) if endpoint.contains(&format!("[{host}]")) => None,
        address @ IpAddr::V4(_) => Some(address),
    }
}

fn address_class(address: IpAddr) -> Option<&'static str> {
    /// The metadata service of EC2, over IPv6.
    const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let metadata = match address {
        IpAddr::V4(address) => address.octets() == [169, 254, 169, 254],
        IpAddr::V6(address) => address == METADATA_V6,
    };
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || matches!(address.octets(), [224, 0, 0, _]),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.segments().first() == Some(&0xff02),
    };
    let classes = [
        (address.is_loopback(), "loopback"),
        (metadata, "cloud metadata"),
        (link_local, "link-local"),
        (address.is_unspecified(), "unspecified"),
    ];
    classes.into_iter().find(|(is, _)| *is).map(|(_, class)| class)
}

/// Whether a request to the host stays inside the cluster. `namespace` is the namespace of the object with the
/// endpoint.
pub(super) fn is_in_cluster(endpoint: &str, namespace: &str) -> bool {
    match address(endpoint) {
        Some(IpAddr::V4(address)) => return address.is_private(),
        Some(IpAddr::V6(address)) => return address.is_unique_local(),
        None => {}
    }
    let host = Endpoint::parse(endpoint).name();
    match host.split_once('.') {
        None => true,
        Some((_, rest)) => rest == namespace || rest.split('.').any(|label| label == "svc"),
    }
}

/// The port of Postgres.
const POSTGRES_PORT: &str = "5432";

/// The database of a Postgres URL, in one text for all URLs of the same tables. `None` for a URL without host or name, which the client's machine fills in, and
/// for a text that is too long.
pub(super) fn database(endpoint: &str) -> Option<String> {
    /// The longest text that is read. Users do not write longer URLs.
    const MAX_READ_BYTES: usize = 4096;
    if !is_postgres(endpoint) || endpoint.len() > MAX_READ_BYTES {
        return None;
    }
    let url = Endpoint::parse(endpoint);
    let parameter = |name| url.parameters().find(|(known, _)| known == name).map(|(_, value)| value);
    let path = url.path.strip_prefix('/');
    let name = first([path, parameter("dbname"), Some(url.user()), parameter("user")])?;
    let hosts = first([Some(url.servers), parameter("host")])?;
    let port = parameter("port").filter(|port| !port.is_empty()).unwrap_or(POSTGRES_PORT);
    let hosts = percent_decoded(hosts);
    let servers: Option<Vec<_>> = hosts.split(',').map(|host| spelling(host, port)).collect();
    let servers = servers?.join(",");
    Some(format!("{}:{servers}/{}", servers.len(), percent_decoded(name)))
}

/// The first text that is not empty.
fn first<const N: usize>(texts: [Option<&str>; N]) -> Option<&str> {
    texts.into_iter().flatten().find(|text| !text.is_empty())
}

/// A host and its port, normalized; `None` without a host.
fn spelling(host_and_port: &str, default_port: &str) -> Option<String> {
    let (host, port) = server(host_and_port);
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let port = if port.is_empty() { default_port } else { port };
    (!host.is_empty()).then(|| format!("{host}:{port}"))
}

/// The key of a password in a connection string, and in the query of a URL.
const PASSWORD_KEY: &str = "password";

/// Whether an endpoint contains a password in clear text. In doubt it returns true. An endpoint with a password is
/// neither shown nor copied.
pub(super) fn contains_password(endpoint: &str) -> bool {
    has_password_key(endpoint) || userinfo_candidates(endpoint).any(ends_with_password)
}

/// Whether there is a key `password`, or one that ends in it, such as `sslpassword`. Case and blanks before the `=`
/// do not matter. In a URL the key may be percent-encoded.
fn has_password_key(endpoint: &str) -> bool {
    let endpoint = percent_decoded(endpoint).to_ascii_lowercase();
    endpoint.split(PASSWORD_KEY).skip(1).any(|behind| behind.trim_start().starts_with('='))
}

/// The parts of an endpoint that can end in `user:password@host`.
fn userinfo_candidates(endpoint: &str) -> impl Iterator<Item = &str> {
    let authorities = endpoint.split("://").skip(1).map(|behind| up_to(behind, &['/']));
    let (_, behind) = endpoint.split_once("://").unwrap_or_default();
    // A `/` in the password should be written as `%2F`. A plain one changes how the URL is parsed, but not the
    // password.
    let postgres = is_postgres(endpoint).then(|| up_to(behind, &['?', '#']));
    let bare = (!starts_with_scheme(endpoint) && !is_key_value(endpoint)).then_some(endpoint);
    let at_start = bare.map(|text| up_to(text.strip_prefix("//").unwrap_or(text), &['/']));
    authorities.chain(postgres).chain(at_start).chain(bare.and_then(mysql_authority))
}

/// The text before the database in `user:password@protocol(address)/database`, where the password may contain
/// a `/`.
/// Source: go-sql-driver/mysql, README, DSN.
fn mysql_authority(endpoint: &str) -> Option<&str> {
    let (authority, _) = endpoint.rsplit_once('/')?;
    let (_, address) = authority.rsplit_once('@')?;
    (address.is_empty() || address.contains('(')).then_some(authority)
}

fn up_to<'t>(text: &'t str, ends: &[char]) -> &'t str {
    text.split(ends).next().unwrap_or_default()
}

/// Whether a text starts with a key, as `host=…` does.
fn is_key_value(endpoint: &str) -> bool {
    let key = endpoint.split(':').next().unwrap_or_default();
    key.contains(|c: char| c == '=' || c.is_whitespace())
}

/// Whether there is a password before the last `@`.
fn ends_with_password(text: &str) -> bool {
    let userinfo = text.rsplit_once('@').map(|(userinfo, _)| userinfo);
    userinfo.and_then(|userinfo| userinfo.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

/// The position in a connection string at which a password is inserted: right before the `@` of its authority; `None`
/// if it cannot be inserted. Orloj itself takes the first `@` of the text, and so writes the password into a parameter
/// such as `application_name` where the `@` is there.
pub(super) fn password_position(endpoint: &str) -> Option<usize> {
    if !is_postgres(endpoint) || endpoint.to_ascii_lowercase().contains("password=") {
        return None;
    }
    let start = endpoint.find("://")? + "://".len();
    let (user, host) = up_to(endpoint.get(start..)?, &['/', '?', '#']).split_once('@')?;
    let is_plain = !user.is_empty() && !user.contains(':') && !host.contains('@');
    is_plain.then_some(start + user.len())
}

/// The part of an endpoint that may not be copied into a pod, as messages name it; `None` if all of it may be copied.
/// For Postgres drivers (`to_postgres`) a user without a password is part of most URLs.
pub(super) fn withheld(endpoint: &str, to_postgres: bool) -> Option<&'static str> {
    if contains_password(endpoint) {
        return Some("a password");
    }
    let url = Endpoint::parse(endpoint);
    let (_, fragment) = endpoint.split_once('#').unwrap_or_default();
    // A fragment may be a path with a query of its own.
    let mut parameters = url.query.split(['&', ';']).chain(fragment.split(['&', ';', '?']));
    let has_credential = (url.userinfo.is_some() && !to_postgres) || parameters.any(is_credential_parameter);
    has_credential.then_some("a credential")
}

/// Whether a parameter is a credential by its name, holds a URL with userinfo, or cannot be decoded.
fn is_credential_parameter(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    let value = percent_decoded(value);
    let has_userinfo = value.split_once("://").is_some_and(|(_, behind)| behind.contains('@'));
    has_userinfo || is_credential_name(&percent_decoded(name)) || !is_percent_encoded(parameter)
}

/// Whether the name of a parameter is one of these words, in any case, or ends in one that begins after `_`, `-` or `.`,
/// or as a word of camel case. `sslkey`, the path of a file, does not.
fn is_credential_name(name: &str) -> bool {
    const WORDS: [&str; 18] = [
        "password", "passwd", "pwd", "pass", "secret", "token", "key", "apikey", "api_key", "auth",
        "authorization", "credential", "credentials", "sig", "signature", "sas", "jwt", "session",
    ];
    WORDS.iter().any(|word| {
        let at = name.len().checked_sub(word.len()).and_then(|at| name.split_at_checked(at));
        at.is_some_and(|(before, end)| end.eq_ignore_ascii_case(word) && is_border(before, end))
    })
}

/// Whether a word of a name ends where another begins.
fn is_border(before: &str, word: &str) -> bool {
    let is_lower = |c: Option<char>| c.is_some_and(|c| !c.is_uppercase() && c.is_alphanumeric());
    let begins = word.starts_with(|c: char| c.is_uppercase())
        && (is_lower(before.chars().next_back()) || is_lower(word.chars().nth(1)));
    before.is_empty() || before.ends_with(['_', '-', '.']) || begins
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

    use super::*;

    #[test]
    fn knows_refused_addresses() {
        for (endpoint, expected) in [
            ("http://127.8.0.1/", Some(("loopback", "127.8.0.1"))),
            ("http://[::1]:80", Some(("loopback", "::1"))),
            ("http://LocalHost", Some(("loopback", "LocalHost"))),
            ("http://[::ffff:127.0.0.1]", Some(("loopback", "127.0.0.1"))),
            ("http://169.254.169.254/latest", Some(("cloud metadata", "169.254.169.254"))),
            ("http://[fd00:ec2::254]", Some(("cloud metadata", "fd00:ec2::254"))),
            ("http://169.254.1.1", Some(("link-local", "169.254.1.1"))),
            ("http://[fe80::1]", Some(("link-local", "fe80::1"))),
            ("http://[febf::1]", Some(("link-local", "febf::1"))),
            ("http://224.0.0.251", Some(("link-local", "224.0.0.251"))),
            ("http://[ff02::fb]", Some(("link-local", "ff02::fb"))),
            ("http://0.0.0.0:80", Some(("unspecified", "0.0.0.0"))),
            ("http://[::]", Some(("unspecified", "::"))),
            ("http://10.0.0.1", None),
            ("http://224.0.1.1", None),
            ("http://[fd00::1]", None),
            ("http://[fec0::1]", None),
            ("http://[127.0.0.1]", None),
            ("http://127.0.0.01", None),
            ("http://2130706433", None),
            ("http://localhost.", None),
        ] {
            let expected = expected.map(|(class, host)| (class, host.to_owned()));
            assert_eq!(blocked_address(endpoint), expected, "{endpoint}");
        }
    }

    #[test]
    fn knows_what_stays_in_the_cluster() {
        for (endpoint, stays) in [
            ("http://kb", true),
            ("http://kb.team", true),
            ("http://kb.team.", true),
            ("http://kb.other", false),
            ("http://kb.other.svc:80", true),
            ("http://kb.other.SVC.cluster.local", true),
            ("http://svc.example.com", false),
            ("http://10.1.2.3", true),
            ("http://[fd00::1]", true),
            ("http://8.8.8.8", false),
            ("http://[2001:db8::1]", false),
        ] {
            assert_eq!(is_in_cluster(endpoint, "team"), stays, "{endpoint}");
        }
    }

    fn shown(endpoint: &str) -> Option<String> {
        Some(database(endpoint)?.split_once(':')?.1.to_owned())
    }

    #[test]
    fn compares_databases() {
        let one = database("postgres://a@Db.svc/notes?sslmode=off");
        assert_eq!(one.as_deref(), Some("11:db.svc:5432/notes"));
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

    #[test]
    fn finds_passwords() {
        for (endpoint, holds) in [
            ("postgres://u:p@h/db", true),
            ("redis://:p@h", true),
            ("https://u:p@h/x", true),
            ("postgres://u:a/b@h/db", true),
            ("postgres://u:a?b@h/db", true),
            ("redis://u:a#b@h/0", true),
            ("redis://u:a@b@h/0", true),
            ("jdbc:postgresql://u:p@h/db", true),
            ("//u:p@h/db", true),
            ("root:p@tcp(db:3306)/m", true),
            ("root:a/b@tcp(db:3306)/m", true),
            ("root:a/b@/m", true),
            (":p@tcp(db)/m", true),
            ("host=h password=p", true),
            ("host=h password = p", true),
            ("host=h PassWord\t=\t'p q'", true),
            ("user='u'password='p'", true),
            ("host=h sslpassword=p", true),
            ("postgres://u@h/db?password=p", true),
            ("postgres://u@h/db?sslmode=require&Password=p", true),
            ("postgres://u@h/db?sslpassword=p", true),
            ("postgres://u@h/db?pass%77ord=p", true),
            ("host=h options='-c x=y://a:b@c'", true),
            ("postgres://u:@h/db", false),
            ("postgres://u@h:5432/db", false),
            ("postgres://u@h:5432,i:5432/db", false),
            ("postgres:///db?host=h", false),
            ("https://h:80/path@x", false),
            ("https://h:80/a/b@x", false),
            ("http://[::1]:80/x", false),
            ("tcp(db:3306)/m", false),
            ("root@tcp(db:3306)/m", false),
            ("kb:8080/a@b", false),
            ("host=h user=u", false),
            ("host=[::1] user=u@x", false),
            ("host=h passfile=/x application_name=password", false),
            ("", false),
        ] {
            assert_eq!(contains_password(endpoint), holds, "{endpoint}");
        }
    }

    /// Every class of refused addresses, and addresses beside them, in each form in which one address can be written.
    #[test]
    fn an_address_in_a_mapped_form_has_the_same_class() {
        for (address, class) in [
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.254", Some("loopback")),
            ("169.254.169.254", Some("cloud metadata")),
            ("169.254.169.253", Some("link-local")),
            ("169.254.0.1", Some("link-local")),
            ("224.0.0.1", Some("link-local")),
            ("224.0.1.1", None),
            ("0.0.0.0", Some("unspecified")),
            ("0.0.0.1", None),
            ("10.0.0.1", None),
            ("100.64.0.1", None),
        ] {
            let octets: std::net::Ipv4Addr = address.parse().expect("an address");
            let [a, b, c, d] = octets.octets();
            let hex = format!("[::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}]");
            let hosts = [
                address.to_owned(),
                format!("[::ffff:{address}]"),
                format!("[0:0:0:0:0:FFFF:{address}]"),
                hex.to_uppercase(),
                hex,
            ];
            for host in hosts {
                for endpoint in [
                    format!("http://{host}"),
                    format!("HTTPS://{host}:8443/x"),
                    format!("http://u@{host}?a=b"),
                ] {
                    let expected = class.map(|class| (class, address.to_owned()));
                    assert_eq!(blocked_address(&endpoint), expected, "{endpoint}");
                }
            }
        }
    }

    #[test]
    fn a_password_goes_before_the_at_of_the_authority() {
        for (authority, user) in [
            ("u@h", Some("u")),
            ("u%40x@h:5432", Some("u%40x")),
            ("u@[::1]:5432", Some("u")),
            ("u@h,i:5432", Some("u")),
            ("u@", Some("u")),
            ("u:@h", None),
            ("u:p@h", None),
            ("@h", None),
            ("u@x@h", None),
            ("u@h@", None),
            ("@@", None),
            ("h:5432", None),
            ("", None),
        ] {
            for (scheme, tail, fits) in ["postgres://", "postgresql://"].into_iter().flat_map(|scheme| {
                [
                    ("", true),
                    ("/db", true),
                    ("/d@b", true),
                    ("/db?application_name=me@x", true),
                    ("?user=u&application_name=me@x", true),
                    ("?a=b/c@d", true),
                    ("#a@b:c", true),
                    ("/?host=x:y@z", true),
                    ("/db?PassWord=x", false),
                    ("/db?sslpassword=x", false),
                ]
                .map(|(tail, fits)| (scheme, tail, fits))
            }) {
                let endpoint = format!("{scheme}{authority}{tail}");
                let expected = user.filter(|_| fits).map(|user| scheme.len() + user.len());
                assert_eq!(password_position(&endpoint), expected, "{endpoint}");
            }
        }
        for endpoint in ["host=h user=u@x", "POSTGRES://u@h", "mysql://u@h", "u@h", "postgres:/u@h"] {
            assert_eq!(password_position(endpoint), None, "{endpoint}");
        }
    }

    const CREDENTIAL: Option<&str> = Some("a credential");

    #[test]
    fn withholds_what_others_should_not_read() {
        for (endpoint, to_postgres, expected) in [
            ("https://u:p@kb", false, Some("a password")),
            ("https://token@kb", false, CREDENTIAL),
            ("https://@kb", false, CREDENTIAL),
            ("root@tcp(db:3306)/m", false, CREDENTIAL),
            ("https://kb/v1?a=b", false, None),
            ("https://kb/v1?a=b&c", false, None),
            ("https://kb/v1?", false, None),
            ("redis://f:6379?db=2", false, None),
            ("https://kb/key=a/token", false, None),
            ("https://kb/v1#a", false, None),
            ("https://kb/v1#access_token=a", false, CREDENTIAL),
            ("https://kb/v1?a=b#/x?api_key=a", false, CREDENTIAL),
            ("https://kb/v1?next=http%3A%2F%2Fu%40h", false, CREDENTIAL),
            ("https://kb/v1?next=http://u@h", false, CREDENTIAL),
            ("https://kb/v1?next=http://h&to=a@b", false, None),
            ("https://kb/v1?a=%zz", false, CREDENTIAL),
            ("https://kb/v1?%4=a", false, CREDENTIAL),
            ("https://kb/v1?a=b#c=%", false, CREDENTIAL),
            ("postgres://u@db/m?sslmode=require", true, None),
            ("postgres://u@db/m?sslmode=require&sslkey=/certs/key", true, None),
            ("postgres://h/db?user=u&application_name=me@x", true, None),
            ("postgres://u@db/m?token=a", true, CREDENTIAL),
            ("postgres://u:p@db/m", true, Some("a password")),
        ] {
            assert_eq!(withheld(endpoint, to_postgres), expected, "{endpoint}");
        }
    }

    /// Each word, alone and as the last one of a name, in each place of a parameter; and the same letters where they are
    /// not a word of their own.
    #[test]
    fn a_parameter_is_a_credential_by_the_last_word_of_its_name() {
        for word in [
            "password", "passwd", "pwd", "pass", "secret", "token", "key", "apikey", "api_key", "auth",
            "authorization", "credential", "credentials", "sig", "signature", "sas", "jwt", "session",
        ] {
            let (first, rest) = word.split_at(1);
            let capital = format!("{}{rest}", first.to_uppercase());
            let encoded = format!("x%5F%{:02X}{rest}", word.as_bytes()[0]);
            let names = [
                word.to_owned(),
                word.to_uppercase(),
                capital.clone(),
                format!("x_{word}"),
                format!("X-Amz-{capital}"),
                format!("x.{word}"),
                format!("my{capital}"),
                format!("ID{capital}"),
                format!("v2{capital}"),
                encoded,
            ];
            for name in names {
                for endpoint in [
                    format!("https://kb/v1?{name}=a"),
                    format!("https://kb?db=2&{name}=a&x=y"),
                    format!("redis://kb/v1?db=2;{name}=a"),
                    format!("https://kb/v1?db=2#{name}=a"),
                    format!("https://kb/v1?{name}="),
                    format!("https://kb/v1?{name}"),
                ] {
                    assert!(withheld(&endpoint, false).is_some(), "{endpoint}");
                }
            }
            // `password` before a `=` counts wherever it is.
            for name in [format!("x{word}"), format!("{word}s"), format!("{word}_name"), format!("{word}2")] {
                let is_word = ["credentials", "xpassword", "xapi_key"].contains(&name.as_str());
                for endpoint in [format!("https://kb/v1?{name}=a"), format!("https://kb/v1#{name}=a")] {
                    assert_eq!(withheld(&endpoint, false).is_some(), is_word, "{endpoint}");
                }
            }
        }
        for name in ["monkey", "MONKEY", "tokens", "max_tokens", "secretName", "keyspace", "author", "design"]
        {
            assert_eq!(withheld(&format!("https://kb/v1?{name}=a"), false), None, "{name}");
        }
    }
}
