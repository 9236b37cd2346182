//! Apiservers for unit tests: [`client`] with a function that answers paths; and the log: [`Lines`].

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use futures::future::BoxFuture;
use kube::Client;
use tracing::subscriber::DefaultGuard;

/// The status and body for a path; with status 0, an answer that never ends.
pub(super) type Reply = (u16, String);

/// The requested paths, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestedPaths(Arc<Mutex<Vec<String>>>);

impl RequestedPaths {
    /// All paths with their queries.
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }
}

/// A client whose requests are answered by `reply`.
pub(super) fn client<F>(reply: F) -> (Client, RequestedPaths)
where
    F: Fn(String) -> BoxFuture<'static, Reply> + Clone + Send + Sync + 'static,
{
    let asked = RequestedPaths::default();
    let noted = asked.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let path = request.uri().to_string();
        noted.0.lock().expect("no panic").push(path.clone());
        let reply = reply(path);
        async move {
            let (status, text) = reply.await;
            let body = match status {
                0 => Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>()),
                _ => Body::from(text),
            };
            let response = Response::builder().status(if status == 0 { 200 } else { status });
            Ok::<_, Infallible>(response.body(body).expect("a response"))
        }
    });
    (Client::new(service, "default"), asked)
}

/// The body of a 404.
pub(super) fn not_found() -> Reply {
    let text = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
    (404, text.to_owned())
}

/// The log of a thread, without times.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Gets the log of this thread for as long as the guard lives.
    pub(super) fn capture(&self) -> DefaultGuard {
        let lines = self.clone();
        let log =
            tracing_subscriber::fmt().without_time().with_ansi(false).with_writer(move || lines.clone());
        tracing::subscriber::set_default(log.finish())
    }

    /// The lines since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().expect("no panic"));
        String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
