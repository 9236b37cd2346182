//! Finds passwords in endpoints, in each form in which a connection string can hold one.

use crate::model::percent::percent_decoded;

use super::{is_postgres, starts_with_scheme};

/// The key of a password in a connection string, and in the query of a URL.
const PASSWORD_KEY: &str = "password";

/// Whether an endpoint contains a password in clear text. In doubt it is true: an endpoint with a password is
/// neither shown nor copied.
pub(in super::super) fn contains_password(endpoint: &str) -> bool {
    has_password_key(endpoint) || userinfo_candidates(endpoint).any(ends_with_password)
}

/// Whether there is a key `password`, or one that ends so like `sslpassword`, with blanks before the `=` or
/// without, and in any case. A URL may have percent-encoded it.
fn has_password_key(endpoint: &str) -> bool {
    let endpoint = percent_decoded(endpoint).to_ascii_lowercase();
    endpoint.split(PASSWORD_KEY).skip(1).any(|behind| behind.trim_start().starts_with('='))
}

/// The parts of an endpoint that can end in `user:password@host`.
fn userinfo_candidates(endpoint: &str) -> impl Iterator<Item = &str> {
    let authorities = endpoint.split("://").skip(1).map(|behind| up_to(behind, &['/']));
    let (_, behind) = endpoint.split_once("://").unwrap_or_default();
    // A `/` in the password should be `%2F`. A plain one makes another URL, but not another password.
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

/// The position at which Orloj inserts a password into a connection string, right before the first `@`;
/// `None` if it inserts none.
/// Source: OrlojHQ/orloj, controllers/memory_controller.go.
pub(in super::super) fn password_position(endpoint: &str) -> Option<usize> {
    if !is_postgres(endpoint) || endpoint.contains("password=") {
        return None;
    }
    let start = endpoint.find("://")? + "://".len();
    let user = endpoint.get(start..)?.split_once('@')?.0;
    (!user.is_empty() && !user.contains(':')).then_some(start + user.len())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn knows_where_a_password_goes() {
        for (endpoint, at) in [
            ("postgres://u@h/db", Some(12)),
            ("postgresql://user@h", Some(17)),
            ("postgres://u:@h/db", None),
            ("postgres://@h/db", None),
            ("postgres://h/db", None),
            ("postgres://u@h?password=p", None),
            ("host=h user=u@x", None),
        ] {
            assert_eq!(password_position(endpoint), at, "{endpoint}");
        }
    }
}
