//! AdmissionReview bytes to a request, and a decision to response bytes.
//!
//! It knows the wire format `admission.k8s.io/v1`, but not HTTP. The object under review stays the text that was sent.
//!
//! ```text
//! body ──parse──▶ Review ──decide──▶ Decision ──respond──▶ body
//! ```

mod response;
mod texts;

use std::borrow::Cow;

use crate::decide::decide;
use crate::patch::{self, PatchError};
use memgate_model::decision::Decision;
use memgate_model::edit::Edit;
use memgate_model::finding::{Finding, Severity};
use memgate_model::reason::Reason;
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::view::{Reading, Text, view};
use memgate_primitives::pointer::Path;
use memgate_primitives::review_path::Phase;
use serde_json::value::RawValue;

use self::response::ReviewResponse;
use self::texts::Complaint;

/// How long the id of a review may be. An apiserver's has 36 bytes.
const MAX_UID_BYTES: usize = 256;

/// How many bytes of a review its head may have: all that an apiserver writes before the object.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// What an apiserver writes behind the fields of a request that no object can change, or only the user.
const BEHIND_HEAD: [&[u8]; 2] = [br#","object":"#, br#","userInfo":"#];

/// Why a body is not an AdmissionReview that can be answered; a 400 with this text.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// The body is empty.
    #[error("the body is empty; send an AdmissionReview")]
    Empty,
    /// The body is not JSON, or a field has the wrong type.
    #[error("the body is not an AdmissionReview in JSON: line {line}, column {column}")]
    NotJson {
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
    },
    /// Another API version or kind.
    #[error("apiVersion and kind must be admission.k8s.io/v1 and AdmissionReview")]
    WrongVersion,
    /// A review without a request.
    #[error("request is missing")]
    NoRequest,
    /// A field is absent that the answer needs.
    #[error("request.{0} is missing")]
    Missing(&'static str),
    /// The id, which the answer repeats, is too long.
    #[error("request.uid is longer than {MAX_UID_BYTES} bytes")]
    LongUid,
    /// An operation that the API does not have.
    #[error("request.operation must be CREATE, UPDATE, DELETE or CONNECT")]
    UnknownOperation,
}

/// Why a request cannot be answered although its envelope is good.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object has text that is not Unicode, a number that no double can represent, or a field of a pod twice; a 400.
    #[error(
        "the object cannot be read: it has a string that is not Unicode text, a number out of range, or a field twice"
    )]
    Unreadable,
    /// memgate made a patch that does not apply; a 500.
    #[error("the patch that was made does not apply to the object")]
    Patch(#[from] PatchError),
}

/// One review to answer.
#[derive(Debug)]
pub struct Review<'a> {
    /// The id that the response repeats.
    pub uid: Cow<'a, str>,
    /// Whether this is a dry run, of which nothing is stored.
    pub dry_run: bool,
    /// The request to decide.
    pub request: Request<'a>,
    /// For how many seconds nothing was heard of a kind by which it is decided; `None` while the state is current.
    pub state_age: Option<u64>,
}

view! {
    /// The envelope.
    Envelope {
        /// `admission.k8s.io/v1`.
        api_version: Text<'a> = "apiVersion",
        /// `AdmissionReview`.
        kind: Text<'a> = "kind",
        /// The request.
        request: AdmissionRequest<'a> = "request",
    }
}

view! {
    /// The `request` of an AdmissionReview.
    AdmissionRequest {
        /// The id.
        uid: Text<'a> = "uid",
        /// The kind that the webhook is registered for.
        kind: GroupVersionKind<'a> = "kind",
        /// `status`, `scale` and so on.
        sub_resource: Text<'a> = "subResource",
        /// The name.
        name: Text<'a> = "name",
        /// The namespace.
        namespace: Text<'a> = "namespace",
        /// CREATE, UPDATE, DELETE or CONNECT.
        operation: Text<'a> = "operation",
        /// The new object.
        object: &'a RawValue = "object",
        /// The stored object.
        old_object: &'a RawValue = "oldObject",
        /// Whether this is a dry run.
        dry_run: bool = "dryRun",
        /// The user, read when a policy needs it.
        user_info: &'a RawValue = "userInfo",
    }
}

