//! Endpoints that are not copied into pods: every user who may read pods would read the credentials in them.

use crate::family::url::Endpoint;
use crate::model::credential::has_credential_parameter;

use super::contains_password;

/// Where an endpoint is copied to.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Copying {
    /// Whether a Postgres driver reads it: a user without a password and parameters are part of most of its URLs.
    pub(in super::super) to_postgres: bool,
    /// Whether the object with the endpoint is in another namespace than the pod. Users of the pod's namespace would
    /// read the endpoint.
    pub(in super::super) foreign: bool,
}

/// The part of an endpoint that may not be copied into a pod, as messages name it; `None` if all of it may be copied.
pub(in super::super) fn withheld(endpoint: &str, copying: Copying) -> Option<&'static str> {
    let url = Endpoint::parse(endpoint);
    if contains_password(endpoint) {
        return Some("a password");
    }
    // `sslkey` is the path of a file.
    let parameters = url.query.split('&').filter(|parameter| !parameter.starts_with("sslkey="));
    let token = parameters.into_iter().any(has_credential_parameter);
    let Copying { to_postgres, foreign } = copying;
    if token || (url.userinfo && !to_postgres) {
        return Some("a credential");
    }
    (foreign && !to_postgres && !url.query.is_empty()).then_some("a query")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn withholds_what_others_should_not_read() {
        let own = Copying { to_postgres: false, foreign: false };
        let foreign = Copying { foreign: true, ..own };
        let database = Copying { to_postgres: true, foreign: true };
        for (endpoint, copying, expected) in [
            ("https://u:p@kb", own, Some("a password")),
            ("https://token@kb", own, Some("a credential")),
            ("https://kb/v1?api_key=a", own, Some("a credential")),
            ("https://kb/v1?api_key=$(KEY)", own, None),
            ("https://kb/v1?a=b", own, None),
            ("https://kb/v1?a=b", foreign, Some("a query")),
            ("https://kb/v1#a", foreign, None),
            ("postgres://u@db/m?sslmode=require&sslkey=/certs/key", database, None),
            ("postgres://u@db/m?token=a", database, Some("a credential")),
            ("postgres://u:p@db/m", database, Some("a password")),
        ] {
            assert_eq!(withheld(endpoint, copying), expected, "{endpoint}");
        }
    }
}
