//! Authorities made of parts that URL parsers have disagreed on.

/// The hosts: allowed, not allowed, and in forms that some clients read as an address.
const HOSTS: [&str; 30] = [
    "good.example.com",
    "good.example.com",
    "good.example.com",
    "a.good.example.com",
    "GOOD.Example.com.",
    "kb",
    "a_b.example.com",
    "10.0.0.1",
    "10.0.0.1",
    "[::1]",
    "[0:0::0:1]",
    "evil.example",
    "evil.example",
    "127.0.0.1",
    "012.0.0.1",
    "0xa.1",
    "10.1",
    "167772161",
    "0XA000001",
    "[::ffff:10.0.0.1]",
    "[::1%25eth0]",
    "[::1%eth0]",
    "[::1",
    "::1",
    "good。example。com",
    "ｇood.example.com",
    "xn--bcher-kva.good.example.com",
    "%67ood.example.com",
    "",
    "10.0.0.1.5",
];

const SCHEMES: [&str; 18] = [
    "http://", "http://", "http://", "http://", "http://", "https://", "https://", "HTTPS://", "", "", "//",
    "http:", "http:/", "http:///", "http:\\\\", "http:/\\", " http://", "ht\ttp://",
];

const USERS: [&str; 12] =
    ["", "", "", "", "", "u@", "u:p@", "@", "evil.example\\@", "u:80@", "u%40h@", "evil.example#@"];

const PORTS: [&str; 12] =
    ["", "", "", "", ":80", ":443", ":", ":0080", ":65536", ":80x", ":-1", ":80@evil.example"];

const PATHS: [&str; 12] = [
    "", "", "", "/", "/x", "/@evil.example", "?x", "?@evil.example", "#@evil.example", "\\@evil.example",
    "/\\x", ";x",
];

/// What is put in anywhere.
const MARKS: [&str; 40] = [
    "@", "\\", "/", "?", "#", ":", "[", "]", "%", "%40", "%2f", "%5c", "%00", "%2e", "%09", "%25", "\t",
    "\n", "\r", " ", "\u{0}", "\u{b}", "\u{7f}", "\u{a0}", "\u{ad}", "\u{200b}", "。", "é", "..", ".", ",",
    ";", "&", "=", "'", "\"", "|", "^", "evil.example", "0x",
];

/// So many endpoints, the same ones each time.
pub(super) fn endpoints(count: u32) -> Vec<String> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut pick = move |of: usize| {
        // Xorshift, by George Marsaglia.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % of as u64).unwrap_or_default()
    };
    let mut one = move || {
        let [scheme, user, host, port, path] =
            [&SCHEMES[..], &USERS, &HOSTS, &PORTS, &PATHS].map(|of| of[pick(of.len())]);
        let mut text = format!("{scheme}{user}{host}{port}{path}");
        for _ in 0..pick(4).saturating_sub(1) {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            text.insert_str(starts[pick(starts.len())], MARKS[pick(MARKS.len())]);
        }
        text
    };
    (0..count).map(|_| one()).collect()
}
