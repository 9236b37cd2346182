//! Credentials in text: which names hold one, where one stands in a text, and the text without it.
//!
//! Nothing that memgate prints shows a credential of an input. This module knows texts only; what the fields
//! around a text say about it is for `memgate_manifest::mask`.
//!
//! The rules err on the side of hiding: a masked port does no harm, a password that is shown does.

use std::borrow::Cow;
use std::ops::Range;

use crate::percent::percent_decoded;

/// What a name has in it when its value is a credential; the name in lower case, letters and digits only.
const CREDENTIAL_WORDS: [&str; 15] = [
    "password", "passwd", "passphrase", "passcode", "pwd", "token", "secret", "apikey", "accesskey",
    "accountkey", "privatekey", "signingkey", "credential", "authorization", "cookie",
];

/// The ends of names that say about a credential where it is or how it is, and not what it is.
const REFERENCE_ENDS: [&str; 17] = [
    "ref", "refs", "name", "names", "namespace", "file", "path", "dir", "enabled", "seconds", "type", "kind",
    "policy", "action", "budget", "limit", "mode",
];

/// What a name in upper snake case has as a word of its own when its value is a credential.
const VARIABLE_WORDS: [&str; 8] = ["PASS", "PGPASS", "PAT", "JWT", "BEARER", "CREDS", "SK", "SESSION"];

/// Names of fields beside a reference, further to [`REFERENCE_ENDS`], that say what is referred to.
const REFERENCE_FIELDS: [&str; 7] =
    ["key", "audience", "algorithm", "encoding", "size", "apiversion", "version"];

/// A word of a name that counts the tokens of a language model.
const COUNT_WORDS: [&str; 8] = ["max", "min", "budget", "count", "limit", "used", "usage", "threshold"];

/// Names of parameters of a URL that are too short to mean a credential anywhere else.
const CREDENTIAL_PARAMETERS: [&str; 8] = ["key", "sig", "signature", "auth", "pass", "pw", "jwt", "sas"];

/// The schemes of the header Authorization, in lower case, each with its blank.
const AUTH_SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// The least length of a credential behind such a scheme: in prose, shorter words follow it.
const MIN_AUTH_CHARS: usize = 8;

/// How keys begin that are known by their form, however short they are or how much like a name. All others are known by
/// their shape ([`is_key_word`]), or stand where only a name may ([`crate::plain_text::shown_name`]). Sources: the
/// documentation of OpenAI and Anthropic, Stripe, GitHub, GitLab, Hugging Face, Pinecone, AWS, Google Cloud, Slack, Azure,
/// Databricks and Docker.
const KNOWN_KEYS: [&str; 30] = [
    "sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "npm_", "jina_", "tvly-", "glpat-", "hf_",
    "pcsk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "AKIA", "ASIA", "AIza", "xoxa-", "xoxb-",
    "xoxp-", "xoxr-", "xoxs-", "eyJ", "AccountKey=", "dapi", "dckr_pat_", "npg_",
];

/// The first bytes of these, and the second ones, each as a bit: one look at a byte tells whether a key may begin there.
const STARTS: [u128; 2] = {
    let (mut bits, mut keys) = ([0; 2], KNOWN_KEYS.as_slice());
    while let [start, rest @ ..] = keys {
        if let ([first, second, ..], [firsts, seconds]) = (start.as_bytes(), bits) {
            bits = [firsts | 1 << *first, seconds | 1 << *second];
        }
        keys = rest;
    }
    bits
};

/// The fewest bytes that follow the start of a key.
fn least_behind(start: &str) -> usize {
    match start {
        "sk-" | "glpat-" | "AKIA" | "ASIA" => 12,
        "hf_" | "AIza" => 16,
        "dapi" => 32,
        _ => MIN_BEHIND,
    }
}

/// So many bytes follow the start of any key.
const MIN_BEHIND: usize = 8;

/// How long the name of a parameter may be.
const MAX_NAME_BYTES: usize = 128;

/// Whether the value of a field, variable, header or parameter of this name is likely to be a credential.
pub fn is_credential_name(name: &str) -> bool {
    // What a name is about stands at its end.
    let name =
        name.get(name.ceil_char_boundary(name.len().saturating_sub(MAX_NAME_BYTES))..).unwrap_or_default();
    let plain = plain_name(name);
    let variable = name.ends_with("_KEY") || name.contains("_HEADER_") || has_variable_word(name);
    let named = variable || has_word(&plain, &CREDENTIAL_WORDS);
    named && !REFERENCE_ENDS.iter().any(|end| plain.ends_with(end)) && !counts_tokens(name)
}

