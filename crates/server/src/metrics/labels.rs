//! The labels of the metrics: closed sets of fixed words, and the names of some policies.
//!
//! It uses no other module of the server, so that all of them can use it.

use memgate_certs::metrics::Label;
use prometheus_client::encoding::EncodeLabelSet;

use memgate_primitives::named::named;

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    /// `mutate`, `validate` or `none`.
    pub(crate) webhook: &'static str,
    /// The operation under review, or `none` when the review was not read.
    pub(crate) operation: &'static str,
    /// `allowed`, `denied` or `error`.
    pub(crate) verdict: &'static str,
    /// The reason of the decision, or of the rejection.
    pub(crate) reason: &'static str,
}

named! {
    /// How something ended that is counted by its result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ResultLabel {
        /// It succeeded.
        Done = "ok",
        /// It failed.
        Failed = "failed",
        /// It took too long.
        TimedOut = "timeout",
        /// The caller of a handshake presented no certificate, or one that is not accepted.
        ClientRefused = "client-refused",
        /// A handshake did not begin, because there were too many others.
        Rationed = "rationed",
        /// A looked-up object exists.
        Found = "found",
        /// A looked-up object does not exist.
        Absent = "absent",
        /// An Event was written.
        Written = "written",
        /// The same Event was written a short while ago.
        Duplicate = "duplicate",
        /// The queue of Events was full.
        Dropped = "dropped",
    }
}

impl ResultLabel {
    /// The results of TLS handshakes.
    pub(super) const HANDSHAKES: [Self; 5] =
        [Self::Done, Self::Failed, Self::ClientRefused, Self::TimedOut, Self::Rationed];
    /// The results of lookups at the apiserver.
    pub(super) const LOOKUPS: [Self; 4] = [Self::Found, Self::Absent, Self::Failed, Self::TimedOut];
    /// The results of Events about pods without their memory.
    pub(super) const EVENTS: [Self; 4] = [Self::Written, Self::Duplicate, Self::Dropped, Self::Failed];

    /// As a label.
    pub(super) const fn label(self) -> Label {
        ("result", self.name())
    }
}

named! {
    /// Which limit a request or a connection exceeded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ShedCause {
        /// Too many requests.
        Requests = "requests",
        /// Too many bytes of bodies and answers.
        Bytes = "bytes",
        /// An answer that its caller did not read in time.
        Unread = "unread",
        /// Too many reviews wait for a thread.
        Queue = "queue",
        /// Too many connections; one was closed for another.
        Connections = "connections",
    }
}

impl ShedCause {
    pub(super) const fn label(self) -> Label {
        ("cause", self.name())
    }
}