view! {
    /// A kind, fully named.
    GroupVersionKind {
        /// The API group.
        group: Text<'a> = "group",
        /// The API version.
        version: Text<'a> = "version",
        /// The kind.
        kind: Text<'a> = "kind",
    }
}

/// Reads an AdmissionReview.
///
/// # Errors
/// When it cannot be answered; see [`Malformed`].
pub fn parse(body: &str) -> Result<Review<'_>, Malformed> {
    if body.is_empty() {
        return Err(Malformed::Empty);
    }
    let envelope: Envelope<'_> = Reading::default()
        .strictly()
        .read(body, Path::Root)
        .map_err(|error| Malformed::NotJson { line: error.line(), column: error.column() })?;
    let is = |text: &Option<Text<'_>>, wanted| text.as_deref() == Some(wanted);
    if !is(&envelope.api_version, "admission.k8s.io/v1") || !is(&envelope.kind, "AdmissionReview") {
        return Err(Malformed::WrongVersion);
    }
    let sent = envelope.request.ok_or(Malformed::NoRequest)?;
    let uid = sent.uid.filter(|uid| !uid.is_empty()).ok_or(Malformed::Missing("uid"))?.0;
    if uid.len() > MAX_UID_BYTES {
        return Err(Malformed::LongUid);
    }
    let kind = sent.kind.ok_or(Malformed::Missing("kind"))?;
    let operation = sent.operation.ok_or(Malformed::Missing("operation"))?;
    let operation = Operation::from_name(&operation).ok_or(Malformed::UnknownOperation)?;
    let object = sent.object.map(RawValue::get);
    let writes = matches!(operation, Operation::Create | Operation::Update);
    if writes && object.is_none() {
        return Err(Malformed::Missing("object"));
    }
    let request = Request {
        operation,
        group: or_empty(kind.group),
        version: or_empty(kind.version),
        kind: kind.kind.filter(|kind| !kind.is_empty()).ok_or(Malformed::Missing("kind.kind"))?.0,
        subresource: or_empty(sent.sub_resource),
        namespace: or_empty(sent.namespace),
        name: or_empty(sent.name),
        object,
        old_object: sent.old_object.map(RawValue::get),
        occasion: Occasion { user: sent.user_info.map(RawValue::get), ..Occasion::default() },
        cancelled: None,
    };
    Ok(Review { uid, dry_run: sent.dry_run.unwrap_or_default(), request, state_age: None })
}

/// The head of a review whose object cannot be read, as a review of an empty object; `None` where it has none.
pub fn head(body: &[u8]) -> Option<String> {
    let body = body.get(..MAX_HEAD_BYTES).unwrap_or(body);
    BEHIND_HEAD.into_iter().find_map(|mark| {
        let end = body.windows(mark.len()).position(|part| part == mark)?;
        let head = format!("{},\"object\":{{}}}}}}", str::from_utf8(body.get(..end)?).ok()?);
        parse(&head).is_ok().then_some(head)
    })
}