/// Whether a name says how many tokens: `maxTokens`, `TOKEN_BUDGET`; not `ADMIN_TOKEN`.
fn counts_tokens(name: &str) -> bool {
    let is_border = |at: usize, c: char| {
        let before = name.get(..at).and_then(|before| before.chars().next_back());
        !c.is_ascii_alphanumeric()
            || c.is_ascii_uppercase() && before.is_some_and(|it| it.is_ascii_lowercase())
    };
    let (mut start, mut has_token, mut has_count) = (0, false, false);
    let borders = name.char_indices().filter(|(at, c)| is_border(*at, *c)).map(|(at, _)| at);
    for end in borders.chain([name.len()]) {
        let word = plain_name(name.get(start..end).unwrap_or_default());
        has_token |= word.starts_with("token");
        has_count |= COUNT_WORDS.contains(&word.as_str());
        start = end;
    }
    has_token && has_count
}

/// Whether a name contains one of these words. Names are short, and one look at each of their letters is
/// several times faster than a search for each word.
fn has_word(name: &str, words: &[&str]) -> bool {
    let name = name.as_bytes();
    (0..name.len()).any(|at| {
        let rest = name.get(at..).unwrap_or_default();
        words.iter().any(|word| rest.starts_with(word.as_bytes()))
    })
}

/// Whether a field that stands below one of a credential says where or how that is, such as `secretName`.
pub fn is_reference_name(name: &str) -> bool {
    let plain = plain_name(name);
    REFERENCE_FIELDS.contains(&plain.as_str()) || REFERENCE_ENDS.iter().any(|end| plain.ends_with(end))
}

fn has_variable_word(name: &str) -> bool {
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(upper) && name.split('_').any(|word| VARIABLE_WORDS.contains(&word))
}

/// Whether a parameter of a URL holds a credential; `%41` in its name is an `A`.
fn is_credential_parameter(name: &str) -> bool {
    let name = percent_decoded(name);
    let plain = plain_name(&name);
    let known = |word: &str| plain == word || (word.len() > 2 && plain.ends_with(word));
    is_credential_name(&name) || CREDENTIAL_PARAMETERS.iter().any(|word| known(word))
}

/// Whether the query of a URL has a parameter that holds a credential, and not only a `$(…)` in place of one.
pub fn has_credential_parameter(query: &str) -> bool {
    query
        .split(['&', ';'])
        .filter_map(|parameter| parameter.split_once('='))
        .any(|(name, value)| !value.is_empty() && !value.starts_with("$(") && is_credential_parameter(name))
}

fn plain_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A text with its credentials masked, as far as they can be recognised.
pub fn masked(text: &str) -> Cow<'_, str> {
    hide_if_any(text, spans(text))
}

/// A text in which keys of known forms are masked, also one that other programs read: no such key has a character that
/// JSON, XML or YAML escape.
pub fn masked_keys(text: &str) -> Cow<'_, str> {
    hide_if_any(text, keys_of_known_forms(text))
}

/// Whether SOPS has encrypted a text.
pub fn is_encrypted(text: &str) -> bool {
    text.starts_with("ENC[") && text.ends_with(']')
}

/// A single value in which each credential is masked. Of an encrypted one nothing is shown.
pub fn masked_value(value: &str) -> Cow<'_, str> {
    if is_encrypted(value) { "(encrypted)".into() } else { hide_if_any(value, value_spans(value)) }
}

/// How many bytes of a value [`masked_start`] reads: more than a usable address has.
pub const MAX_READ_BYTES: usize = 4096;

/// The start of a single value, as far as a message shows it, in which each credential is masked. Where the
/// value goes on for long, what could belong to a credential is masked too.
pub fn masked_start(value: &str) -> Cow<'_, str> {
    /// More than an address has: what is full of them is not worth the time that reading it takes.
    const MAX_MARKS: usize = 64;
    let start = value.get(..value.floor_char_boundary(MAX_READ_BYTES)).unwrap_or(value);
    let marks = start.bytes().filter(|byte| matches!(byte, b':' | b'=' | b'@')).take(MAX_MARKS + 1).count();
    let whole = start.len() == value.len() || (marks == 0 && !start.contains(' '));
    if whole && marks <= MAX_MARKS {
        return masked_value(start);
    }
    let all = 0..start.len();
    Cow::Owned(hide(start, Vec::from([all])))
}

