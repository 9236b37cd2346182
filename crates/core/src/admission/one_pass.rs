//! Reads a review in one pass: the envelope and, if the object is a new pod, the fields of the pod that decisions need.
//!
//! Without it the text of the pod is read twice, once to find its end and once for its fields. An unusual review (a
//! repeated key, a key with escapes, a pod of a wrong form) is an error here. The caller then reads it in two passes,
//! which say what is wrong.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use memgate_model::pod::{Pod, ReadPod};
use memgate_model::view::{Element, Place, Reading, Text};
use memgate_primitives::budget::Budget;

use super::{AdmissionRequest, Envelope};

/// Blanks in JSON.
const BLANKS: [char; 4] = [' ', '\n', '\r', '\t'];

/// Reads a review, and the pod in it if the pod is new.
pub(super) fn read(body: &str) -> serde_json::Result<(Envelope<'_>, Option<ReadPod<'_>>)> {
    let budget = Budget::default();
    let (limited, unlimited) = (Reading::within(&budget), Reading::default());
    let mut pass = Pass {
        body,
        of_pod: Place::root(&limited),
        of_envelope: Place::root(&unlimited),
        pod: None,
        text: ObjectText::NotReached,
    };
    let mut deserializer = serde_json::Deserializer::from_str(body);
    let envelope = deserializer.deserialize_map(EnvelopeFields(&mut pass))?;
    deserializer.end()?;
    pass.object_ends(body.len(), &['}', '}'])?;
    let read = match (pass.pod, pass.text) {
        (Some(pod), ObjectText::Whole(text)) => Some((pod, text)),
        _ => None,
    };
    Ok((envelope, read.map(|(pod, text)| ReadPod { text, pod, budget })))
}

/// The state of one pass over a body.
struct Pass<'p, 'a> {
    body: &'a str,
    of_pod: Place<'p>,
    of_envelope: Place<'p>,
    pod: Option<Pod<'a>>,
    text: ObjectText<'a>,
}

/// The part of the body that is the object. A JSON reader does not say where a value is. But the keys are borrowed from
/// the body, and between a value and the keys around it there are only blanks and punctuation.
enum ObjectText<'a> {
    NotReached,
    /// The object comes behind the key that ends here.
    After(usize),
    Whole(&'a str),
}

impl<'a> Pass<'_, 'a> {
    /// Notes a key. If it is the first one behind the object, the object ended before it and this punctuation.
    fn key_begins<E: Error>(&mut self, key: &Text<'a>, punctuation: &[char]) -> Result<(), E> {
        match self.text {
            ObjectText::After(_) => self.object_ends(self.quote_before(key)?, punctuation),
            ObjectText::NotReached | ObjectText::Whole(_) => Ok(()),
        }
    }

    /// Notes that the object ended before `end` and the punctuation in front of it.
    fn object_ends<E: Error>(&mut self, end: usize, punctuation: &[char]) -> Result<(), E> {
        let ObjectText::After(begin) = self.text else { return Ok(()) };
        let text = self.body.get(begin..end).and_then(|text| without(text, punctuation));
        self.text = ObjectText::Whole(text.ok_or_else(|| E::custom("the object has no end"))?);
        Ok(())
    }

    /// The offset of the quote before a key in the body.
    fn quote_before<E: Error>(&self, key: &Text<'a>) -> Result<usize, E> {
        let Cow::Borrowed(key) = key.0 else { return Err(E::custom("a key with an escape")) };
        let offset = key.as_ptr().addr().checked_sub(self.body.as_ptr().addr() + 1);
        offset.ok_or_else(|| E::custom("a key from elsewhere"))
    }
}

/// A value without the colon before it and the punctuation behind it.
fn without<'a>(text: &'a str, punctuation: &[char]) -> Option<&'a str> {
    let mut text = text.trim_start_matches(BLANKS).strip_prefix(':')?.trim_start_matches(BLANKS);
    for sign in punctuation {
        text = text.trim_end_matches(BLANKS).strip_suffix(*sign)?;
    }
    Some(text.trim_end_matches(BLANKS))
}

struct EnvelopeFields<'v, 'p, 'a>(&'v mut Pass<'p, 'a>);

impl<'de> Visitor<'de> for EnvelopeFields<'_, '_, 'de> {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an AdmissionReview")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let pass = self.0;
        let mut envelope = Envelope::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            pass.key_begins(&key, &[',', '}'])?;
            match &*key {
                "request" if envelope.request.is_some() => return Err(A::Error::custom("two requests")),
                "request" => envelope.request = Some(map.next_value_seed(RequestFields(pass))?),
                other => envelope.read_field(other, &mut map, &pass.of_envelope)?,
            }
        }
        Ok(envelope)
    }
}

