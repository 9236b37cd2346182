//! Credentials that stand in the URL of an endpoint in clear text.

use crate::family::url::Endpoint;
use crate::model::credential::has_credential_parameter;
use crate::model::memory_view::InlineView;
use crate::model::pointer::Pointer;

/// The credential in the URL at this place: userinfo, or a parameter that is named like one.
#[must_use]
pub fn in_url(text: &str, field: Pointer) -> Option<InlineView> {
    let url = Endpoint::parse(text);
    (url.userinfo || has_credential_parameter(url.query)).then(|| InlineView::new(field, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_credentials() {
        for (text, holds) in [
            ("https://u:p@h", true),
            ("https://u@h/x", true),
            ("u:p@h:80", true),
            ("https://h/x?api_key=a", true),
            ("https://h/x?b=c&api%5Fkey=a#d", true),
            ("https://h/x?b=c;sig=a", true),
            ("https://h/x?token=$(TOKEN)", false),
            ("https://h/x?token=", false),
            ("https://h/x?b=token", false),
            ("https://h:80/u:p@x", false),
            ("https://h/x#token=a", false),
            ("", false),
        ] {
            let found = in_url(text, Pointer::new("/spec/endpoint"));
            assert_eq!(found.is_some(), holds, "{text}");
        }
    }
}
