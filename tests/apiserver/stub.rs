//! A webhook of a few lines: it shows that the apiserver calls webhooks here, and stands in for
//! webhooks of others beside memgate.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};

use crate::support::{certs::Authority, control_plane::ControlPlane, webhook::Endpoint};

/// From `request` of an `AdmissionReview` to what goes into `response` with the uid.
type Answer<'a> = &'a dyn Fn(&Value) -> Value;

/// So that a caller who says nothing does not hold the thread.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A running stub, stopped on drop.
pub(crate) struct Stub {
    address: SocketAddr,
    ca: String,
    stopped: Arc<AtomicBool>,
}

impl Stub {
    /// Listens on a free port and answers every review, whatever its path, one after the other.
    pub(crate) fn start(answer: impl Fn(&Value) -> Value + Send + 'static) -> Result<Self> {
        let authority = Authority::new("stub webhook")?;
        let config = Arc::new(tls(&authority)?);
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let stub = Self { address: listener.local_addr()?, ca: authority.pem(), stopped: Arc::default() };
        let stopped = Arc::clone(&stub.stopped);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // The apiserver says what a failed call means, in the test that fails of it.
                let _ = serve(stream, &config, &answer);
            }
        });
        Ok(stub)
    }

    /// Registers it, under a name, for the pods that are created in a namespace; these fields are added to its entry.
    pub(crate) fn register(
        &self,
        cluster: &ControlPlane,
        namespace: &str,
        name: &str,
        fields: &Value,
    ) -> Result<()> {
        let mut entry = json!({
            "name": "stub.example.com",
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
            }],
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        let mut configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {}, "webhooks": [entry],
        });
        self.endpoint().adopt(&mut configuration, namespace)?;
        configuration["metadata"]["name"] = json!(name);
        cluster.admin().apply(&configuration.to_string())?;
        Ok(())
    }

    /// What the apiserver has to know about it.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.address, &self.ca)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

fn tls(authority: &Authority) -> Result<ServerConfig> {
    let pair = authority.server("stub")?;
    let cert = CertificateDer::from_pem_slice(pair.cert.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    let provider = Arc::new(ring::default_provider());
    Ok(ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)?)
}

fn serve(stream: TcpStream, config: &Arc<ServerConfig>, answer: Answer<'_>) -> Result<()> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let connection = ServerConnection::new(Arc::clone(config))?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let review: Value = serde_json::from_slice(&read_body(&mut stream)?)?;
    let body = respond(&review, answer).to_string();
    let length = body.len();
    let mut tls = stream.into_inner();
    write!(
        tls,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    tls.conn.send_close_notify();
    tls.flush()?;
    Ok(())
}

/// The body of a request that tells its length, as the apiserver's do.
fn read_body(stream: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = Some(value.trim().parse()?);
        }
    }
    let mut body = vec![0; length.context("the request has no Content-Length")?];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn respond(review: &Value, answer: Answer<'_>) -> Value {
    let mut response = answer(&review["request"]);
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}
