//! Sends spans to the collector, on its own thread with its own runtime.
//!
//! The queue between the requests and the thread has a fixed length: a span that finds it full is dropped and counted.
//! That a collector cannot be reached is logged once in five minutes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, Response, Uri};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::Context;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter as _, SpanProcessor};
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::logs::{LogRate, LogRateLimiter};
use crate::metrics::Metrics;
use crate::metrics::labels::ResultLabel;
use crate::traces::Error;
use memgate_certs::library_error::explained;

/// How many spans the queue holds: about 2 MiB.
const MAX_QUEUED_SPANS: usize = 4096;

/// How many spans one request to the collector holds.
const MAX_BATCH_SPANS: usize = 512;

/// How long a batch waits for more spans.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// The timeout of one request to the collector, its retries included.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest answer of the collector that is read.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The rate of log lines about a collector that does not take spans.
const FAILURE_LOG_RATE: LogRate = LogRate { burst: 1, refill: Duration::from_mins(5) };

/// How long shutting down waits for the last spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Where finished spans go.
pub(super) struct SpanQueue {
    spans: mpsc::Sender<SpanData>,
    metrics: Arc<Metrics>,
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.spans.try_send(span).is_err() {
            self.metrics.count_spans(ResultLabel::Dropped, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl fmt::Debug for SpanQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpanQueue")
    }
}

/// The thread that sends; it ends when this is dropped.
pub(crate) struct SpanExport {
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl SpanExport {
    /// Sends the queued spans, and ends the thread.
    pub(crate) async fn flush(self) {
        let Self { stop, ended } = self;
        drop(stop);
        let _either_way = timeout(FLUSH_TIMEOUT, ended).await;
    }
}

/// Starts the thread that sends the spans of the queue.
pub(super) fn start(
    endpoint: &Uri,
    resource: &Resource,
    metrics: Arc<Metrics>,
) -> Result<(SpanQueue, SpanExport), Error> {
    let mut exporter = exporter(endpoint)?;
    exporter.set_resource(resource);
    let (spans, queued) = mpsc::channel(MAX_QUEUED_SPANS);
    let (stop, stopped) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    let sender = BatchSender {
        exporter,
        metrics: Arc::clone(&metrics),
        log_limiter: LogRateLimiter::new(FAILURE_LOG_RATE),
    };
    let run = move || {
        runtime.block_on(sender.run(queued, stopped));
        let _either_way = end.send(());
    };
    std::thread::Builder::new().name("traces".to_owned()).spawn(run).map_err(Error::Start)?;
    Ok((SpanQueue { spans, metrics }, SpanExport { stop, ended }))
}

fn exporter(endpoint: &Uri) -> Result<SpanExporter, Error> {
    let tls = HttpsConnectorBuilder::new();
    let connector = if endpoint.scheme_str() == Some("https") {
        tls.with_native_roots().map_err(|source| Error::Roots(endpoint.clone(), source))?.https_only()
    } else {
        let no_roots = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
        tls.with_tls_config(no_roots.with_no_client_auth()).https_or_http()
    };
    let client = Client::builder(TokioExecutor::new()).build(connector.enable_http1().build());
    let url = format!("{}/v1/traces", endpoint.to_string().trim_end_matches('/'));
    let builder = SpanExporter::builder().with_http().with_http_client(CollectorClient(client));
    builder.with_endpoint(url).with_timeout(EXPORT_TIMEOUT).build().map_err(Error::Exporter)
}

/// Sends the requests of the exporter. The client of opentelemetry-http has HTTP/2 too, which is 0.4 MB of the binary.
#[derive(Debug)]
struct CollectorClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl HttpClient for CollectorClient {
    fn send_bytes<'c, 'f>(
        &'c self,
        request: Request<Bytes>,
    ) -> BoxFuture<'f, Result<Response<Bytes>, HttpError>>
    where
        'c: 'f,
        Self: 'f,
    {
        let response = async {
            let (parts, body) = self.0.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        timeout(EXPORT_TIMEOUT, response).map(|answered| answered?).boxed()
    }
}

struct BatchSender {
    exporter: SpanExporter,
    metrics: Arc<Metrics>,
    log_limiter: LogRateLimiter,
}

impl BatchSender {
    /// Sends until it is stopped and the queue is empty.
    async fn run(self, mut queued: mpsc::Receiver<SpanData>, mut stopped: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(MAX_BATCH_SPANS);
        loop {
            tokio::select! {
                count = fill_batch(&mut queued, &mut batch) => if count == 0 { return },
                _ = &mut stopped, if !queued.is_closed() => {
                    queued.close();
                    continue;
                }
            }
            self.send(std::mem::take(&mut batch)).await;
        }
    }

    async fn send(&self, batch: Vec<SpanData>) {
        let count = batch.len();
        let sent = self.exporter.export(batch).await;
        self.metrics.count_spans(if sent.is_ok() { ResultLabel::Done } else { ResultLabel::Failed }, count);
        if let Err(error) = sent
            && let Ok(suppressed) = self.log_limiter.take("traces")
        {
            tracing::warn!(error = explained(&error), suppressed, "traces cannot be sent; they are dropped");
        }
    }
}

/// Waits for spans, and then a little longer for more of them; empty when the queue is closed.
async fn fill_batch(queued: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) -> usize {
    if batch.is_empty() && queued.recv_many(batch, MAX_BATCH_SPANS).await == 0 {
        return 0;
    }
    let more = async {
        while let capacity @ 1.. = MAX_BATCH_SPANS.saturating_sub(batch.len()) {
            if queued.recv_many(batch, capacity).await == 0 {
                return;
            }
        }
    };
    let _either_way = timeout(BATCH_DELAY, more).await;
    batch.len()
}