fn hide_if_any(text: &str, spans: Vec<Range<usize>>) -> Cow<'_, str> {
    if spans.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(hide(text, spans)) }
}

/// The text with each character of these spans masked, but for line ends and indentation. Characters keep
/// their place: each mask takes as many bytes as what it stands for.
pub fn hide(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut shown = String::with_capacity(text.len());
    let mut spans = spans.into_iter().peekable();
    let mut hidden_to = 0;
    let mut indentation = true;
    for (at, c) in text.char_indices() {
        while let Some(span) = spans.next_if(|span| span.start <= at) {
            hidden_to = hidden_to.max(span.end);
        }
        indentation = matches!(c, '\n' | '\r') || (indentation && c.is_whitespace());
        shown.push(if at < hidden_to && !indentation { mask(c) } else { c });
    }
    shown
}

/// A mask of as many bytes.
const fn mask(c: char) -> char {
    match c.len_utf8() {
        1 => '*',
        2 => '·',
        3 => '•',
        _ => '🞄',
    }
}

/// Where credentials stand in a single value: as in any text, and with the blanks that a password in a URL or
/// in another connection string may hold.
pub fn value_spans(value: &str) -> Vec<Range<usize>> {
    if is_base64_key(value) {
        return Vec::from([Range { start: 0, end: value.len() }]);
    }
    if !may_hold_a_credential(value) {
        return known_keys(value);
    }
    let mut spans = spans(value);
    if let Some(authority) = behind_scheme(value) {
        let userinfo = value.get(authority..).and_then(|rest| rest.rfind('@'));
        spans.extend(userinfo.map(|at| authority..authority + at));
        let mut hidden_to = 0;
        for Assignment { value: found, .. } in assignments(value).into_iter().filter(|found| found.in_query) {
            if found.start >= hidden_to {
                let rest = value.get(found.start..).unwrap_or_default();
                hidden_to = found.start + rest.find(['&', '#']).unwrap_or(rest.len());
                spans.push(found.start..hidden_to);
            }
        }
    } else if let Some(at) = ["@tcp(", "@unix(", "@("].iter().filter_map(|dial| value.rfind(dial)).max() {
        spans.push(0..at);
    }
    spans.retain(|span| !span.is_empty());
    spans
}

/// Whether anything in a value could show a credential. Most values are a word or a number, and one look at them
/// is far cheaper than a search for each sign.
fn may_hold_a_credential(value: &str) -> bool {
    value.bytes().any(|byte| matches!(byte, b':' | b'=' | b'@' | b' ')) || value.contains("--")
}

/// Where the authority of a URL begins.
fn behind_scheme(value: &str) -> Option<usize> {
    let colon = value.find("://")?;
    let scheme = value.get(..colon)?.trim_start();
    let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (is_scheme && !scheme.is_empty()).then_some(colon + "://".len())
}

/// Where credentials stand in any text: a source, a message, a comment.
pub fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = if text.contains('@') {
        runs(text).filter_map(|run| userinfo(text, run)).collect()
    } else {
        Vec::new()
    };
    spans.extend(assignments(text).into_iter().map(|assignment| assignment.value));
    spans.extend(entries(text));
    spans.extend(flags(text));
    spans.extend(auth_schemes(text));
    spans.extend(known_keys(text));
    spans.retain(|span| !span.is_empty());
    spans
}

/// The stretches without white space and quotes.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    text.split_inclusive(ends).scan(0, move |next, run| {
        let start = *next;
        *next += run.len();
        Some(start..start + run.trim_end_matches(ends).len())
    })
}

/// The userinfo of a URL, or what is before the `@` of `user:password@tcp(host)`.
fn userinfo(text: &str, run: Range<usize>) -> Option<Range<usize>> {
    let found = text.get(run.clone())?;
    let at = found.rfind('@')?;
    if let Some(scheme) = found.find("://") {
        let authority = scheme + "://".len();
        return (authority < at).then(|| run.start + authority..run.start + at);
    }
    let digest =
        found.get(at + 1..).is_some_and(|rest| rest.starts_with("sha256:") || rest.starts_with("sha512:"));
    let pair = found.get(..at).is_some_and(|user| user.contains(':'));
    (pair && !digest).then(|| run.start..run.start + at)
}

/// The value of `name=value`.
struct Assignment {
    value: Range<usize>,
    /// Whether it is a parameter of a URL.
    in_query: bool,
}

