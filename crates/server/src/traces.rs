//! Traces of requests for an OpenTelemetry collector, if one is configured.
//!
//! A span has the webhook, the operation, the verdict and the time of each step of a request. It holds words from fixed
//! lists and the uid of the review, but no name, user, group or object. Only the ids and the flags of a caller's
//! `traceparent` are used.
//!
//! ```text
//! request: read ─▶ decide ─▶ (lookup ─▶ decide) ─▶ answer
//! ```

pub(super) mod export;

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::{HeaderMap, Uri};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    Span, SpanContext, SpanKind, Status, TraceContextExt, TraceState, Tracer as _, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use thiserror::Error as ThisError;

use crate::metrics::Metrics;
use crate::metrics::labels::RequestLabels;
use crate::traces::export::SpanExport;
use memgate_core::admission::Review;

/// Where traces go, and how many requests are traced.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The base URL of a collector's OTLP/HTTP receiver; `/v1/traces` is added to it.
    pub endpoint: Uri,
    /// The share of requests that are traced when the caller does not decide it: from 0 to 1.
    pub sampling: f64,
}

/// Why traces cannot be set up.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The system's certificates cannot be read.
    #[error("found no CA certificates for {0}; name a file with SSL_CERT_FILE")]
    Roots(Uri, #[source] std::io::Error),
    /// The exporter refuses its options.
    #[error("failed to set up the OTLP exporter")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
    /// Its thread cannot be started.
    #[error("failed to start the OTLP exporter")]
    Start(#[source] std::io::Error),
}

/// Makes traces.
pub(super) struct Tracer {
    tracer: SdkTracer,
    /// Keeps the exporter alive.
    _provider: SdkTracerProvider,
}

impl Tracer {
    /// A tracer whose spans go to the collector in `options`, and the thread that sends them.
    pub(super) fn new(options: &TraceOptions, metrics: Arc<Metrics>) -> Result<(Self, SpanExport), Error> {
        let resource = Resource::builder()
            .with_service_name("memgate")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let (queue, export) = export::start(&options.endpoint, &resource, metrics)?;
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(options.sampling))))
            .with_resource(resource)
            .build();
        Ok((Self { tracer: provider.tracer("memgate"), _provider: provider }, export))
    }

    /// The trace of a request with these headers, to one of the two calls or to `none`.
    pub(super) fn begin(&self, webhook: &'static str, headers: &HeaderMap) -> Trace {
        let builder = self.tracer.span_builder(webhook).with_kind(SpanKind::Server);
        let span = builder.start_with_context(&self.tracer, &caller_context(headers));
        if !span.is_recording() {
            return Trace::off();
        }
        Trace(Some(Recorded { tracer: self.tracer.clone(), context: Context::new().with_span(span) }))
    }
}

/// The trace context of the caller, without its `tracestate`.
fn caller_context(headers: &HeaderMap) -> Context {
    let context =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
    let remote = context.span().span_context().clone();
    if !remote.is_valid() {
        return Context::new();
    }
    let (trace, span, flags) = (remote.trace_id(), remote.span_id(), remote.trace_flags());
    Context::new().with_remote_span_context(SpanContext::new(trace, span, flags, true, TraceState::NONE))
}

/// The trace of one request, or an empty one for requests that are not traced. Clones are of the
/// same trace.
#[derive(Clone)]
pub(super) struct Trace(Option<Recorded>);

#[derive(Clone)]
struct Recorded {
    tracer: SdkTracer,
    context: Context,
}

/// A part of a request, until it is dropped.
#[must_use = "a span ends when it is dropped"]
pub(super) struct ChildSpan {
    /// Ends when it is dropped.
    _span: Option<opentelemetry_sdk::trace::Span>,
}

impl Trace {
    /// The trace of a request that is not traced.
    pub(super) const fn off() -> Self {
        Self(None)
    }

    /// Begins a part of the request.
    pub(super) fn child_span(&self, name: &'static str) -> ChildSpan {
        self.child_span_with(name, Vec::new)
    }

    /// Begins to look up objects of these kinds.
    pub(super) fn lookup(&self, kinds: impl Iterator<Item = &'static str>) -> ChildSpan {
        self.child_span_with("lookup", || {
            let kinds: std::collections::BTreeSet<_> = kinds.collect();
            vec![KeyValue::new("memgate.kinds", kinds.into_iter().collect::<Vec<_>>().join(","))]
        })
    }

    fn child_span_with(&self, name: &'static str, attributes: impl FnOnce() -> Vec<KeyValue>) -> ChildSpan {
        let span = self.0.as_ref().map(|Recorded { tracer, context }| {
            tracer.span_builder(name).with_attributes(attributes()).start_with_context(tracer, context)
        });
        ChildSpan { _span: span }
    }

    /// Records the operation, the group and the uid of the review.
    pub(super) fn set_review(&self, review: &Review<'_>) {
        let Some(Recorded { context, .. }) = &self.0 else { return };
        let Review { uid, request, .. } = review;
        let group = match memgate_platforms::validated(&memgate_platforms::ALL, &request.group, &request.kind)
        {
            Some((_, kind)) => kind.group,
            None if request.group.is_empty() => "core",
            None => "other",
        };
        context.span().set_attribute(KeyValue::new("memgate.group", group));
        if is_uuid(uid) {
            context.span().set_attribute(KeyValue::new("memgate.uid", uid.to_string()));
        }
    }

    /// Ends the trace.
    pub(super) fn end(self, labels: &RequestLabels) {
        let Some(Recorded { context, .. }) = self.0 else { return };
        let span = context.span();
        for (key, value) in [
            ("memgate.webhook", labels.webhook),
            ("memgate.operation", labels.operation),
            ("memgate.verdict", labels.verdict),
            ("memgate.reason", labels.reason),
        ] {
            span.set_attribute(KeyValue::new(key, value));
        }
        if labels.verdict == "error" {
            span.set_status(Status::Error { description: Cow::Borrowed(labels.reason) });
        }
        span.end();
    }
}

/// Whether the text is a UUID, as apiservers make them. Any other text could be one that must not be in a trace.
fn is_uuid(text: &str) -> bool {
    let digits = |part: &str, count| part.len() == count && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = text.split('-');
    let is_grouped =
        [8, 4, 4, 4, 12].into_iter().all(|count| parts.next().is_some_and(|part| digits(part, count)));
    is_grouped && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_recorded_only_when_it_is_one() {
        assert!(is_uuid("705ab4f5-6393-11e8-b7cc-42010a800002"));
        for text in ["", "u-1", "705ab4f5-6393-11e8-b7cc-42010a80000", "705ab4f5-6393-11e8-b7cc-secretsecret"]
        {
            assert!(!is_uuid(text), "{text}");
        }
        assert!(!is_uuid("705ab4f5-6393-11e8-b7cc-42010a800002-a"));
    }

    #[test]
    fn of_a_caller_only_ids_and_flags_are_used() {
        let mut headers = HeaderMap::new();
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        headers.insert("traceparent", parent.parse().unwrap());
        headers.insert("tracestate", "user=alice".parse().unwrap());
        let context = caller_context(&headers);
        let span = context.span().span_context().clone();
        assert_eq!(span.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(span.is_sampled() && span.is_remote());
        assert_eq!(span.trace_state().header(), "");
    }

    #[test]
    fn a_broken_parent_is_none() {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", "00-xyz-01".parse().unwrap());
        assert!(!caller_context(&headers).span().span_context().is_valid());
    }
}
