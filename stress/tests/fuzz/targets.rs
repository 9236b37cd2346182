//! Everything that reads what others wrote, each with good input to start from.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::LazyLock,
    time::Duration,
};

use axum::{body::Body, http::Request};
use memgate_certs::tls;
use memgate_core::state;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use memgate_server::options::Options;
use memgate_server::{Server, State, router};
use memgate_workbench::files::casefile::{self, Case};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::{
    invariants::check_invariants,
    readers,
    support::{
        cases,
        certs::{Authority, Pair},
    },
};

/// One reader.
pub(crate) struct Target {
    /// Its name, and that of its directory in the corpus.
    pub(crate) name: &'static str,
    /// Good input.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// Reads an input; what is wrong with what came of it.
    pub(crate) run: fn(&[u8]) -> Result<(), String>,
}

/// All of them.
pub(crate) const TARGETS: [Target; 16] = [
    Target { name: "review", seeds: || cases_as(every, bare), run: readers::review },
    Target { name: "pod", seeds: || cases_as(of_pods, whole), run: scene },
    Target { name: "arkonis", seeds: || cases_as(|file, _| file.starts_with("arkonis/"), whole), run: scene },
    Target { name: "ark", seeds: || cases_as(|file, _| file.starts_with("ark/"), whole), run: scene },
    Target { name: "orloj", seeds: || cases_as(|file, _| file.starts_with("orloj/"), whole), run: scene },
    Target { name: "orka", seeds: || cases_as(|file, _| file.starts_with("orka/"), whole), run: scene },
    Target {
        name: "sympozium",
        seeds: || cases_as(|file, _| file.starts_with("sympozium/"), whole),
        run: scene,
    },
    Target { name: "annotations", seeds: || cases_as(has_annotations, whole), run: scene },
    Target { name: "yaml", seeds: manifests, run: readers::yaml },
    Target { name: "policy", seeds: policies, run: readers::policy },
    Target { name: "crd", seeds: definitions, run: readers::crd },
    Target { name: "case-file", seeds: case_files, run: case_file },
    Target { name: "pointer", seeds: pointers, run: pointer },
    Target { name: "pem", seeds: certificates, run: pem },
    Target { name: "http", seeds: requests, run: http },
    Target { name: "timeout", seeds: timeouts, run: timeout },
];

fn cases_as(wanted: fn(&str, &Case) -> bool, form: fn(&Case) -> Value) -> Vec<Vec<u8>> {
    let cases = cases::cases().expect("the case files");
    let wanted = cases.iter().filter(|(file, case)| wanted(file, case));
    wanted.map(|(_, case)| form(case).to_string().into_bytes()).collect()
}

const fn every(_: &str, _: &Case) -> bool {
    true
}

fn of_pods(_: &str, case: &Case) -> bool {
    case.object.as_ref().is_some_and(|object| object["kind"] == "Pod")
}

fn has_annotations(_: &str, case: &Case) -> bool {
    let annotated = |object: &Value| object.pointer("/metadata/annotations").is_some();
    case.object.iter().chain(&case.state).any(annotated)
}

/// The review of a case.
fn bare(case: &Case) -> Value {
    casefile::request::review(case)
}

/// The review of a case with the state that it meets.
fn whole(case: &Case) -> Value {
    json!({"state": case.state, "review": bare(case)})
}

fn scene(input: &[u8]) -> Result<(), String> {
    let Ok(scene) = serde_json::from_slice::<Value>(input) else { return Ok(()) };
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    for object in scene["state"].as_array().map(Vec::as_slice).unwrap_or_default() {
        // An object that cannot be read does not become part of the state.
        let _unreadable = state::add(&mut snapshot, object);
    }
    check_invariants(&scene["review"].to_string(), &snapshot)
}

/// The objects of every tenth case as people write them, and what the repository has of manifests.
fn manifests() -> Vec<Vec<u8>> {
    let objects = cases::cases().expect("the case files");
    let objects = objects.iter().step_by(10).filter_map(|(_, case)| case.object.as_ref());
    let written = objects.map(|object| serde_saphyr::to_string(object).expect("YAML").into_bytes());
    let folders = memgate_platforms::ALL.iter().map(|family| family.name).chain(["policy"]);
    let examples = folders.flat_map(|folder| {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(folder);
        let entries = std::fs::read_dir(directory).expect("the examples");
        let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
        paths.map(|path| std::fs::read(path).expect("a file"))
    });
    written.chain(examples).collect()
}

/// What the cases of policies have in their state, with their object, each case as one file.
fn policies() -> Vec<Vec<u8>> {
    cases_of(|file, _| file.starts_with("policy/"))
}

/// Files with a definition and an object of its kind, as the cases have them.
fn definitions() -> Vec<Vec<u8>> {
    cases_of(|_, case| case.state.iter().any(|object| object["kind"] == "CustomResourceDefinition"))
}

fn cases_of(wanted: fn(&str, &Case) -> bool) -> Vec<Vec<u8>> {
    let cases = cases::cases().expect("the case files");
    let wanted = cases.iter().filter(|(file, case)| wanted(file, case));
    let objects = wanted.map(|(_, case)| case.state.iter().chain(&case.object));
    let documents = objects.map(|objects| {
        let documents = objects.map(|object| serde_saphyr::to_string(object).expect("YAML"));
        documents.collect::<Vec<_>>().join("---\n").into_bytes()
    });
    documents.collect()
}

fn case_files() -> Vec<Vec<u8>> {
    let documents = cases::documents().expect("the case files");
    documents
        .iter()
        .map(|(_, value)| value.to_string().into_bytes())
        .filter(|text| text.len() < 1 << 15)
        .collect()
}