struct RequestFields<'v, 'p, 'a>(&'v mut Pass<'p, 'a>);

impl<'de> DeserializeSeed<'de> for RequestFields<'_, '_, 'de> {
    type Value = AdmissionRequest<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RequestFields<'_, '_, 'de> {
    type Value = AdmissionRequest<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let pass = self.0;
        let mut request = AdmissionRequest::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            pass.key_begins(&key, &[','])?;
            let is_object = *key == *"object";
            if is_object && pass.pod.is_some() {
                return Err(A::Error::custom("two objects"));
            }
            if is_object && request.creates_pod() {
                pass.text = ObjectText::After(pass.quote_before::<A::Error>(&key)? + key.len() + 2);
                pass.pod = map.next_value_seed(Element::<Option<Pod<'_>>>::at(&pass.of_pod))?;
            } else {
                request.read_field(&key, &mut map, &pass.of_envelope)?;
            }
        }
        Ok(request)
    }
}

impl AdmissionRequest<'_> {
    /// Whether the object is a new pod, as far as the fields before it say.
    fn creates_pod(&self) -> bool {
        let is = |text: &Option<Text<'_>>, wanted: &str| text.as_deref().unwrap_or_default() == wanted;
        let is_pod = self.kind.as_ref().is_some_and(|it| is(&it.kind, "Pod") && is(&it.group, ""));
        is_pod && is(&self.operation, "CREATE") && is(&self.sub_resource, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = r#""kind":{"group":"","version":"v1","kind":"Pod"},"operation":"CREATE""#;

    /// The text of the pod, if it was read.
    fn pod(request: &str, behind: &str) -> Option<String> {
        let body = format!(r#"{{"kind":"AdmissionReview","request":{{{request}}}{behind}}}"#);
        let (_, read) = read(&body).ok()?;
        read.map(|read| read.text.to_owned())
    }

    #[test]
    fn finds_the_object() {
        let object = r#"{ "metadata" : {"name":"a}\",{"} }"#;
        for blank in ["", " ", "\r\n\t"] {
            let field = format!(r#"{KIND},"object"{blank}:{blank}{object}{blank}"#);
            for (behind, after) in
                [(r#","dryRun":false"#, ""), ("", ""), ("", r#", "apiVersion":"v"  "#), (r#","x":[]"#, "\n")]
            {
                assert_eq!(
                    pod(&format!("{field}{behind}"), after).as_deref(),
                    Some(object),
                    "{field}{behind}"
                );
            }
        }
    }

    #[test]
    fn reads_new_pods_only() {
        let objects = r#""object":{"metadata":{}},"oldObject":null"#;
        assert_eq!(pod(&format!("{KIND},{objects}"), "").as_deref(), Some(r#"{"metadata":{}}"#));
        for (from, to) in
            [("CREATE", "UPDATE"), ("\"Pod", "\"Podling"), (r#"p":""#, r#"p":"apps"#), ("operation", "o")]
        {
            assert_eq!(pod(&format!("{},{objects}", KIND.replace(from, to)), ""), None, "{to}");
        }
        assert_eq!(pod(&format!("{objects},{KIND}"), ""), None, "the object comes first");
        assert_eq!(pod(&format!(r#"{KIND},"subResource":"status",{objects}"#), ""), None);
        assert_eq!(pod(&format!(r#"{KIND},"object":null,"dryRun":false"#), ""), None);
    }

    #[test]
    fn leaves_unusual_reviews_to_two_passes() {
        let object = r#""object":{"metadata":{}}"#;
        let body = |request: &str| format!(r#"{{"request":{{{KIND},{request}}}}}"#);
        assert!(read(&body(object)).is_ok());
        for request in [
            format!("{object},{object}"),
            format!(r#"{object},"\u0064ryRun":false"#),
            r#""\u006fbject":{}"#.to_owned(),
            r#""object":{"metadata":[]}"#.to_owned(),
            r#""object":[]"#.to_owned(),
        ] {
            assert!(read(&body(&request)).is_err(), "{request}");
        }
        let twice = format!(r#"{{"request":{{{KIND},{object}}},"request":{{}}}}"#);
        assert!(read(&twice).is_err());
    }
}