/// The values of `name=value` whose name means a credential: parameters of URLs, flags, keys of libpq (with
/// blanks around the sign, and quotes).
fn assignments(text: &str) -> Vec<Assignment> {
    let mut found: Vec<Assignment> = Vec::new();
    let mut scanned = 0;
    for (at, _) in text.match_indices('=') {
        if found.last().is_some_and(|last| at < last.value.end) {
            continue;
        }
        let before = text.get(scanned..at).unwrap_or_default();
        scanned = at + 1;
        let name = last_name(before);
        let ahead = before.trim_end().strip_suffix(name).unwrap_or_default();
        let in_query = ahead.ends_with(['?', '&', ';']);
        if is_credential_name(name) || (in_query && is_credential_parameter(name)) {
            found.push(Assignment { value: assigned(text, at + 1), in_query });
        }
    }
    found
}

/// The name at the end of a text, blanks behind it not counted.
fn last_name(text: &str) -> &str {
    let text = text.trim_end();
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '%');
    let name = text.trim_end_matches(part);
    let name = text.get(name.len()..).unwrap_or_default();
    name.get(name.len().saturating_sub(MAX_NAME_BYTES)..).unwrap_or_default()
}

/// What is assigned from byte `from` on: in quotes, doubled when they stand in a quoted scalar, else up to
/// white space or a quote, where a backslash takes the next character along.
fn assigned(text: &str, from: usize) -> Range<usize> {
    let rest = text.get(from..).unwrap_or_default();
    let start = from + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let rest = text.get(start..).unwrap_or_default();
    for quote in ["''", "'", "\\\"", "\""] {
        let Some(inner) = rest.strip_prefix(quote) else { continue };
        if quote == "''" && !inner.starts_with(|c: char| !c.is_whitespace() && c != '\'') {
            continue;
        }
        let start = start + quote.len();
        return start..start + closing(inner, quote);
    }
    let mut escaped = false;
    let end = rest.find(|c: char| {
        let ends = !escaped && (c.is_whitespace() || matches!(c, '"' | '\''));
        escaped = !escaped && c == '\\';
        ends
    });
    start..start + end.unwrap_or(rest.len())
}

/// Where a quote is closed; one that is doubled, behind a backslash or within a word closes nothing.
fn closing(text: &str, quote: &str) -> usize {
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find(quote)) {
        let (here, behind) = (at + next, at + next + quote.len());
        let rest = text.get(behind..).unwrap_or_default();
        let within = rest.starts_with(|c: char| c.is_alphanumeric());
        if within || text.get(..here).is_some_and(|before| before.ends_with('\\')) {
            at = behind;
        } else if rest.starts_with(quote) {
            at = behind + quote.len();
        } else {
            return here;
        }
    }
    text.len()
}

/// The values of `"name": "value"` whose name means a credential, as JSON or YAML within another text has them. Without
/// quotes around the value it may be a sentence about the name.
fn entries(text: &str) -> Vec<Range<usize>> {
    let ends: Vec<usize> = document_ends(text).collect();
    let mut found: Vec<Range<usize>> = Vec::new();
    for (colon, _) in text.match_indices(':') {
        if found.last().is_some_and(|last| colon < last.end) {
            continue;
        }
        let (before, rest) =
            (text.get(..colon).unwrap_or_default(), text.get(colon + 1..).unwrap_or_default());
        let quotes = |c: char| matches!(c, '"' | '\'' | '\\');
        let name = before.trim_end();
        // Below a name without quotes in YAML there may be a mapping, whose first key has quotes.
        let is_quoted = name.ends_with(quotes);
        let blanks: &[char] = if is_quoted { &[' ', '\t', '\n', '\r'] } else { &[' ', '\t'] };
        let value = rest.trim_start_matches(blanks);
        if value.starts_with(quotes) && is_credential_name(last_name(name.trim_end_matches(quotes))) {
            // In YAML an open quote ends with its document, and hides none behind it.
            let end = ends.get(ends.partition_point(|end| *end <= colon)).filter(|_| !is_quoted);
            let until = text.get(..end.copied().unwrap_or(text.len())).unwrap_or_default();
            found.push(assigned(until, colon + 1 + rest.len() - value.len()));
        }
    }
    found
}

/// The line ends before which a document of YAML ends: those before a marker `---`.
fn document_ends(text: &str) -> impl Iterator<Item = usize> {
    let is_marker = |(at, marker): &(usize, &str)| {
        let behind = text.get(at + marker.len()..).unwrap_or_default();
        behind.is_empty() || behind.starts_with(char::is_whitespace)
    };
    text.match_indices("\n---").filter(is_marker).map(|(at, _)| at)
}

