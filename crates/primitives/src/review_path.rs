//! The address of the webhook: the host names of its Service, and the paths to which an apiserver sends reviews.
//!
//! The paths are `/mutate` and `/validate`, or each of them with a token at its end
//! (docs/adr/0017-paths-with-a-secret-token.md). This module knows their form; the certificate manager has the tokens.

/// One of the two webhook calls. Each finding is reported by one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// The mutating call: all that concerns pods, and findings about an edit.
    #[default]
    Mutate,
    /// The validating call: what concerns a family's own resources.
    Validate,
}

impl Phase {
    /// Both calls, in the order in which an apiserver makes them.
    pub const ALL: [Self; 2] = [Self::Mutate, Self::Validate];
}

/// The name of the webhook configuration for a call, in metrics and the log.
pub const fn config_name(call: Phase) -> &'static str {
    match call {
        Phase::Mutate => "mutating",
        Phase::Validate => "validating",
    }
}

/// How many characters a token has: 215 random bits.
pub const TOKEN_CHARS: usize = 43;

/// The characters of a token. The apiserver allows no others: each segment of a path must be a lower-case DNS name.
pub const TOKEN_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The path of a call without a token.
pub const fn plain(call: Phase) -> &'static str {
    match call {
        Phase::Mutate => "/mutate",
        Phase::Validate => "/validate",
    }
}

/// The path of a call with a token.
pub fn with_token(call: Phase, token: &str) -> String {
    format!("{}/{token}", plain(call))
}

/// A URL without the path of a call at its end.
pub fn without_plain(url: &str) -> &str {
    Phase::ALL.iter().find_map(|call| url.strip_suffix(plain(*call))).unwrap_or(url)
}

/// The call of a path without a token.
pub fn plain_call(path: &str) -> Option<Phase> {
    Phase::ALL.into_iter().find(|call| path == plain(*call))
}

/// The call and the token of a path that ends in the form of a token.
pub fn token_call(path: &str) -> Option<(Phase, &str)> {
    let (head, token) = path.rsplit_once('/')?;
    Some((plain_call(head)?, token)).filter(|_| is_token(token))
}

/// Whether a text has the form of a token.
pub fn is_token(text: &str) -> bool {
    text.len() == TOKEN_CHARS && text.bytes().all(is_token_byte)
}

fn is_token_byte(byte: u8) -> bool {
    TOKEN_ALPHABET.contains(&byte)
}

/// Replaces each token at the end of a path by `…`, in a text for logs and terminals.
pub fn without_tokens(text: &str) -> String {
    let mut segments = text.split('/');
    let mut shown = segments.next().unwrap_or_default().to_owned();
    for segment in segments {
        shown.push('/');
        let end = segment.bytes().position(|byte| !is_token_byte(byte)).unwrap_or(segment.len());
        let (token, rest) = segment.split_at(end);
        shown.push_str(if is_token(token) { "…" } else { token });
        shown.push_str(rest);
    }
    shown
}

/// The names by which a Service is called from within a cluster.
pub fn service_names(service: &str, namespace: &str) -> Vec<String> {
    ["", ".svc", ".svc.cluster.local"].map(|end| format!("{service}.{namespace}{end}")).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> String {
        "a2z7".repeat(11)[..TOKEN_CHARS].to_owned()
    }

    #[test]
    fn a_path_is_for_a_call_with_and_without_a_token() {
        for call in [Phase::Mutate, Phase::Validate] {
            assert_eq!(plain_call(plain(call)), Some(call));
            assert_eq!(token_call(plain(call)), None);
            let path = with_token(call, &token());
            assert_eq!(token_call(&path), Some((call, &*token())));
            assert_eq!(plain_call(&path), None);
        }
    }

    #[test]
    fn other_paths_are_for_none() {
        let token = token();
        let (short, long) = (&token[1..], format!("{token}a"));
        let tokens =
            [short, &long, &token.to_uppercase(), &token.replace('2', "1"), &token.replace("a2", "é")];
        for token in tokens {
            assert_eq!(token_call(&with_token(Phase::Mutate, token)), None, "{token}");
        }
        for path in
            ["", "/", "/mutate/", "/MUTATE", "mutate", &format!("/mutate//{token}"), &format!("/{token}")]
        {
            assert_eq!((plain_call(path), token_call(path)), (None, None), "{path}");
        }
    }

    #[test]
    fn the_alphabet_is_that_of_the_pattern() {
        let letters: String = ('a'..='z').chain('2'..='7').collect();
        assert_eq!(letters.as_bytes(), TOKEN_ALPHABET);
    }

    #[test]
    fn a_text_is_shown_without_tokens() {
        let token = token();
        let text =
            format!("Post \"https://m.ns.svc:443/mutate/{token}?timeout=5s\": /validate/{token}: é/{token}");
        let shown = without_tokens(&text);
        assert_eq!(shown, "Post \"https://m.ns.svc:443/mutate/…?timeout=5s\": /validate/…: é/…");
        let other = format!("/mutate/{token}x and {token} é /é");
        assert_eq!(without_tokens(&other), other);
    }
}
