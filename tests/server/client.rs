//! What a test does with a TLS connection; a step that fails or takes longer than [`TIMEOUT`] panics.

#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use std::io;
use std::net::SocketAddr;

use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::https::{self, CLOSED, read_answer};
pub(crate) use crate::https::{Answer, Connection, post, request};
use crate::running::TIMEOUT;

/// What a caller shows.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Answer {
    /// The body.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The response of a review.
    pub(crate) fn review(&self) -> serde_json::Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice::<serde_json::Value>(&self.body).unwrap()["response"].take()
    }
}

impl Connection {
    /// Connects to a server whose certificate the CA has signed.
    pub(crate) async fn open(address: SocketAddr, ca: &str, protocols: &[&str]) -> io::Result<Self> {
        Self::open_as(address, ca, protocols, None).await
    }

    /// The same with a client certificate.
    pub(crate) async fn open_as(
        address: SocketAddr,
        ca: &str,
        protocols: &[&str],
        identity: Option<&Identity>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        Self::over(stream, presenting(ca, protocols, identity), "localhost").await
    }

    /// Sends bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).await.unwrap();
    }

    /// Sends a large request until it is through or there is an answer, as Go's client does.
    pub(crate) async fn send_for_answer(&mut self, bytes: &[u8]) -> Answer {
        let (mut from, mut to) = tokio::io::split(&mut self.stream);
        let sending = async {
            let mut sent = Ok(());
            for part in bytes.chunks(64 << 10) {
                sent = sent.and(to.write_all(part).await);
                tokio::task::yield_now().await;
            }
            if sent.and(to.flush().await).is_ok() {
                std::future::pending::<()>().await;
            }
        };
        let mut sending = std::pin::pin!(sending);
        let mut reading = std::pin::pin!(timeout(TIMEOUT, read_answer(&mut from, &mut self.read)));
        let answer = tokio::select! {
            biased;
            answer = &mut reading => answer,
            () = &mut sending => reading.await,
        };
        answer.expect("an answer should come").expect("an answer")
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The next response.
    pub(crate) async fn answer(&mut self) -> Answer {
        timeout(TIMEOUT, self.read_next()).await.expect("an answer should come").expect("an answer")
    }

    /// The next response, or `None` when the server hangs up without one.
    pub(crate) async fn answer_or_end(&mut self) -> Option<Answer> {
        match timeout(TIMEOUT, self.read_next()).await.expect("an answer or an end should come") {
            Ok(answer) => Some(answer),
            Err(error) if error.is::<io::Error>() || error.to_string() == CLOSED => None,
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Reads up to so many bytes and forgets them; how many there were.
    pub(crate) async fn read_some(&mut self, most: usize) -> io::Result<usize> {
        self.stream.read(&mut vec![0; most]).await
    }

    /// Waits until the server has hung up; what it said before is lost.
    pub(crate) async fn closed(&mut self) {
        let mut scrap = [0; 1024];
        let reading = async { while self.stream.read(&mut scrap).await.is_ok_and(|count| count > 0) {} };
        timeout(TIMEOUT, reading).await.expect("the server should hang up");
    }
}

/// A client that trusts what the CA has signed.
pub(crate) fn trusting(ca: &str, protocols: &[&str]) -> ClientConfig {
    presenting(ca, protocols, None)
}

fn presenting(ca: &str, protocols: &[&str], identity: Option<&Identity>) -> ClientConfig {
    let builder = https::trusting(ca).unwrap();
    let mut config = match identity {
        Some(shown) => builder.with_client_auth_cert(shown.chain.clone(), shown.key.clone_key()).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config
}

/// A GET over plain HTTP.
pub(crate) async fn plain(address: SocketAddr, path: &str) -> Answer {
    timeout(TIMEOUT, https::plain(address, path)).await.expect("an answer").expect("an answer")
}

/// The head of a request that announces so many bytes.
pub(crate) fn head(target: &str, length: usize) -> Vec<u8> {
    let text = format!(
        "POST {target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    text.into_bytes()
}

/// A review of a pod; without an agent the pod does not belong to a family.
pub(crate) fn review(uid: &str, agent: Option<&str>) -> Vec<u8> {
    let labels = agent.map_or_else(String::new, |agent| format!(r#""arkonis.dev/deployment":"{agent}""#));
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","labels":{{{labels}}}}},"spec":{{"containers":[{{"name":"agent"}}]}}}}"#
    );
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"{uid}","kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},"operation":"CREATE","namespace":"team","name":"p","object":{pod},"dryRun":false}}}}"#
    )
    .into_bytes()
}
