//! Reads a review in one pass: the envelope and, if the object is a new pod, the fields of the pod that decisions need.
//!
//! Without it the text of the pod is read twice, once to find its end and once for its fields. A review that this pass
//! does not take (a field is repeated, or has a wrong form) is then read in two passes, which say what is wrong.

use serde::de::value::Error;
use serde::de::{Error as _, MapAccess};

use memgate_model::pod::{Pod, ReadPod};
use memgate_model::view::{Element, Place, Reading, Text};
use memgate_primitives::budget::Budget;
use memgate_primitives::json_reader::{JsonReader, Members, Result};

use super::{AdmissionRequest, Envelope};

/// Reads a review, and the pod in it if the pod is new.
pub(super) fn read(body: &str) -> Result<(Envelope<'_>, Option<ReadPod<'_>>)> {
    let mut reader = JsonReader::new(body);
    let review = reader.object(envelope)?;
    reader.end()?;
    Ok(review)
}

fn envelope<'a>(mut fields: Members<'_, 'a>) -> Result<(Envelope<'a>, Option<ReadPod<'a>>)> {
    let (mut envelope, mut pod) = (Envelope::default(), None);
    let unlimited = Reading::default();
    while let Some(key) = fields.next_key::<Text<'_>>()? {
        match &*key {
            "request" if envelope.request.is_some() => return Err(Error::custom("two requests")),
            "request" => {
                let request;
                (request, pod) = fields.reader().object(request_of)?;
                envelope.request = Some(request);
            }
            other => envelope.read_field(other, &mut fields, &Place::root(&unlimited))?,
        }
    }
    Ok((envelope, pod))
}

/// Reads the request, and the pod in it if the pod is new.
fn request_of<'a>(mut fields: Members<'_, 'a>) -> Result<(AdmissionRequest<'a>, Option<ReadPod<'a>>)> {
    let (mut request, mut pod) = (AdmissionRequest::default(), None);
    let unlimited = Reading::default();
    while let Some(key) = fields.next_key::<Text<'_>>()? {
        match &*key {
            "object" if pod.is_some() => return Err(Error::custom("two objects")),
            "object" if request.creates_pod() => pod = new_pod(fields.reader())?,
            other => request.read_field(other, &mut fields, &Place::root(&unlimited))?,
        }
    }
    Ok((request, pod))
}

/// Reads a value as a pod; `None` if it is `null`.
fn new_pod<'a>(reader: &mut JsonReader<'a>) -> Result<Option<ReadPod<'a>>> {
    let budget = Budget::default();
    let reading = Reading::within(&budget);
    let place = Place::root(&reading);
    let (pod, text) = reader.value_with_text(Element::<Option<Pod<'_>>>::at(&place))?;
    Ok(pod.map(|pod| ReadPod { text, pod, budget }))
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
