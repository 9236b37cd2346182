//! The OCI layout that `tools/build-image.sh` has made: what is in it, and what it says of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{built, containerfile, root};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const REFERENCE: &str = "org.opencontainers.image.ref.name";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One image of the layout, for one platform.
struct Image {
    platform: String,
    manifest: Value,
    config: Value,
}

/// Where the layout is.
pub(crate) fn layout() -> PathBuf {
    let path = root().join("target/image");
    assert!(path.join("index.json").exists(), "{} is not there; run tools/build-image.sh", path.display());
    path
}

/// The name of this machine's architecture in images.
pub(crate) fn own_platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => panic!("no image is built for {other}"),
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let mut text = "sha256:".to_owned();
    for byte in digest.as_ref() {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

fn blob_path(descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    layout().join("blobs/sha256").join(digest)
}

/// What a descriptor names, which has the digest and the size that it says.
fn blob(descriptor: &Value) -> Vec<u8> {
    let bytes = fs::read(blob_path(descriptor)).unwrap();
    assert_eq!(descriptor["size"], bytes.len(), "{descriptor}");
    assert_eq!(descriptor["digest"], sha256(&bytes), "{descriptor}");
    bytes
}

fn json_blob(descriptor: &Value) -> Value {
    serde_json::from_slice(&blob(descriptor)).unwrap()
}

/// The entries of `index.json`: the index of platforms, then each of its images.
fn entries() -> Vec<Value> {
    let index = json(&layout().join("index.json"));
    assert_eq!(index["schemaVersion"], 2);
    index["manifests"].as_array().unwrap().clone()
}

fn platforms() -> Value {
    json_blob(&entries()[0])
}

fn images() -> Vec<Image> {
    let image = |descriptor: &Value| {
        assert_eq!(descriptor["mediaType"], MANIFEST);
        let manifest = json_blob(descriptor);
        let config = json_blob(&manifest["config"]);
        let platform = descriptor["platform"]["architecture"].as_str().unwrap().to_owned();
        Image { platform, manifest, config }
    };
    platforms()["manifests"].as_array().unwrap().iter().map(image).collect()
}

/// The only layer of an image, and its archive.
fn layer(image: &Image) -> (&Value, Vec<u8>) {
    let layers = image.manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    assert_eq!(layers[0]["mediaType"], "application/vnd.oci.image.layer.v1.tar+gzip");
    blob(&layers[0]);
    let path = blob_path(&layers[0]);
    let archive =
        Command::new("gzip").args(["--decompress", "--stdout"]).stdin(open(&path)).output().unwrap();
    assert!(archive.status.success());
    (&layers[0], archive.stdout)
}

fn open(path: &Path) -> Stdio {
    fs::File::open(path).unwrap().into()
}

/// One file out of the layer of an image.
fn file(image: &Image, name: &str) -> Vec<u8> {
    let path = blob_path(layer(image).0);
    let found = Command::new("tar").args(["-xzOf"]).arg(path).arg(name).output().unwrap();
    assert!(found.status.success(), "{name}");
    found.stdout
}

#[test]
#[ignore = "needs the results of tools/build-image.sh"]
fn every_blob_is_what_its_name_says_and_none_is_left_over() {
    assert_eq!(json(&layout().join("oci-layout")), json!({"imageLayoutVersion": "1.0.0"}));
    let mut named: BTreeSet<PathBuf> = entries().iter().map(blob_path).collect();
    for image in images() {
        named.insert(blob_path(&image.manifest["config"]));
        named.insert(blob_path(layer(&image).0));
    }
    let files = fs::read_dir(layout().join("blobs/sha256")).unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files, named);
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(sha256(&fs::read(&path).unwrap()), format!("sha256:{name}"));
    }
}

#[test]
#[ignore = "needs the results of tools/build-image.sh"]
fn the_index_has_each_platform_once() {
    let entries = entries();
    assert_eq!(entries[0]["mediaType"], INDEX);
    assert_eq!(entries[0]["annotations"][REFERENCE], VERSION);
    let index = platforms();
    assert_eq!((&index["schemaVersion"], &index["mediaType"]), (&json!(2), &json!(INDEX)));
    let mut seen = BTreeSet::new();
    for (image, entry) in images().iter().zip(&entries[1..]) {
        assert!(seen.insert(image.platform.clone()), "{} twice", image.platform);
        assert_eq!(image.config["architecture"], image.platform);
        assert_eq!(image.config["os"], "linux");
        assert_eq!(entry["annotations"][REFERENCE], format!("{VERSION}-{}", image.platform));
        assert_eq!(json_blob(entry), image.manifest);
    }
    assert_eq!(seen.len(), entries.len() - 1);
    assert!(seen.contains(own_platform()), "{seen:?}");
}

