//! A program that serves, and a review for it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

/// The arguments of a program that serves for one test.
pub(crate) const OPTIONS: [&str; 6] =
    ["--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--log-format", "json"];

/// A program that serves, until this is dropped.
pub(crate) struct Serving {
    child: Child,
    port: String,
}

impl Serving {
    /// Starts a command that ends in `serve` and [`OPTIONS`], and waits until it says on which port it serves.
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut serving = Self { child, port: String::new() };
        let mut other = Vec::new();
        for line in BufReader::new(serving.child.stderr.take().unwrap()).lines().map_while(Result::ok) {
            let fields: Value = serde_json::from_str(&line).unwrap_or_default();
            if fields["message"] == "serving" {
                let address = fields["webhook"].as_str().unwrap();
                address.rsplit(':').next().unwrap().clone_into(&mut serving.port);
                return serving;
            }
            other.push(line);
        }
        panic!("it does not serve:\n{}", other.join("\n"));
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a review over TLS to whom the CA in this file names, and expects a patch.
    pub(crate) async fn answers_a_review(&self, ca: &Path) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
        let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
        let request = axum::http::Request::post(format!("https://localhost:{}/mutate", self.port))
            .header("content-type", "application/json")
            .body(Body::from(review().to_string()))
            .unwrap();
        let answer = client.request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert!(answer["response"]["patch"].is_string(), "{answer}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The review of a pod of the example's agent.
fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": "team-a",
            "object": {
                "metadata": {"name": "p", "labels": {"arkonis.dev/deployment": "scout"}},
                "spec": {"containers": [{"name": "agent"}]},
            },
        },
    })
}
