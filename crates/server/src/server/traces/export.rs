//! Sends spans to the collector, from a thread and a runtime of its own.
//!
//! Between it and the requests is a queue of fixed length: a span that finds it full is dropped and
//! counted. A collector that is away is logged once, and once more when it is back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use opentelemetry::Context;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter as _, SpanProcessor};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::server::metrics::{Metrics, Sent};
use crate::server::traces::Error;

/// The most spans that wait; some 2 MiB.
const QUEUE: usize = 4096;

/// The most spans in one request to the collector.
const BATCH: usize = 512;

/// How long spans are gathered before they are sent.
const GATHER: Duration = Duration::from_secs(1);

/// The longest that one request to the collector may take, its repetitions included.
const LONGEST: Duration = Duration::from_secs(10);

/// How long the end of the process waits for the last spans.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where finished spans go.
pub(super) struct Queue {
    spans: mpsc::Sender<SpanData>,
    metrics: Arc<Metrics>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.spans.try_send(span).is_err() {
            self.metrics.traced(Sent::Dropped, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

/// The thread that sends; it ends when this is dropped.
pub(in crate::server) struct Export {
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Export {
    /// Has what waits sent, and ends.
    pub(in crate::server) async fn finish(self) {
        let Self { stop, ended } = self;
        drop(stop);
        let _either_way = timeout(FAREWELL, ended).await;
    }
}

/// Starts the thread that sends what is put into the queue.
pub(super) fn start(
    endpoint: &Uri,
    resource: &Resource,
    metrics: Arc<Metrics>,
) -> Result<(Queue, Export), Error> {
    let mut exporter = exporter(endpoint)?;
    exporter.set_resource(resource);
    let (spans, waiting) = mpsc::channel(QUEUE);
    let (stop, stopped) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    let sending = Sending { exporter, metrics: Arc::clone(&metrics), away: false };
    let run = move || {
        runtime.block_on(sending.run(waiting, stopped));
        let _nobody_waits = end.send(());
    };
    std::thread::Builder::new().name("traces".to_owned()).spawn(run).map_err(Error::Start)?;
    Ok((Queue { spans, metrics }, Export { stop, ended }))
}

fn exporter(endpoint: &Uri) -> Result<SpanExporter, Error> {
    let builder = SpanExporter::builder().with_http();
    let builder = if endpoint.scheme_str() == Some("https") {
        let tls = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(|source| Error::Roots(endpoint.clone(), source))?;
        let connector = tls.https_only().enable_http1().build();
        builder.with_http_client(HyperClient::new(connector, LONGEST, None))
    } else {
        builder.with_http_client(HyperClient::new(HttpConnector::new(), LONGEST, None))
    };
    let url = format!("{}/v1/traces", endpoint.to_string().trim_end_matches('/'));
    builder.with_endpoint(url).with_timeout(LONGEST).build().map_err(Error::Exporter)
}

struct Sending {
    exporter: SpanExporter,
    metrics: Arc<Metrics>,
    /// Whether the collector did not take the last batch.
    away: bool,
}

impl Sending {
    /// Sends until it is stopped and nothing waits any more.
    async fn run(mut self, mut waiting: mpsc::Receiver<SpanData>, mut stopped: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                count = gather(&mut waiting, &mut batch) => if count == 0 { return },
                _ = &mut stopped, if !waiting.is_closed() => {
                    waiting.close();
                    continue;
                }
            }
            self.send(std::mem::take(&mut batch)).await;
        }
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let count = batch.len();
        let sent = self.exporter.export(batch).await;
        self.metrics.traced(if sent.is_ok() { Sent::Done } else { Sent::Failed }, count);
        match &sent {
            Err(error) if !self.away => tracing::warn!(%error, "traces cannot be sent; they are dropped"),
            Ok(()) if self.away => tracing::info!("traces can be sent again"),
            _ => {}
        }
        self.away = sent.is_err();
    }
}

/// Waits for spans and then a little longer for more of them; none, when there will be no more.
async fn gather(waiting: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) -> usize {
    if batch.is_empty() && waiting.recv_many(batch, BATCH).await == 0 {
        return 0;
    }
    let more = async {
        while let room @ 1.. = BATCH.saturating_sub(batch.len()) {
            if waiting.recv_many(batch, room).await == 0 {
                return;
            }
        }
    };
    let _either_way = timeout(GATHER, more).await;
    batch.len()
}