fn case_file(input: &[u8]) -> Result<(), String> {
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return Ok(()) };
    match casefile::read::read(&value) {
        Err(faults) if faults.is_empty() => Err("refused without a fault".to_owned()),
        _ => Ok(()),
    }
}

fn pointers() -> Vec<Vec<u8>> {
    ["", "/", "/spec/containers/0/env/12/name", "/metadata/labels/memgate.dev~1inject", "/a~0b/~1/-/01"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

fn pointer(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    let pointer = Pointer::new(if text.starts_with('/') { text.into_owned() } else { format!("/{text}") });
    let again = pointer.tokens().fold(Pointer::root(), |built, token| built.key(&token));
    let same = pointer.tokens().eq(again.tokens());
    let _field = pointer.field();
    if !same || !again.holds(&again) || again.parent().is_some_and(|parent| !parent.holds(&again)) {
        return Err(format!("{pointer} and {again} differ"));
    }
    Ok(())
}

/// A certificate and its key, divided by a NUL.
fn certificates() -> Vec<Vec<u8>> {
    let authority = Authority::new("fuzz").expect("a CA");
    let Pair { cert, key } = authority.server("memgate").expect("a certificate");
    [format!("{cert}\0{key}"), format!("{cert}{}\0{key}", authority.pem())].map(String::into_bytes).to_vec()
}

fn pem(input: &[u8]) -> Result<(), String> {
    let middle = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let directory = TempDir::new().map_err(|error| error.to_string())?;
    let (cert, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
    let written = std::fs::write(&cert, &input[..middle])
        .and_then(|()| std::fs::write(&key, input.get(middle + 1..).unwrap_or_default()));
    written.map_err(|error| error.to_string())?;
    let options = loopback(tls::CertSource::Files { cert, key });
    match Server::bind(options, State::Fixed(Snapshot::new(memgate_platforms::default_settings()))) {
        Ok(_) => Ok(()),
        Err(memgate_server::Error::Tls(error)) if !error.to_string().is_empty() => Ok(()),
        Err(error) => Err(format!("another error: {error}")),
    }
}

fn loopback(tls: tls::CertSource) -> Options {
    let mut options = Options::new(tls);
    options.listen = ([127, 0, 0, 1], 0).into();
    options.health = ([127, 0, 0, 1], 0).into();
    options
}

fn requests() -> Vec<Vec<u8>> {
    let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#;
    [
        "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /readyz HTTP/1.0\r\n\r\n"
            .to_owned(),
        format!("POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"
            .to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

/// A server for all inputs, and where its plain port is: the code of its connections is that of the
/// other one, less TLS.
static SERVER: LazyLock<(Runtime, SocketAddr, TempDir)> = LazyLock::new(|| {
    let directory = TempDir::new().expect("a directory");
    let ca = directory.path().join("ca.pem");
    let options = loopback(tls::CertSource::SelfSigned { names: Vec::new(), ca });
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(async {
        Server::bind(options, State::Fixed(Snapshot::new(memgate_platforms::default_settings())))
    });
    let server = server.expect("a server");
    let health = server.addresses().expect("addresses").health;
    runtime.spawn(server.run(std::future::pending()));
    (runtime, health, directory)
});

fn http(input: &[u8]) -> Result<(), String> {
    let (_, address, _) = &*SERVER;
    talk(*address, input, true)?;
    let alive = talk(*address, b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false)?;
    if alive.starts_with(b"HTTP/1.1 200 ") {
        Ok(())
    } else {
        Err("the server is not alive any more".to_owned())
    }
}

/// Sends bytes, and says that nothing follows where it should not be waited for; everything that
/// comes back.
fn talk(address: SocketAddr, bytes: &[u8], end: bool) -> Result<Vec<u8>, String> {
    let mut answer = Vec::new();
    let mut stream = TcpStream::connect(address).map_err(|error| format!("no connection: {error}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(|error| error.to_string())?;
    let sent = stream.write_all(bytes);
    let sent = sent.and_then(|()| if end { stream.shutdown(std::net::Shutdown::Write) } else { Ok(()) });
    match sent.and_then(|()| stream.read_to_end(&mut answer)) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err("it never ends".to_owned()),
        // A connection that is cut is an answer too.
        _ => Ok(answer),
    }
}

fn timeouts() -> Vec<Vec<u8>> {
    ["10s", "1m30s", "1.5s", "500ms", "30s&a=b", "0s", "µs"].map(|text| text.as_bytes().to_vec()).to_vec()
}

/// Only `timeout` is damaged; the review is good.
fn timeout(input: &[u8]) -> Result<(), String> {
    static REVIEW: LazyLock<String> =
        LazyLock::new(|| bare(&cases::cases().expect("the case files").swap_remove(0).1).to_string());
    let Ok(text) = str::from_utf8(input) else { return Ok(()) };
    let uri = format!("/mutate?timeout={text}");
    let request = Request::post(uri).header("content-type", "application/json");
    // A path that a request line cannot hold cannot be sent.
    let Ok(request) = request.body(Body::from(REVIEW.as_str())) else { return Ok(()) };
    let options = Options::new(tls::CertSource::SelfSigned { names: Vec::new(), ca: "unused".into() });
    let router = router(&options, State::Fixed(Snapshot::new(memgate_platforms::default_settings())));
    let status = SERVER.0.block_on(router.oneshot(request)).map_err(|error| error.to_string())?.status();
    if [200, 400].contains(&status.as_u16()) || (status == 504 && text.contains('s')) {
        return Ok(());
    }
    Err(format!("answers {status}"))
}