fn or_empty(text: Option<Text<'_>>) -> Cow<'_, str> {
    text.unwrap_or_default().0
}

/// The response of one of the two calls, as bytes of an AdmissionReview. Every patch is checked against
/// the object before it is sent.
///
/// # Errors
/// When the object cannot be read or the patch does not apply.
pub fn respond(phase: Phase, review: &Review<'_>, decision: &Decision) -> Result<Vec<u8>, Error> {
    if decision.reason == Reason::Unreadable {
        return Err(Error::Unreadable);
    }
    let findings = decision.findings_for(phase);
    let allowed = findings.iter().all(|finding| finding.severity != Severity::Deny);
    let edits = if phase == Phase::Mutate && allowed { decision.edits.as_slice() } else { &[] };
    if !edits.is_empty() {
        patch::apply::check(review.request.object.unwrap_or_default(), edits)?;
    }
    let judged_by = (phase == decision.phase).then_some(decision);
    Ok(ReviewResponse::new(review, &findings, edits, decision.reason, judged_by).to_bytes())
}

/// The first denial among these findings of a decision: its text as the response has it, and its field.
pub fn first_denial(decision: &Decision, findings: &[&Finding]) -> Option<(String, String)> {
    let denial = findings.iter().find(|finding| finding.is_denial())?;
    let complaint = Complaint::of(denial, decision.required);
    Some((complaint.cause(""), complaint.field))
}

/// Why a pod is admitted without its memory, or without all of it: the warning about that.
pub fn admitted_without(decision: &Decision) -> Option<String> {
    let code = decision.unmet.filter(|_| decision.allowed())?;
    let finding = decision.findings.iter().find(|finding| finding.code == code);
    Some(finding.map_or_else(|| code.name.to_owned(), texts::warning))
}

/// The response that refuses a pod for now, as a ResourceQuota does, because an object is missing; `message` names it.
/// Controllers try again soon.
pub fn hold(review: &Review<'_>, decision: &Decision, message: &str) -> Vec<u8> {
    let findings: Vec<&Finding> = decision.findings.iter().collect();
    let response = ReviewResponse::new(review, &findings, &[], Reason::ReferencePending, Some(decision));
    ReviewResponse { refused: Some((403, "Forbidden", message)), ..response }.to_bytes()
}

/// The response that refuses what cannot be judged, with the code and the reason of its status.
pub fn refuse(review: &Review<'_>, decision: &Decision, status: (u16, &'static str, &str)) -> Vec<u8> {
    let response = ReviewResponse::new(review, &[], &[], decision.reason, Some(decision));
    ReviewResponse { refused: Some(status), ..response }.to_bytes()
}

/// The response of both calls together: mutates, then validates the result, as the apiserver would.
///
/// # Errors
/// Those of [`respond`].
pub fn review(review: &Review<'_>, snapshot: &Snapshot) -> Result<Vec<u8>, Error> {
    Ok(review_of(review, &admit(&review.request, snapshot)?))
}

/// The response for the result of both calls.
pub fn review_of(review: &Review<'_>, admitted: &Admitted) -> Vec<u8> {
    let edits = if admitted.allowed() { admitted.edits.as_slice() } else { &[] };
    let findings: Vec<&Finding> = admitted.decision.findings.iter().collect();
    ReviewResponse::new(review, &findings, edits, admitted.reason(), Some(&admitted.decision)).to_bytes()
}

/// The result of both calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The edits of the mutating call, in the order in which they apply.
    pub edits: Vec<Edit>,
    /// The decision whose findings count: of the mutating call for pods, of the validating call for
    /// everything else; with those of the mutating call about its edits in front.
    pub decision: Decision,
    /// The JSON text of the object as it would be stored; `None` for a DELETE.
    pub object: Option<String>,
}

impl Admitted {
    /// Whether the request would be allowed.
    pub fn allowed(&self) -> bool {
        self.decision.allowed()
    }

    /// The reason of the result: `defaulted` when the mutating call changed an object that is then valid.
    pub fn reason(&self) -> Reason {
        if self.allowed() && !self.edits.is_empty() && self.decision.phase == Phase::Validate {
            return Reason::Defaulted;
        }
        self.decision.reason
    }
}

/// Mutates, applies the edits, and validates the result, as the apiserver would.
///
/// # Errors
/// When the object cannot be read or the patch does not apply.
pub fn admit(request: &Request<'_>, snapshot: &Snapshot) -> Result<Admitted, Error> {
    let first = decide(request, snapshot);
    if first.reason == Reason::Unreadable {
        return Err(Error::Unreadable);
    }
    let object = request.object.map(str::to_owned);
    if first.edits.is_empty() {
        return Ok(Admitted { edits: Vec::new(), decision: first, object });
    }
    let text = patch::apply::apply(request.object.unwrap_or_default(), &first.edits)?;
    if first.phase == Phase::Mutate {
        return Ok(Admitted { edits: first.edits.clone(), decision: first, object: Some(text) });
    }
    let mut second = decide(&Request { object: Some(&text), ..request.clone() }, snapshot);
    let about_edits = first.findings.into_iter().filter(|finding| finding.on_rewrite);
    second.findings.splice(..0, about_edits);
    Ok(Admitted { edits: first.edits, decision: second, object: Some(text) })
}