/// What follows `--password` and its like.
fn flags(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for end in flag_ends(text) {
        let is_behind = found.last().is_none_or(|last| last.end <= end);
        if is_behind && text.get(end..).is_some_and(|rest| rest.starts_with(' ')) {
            found.push(assigned(text, end));
        }
    }
    found
}

/// Where flags end that are named like a credential, such as `--password`.
pub fn flag_ends(text: &str) -> impl Iterator<Item = usize> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // Only the first dashes of a run are looked at: each run is read once.
    let starts = text.match_indices("--").map(|(at, _)| at);
    let starts = starts.filter(move |at| !text.get(..*at).is_some_and(|before| before.ends_with(in_name)));
    starts.filter_map(move |start| {
        let name = text.get(start..)?.trim_start_matches('-');
        let end = name.find(|c: char| !in_name(c)).unwrap_or(name.len());
        is_credential_name(name.get(..end)?).then_some(text.len() - name.len() + end)
    })
}

/// What follows `Bearer` and `Basic`, when it can be a credential by its length.
fn auth_schemes(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let behind_a_word = |(blank, _): &(usize, &str)| {
        let before = blank.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        before.is_some_and(u8::is_ascii_alphabetic)
    };
    for (blank, _) in text.match_indices(' ').filter(behind_a_word) {
        if found.last().is_some_and(|last| blank < last.end) {
            continue;
        }
        let before = text.get(..blank + 1).unwrap_or_default();
        let ends_with = |scheme: &str| {
            let end = before.len().checked_sub(scheme.len()).and_then(|start| before.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(scheme))
        };
        if AUTH_SCHEMES.iter().any(|scheme| ends_with(scheme)) {
            let value = assigned(text, blank + 1);
            found.extend((value.len() >= MIN_AUTH_CHARS).then_some(value));
        }
    }
    found
}

/// Keys that are known by their form or by their shape, wherever they stand.
fn known_keys(text: &str) -> Vec<Range<usize>> {
    let mut found = key_words(text.as_bytes());
    found.extend(keys_of_known_forms(text));
    found
}

/// Keys that are known by their form, wherever they stand.
fn keys_of_known_forms(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    if bytes.len() < MIN_BEHIND {
        return found;
    }
    // What is not a key of a form has none of this form within, so it is read once for each form.
    let mut not_before = [0; KNOWN_KEYS.len()];
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let here = at;
        at += 1;
        let is_in = |bits: u128, byte: &u8| byte.is_ascii() && bits >> byte & 1 == 1;
        if !is_in(STARTS[0], byte) || !bytes.get(at).is_some_and(|next| is_in(STARTS[1], next)) {
            continue;
        }
        let Some(rest) = text.get(here..) else { continue };
        let mut forms = KNOWN_KEYS.iter().zip(&mut not_before);
        let form = forms.find(|(start, not_before)| here >= **not_before && rest.starts_with(**start));
        let Some((start, not_before)) = form else { continue };
        // Words end like these.
        if matches!(*start, "sk-" | "eyJ" | "hf_" | "dapi" | "npm_" | "npg_" | "jina_" | "tvly-")
            && !begins_word(bytes, here)
        {
            continue;
        }
        let (length, is_key) = key_at(rest, start);
        *not_before = here + length;
        if is_key {
            let name = if start.ends_with('=') { start.len() } else { 0 };
            found.push(here + name..here + length);
            at = here + length;
        }
    }
    found
}

/// The fewest bytes of a key that is known by its shape.
const MIN_KEY_WORD_BYTES: usize = 20;

/// Where words stand that are keys by their shape, without the escape of JSON or of a URL with which one may begin.
fn key_words(bytes: &[u8]) -> Vec<Range<usize>> {
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let (mut found, mut start) = (Vec::new(), 0usize);
    for word in bytes.split(|byte| !in_word(byte)) {
        if word.len() >= MIN_KEY_WORD_BYTES && is_key_word(word) {
            let escape = match start.checked_sub(1).and_then(|before| bytes.get(before)) {
                Some(b'\\') if word.starts_with(b"u") => 5,
                Some(b'\\') => 1,
                Some(b'%') => 2,
                _ => 0,
            };
            found.push(start + escape..start + word.len());
        }
        start += word.len() + 1;
    }
    found
}