/// One image is built by an engine from the `Containerfile`, the other by a script: they say the same.
#[test]
#[ignore = "needs the results of tools/build-image.sh"]
fn the_configuration_is_that_of_the_containerfile() {
    let shipped = containerfile::shipped();
    let only = |word: &str| containerfile::all(&shipped, word)[0].to_owned();
    let exec = |word: &str| serde_json::from_str::<Value>(&only(word)).unwrap();
    let ports: BTreeMap<_, _> =
        only("EXPOSE").split(' ').map(|port| (format!("{port}/tcp"), json!({}))).collect();
    let labels = labels(&only("LABEL"));
    for image in images() {
        let config = &image.config["config"];
        assert_eq!(config["User"], only("USER"));
        assert_eq!(config["Entrypoint"], exec("ENTRYPOINT"));
        assert_eq!(config["Cmd"], exec("CMD"));
        assert_eq!(config["ExposedPorts"], json!(ports));
        for said in [&config["Labels"], &image.manifest["annotations"], &platforms()["annotations"]] {
            let mut said: BTreeMap<String, String> = serde_json::from_value(said.clone()).unwrap();
            let revision = said.insert("org.opencontainers.image.revision".to_owned(), "unknown".to_owned());
            let of_the_binary = fs::read_to_string(built("revision")).unwrap();
            assert_eq!(revision.as_deref(), Some(of_the_binary.trim()), "run tools/build-image.sh again");
            assert_eq!(said, labels);
        }
    }
}

/// The labels of the build file, with the arguments that it has by default.
fn labels(instruction: &str) -> BTreeMap<String, String> {
    let text = instruction.replace("${VERSION}", VERSION).replace("${REVISION}", "unknown");
    let labels = text.split("\" ").map(|label| label.trim_end_matches('"'));
    labels
        .map(|label| label.split_once("=\"").unwrap())
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

#[test]
#[ignore = "needs the results of tools/build-image.sh"]
fn the_layer_holds_two_read_only_files() {
    for image in images() {
        let (descriptor, archive) = layer(&image);
        assert_eq!(image.config["rootfs"], json!({"type": "layers", "diff_ids": [sha256(&archive)]}));
        assert_eq!(image.config["history"].as_array().unwrap().len(), 1, "one entry for one layer");
        let mut tar = Command::new("tar");
        tar.args(["--numeric-owner", "--utc", "--full-time", "-tvzf"]).arg(blob_path(descriptor));
        let listed = String::from_utf8(tar.output().unwrap().stdout).unwrap();
        let listed: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let columns = |columns: [usize; 3]| -> Vec<_> {
            listed.iter().map(|line| columns.map(|column| line[column])).collect()
        };
        let expected = [["-r-xr-xr-x", "0/0", "memgate"], ["-r--r--r--", "0/0", "memgate.cdx.json"]];
        assert_eq!(columns([0, 1, 5]), expected);
        let written: BTreeSet<_> =
            columns([3, 4, 4]).into_iter().map(|at| format!("{}T{}Z", at[0], at[1])).collect();
        assert_eq!(json!(written), json!([image.config["created"]]));
        assert_eq!(image.config["history"][0]["created"], image.config["created"]);
    }
}

/// Each image has a static program for its own platform, and this machine's the one that the other tests run.
#[test]
#[ignore = "needs the results of tools/build-image.sh"]
fn the_program_is_one_for_the_platform() {
    for image in images() {
        let program = file(&image, "memgate");
        assert_eq!(&program[..6], b"\x7fELF\x02\x01", "64 bits, the lowest byte first");
        let machine = u16::from_le_bytes([program[18], program[19]]);
        let expected = if image.platform == "amd64" { 62 } else { 183 };
        assert_eq!(machine, expected, "{}", image.platform);
        assert!(!segments(&program).contains(&PT_INTERP), "{} wants a loader", image.platform);
        let bill: Value = serde_json::from_slice(&file(&image, "memgate.cdx.json")).unwrap();
        assert_eq!(bill["metadata"]["component"]["version"], VERSION);
        if image.platform == own_platform() {
            assert_eq!(sha256(&program), sha256(&fs::read(built("memgate")).unwrap()));
        }
    }
}

const PT_INTERP: u32 = 3;

/// The kinds of a program's segments. One of them names a loader, unless the program is static.
fn segments(program: &[u8]) -> Vec<u32> {
    let short = |at: usize| usize::from(u16::from_le_bytes([program[at], program[at + 1]]));
    let first = u64::from_le_bytes(program[32..40].try_into().unwrap());
    let (size, count) = (short(54), short(56));
    let kind = |number| {
        let at = usize::try_from(first).unwrap() + number * size;
        u32::from_le_bytes(program[at..at + 4].try_into().unwrap())
    };
    (0..count).map(kind).collect()
}
