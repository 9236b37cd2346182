//! Instructions, which do not depend on what else the machine does: of a review from the bytes of its request to the bytes
//! of its answer, and of the start of `serve`.
//!
//! `tools/instructions.sh` runs it under callgrind and compares with stress/benches/results/instructions.txt. A review
//! goes through the real listener and router on a kept connection, without TLS; client and server share one thread, and
//! what the client does is part of each row. It is the same in all rows, so the row `constant` has it too.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(
    missing_docs,
    unused_qualifications,
    reason = "the macros make items without docs and with long paths"
)]

mod common;
#[path = "wire/state.rs"]
mod state;

use std::fs;
use std::hint::black_box;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gungraun::Callgrind;
use gungraun::prelude::*;
use memgate::offline::load::{InputPlan, load};
use memgate_core::casefile::request;
use memgate_core::family;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::snapshot::Snapshot;
use memgate_server::server::options::Options;
use memgate_server::server::tls::CertSource;
use memgate_server::server::{Service, State, logs, reviews, routed, serve_plain};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many reviews are counted together. tools/instructions.sh divides by it.
const REVIEWS: usize = 100;

/// How many reviews come before them.
const WARM_UP: usize = 20;

/// A connection to a server on the same thread.
struct Connection {
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
    fn exchange(&mut self) -> usize {
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

fn options() -> Options {
    let mut options = Options::new(CertSource::Files { cert: PathBuf::new(), key: PathBuf::new() });
    options.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    options
}

fn constant(env: usize, annotation: usize) -> Connection {
    let body = common::review("arkonis.dev/deployment", env, annotation, false);
    Connection::new(routed(common::constant()), "/mutate", &body)
}

/// A pod with so many variables and so long an annotation.
fn pod(label: &str, env: usize, annotation: usize, policies: bool) -> Connection {
    let body = common::review(label, env, annotation, false);
    served(common::snapshot(), "/mutate", &body, policies)
}

fn memory(policies: bool) -> Connection {
    let body = request::review(&common::case("arkonis", "validate-memory", "accepts-redis-with-its-section"))
        .to_string();
    served(common::snapshot(), "/validate", &body, policies)
}

/// A case whose object the webhook changes.
fn changed(family: &str, file: &str, name: &str, policies: bool) -> Connection {
    let case = common::case(family, file, name);
    let snapshot = request::state(&case).expect("a state");
    served(snapshot, "/mutate", &request::review(&case).to_string(), policies)
}

fn served(mut snapshot: Snapshot, path: &str, body: &str, policies: bool) -> Connection {
    logs::init(logs::LineFormat::Text, "warn").expect("the log");
    if policies {
        add_policies(&mut snapshot);
    }
    let mut connection = Connection::new(reviews(&options(), State::Fixed(snapshot)), path, body);
    let length = connection.exchange();
    let answer = String::from_utf8_lossy(connection.answer.get(..length).expect("the answer")).into_owned();
    assert!(answer.contains(r#""allowed":true"#), "{answer}");
    connection
}

/// The twenty policies of the library.
fn add_policies(snapshot: &mut Snapshot) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/policy/library");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the library").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    for file in files {
        let source = Source::new("policy", fs::read_to_string(file).expect("a text"));
        for document in values(&Arc::new(source), &mut Vec::new()) {
            drop(memgate_core::state::add(snapshot, document.value()).expect("a policy"));
        }
    }
}

#[library_benchmark]
#[bench::constant_4_kb(args = (20, 600), setup = constant)]
#[bench::constant_64_kb(args = (500, 36_000), setup = constant)]
fn answer(mut connection: Connection) -> Connection {
    for _ in 0..REVIEWS {
        black_box(connection.exchange());
    }
    connection
}

#[library_benchmark]
#[bench::pod_4_kb(args = ("arkonis.dev/deployment", 20, 600, false), setup = pod)]
#[bench::pod_64_kb(args = ("arkonis.dev/deployment", 500, 36_000, false), setup = pod)]
#[bench::pod_of_no_family(args = ("example.dev/other", 20, 600, false), setup = pod)]
#[bench::memory(args = (false), setup = memory)]
#[bench::query(args = ("ark", "default", "adds-the-default-memory-of-the-namespace", false), setup = changed)]
#[bench::sidecar(args = ("sympozium", "inject-sidecar", "injects-a-native-sidecar", false), setup = changed)]
#[bench::pod_4_kb_policies(args = ("arkonis.dev/deployment", 20, 600, true), setup = pod)]
#[bench::pod_64_kb_policies(args = ("arkonis.dev/deployment", 500, 36_000, true), setup = pod)]
#[bench::pod_of_no_family_policies(args = ("example.dev/other", 20, 600, true), setup = pod)]
#[bench::memory_policies(args = (true), setup = memory)]
#[bench::query_policies(args = ("ark", "default", "adds-the-default-memory-of-the-namespace", true), setup = changed)]
#[bench::sidecar_policies(args = ("sympozium", "inject-sidecar", "injects-a-native-sidecar", true), setup = changed)]
fn review(mut connection: Connection) -> Connection {
    for _ in 0..REVIEWS {
        black_box(connection.exchange());
    }
    connection
}

/// A file with so many objects.
fn objects(count: usize) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = state::write(folder.path(), count).expect("a file");
    (folder, path)
}

#[library_benchmark]
#[bench::with_10_000_objects(args = (10_000), setup = objects)]
fn start((folder, path): (TempDir, PathBuf)) -> (TempDir, Service) {
    let mut plan = InputPlan { state: vec![path.display().to_string()], ..InputPlan::default() };
    plan.reading.keeps_places = false;
    let inputs = load(&plan).expect("a state");
    if let Some(crds) = &inputs.snapshot.crds {
        crds.read_bundled(&family::ALL);
    }
    (folder, reviews(&options(), State::Fixed(inputs.snapshot)))
}

library_benchmark_group!(name = reviews, benchmarks = [answer, review, start]);

main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"]));
    library_benchmark_groups = reviews
);
