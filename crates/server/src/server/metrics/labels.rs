//! The labels of the metrics: closed sets of fixed words, and the names of some policies.
//!
//! It uses no other module of the server, so that all of them can use it.

use prometheus_client::encoding::EncodeLabelSet;

/// Which of the two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByWebhook {
    pub(super) webhook: &'static str,
}

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(in crate::server) struct RequestLabels {
    /// `mutate`, `validate` or `none`.
    pub(in crate::server) webhook: &'static str,
    /// The operation under review, or `none` when the review was not read.
    pub(in crate::server) operation: &'static str,
    /// `allowed`, `denied` or `error`.
    pub(in crate::server) verdict: &'static str,
    /// The reason of the decision, or of the rejection.
    pub(in crate::server) reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByCause {
    pub(super) cause: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByFamily {
    pub(super) family: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByResult {
    pub(super) result: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByKind {
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByKindAndResult {
    pub(super) kind: &'static str,
    pub(super) result: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByConfigAndResult {
    pub(super) webhook_config: &'static str,
    pub(super) result: &'static str,
}

/// A policy by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByPolicy {
    pub(super) policy: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByPolicyAndAction {
    pub(super) policy: String,
    pub(super) action: &'static str,
}

/// A policy, and what admission makes of its violations: `denied`, `denied_later` or `admitted`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByPolicyAndAdmission {
    pub(super) policy: String,
    pub(super) admission: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByState {
    pub(super) state: &'static str,
}

/// What became of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum SpanOutcome {
    /// The collector has it.
    Done,
    /// The collector did not take it.
    Failed,
    /// The queue was full.
    Dropped,
}

impl SpanOutcome {
    /// Every outcome.
    pub(in crate::server) const ALL: [Self; 3] = [Self::Done, Self::Failed, Self::Dropped];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

/// Which certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum CertKind {
    /// The serving certificate.
    Leaf,
    /// The CA of the serving certificate.
    Ca,
    /// The CA of the certificates of callers.
    ClientCa,
}

impl CertKind {
    /// Every kind.
    pub(in crate::server) const ALL: [Self; 3] = [Self::Leaf, Self::Ca, Self::ClientCa];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Ca => "ca",
            Self::ClientCa => "client-ca",
        }
    }
}

/// How a TLS handshake ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum HandshakeOutcome {
    /// It succeeded.
    Done,
    /// It failed, for example without a common TLS version.
    Failed,
    /// The caller presented no certificate, or one that is not accepted.
    ClientRefused,
    /// It took too long.
    TimedOut,
    /// It did not begin, because there were too many others.
    Rationed,
}

impl HandshakeOutcome {
    /// Every outcome.
    pub(in crate::server) const ALL: [Self; 5] =
        [Self::Done, Self::Failed, Self::ClientRefused, Self::TimedOut, Self::Rationed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Failed => "failed",
            Self::ClientRefused => "client-refused",
            Self::TimedOut => "timeout",
            Self::Rationed => "rationed",
        }
    }
}

/// How a lookup at the apiserver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum LookupOutcome {
    /// The object exists.
    Found,
    /// It does not exist.
    Absent,
    /// The apiserver answered with an error.
    Failed,
    /// The apiserver did not answer in time.
    TimedOut,
}

impl LookupOutcome {
    /// Every outcome.
    pub(in crate::server) const ALL: [Self; 4] = [Self::Found, Self::Absent, Self::Failed, Self::TimedOut];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Absent => "absent",
            Self::Failed => "failed",
            Self::TimedOut => "timeout",
        }
    }
}

/// What became of an Event about a pod without its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum EventOutcome {
    /// It was written.
    Written,
    /// The same Event was written a short while ago.
    Duplicate,
    /// The queue was full.
    Dropped,
    /// It could not be written.
    Failed,
}

impl EventOutcome {
    /// Every outcome.
    pub(in crate::server) const ALL: [Self; 4] =
        [Self::Written, Self::Duplicate, Self::Dropped, Self::Failed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Duplicate => "duplicate",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        }
    }
}

/// Which limit a request or a connection exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum ShedCause {
    /// Too many requests.
    Requests,
    /// Too many bytes of bodies and answers.
    Bytes,
    /// An answer that its caller did not read in time.
    Unread,
    /// Too many reviews wait for a thread.
    Queue,
    /// Too many connections; one was closed for another.
    Connections,
}

impl ShedCause {
    /// Every cause.
    pub(in crate::server) const ALL: [Self; 5] =
        [Self::Requests, Self::Bytes, Self::Unread, Self::Queue, Self::Connections];

    /// The name in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Unread => "unread",
            Self::Queue => "queue",
            Self::Connections => "connections",
        }
    }
}

/// A kind of webhook configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum WebhookKind {
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `ValidatingWebhookConfiguration`.
    Validating,
}

impl WebhookKind {
    /// Both.
    pub(in crate::server) const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// Its name in metrics and the log.
    pub(in crate::server) const fn name(self) -> &'static str {
        match self {
            Self::Mutating => "mutating",
            Self::Validating => "validating",
        }
    }
}
