//! The image, unpacked and run as a container engine would: as a user without rights, on a root that is read-only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::VERSION;
use crate::layout::{layout, own_platform};
use crate::root;
use crate::serve::answers_a_review;
use crate::serving::{OPTIONS, Serving};

/// Makes the root read-only, with two volumes, and becomes the user of the image. What comes after the root and the
/// examples is the command.
const ENTER: &str = r#"
root=$1 examples=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount --bind -o ro "$examples" "$root/state"
mount -t tmpfs -o "size=1m,mode=0700,uid=${user%:*},gid=${user#*:}" volume "$root/volume"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --userspec="$user" --groups= "$root" "$@"
"#;

/// The image of this machine's platform, unpacked.
struct Unpacked {
    directory: TempDir,
    user: String,
    command: Vec<String>,
}

impl Unpacked {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tag = format!("{}-{}", env!("CARGO_PKG_VERSION"), own_platform());
        let mut umoci = Command::new("umoci");
        umoci.arg("unpack").arg("--image").arg(format!("{}:{tag}", layout().display()));
        let done = umoci.arg(directory.path().join("bundle")).output().unwrap();
        assert!(done.status.success(), "as root: {}", String::from_utf8_lossy(&done.stderr));
        let bundle = directory.path().join("bundle");
        let config: Value = serde_json::from_slice(&fs::read(bundle.join("config.json")).unwrap()).unwrap();
        let process = &config["process"];
        let user = format!("{}:{}", process["user"]["uid"], process["user"]["gid"]);
        let command = serde_json::from_value(process["args"].clone()).unwrap();
        // As an engine does for the volumes of a pod.
        for volume in ["state", "volume"] {
            fs::create_dir(bundle.join("rootfs").join(volume)).unwrap();
        }
        Self { directory, user, command }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("bundle/rootfs")
    }

    /// A command in the image, which has an environment that says nothing.
    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-euc", ENTER, "sh"]).arg(self.root());
        command.arg(root().join("examples/arkonis")).arg(&self.user).args(words);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }
}

/// The mounts and the rights of a process, as the kernel has them.
fn of_process(id: u32, file: &str) -> String {
    fs::read_to_string(Path::new("/proc").join(id.to_string()).join(file)).unwrap()
}

#[tokio::test]
#[ignore = "needs the results of tools/build-image.sh, and root for a namespace of mounts"]
async fn the_image_serves_without_rights_on_a_read_only_root() {
    let image = Unpacked::new();
    assert_eq!((image.user.as_str(), image.command.join(" ").as_str()), ("65532:65532", "/memgate serve"));
    let mut command = image.command(&image.command);
    command.args(OPTIONS).args(["--state", "/state", "--tls-ca-out", "/volume/ca.crt"]);
    let serving = Serving::start(&mut command);

    let status = of_process(serving.id(), "status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(field("Name"), ["memgate"]);
    assert_eq!((field("Uid"), field("Gid")), (vec!["65532"; 4], vec!["65532"; 4]));
    assert!(field("Groups").is_empty(), "{status}");
    for capabilities in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
        assert_eq!(field(capabilities), ["0000000000000000"], "{capabilities}");
    }
    assert_eq!(field("NoNewPrivs"), ["1"]);
    let mounts = of_process(serving.id(), "mountinfo");
    let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
    let of_root = mounts.iter().find(|mount| mount[4] == "/").expect("a root");
    assert_eq!(of_root[5].split(',').next(), Some("ro"), "{mounts:?}");
    assert_eq!(mounts.len(), 3, "root, state and volume: {mounts:?}");

    let inside = Path::new("/proc").join(serving.id().to_string()).join("root");
    answers_a_review(&serving, &inside.join("volume/ca.crt")).await;
}

#[test]
#[ignore = "needs the results of tools/build-image.sh, and root for a namespace of mounts"]
fn the_image_says_its_version_and_checks() {
    let image = Unpacked::new();
    let run = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let done = image.command(&words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    assert_eq!(run(&["/memgate", "--version"]).trim(), VERSION);
    let checked = run(&["/memgate", "check", "--output", "json", "/state"]);
    let checked: Value = serde_json::from_str(&checked).unwrap();
    assert!(checked["summary"].is_object(), "{checked}");
}
