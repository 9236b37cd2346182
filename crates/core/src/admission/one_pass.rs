//! Reads a review in one pass: the envelope and, if the object is a new pod, the fields of the pod that decisions need.
//!
//! Without it the text of the pod is read twice, once to find its end and once for its fields. A review that this pass
//! does not take (a field is repeated, or has a wrong form) is then read in two passes, which say what is wrong.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess};
use serde_json::{Deserializer, Error, Result};

use memgate_model::pod::{Pod, ReadPod};
use memgate_model::view::{Element, Place, Reading, Text};
use memgate_primitives::budget::Budget;

use super::{AdmissionRequest, Envelope};

/// Reads a review, and the pod in it if the pod is new.
pub(super) fn read(body: &str) -> Result<(Envelope<'_>, Option<ReadPod<'_>>)> {
    let (mut envelope, mut pod) = (Envelope::default(), None);
    let mut fields = Fields { rest: body, is_first: true };
    fields.skip(b'{')?;
    while let Some(key) = fields.next_key::<Text<'_>>()? {
        match &*key {
            "request" if envelope.request.is_some() => return Err(Error::custom("two requests")),
            "request" => {
                fields.skip(b':')?;
                let request;
                (request, pod) = fields.request()?;
                envelope.request = Some(request);
            }
            other => envelope.read_field(other, &mut fields, &Place::root(&Reading::default()))?,
        }
    }
    if fields.peek().is_some() {
        return Err(Error::custom("text behind the review"));
    }
    Ok((envelope, pod))
}

/// The rest of a text, at the fields of an object. It reads each key and each value by itself, and so knows where they
/// end, which a reader of the whole object does not tell.
struct Fields<'a> {
    rest: &'a str,
    /// Whether the next field is the first one.
    is_first: bool,
}

impl<'a> Fields<'a> {
    /// Reads the request, and the pod in it if the pod is new.
    fn request(&mut self) -> Result<(AdmissionRequest<'a>, Option<ReadPod<'a>>)> {
        let (mut request, mut pod) = (AdmissionRequest::default(), None);
        let unlimited = Reading::default();
        self.skip(b'{')?;
        self.is_first = true;
        while let Some(key) = self.next_key::<Text<'_>>()? {
            match &*key {
                "object" if pod.is_some() => return Err(Error::custom("two objects")),
                "object" if request.creates_pod() => pod = self.pod()?,
                other => request.read_field(other, self, &Place::root(&unlimited))?,
            }
        }
        Ok((request, pod))
    }

    /// Reads the value of a field as a pod; `None` if it is `null`.
    fn pod(&mut self) -> Result<Option<ReadPod<'a>>> {
        let budget = Budget::default();
        self.skip(b':')?;
        self.peek();
        let begin = self.rest;
        let pod = self.value(Element::<Option<Pod<'_>>>::at(&Place::root(&Reading::within(&budget))))?;
        let text = begin.get(..begin.len() - self.rest.len()).unwrap_or_default();
        Ok(pod.map(|pod| ReadPod { text, pod, budget }))
    }

    #[inline]
    fn value<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value> {
        let mut reader = Deserializer::from_str(self.rest);
        let value = seed.deserialize(&mut reader)?;
        let end = reader.into_iter::<IgnoredAny>().byte_offset();
        self.rest = self.rest.get(end..).unwrap_or_default();
        Ok(value)
    }

    /// Skips blanks, and returns the byte behind them.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let is_blank = |byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        if self.rest.bytes().next().is_some_and(is_blank) {
            let blanks = self.rest.bytes().take_while(|byte| is_blank(*byte)).count();
            self.rest = self.rest.get(blanks..)?;
        }
        self.rest.bytes().next()
    }

    /// Skips blanks and this sign.
    #[inline]
    fn skip(&mut self, sign: u8) -> Result<()> {
        let rest = (self.peek() == Some(sign)).then(|| self.rest.get(1..)).flatten();
        self.rest = rest.ok_or_else(|| Error::custom("another sign"))?;
        Ok(())
    }
}

impl<'a> MapAccess<'a> for Fields<'a> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if self.peek() == Some(b'}') {
            self.is_first = false;
            return self.skip(b'}').map(|()| None);
        }
        if !std::mem::take(&mut self.is_first) {
            self.skip(b',')?;
            self.peek();
        }
        match self.rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            // Nearly every key is as it is written, and takes no reader.
            Some((key, rest)) if key.bytes().all(|byte| byte >= b' ' && byte != b'\\') => {
                self.rest = rest;
                seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
            }
            _ => self.value(seed).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value> {
        self.skip(b':')?;
        self.value(seed)
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
    use memgate_model::view;

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
            for key in ["object", r"\u006fbject"] {
                let field = format!(r#"{KIND},"{key}"{blank}:{blank}{object}{blank}"#);
                for (behind, after) in [
                    (r#","dryRun":false"#, ""),
                    ("", ""),
                    ("", r#", "apiVersion":"v"  "#),
                    (r#","x":[]"#, "\n"),
                ] {
                    assert_eq!(
                        pod(&format!("{field}{behind}"), after).as_deref(),
                        Some(object),
                        "{field}{behind}"
                    );
                }
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
            r#""object":{"metadata":[]}"#.to_owned(),
            r#""object":[]"#.to_owned(),
        ] {
            assert!(read(&body(&request)).is_err(), "{request}");
        }
        let twice = format!(r#"{{"request":{{{KIND},{object}}},"request":{{}}}}"#);
        assert!(read(&twice).is_err());
    }

    #[test]
    fn reads_json_only() {
        let whole =
            format!(r#"{{"kind":"A","request":{{{KIND},"object":{{}} , "dryRun":true}},"x":[1,{{}}]}}"#);
        assert!(read(&whole).is_ok());
        for at in 0..whole.len() {
            let (before, behind) = whole.split_at(at);
            for changed in [
                before.to_owned(),
                format!("{before}{}", &behind[1..]),
                format!("{before},{behind}"),
                format!("{before}:{behind}"),
                format!("{before}}}{behind}"),
                format!("{before}{{{behind}"),
                format!("{before}\u{c}{behind}"),
                format!("{before} {behind}"),
                format!("{before}\"{behind}"),
            ] {
                if read(&changed).is_ok() {
                    assert!(view::read::<Envelope<'_>>(&changed).is_ok(), "{changed}");
                }
            }
        }
        assert!(read(&format!("{whole} ")).is_ok() && read(&format!("{whole}x")).is_err());
    }
}
