//! The request for a new CA, in three annotations of the CA Secret, through which `memgate certs rotate` and the replicas
//! communicate (docs/adr/0019-a-new-ca-on-request.md). The command does not read the keys.
//!
//! | annotation | written by | content |
//! |---|---|---|
//! | `memgate.dev/rotate-requested` | `memgate certs rotate` | the request: `TIME`, or `TIME revoke` |
//! | `memgate.dev/rotate-made` | a replica | the SHA-256 of the new CA, and the request that it was made for |
//! | `memgate.dev/rotate-done` | a replica | the request, once the new CA is in use, and the old ones revoked |
//!
//! Requests are compared as texts. So a request that a tool writes again is carried out once, and clocks do not matter.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

/// The request.
pub const REQUESTED: &str = "memgate.dev/rotate-requested";
/// For which request which CA was made.
pub const MADE: &str = "memgate.dev/rotate-made";
/// The last request that was carried out.
pub const DONE: &str = "memgate.dev/rotate-done";

/// The word after the time of a request that revokes the old CAs.
const REVOKE: &str = " revoke";

/// The longest accepted request: replicas write it two more times, and annotations share 256 KiB.
const MAX_REQUEST_BYTES: usize = 64;

/// A request for a new CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotationRequest {
    text: String,
    /// Whether the old CAs are revoked.
    pub revoke: bool,
}

/// The content of the annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rotation {
    /// The current request, if there is one.
    pub requested: Option<RotationRequest>,
    /// The last CA that was made for a request.
    pub made: Option<MadeCa>,
    /// The last request that was carried out.
    pub done: Option<RotationRequest>,
}

/// A CA that was made for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeCa {
    /// Of its certificate, in hexadecimal digits.
    pub sha256: String,
    /// The request.
    pub request: RotationRequest,
}

/// The progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'r> {
    /// There is no request.
    Idle,
    /// No replica has made a CA for it.
    Requested(&'r RotationRequest),
    /// There is a new CA, which is not in use by all replicas yet.
    Made(&'r MadeCa),
    /// It is carried out.
    Done(&'r MadeCa),
}

impl RotationRequest {
    /// A request of this time, in seconds since 1970.
    pub fn new(now: i64, revoke: bool) -> Self {
        let time = Timestamp::from_second(now).unwrap_or(Timestamp::MAX);
        Self { text: format!("{time}{}", if revoke { REVOKE } else { "" }), revoke }
    }

    /// Reads a request; `None` when it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let time = text.strip_suffix(REVOKE).unwrap_or(text);
        let is_time = text.len() <= MAX_REQUEST_BYTES && time.parse::<Timestamp>().is_ok();
        is_time.then(|| Self { text: text.to_owned(), revoke: time.len() < text.len() })
    }
}

impl fmt::Display for RotationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl MadeCa {
    fn parse(text: &str) -> Option<Self> {
        let (sha256, request) = text.split_once(' ')?;
        Some(Self { sha256: sha256.to_owned(), request: RotationRequest::parse(request)? })
    }
}

impl Rotation {
    /// Reads the annotations of a Secret.
    pub fn read(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let text = |key| Some(annotations?.get(key)?.as_str());
        Self {
            requested: text(REQUESTED).and_then(RotationRequest::parse),
            made: text(MADE).and_then(MadeCa::parse),
            done: text(DONE).and_then(RotationRequest::parse),
        }
    }

    /// Writes the annotations; missing values leave theirs unchanged.
    pub(crate) fn write(&self, annotations: &mut BTreeMap<String, String>) {
        let mut put = |key: &str, text: Option<String>| {
            text.map(|text| annotations.insert(key.to_owned(), text));
        };
        put(REQUESTED, self.requested.as_ref().map(ToString::to_string));
        put(MADE, self.made.as_ref().map(|made| format!("{} {}", made.sha256, made.request)));
        put(DONE, self.done.as_ref().map(ToString::to_string));
    }

    /// The progress of the request.
    pub fn progress(&self) -> Progress<'_> {
        let Some(requested) = &self.requested else { return Progress::Idle };
        match self.made.as_ref().filter(|made| made.request == *requested) {
            Some(made) if self.done.as_ref() == Some(requested) => Progress::Done(made),
            Some(made) => Progress::Made(made),
            None => Progress::Requested(requested),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    /// Annotations, and how far the request is by them.
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a str);

    fn annotations(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for (revoke, text) in [(false, "2027-01-15T08:00:00Z"), (true, "2027-01-15T08:00:00Z revoke")] {
            let request = RotationRequest::new(NOW, revoke);
            assert_eq!(request.to_string(), text);
            assert_eq!(RotationRequest::parse(text), Some(request));
        }
        let typed = RotationRequest::parse("2027-01-15T09:00:00.5+01:00").expect("a time of a person");
        assert_eq!(typed.to_string(), "2027-01-15T09:00:00.5+01:00", "compared as a text, so kept as one");
        let long = format!("2027-01-15T08:00:00.{}Z", "0".repeat(64));
        for text in ["", "now", " revoke", "2027-01-15T08:00:00Z  revoke", "2027-01-15T08:00:00Z\n", &long] {
            assert_eq!(RotationRequest::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn progress_follows_the_request_that_counts() {
        let (first, second) = ("2027-01-15T08:00:00Z", "2027-01-15T09:00:00Z revoke");
        let (of_first, of_second) = (format!("ab {first}"), format!("cd {second}"));
        let rows: [Row<'_>; 7] = [
            (&[], "Idle"),
            (&[(REQUESTED, "soon")], "Idle"),
            (&[(REQUESTED, first)], "Requested"),
            (&[(REQUESTED, second), (MADE, &of_first), (DONE, first)], "Requested"),
            (&[(REQUESTED, second), (MADE, &of_second), (DONE, first)], "Made"),
            (&[(REQUESTED, second), (MADE, &of_second), (DONE, second)], "Done"),
            (&[(MADE, &of_second), (DONE, second)], "Idle"),
        ];
        for (entries, expected) in rows {
            let rotation = Rotation::read(Some(&annotations(entries)));
            let shown = format!("{:?}", rotation.progress());
            assert!(shown.starts_with(expected), "{entries:?}: {shown}");
        }
        assert_eq!(Rotation::read(None), Rotation::default());
    }

    #[test]
    fn what_was_read_is_written_and_the_rest_stays() {
        let mut before = annotations(&[
            (REQUESTED, "2027-01-15T09:00:00Z"),
            (MADE, "ab 2027-01-15T08:00:00Z revoke"),
            (DONE, "2027-01-15T08:00:00Z revoke"),
        ]);
        let rotation = Rotation::read(Some(&before));
        let mut after = annotations(&[("other", "stays")]);
        rotation.write(&mut after);
        before.insert("other".to_owned(), "stays".to_owned());
        assert_eq!(after, before);
    }
}
