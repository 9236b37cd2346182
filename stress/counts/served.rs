//! A server with the webhook's listener, without TLS, and a client that share one thread: what reviews cost is counted there.

use std::net::SocketAddr;
use std::path::PathBuf;

use memgate_certs::tls::CertSource;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Options;
use memgate_server::{Service, State, logs, reviews, routed, serve_plain};
use memgate_workbench::files::casefile::request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::common;

/// How many reviews come before those that are counted.
const WARM_UP: usize = 20;

/// A connection to a server on the same thread.
pub(crate) struct Connection {
    runtime: Runtime,
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    fn new(service: Service, path: &str, body: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (stream, request) = {
            let _entered = runtime.enter();
            let (address, serving) = serve_plain(service, &options()).expect("a socket");
            drop(runtime.spawn(serving));
            let head = format!(
                "POST {path}?timeout=10s HTTP/1.1\r\nHost: {address}\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: {}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
                body.len()
            );
            let stream = runtime.block_on(TcpStream::connect(address)).expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            (stream, [head.as_bytes(), body.as_bytes()].concat())
        };
        let mut connection = Self { runtime, stream, request, answer: vec![0; 256 << 10] };
        for _ in 0..WARM_UP {
            connection.exchange();
        }
        connection
    }

    /// Sends the request, reads the answer, and returns its length.
    pub(crate) fn exchange(&mut self) -> usize {
        let Self { runtime, stream, request, answer } = self;
        runtime.block_on(async {
            stream.write_all(request).await.expect("a connection");
            let mut length = 0;
            loop {
                let free = answer.get_mut(length..).expect("room for the answer");
                length += stream.read(free).await.expect("an answer");
                if let Some(end) = end(answer.get(..length).expect("what was read")) {
                    assert_eq!(end, length, "one answer");
                    return length;
                }
            }
        })
    }
}

/// Where the answer ends that begins with these bytes, once its head is complete and all of it is there.
fn end(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(bytes.get(..head)?).expect("a head");
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let end = head + length.parse::<usize>().expect("a number");
    (bytes.len() >= end).then_some(end)
}

pub(crate) fn options() -> Options {
    let mut options = Options::new(CertSource::Files { cert: PathBuf::new(), key: PathBuf::new() });
    options.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    options
}

pub(crate) fn constant(env: usize, annotation: usize) -> Connection {
    let body = common::review("arkonis.dev/deployment", env, annotation, false);
    Connection::new(routed(common::constant()), "/mutate", &body)
}

/// A pod with so many variables and so long an annotation.
pub(crate) fn pod(label: &str, env: usize, annotation: usize, policies: bool) -> Connection {
    let body = common::review(label, env, annotation, false);
    served(common::snapshot(), "/mutate", &body, policies)
}

pub(crate) fn memory(policies: bool) -> Connection {
    let body = request::review(&common::case("arkonis", "validate-memory", "accepts-redis-with-its-section"))
        .to_string();
    served(common::snapshot(), "/validate", &body, policies)
}

/// A case whose object the webhook changes.
pub(crate) fn changed(family: &str, file: &str, name: &str, policies: bool) -> Connection {
    let case = common::case(family, file, name);
    let snapshot = request::state(&case).expect("a state");
    served(snapshot, "/mutate", &request::review(&case).to_string(), policies)
}

fn served(mut snapshot: Snapshot, path: &str, body: &str, policies: bool) -> Connection {
    // Fails when there is a log already.
    drop(logs::init(logs::LineFormat::Text, "warn"));
    if policies {
        for policy in common::library() {
            drop(memgate_core::state::add(&mut snapshot, &policy).expect("a policy"));
        }
    }
    let mut connection = Connection::new(reviews(&options(), State::Fixed(snapshot)), path, body);
    let length = connection.exchange();
    let answer = String::from_utf8_lossy(connection.answer.get(..length).expect("the answer")).into_owned();
    assert!(answer.contains(r#""allowed":true"#), "{answer}");
    connection
}