/// Whether a long word is a key by its shape: it has a character that no name of an object has, and digits among its
/// letters as neither a word of a language nor one of a program has them.
fn is_key_word(word: &[u8]) -> bool {
    /// A stretch of letters and digits that is so long, with so many changes between both, is a key.
    const STRETCH: (usize, usize) = (16, 5);
    /// So is a word with letters of both cases.
    const WORD: (usize, usize) = (24, 5);
    let has = |is: fn(&u8) -> bool| word.iter().any(is);
    if !has(u8::is_ascii_uppercase) && !word.contains(&b'_') || !has(u8::is_ascii_digit) {
        return false;
    }
    let is_separator = |byte: &u8| matches!(byte, b'-' | b'_');
    let (mut all, mut is_stretch) = (0, false);
    for stretch in word.split(is_separator) {
        let pairs = stretch.iter().zip(stretch.iter().skip(1));
        let changes = pairs.filter(|(one, next)| one.is_ascii_digit() != next.is_ascii_digit()).count();
        is_stretch |= stretch.len() >= STRETCH.0 && changes >= STRETCH.1;
        all += changes;
    }
    let is_mixed = || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    is_stretch || word.len() >= WORD.0 && all >= WORD.1 && is_mixed()
}

/// Whether all of a value is a key in base64, as those of AWS and Azure: of letters of both cases and digits without
/// words. A path has words between its slashes; a shorter text has to be more mixed than a name of several words is.
fn is_base64_key(value: &str) -> bool {
    const BYTES: Range<usize> = 16..512;
    let key = value.trim().trim_end_matches('=').as_bytes();
    let in_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    if !BYTES.contains(&key.len()) || !key.iter().all(in_key) {
        return false;
    }
    let class = |byte: &u8| [byte.is_ascii_uppercase(), byte.is_ascii_lowercase(), byte.is_ascii_digit()];
    let pairs = key.iter().zip(key.iter().skip(1));
    let is_change = |(one, next): &(&u8, &u8)| {
        one.is_ascii_alphanumeric() && next.is_ascii_alphanumeric() && class(one) != class(next)
    };
    let has_digit = key.iter().any(u8::is_ascii_digit) && key.iter().any(u8::is_ascii_uppercase);
    let least = key.len().div_ceil(if key.len() < 32 { 2 } else { 5 });
    has_digit && pairs.filter(is_change).count() >= least
}

/// Whether a key stands in a text that is known by its form or shape.
pub fn holds_key(text: &str) -> bool {
    !known_keys(text).is_empty()
}

/// Whether no word goes on here. An escape such as `%3D`, `\n` or `~1` is not part of one.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let is = |before: usize, byte: u8| at.checked_sub(before).and_then(|at| bytes.get(at)) == Some(&byte);
    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
    !before.is_some_and(u8::is_ascii_alphanumeric) || is(2, b'\\') || is(2, b'~') || is(3, b'%')
}

/// The length of what may be a key with this start, and whether it is one.
fn key_at(text: &str, start: &str) -> (usize, bool) {
    let behind = text.get(start.len()..).unwrap_or_default();
    let (is_token, is_upper) = (start == "eyJ", matches!(start, "AKIA" | "ASIA"));
    let in_key = |byte: u8| match byte {
        b'.' => is_token || start.ends_with('='),
        b'+' | b'/' | b'=' => start.ends_with('='),
        b'-' | b'_' | b'a'..=b'z' => !is_upper,
        _ => byte.is_ascii_alphanumeric(),
    };
    let length = behind.bytes().position(|byte| !in_key(byte)).unwrap_or(behind.len());
    let key = behind.get(..length).unwrap_or_default();
    let fits = match start {
        // Three parts, the last of which may be empty.
        "eyJ" => key.matches('.').count() >= 2,
        // Names of objects may begin so too, but they are words.
        "sk-" | "npm_" | "jina_" | "tvly-" => !key.split(['-', '_']).all(is_word),
        "dapi" => key.bytes().take(least_behind(start)).all(|byte| byte.is_ascii_hexdigit()),
        _ => true,
    };
    (start.len() + length, fits && length >= least_behind(start))
}

