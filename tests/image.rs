//! What the container image is made of.
//!
//! The build file is checked as text. The tests of the binary and of its bill of materials need the
//! results of `tools/build-static.sh`, and are run by `.ci/run` after it:
//! `cargo test --test image -- --ignored`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
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

const CONTAINERFILE: &str = include_str!("../Containerfile");
const TOOLCHAIN: &str = include_str!("../rust-toolchain.toml");

/// What the image may weigh, which holds this binary and its bill of materials. The goal is 15 MB;
/// docs/image.md says by how much it is missed, and this keeps it from being missed by more.
const MAX_IMAGE_BYTES: u64 = 20 << 20;

/// What `tools/build-static.sh` has made.
fn built(file: &str) -> PathBuf {
    let target = format!("target/static/{}-unknown-linux-musl", std::env::consts::ARCH);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(target).join(file);
    assert!(path.exists(), "{} is not there; run tools/build-static.sh", path.display());
    path
}

/// The instructions of the build file, with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let lines = CONTAINERFILE.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            (word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// The instructions of the last stage, which is what is shipped.
fn shipped() -> Vec<(String, String)> {
    let instructions = instructions();
    let last = instructions.iter().rposition(|(word, _)| word == "FROM").unwrap();
    instructions[last..].to_vec()
}

fn all<'i>(instructions: &'i [(String, String)], word: &str) -> Vec<&'i str> {
    instructions.iter().filter(|(found, _)| found == word).map(|(_, rest)| rest.as_str()).collect()
}

#[test]
fn instructions_are_ones_that_exist() {
    let known =
        ["FROM", "RUN", "WORKDIR", "COPY", "ARG", "ENV", "LABEL", "USER", "EXPOSE", "ENTRYPOINT", "CMD"];
    let instructions = instructions();
    assert_eq!(instructions[0].0, "FROM");
    for (word, rest) in &instructions {
        assert!(known.contains(&word.as_str()), "{word} {rest}");
    }
    for exec in all(&instructions, "ENTRYPOINT").into_iter().chain(all(&instructions, "CMD")) {
        let words: Vec<String> = serde_json::from_str(exec).expect("the form without a shell");
        assert!(!words.is_empty());
    }
}

#[test]
fn the_image_has_no_shell_and_no_root() {
    let shipped = shipped();
    assert_eq!(all(&shipped, "FROM"), ["scratch"]);
    assert_eq!(all(&shipped, "USER"), ["65532:65532"]);
    assert!(all(&shipped, "RUN").is_empty(), "nothing can run there");
    let copied = all(&shipped, "COPY");
    assert!(copied.iter().all(|copy| copy.starts_with("--from=build ")), "{copied:?}");
    assert_eq!(copied.len(), 2, "the binary and its bill of materials");
    assert_eq!(all(&shipped, "ENTRYPOINT"), [r#"["/memgate"]"#]);
}

/// Nothing that is secret goes in, and nothing comes from an address that may change.
#[test]
fn the_image_is_made_of_what_is_pinned() {
    let instructions = instructions();
    let stages = all(&instructions, "FROM");
    let (image, name) = stages[0].split_once(" AS ").unwrap();
    assert_eq!((name, stages.len()), ("build", 2));
    let channel =
        TOOLCHAIN.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap().trim_matches('"');
    assert_eq!(image, format!("docker.io/library/rust:{channel}-alpine"));
    assert_eq!(all(&instructions, "ENV"), [format!("RUSTUP_TOOLCHAIN={channel}")]);
    let arguments = all(&instructions, "ARG");
    let names: Vec<_> = arguments.iter().map(|argument| argument.split('=').next().unwrap()).collect();
    assert_eq!(names, ["SOURCE_DATE_EPOCH", "VERSION", "REVISION"]);
    assert_eq!(arguments[1], format!("VERSION={}", env!("CARGO_PKG_VERSION")));
    let ignored: BTreeSet<_> = include_str!("../.dockerignore").lines().collect();
    for secret in [".git", "target", "**/*.key", "memgate-certs"] {
        assert!(ignored.contains(secret), "{secret} would be copied");
    }
}

#[test]
#[ignore = "needs the results of tools/build-static.sh"]
fn the_binary_is_static_and_small() {
    let binary = built("memgate");
    let ldd = Command::new("ldd").arg(&binary).output().unwrap();
    let output = String::from_utf8_lossy(&[ldd.stdout, ldd.stderr].concat()).into_owned();
    assert!(output.contains("statically linked") || output.contains("not a dynamic executable"), "{output}");
    let bytes = fs::metadata(&binary).unwrap().len() + fs::metadata(built("memgate.cdx.json")).unwrap().len();
    assert!(bytes <= MAX_IMAGE_BYTES, "the image has {bytes} bytes");
    let version = Command::new(&binary).arg("--version").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&version.stdout).trim(),
        concat!("memgate ", env!("CARGO_PKG_VERSION"))
    );
}

/// Paths of the machine that built it would differ on the next one.
#[test]
#[ignore = "needs the results of tools/build-static.sh"]
fn the_binary_does_not_say_where_it_was_built() {
    let bytes = fs::read(built("memgate")).unwrap();
    let home = std::env::var("HOME").unwrap();
    for path in [env!("CARGO_MANIFEST_DIR"), &format!("{home}/.cargo"), &format!("{home}/.rustup")] {
        assert!(!bytes.windows(path.len()).any(|window| window == path.as_bytes()), "{path}");
    }
}

/// Ends the program that it holds.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "needs the results of tools/build-static.sh"]
async fn the_binary_answers_a_review() {
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca.crt");
    let child = Command::new(built("memgate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--log-format", "json"])
        .args(["--state", concat!(env!("CARGO_MANIFEST_DIR"), "/examples/arkonis"), "--tls-ca-out"])
        .arg(&ca)
        .env_clear()
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Ends(child);
    let lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let serving = lines.find(|line| line["message"] == "serving").expect("it serves");
    let port = serving["webhook"].as_str().unwrap().rsplit(':').next().unwrap();

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
    let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
    let request = axum::http::Request::post(format!("https://localhost:{port}/mutate"))
        .header("content-type", "application/json")
        .body(Body::from(review().to_string()))
        .unwrap();
    let answer = client.request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert!(answer["response"]["patch"].is_string(), "{answer}");
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

/// Every library that is linked in is listed, with its version and its licence.
#[test]
#[ignore = "needs the results of tools/build-static.sh"]
fn the_bill_of_materials_is_complete() {
    let bill: Value = serde_json::from_slice(&fs::read(built("memgate.cdx.json")).unwrap()).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["metadata"]["component"]["name"], "memgate");
    let components = bill["components"].as_array().unwrap();
    let text = |component: &Value, key: &str| component[key].as_str().unwrap_or_default().to_owned();
    let listed: BTreeSet<_> =
        components.iter().map(|part| text(part, "name") + " " + &text(part, "version")).collect();
    for part in components {
        assert!(part["licenses"].is_array(), "{part} has no licence");
        assert!(text(part, "purl").starts_with("pkg:cargo/"), "{part}");
    }
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--target",
            &target,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let package = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.trim_start_matches('v')))
    };
    let linked: BTreeSet<_> =
        tree.lines().filter_map(package).filter(|part| !part.starts_with("memgate ")).collect();
    assert!(linked.len() > 100, "{linked:?}");
    let missing: Vec<_> = linked.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