/// Whether this is a word of a name rather than a part of a key.
fn is_word(text: &str) -> bool {
    /// So many changes between letters and digits has no word.
    const CHANGES: usize = 3;
    let pairs = text.bytes().zip(text.bytes().skip(1));
    let changes = pairs.filter(|(one, next)| one.is_ascii_digit() != next.is_ascii_digit()).count();
    text.len() < 16 && changes < CHANGES && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_keys_of_known_forms_wherever_they_stand() {
        let keys = [
            "sk-0123456789abcdef0123",
            "sk-proj-Ab1_cdefghijklmnop-qrst",
            "sk-ant-api03-abcdefghijklmnop",
            "sk-abcdefghijklmnopqrstuvwx",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "gho_0123456789abcdefghijABCDEFGHIJ012345",
            "github_pat_11ABCDEFG0_abcdefghijklmnop",
            "AKIAIOSFODNN7EXAMPLE",
            "ASIAIOSFODNN7EXAMPLE",
            "AIzaSyA-0123456789_abcdefghijklmnopqrst",
            "xoxb-123456789012-abcdefABCDEF",
            "dapi0123456789abcdef0123456789abcdef",
            "dckr_pat_abcdefghABCDEFGH",
            "sk_test_abcdefghijABCDEFGHIJ",
            "rk_live_abcdefghijABCDEFGHIJ",
            "npm_abcdefghijABCDEFGHIJ0123456789abcdef",
            "jina_0123456789abcdefabcdefghijABCDEFGHIJ",
            "tvly-dev-abcdefghijABCDEFGHIJ0123",
            "xoxp-123456789012-abcdefABCDEF",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
        ];
        let around = [
            ("", ""),
            (" ", " "),
            ("\"", "\""),
            ("'", "'"),
            ("/", "/"),
            ("a=", ";b"),
            ("?x%3D", "&y"),
            ("\\n", "\\n"),
            ("ä", "ä"),
            ("x-", ","),
            ("x.", ")"),
            ("x_", "\n"),
            ("host/", "?q"),
            ("{\"a\":\"", "\"}"),
        ];
        for key in keys {
            for (before, behind) in around {
                let text = format!("{before}{key}{behind}");
                for shown in [masked(&text), masked_value(&text), masked_start(&text)] {
                    let hidden = "*".repeat(key.len());
                    assert!(shown.contains(&hidden) && shown.len() == text.len(), "{text} {shown}");
                    // A word is masked whole.
                    assert!(shown.starts_with(before) || before.starts_with('x'), "{text} {shown}");
                }
            }
        }
        let azure = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0c2VjcmV0==";
        assert!(!masked(azure).contains("c2Vj") && !masked_value(azure).contains("c2Vj"));
        for key in [
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "dGhpc0lzQVNlY3JldEtleTEyMzQ1Njc4OTA+Lz0xMjM0NQ==",
            "xK3jT9wQ2zR7lM4nB8",
        ] {
            assert_eq!(masked_value(key), "*".repeat(key.len()));
        }
        for text in [
            "opt/Models/Llama3/weights/v2/Checkpoints",
            "0123456789abcdef0123456789abcdef",
            "text-embedding-3-large",
            "Qwen/Qwen2-5-72B-Instruct-1M",
            "ARK_MEMORY_HEADER_X_TENANT_ID_2",
            "notes-7d9f8b6c5d-x2x4z-7d9f8b6c5d",
            "automountServiceAccountToken2",
            "2026-11-27T07-05-48Z-backup",
            "MyAgentRedisNotesV2",
            "Qwen2VL7BInstruct",
        ] {
            assert_eq!(masked_value(text), text);
        }
        for text in [
            "sk-learn",
            "sk-team-a-production-memory",
            "task-0123456789abcdef0123",
            "disk-0123456789abcdef0123",
            "AKIA",
            "AKIAnotakeyatallnever",
            "AIza-short",
            "ghp_",
            "xoxb-",
            "eyJ.a.b",
            "dapi-gateway-of-the-production-team-a",
            "npm_config_registry",
            "tvly-search-of-the-team",
        ] {
            assert_eq!(masked(text), text);
            assert_eq!(masked_value(text), text);
        }
    }

    #[test]
    fn looks_for_keys_once() {
        for unit in ["sk-", "eyJ.", "eyJaaaaaaaa.", "ghp_", "AKIA", "x-", "%3Dsk-", "AIza-"] {
            assert!(spans(&unit.repeat(100_000)).len() <= 100_000, "{unit}");
        }
    }

    #[test]
    fn knows_names_of_credentials() {
        for name in [
            "TOKEN", "GITHUB_TOKEN", "DB_PASSWORD", "password", "sslpassword", "API_KEY", "x-api-key",
            "apiKey", "OPENAI_KEY", "SECRET_KEY_BASE", "AWS_SECRET_ACCESS_KEY", "clientSecret",
            "Authorization", "Cookie", "MY_TOKEN_2", "ARK_MEMORY_HEADER_X_TENANT", "DB_PASS", "PGPASS",
            "GITHUB_PAT", "JWT", "APP_BEARER", "AWS_CREDS", "AWS_CREDS_2", "STRIPE_SK", "APP_SESSION",
            "ADMIN_TOKEN", "MEMORY_ADMIN_TOKEN", "SERVICE_ACCOUNT_TOKEN", "accountToken", "GEMINI_TOKEN",
            "MINIO_TOKEN",
        ] {
            assert!(is_credential_name(name), "{name}");
        }
        for name in [
            "secretRef",
            "secretName",
            "endpoint_secret_ref",
            "bearerTokenSecretRef",
            "maxTokens",
            "AGENT_MAX_TOKENS",
            "WORKFLOW_MEMBRANE_MAX_TOKENS_PER_RUN",
            "tokenBudget",
            "tokenThreshold",
            "min_tokens",
            "TOKENS_USED",
            "maxContextTokens",
            "sessionKey",
            "sessionRef",
            "sessionId",
            "conversationId",
            "path",
            "PATH",
            "pass-through",
            "PASSIVE",
            "PGPASS_FILE",
            "TASK",
            "key",
            "name",
            "endpoint",
            "TOKEN_FILE",
        ] {
            assert!(!is_credential_name(name), "{name}");
        }
    }

    #[test]
    fn masks_credentials_in_any_text() {
        for (text, shown) in [
            ("see https://bot:pw@host/x", "see https://******@host/x"),
            ("\"https://tok@host\"", "\"https://***@host\""),
            ("https://h/a?x=1&api_key=abc", "https://h/a?x=1&api_key=***"),
            ("https://h/a?key=abc", "https://h/a?key=***"),
            ("https://h/a?api%5Fkey=abc", "https://h/a?api%5Fkey=***"),
            ("root:pw@tcp(db:3306)/m", "*******@tcp(db:3306)/m"),
            ("host=h password=pw user=u", "host=h password=** user=u"),
            ("host=h Password = 'p w' user=u", "host=h Password = '***' user=u"),
            ("password='it''s' x=y", "password='*****' x=y"),
            ("'password=''a b'' x=y'", "'password=''***'' x=y'"),
            ("password=a\\ b c", "password=**** c"),
            ("--token=abc --api-key def x", "--token=*** --api-key *** x"),
            (r#"{"Authorization": "Basic abc", "x": 1}"#, r#"{"Authorization": "*********", "x": 1}"#),
            (r#""{\"token\":\"abc\"}""#, r#""{\"token\":\"***\"}""#),
            ("authorization: Bearer abcdefgh", "authorization: Bearer ********"),
            ("a password: 'a b' x", "a password: '***' x"),
            // A mapping below the name, whose keys are shown.
            ("password:\n  \"a b\": x", "password:\n  \"a b\": x"),
            ("'token' : \"abc\"", "'token' : \"***\""),
            ("password: \"a\n---\nb: \"c\"\n", "password: \"*\n---\nb: \"c\"\n"),
            ("password=ä€", "password=·•"),
        ] {
            assert_eq!(masked(text), shown, "{text}");
        }
        for text in [
            "ghcr.io/a/b:1.0@sha256:0123",
            "mail me@example.com",
            "headers[0]: literal credential; use secretKeyRef",
            "bearer token would travel over plain http",
            "name: x, key: token",
            "token: must be a name",
            "secretName: 'notes'",
            "https://data.example.com:80/",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn masks_whole_values() {
        for (value, shown) in [
            ("https://u:p w@host/", "https://*****@host/"),
            ("postgres://u:p/w@host/db", "postgres://*****@host/db"),
            ("postgres://h/db?password=a b&x=y", "postgres://h/db?password=***&x=y"),
            ("root:p w@tcp(db)/m", "********@tcp(db)/m"),
        ] {
            assert_eq!(masked_value(value), shown);
        }
    }

    #[test]
    fn keeps_every_character_in_its_place() {
        let text = "a: |\n  ä€\n  x y\n";
        let shown = hide(text, vec![5..11, 9..text.len()]);
        assert_eq!(shown, "a: |\n  ·•\n  ***\n");
        assert_eq!(shown.len(), text.len());
    }
}
