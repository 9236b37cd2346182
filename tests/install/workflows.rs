//! `.github`: what a workflow may do and run, and tools/release.sh on a checkout with made-up builds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::release::{REVISION, ROOT, VERSION, made, run, text};

/// Each job, with all that it may do. A new job or a further permission needs a line here.
const PERMISSIONS: [(&str, &str, &[&str]); 6] = [
    ("night", "night", &["contents: read"]),
    ("tests", "tests", &["contents: read"]),
    ("release", "tests", &["contents: read"]),
    ("release", "build", &["contents: read"]),
    ("release", "push", &["contents: read", "packages: write"]),
    ("release", "draft", &["contents: write"]),
];

/// The actions that are used, all of them by GitHub itself.
const ACTIONS: [&str; 3] =
    ["actions/checkout@v4", "actions/upload-artifact@v4", "actions/download-artifact@v4"];

/// Everything that an expression may say. None of it is written by the author of a change.
const EXPRESSIONS: [&str; 4] = [
    "vars.MEMGATE_IMAGE_NAME",
    "vars.REGISTRY_USER || github.actor",
    "secrets.REGISTRY_PASSWORD || github.token",
    "github.token",
];

fn workflows() -> BTreeMap<String, (String, Value)> {
    let folder = Path::new(ROOT).join(".github/workflows");
    let files = fs::read_dir(folder).expect("the workflows").map(|entry| entry.expect("an entry").path());
    files
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let source = fs::read_to_string(&path).expect("a workflow");
            let workflow = serde_saphyr::from_str(&source).expect("YAML");
            (name, (source, workflow))
        })
        .collect()
}

/// The jobs of all workflows, by their workflow and name.
fn jobs() -> Vec<(String, String, Value)> {
    let mut jobs = Vec::new();
    for (workflow, (_, content)) in workflows() {
        for (name, job) in content["jobs"].as_object().expect("jobs") {
            jobs.push((workflow.clone(), name.clone(), job.clone()));
        }
    }
    jobs
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().map_or(&[], Vec::as_slice)
}

/// The lines of all scripts of a job.
fn lines(job: &Value) -> Vec<&str> {
    let scripts = steps(job).iter().filter_map(|step| step["run"].as_str());
    scripts.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_job_may_do_what_it_needs_and_no_more() {
    for (name, (_, workflow)) in workflows() {
        assert_eq!(workflow["permissions"], json!({}), "{name}: what each job adds to nothing");
        let triggers: BTreeSet<&str> =
            workflow["on"].as_object().expect("triggers").keys().map(String::as_str).collect();
        // The others run with the rights of the repository on what a stranger has written.
        let known =
            BTreeSet::from(["push", "pull_request", "schedule", "workflow_call", "workflow_dispatch"]);
        assert!(triggers.is_subset(&known), "{name}: {triggers:?}");
    }
    let granted = |job: &Value| {
        let permissions = job["permissions"].as_object().expect("permissions").iter();
        permissions.map(|(name, access)| format!("{name}: {}", access.as_str().unwrap_or_default())).collect()
    };
    let found: BTreeMap<(String, String), Vec<String>> =
        jobs().into_iter().map(|(workflow, name, job)| ((workflow, name), granted(&job))).collect();
    let expected: BTreeMap<_, _> = PERMISSIONS
        .iter()
        .map(|(workflow, job, granted)| {
            let granted: Vec<String> = granted.iter().copied().map(str::to_owned).collect();
            (((*workflow).to_owned(), (*job).to_owned()), granted)
        })
        .collect();
    assert_eq!(found, expected);
}

/// A title, a branch or a tag is text that others choose. It reaches a script through a variable, and never its source.
#[test]
fn no_expression_is_part_of_a_script() {
    let mut scripts = 0;
    for (workflow, name, job) in jobs() {
        for step in steps(&job) {
            let script = step["run"].as_str().unwrap_or_default();
            assert!(!script.contains("${{"), "{workflow} {name}: {script}");
            scripts += usize::from(!script.is_empty());
        }
    }
    assert!(scripts >= 10, "{scripts} scripts");
    for (name, (source, _)) in workflows() {
        for found in source.split("${{").skip(1) {
            let expression = found.split("}}").next().unwrap_or_default().trim();
            assert!(EXPRESSIONS.contains(&expression), "{name}: {expression}");
        }
    }
}

#[test]
fn actions_are_known_and_keep_no_credentials() {
    for (workflow, name, job) in jobs() {
        if let Some(called) = job["uses"].as_str() {
            let file = called.strip_prefix("./").expect("a workflow of this repository");
            assert!(Path::new(ROOT).join(file).is_file(), "{workflow} {name}: {called}");
        }
        for step in steps(&job) {
            let Some(action) = step["uses"].as_str() else { continue };
            assert!(ACTIONS.contains(&action), "{workflow} {name}: {action}");
            if action.starts_with("actions/checkout@") {
                assert_eq!(step["with"]["persist-credentials"], false, "{workflow} {name}");
            }
        }
    }
}

/// A token is given to the step that needs it.
#[test]
fn secrets_reach_the_last_step_of_a_job_that_has_rights() {
    for (workflow, name, job) in jobs() {
        assert!(workflows()[&workflow].1["env"].is_null() && job["env"].is_null(), "{workflow} {name}");
        let has_secret = |step: &Value| {
            let env = step["env"].to_string();
            ["secrets.", "github.token"].iter().any(|secret| env.contains(secret))
        };
        let with_secret: Vec<usize> =
            (0..steps(&job).len()).filter(|at| has_secret(&steps(&job)[*at])).collect();
        let writes = job["permissions"].to_string().contains("write");
        let expected = if writes { vec![steps(&job).len() - 1] } else { Vec::new() };
        assert_eq!(with_secret, expected, "{workflow} {name}");
    }
}

#[test]
fn the_tests_are_those_of_ci_run_and_ci_night() {
    let lines_of = |name: &str| lines(&workflows()[name].1["jobs"][name]).join("\n");
    let run = r#"sudo env "PATH=$PATH" "HOME=$HOME" CI=true "GITHUB_BASE_REF=$GITHUB_BASE_REF" .ci/run"#;
    assert_eq!(lines_of("tests"), run);
    assert_eq!(lines_of("night"), r#"sudo env "PATH=$PATH" "HOME=$HOME" CI=true .ci/night"#);
    assert!(is_program(".ci/run") && is_program(".ci/night"));
    assert_eq!(workflows()["release"].1["jobs"]["tests"]["uses"], "./.github/workflows/tests.yml");
    assert_eq!(workflows()["release"].1["jobs"]["build"]["needs"], "tests");
}

fn is_program(file: &str) -> bool {
    let metadata = Path::new(ROOT).join(file).metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Each step is a script of this repository, with a command that it has.
#[test]
fn a_release_runs_scripts_that_exist() {
    let own = fs::read_to_string(Path::new(ROOT).join("tools/release.sh")).expect("the script");
    let mut found = BTreeSet::new();
    for (workflow, name, job) in jobs().into_iter().filter(|(workflow, ..)| workflow == "release") {
        for line in lines(&job) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.starts_with(&["sudo", "apt-get"]) {
                continue;
            }
            assert!(is_program(words[0]), "{workflow} {name}: {line}");
            if words[0] == "tools/release.sh" {
                assert!(own.contains(&format!("\n{}() {{\n", words[1])), "{line}");
            }
            found.insert(words.iter().copied().take(2).collect::<Vec<_>>().join(" "));
        }
    }
    for step in ["addresses", "files", "push", "draft"] {
        assert!(found.contains(&format!("tools/release.sh {step}")), "{found:?}");
    }
    for target in [
        "x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin",
        "aarch64-apple-darwin",
    ] {
        assert!(found.contains(&format!("tools/build-static.sh {target}")), "{found:?}");
    }
    assert!(found.contains("tools/build-static.sh x86_64-pc-windows-gnu"), "{found:?}");
}

/// A copy of the repository has another owner and another registry.
#[test]
fn no_owner_and_no_registry_is_named() {
    let mut folders = vec![Path::new(ROOT).join(".github")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).expect("text");
            for name in ["ghcr.io", "docker.io", "quay.io", "github.com/", "memgate/memgate"] {
                let named = source.replace("https://docs.github.com/", "");
                assert!(!named.contains(name), "{}: {name}", path.display());
            }
            files += 1;
        }
    }
    assert_eq!(files, 6);
}

const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin",
    "x86_64-pc-windows-gnu",
];
const IMAGE: &str = "registry.example.com:5000/someone/memgate";

/// A checkout of a tagged commit, in which everything was built, with stand-ins for the programs that publish.
struct Checkout(TempDir);

impl Checkout {
    fn new() -> Self {
        let checkout = Self(tempfile::tempdir().expect("a folder"));
        let copied = [
            "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "tools/install.sh", "LICENSE",
            "tools/release.sh", "tools/provenance.sh", "tools/build-archives.sh", "docs/tour", "examples",
            "deploy/helm/memgate",
        ];
        for path in copied {
            let to = checkout.path(path);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            run(Command::new("cp").arg("-R").arg(Path::new(ROOT).join(path)).arg(to));
        }
        checkout.write(
            "CHANGELOG.md",
            &format!("## [{VERSION}] - 2026-12-01\n\n- New.\n\n## [0.0.1]\n\n- Old.\n"),
        );
        let program = made().join("static").join(format!("{}-unknown-linux-musl", std::env::consts::ARCH));
        let program = fs::read_to_string(program.join("memgate")).expect("the program");
        for target in TARGETS {
            for folder in ["target/static", "target/static/image"] {
                let name = if target.contains("windows") { "memgate.exe" } else { "memgate" };
                checkout.write(&format!("{folder}/{target}/{name}"), &program);
                checkout.program(&format!("{folder}/{target}/{name}"));
                checkout.write(&format!("{folder}/{target}/memgate.cdx.json"), "{}");
                checkout.write(&format!("{folder}/{target}/revision"), REVISION);
            }
        }
        let named = |digest: char, name: &str| {
            json!({"digest": format!("sha256:{}", digest.to_string().repeat(64)),
                "annotations": {"org.opencontainers.image.ref.name": name}})
        };
        let index = json!({"manifests": [named('a', VERSION), named('b', &format!("{VERSION}-amd64"))]});
        checkout.write("target/image/index.json", &index.to_string());
        checkout.write(&format!("target/vscode/memgate-{VERSION}.vsix"), "packed");
        for name in ["skopeo", "helm", "gh"] {
            let record = "#!/bin/sh\necho \"${0##*/} $*\" >> \"$RECORD\"\n";
            let answer = match name {
                "skopeo" => {
                    "case $1 in login) cat >> \"$RECORD\" ;; \
                     inspect) if [ -n \"$PUSHED\" ]; then echo other; else echo \"${FAULT:-manifest unknown}\" >&2; exit 1; fi ;; esac\n"
                }
                "gh" => {
                    "[ \"$2\" != view ] || [ -z \"$DRAFT\" ] || echo \"$DRAFT\"\n[ \"$2\" != view ] || [ -n \"$DRAFT\" ]\n"
                }
                _ => "",
            };
            checkout.write(&format!("bin/{name}"), &format!("{record}{answer}"));
            checkout.program(&format!("bin/{name}"));
        }
        let git = |words: &[&str]| {
            run(Command::new("git").args(words).current_dir(checkout.0.path()));
        };
        git(&["init", "--quiet"]);
        git(&[
            "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty",
            "-m", "x",
        ]);
        checkout
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("is written");
    }

    fn program(&self, name: &str) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    /// Runs a script as a runner does.
    fn script(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(self.path(words[0]));
        command.args(&words[1..]).env_clear();
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()));
        command.env("RECORD", self.path("record")).env("PUSHED", "").env("DRAFT", "");
        command
            .env("GITHUB_SERVER_URL", "https://forge.example.com")
            .env("GITHUB_REPOSITORY", "someone/memgate");
        command.env("GITHUB_REF_NAME", format!("v{VERSION}")).env("MEMGATE_IMAGE_NAME", IMAGE);
        command.env("GITHUB_WORKFLOW_REF", "someone/memgate/.github/workflows/release.yml@refs/tags/v0");
        command.env("REGISTRY_USER", "robot").env("REGISTRY_PASSWORD", "s3cret");
        command.envs(variables.iter().copied()).output().expect("it starts")
    }

    /// What the stand-ins were started with since the last time.
    fn record(&self) -> String {
        let record = fs::read_to_string(self.path("record")).unwrap_or_default();
        let _ = fs::remove_file(self.path("record"));
        record
    }

    /// The variables of the build.
    fn addresses(&self) -> Vec<(String, String)> {
        let said = self.script(&["tools/release.sh", "addresses"], &[]);
        assert!(said.status.success(), "{}", text(&said.stderr));
        let said = text(&said.stdout);
        said.lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Builds the archives and then the other files.
    fn files(&self) {
        let addresses = self.addresses();
        let addresses: Vec<_> =
            addresses.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let systems = ["linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-aarch64", "windows-x86_64"];
        let archives = ["tools/build-archives.sh"].into_iter().chain(systems).collect::<Vec<_>>();
        for words in [archives.as_slice(), &["tools/release.sh", "files"]] {
            let said = self.script(words, &addresses);
            assert!(said.status.success(), "{words:?}: {}", text(&said.stderr));
        }
    }

    fn release(&self) -> PathBuf {
        self.path(&format!("target/releases/v{VERSION}"))
    }
}

#[test]
fn addresses_are_those_of_the_repository() {
    let checkout = Checkout::new();
    let found = checkout.addresses();
    let source = "https://forge.example.com/someone/memgate";
    let expected = [
        ("MEMGATE_SOURCE", source.to_owned()),
        ("MEMGATE_PAGES", format!("{source}/blob/v{VERSION}/docs")),
        ("MEMGATE_RELEASES", format!("{source}/releases/download")),
        ("MEMGATE_IMAGE", format!("{IMAGE}:{VERSION}")),
        ("MEMGATE_BUILDER", format!("{source}/.github/workflows/release.yml@refs/tags/v0")),
    ];
    let (time, addresses) = found.split_last().expect("variables");
    assert_eq!(addresses, expected.map(|(name, value)| (name.to_owned(), value)));
    assert!(time.0 == "SOURCE_DATE_EPOCH" && time.1.parse::<u64>().is_ok(), "{time:?}");
}

/// What a tag, an owner or a variable could hold: a further line of the environment, a command, another option.
#[test]
fn what_is_not_an_address_or_the_tag_is_refused() {
    let checkout = Checkout::new();
    let hostile = [
        "$(touch hacked)", "`touch hacked`", "a; touch hacked", "a\nPATH=/hacked", "a b", "a/b\"", "a/b'",
        "\u{e4}/b", "",
    ];
    let variables = ["GITHUB_REF_NAME", "GITHUB_REPOSITORY", "GITHUB_WORKFLOW_REF", "MEMGATE_IMAGE_NAME"];
    let further =
        [("GITHUB_REF_NAME", "v0.0.0"), ("MEMGATE_IMAGE_NAME", "--all/x"), ("MEMGATE_IMAGE_NAME", "memgate")];
    let refused = variables.iter().flat_map(|name| hostile.map(|value| (*name, value))).chain(further);
    for (variable, value) in refused {
        let said = checkout.script(&["tools/release.sh", "addresses"], &[(variable, value)]);
        assert!(!said.status.success() && said.stdout.is_empty(), "{variable}={value}: {said:?}");
    }
    assert!(!checkout.path("hacked").exists());
    // A version without a section in the changelog.
    checkout.write("CHANGELOG.md", "## [Unreleased]\n");
    let said = checkout.script(&["tools/release.sh", "addresses"], &[]);
    assert!(!said.status.success() && text(&said.stderr).contains("has no section"), "{said:?}");
}

#[test]
#[ignore = "needs python3"]
fn the_files_of_a_release_name_its_addresses_and_are_the_same_twice() {
    let checkout = Checkout::new();
    checkout.files();
    let release = checkout.release();
    let read = |name: &str| fs::read_to_string(release.join(name)).expect(name);
    let sums = read("SHA256SUMS");
    run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&release));
    let named: BTreeSet<&str> = sums.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    for file in [
        "install.sh",
        "memgate.rb",
        "memgate.krew.yaml",
        "memgate.yaml",
        "memgate-VERSION.tgz",
        "memgate-VERSION.vsix",
        "memgate-VERSION.intoto.json",
        "memgate-VERSION-image.intoto.json",
        "memgate-VERSION-image.tar",
        "memgate-VERSION-image-aarch64.cdx.json",
        "memgate-VERSION-windows-x86_64.cdx.json",
        "memgate-VERSION-darwin-aarch64.tar.gz",
        "memgate-VERSION-windows-x86_64.zip",
    ] {
        assert!(named.contains(file.replace("VERSION", VERSION).as_str()), "{file}: {named:?}");
    }
    let statement: Value =
        serde_json::from_str(&read(&format!("memgate-{VERSION}.intoto.json"))).expect("JSON");
    let subjects = statement["subject"].as_array().expect("files");
    assert_eq!(subjects.len(), named.len() - 1, "all but the statement itself");
    let builder = statement["predicate"]["runDetails"]["builder"]["id"].as_str().expect("a builder");
    assert!(builder.ends_with("/.github/workflows/release.yml@refs/tags/v0"), "{builder}");
    assert!(read("memgate.yaml").contains(&format!("{IMAGE}:{VERSION}@sha256:{}", "a".repeat(64))));
    let chart = |file: &str| {
        let archive = release.join(format!("memgate-{VERSION}.tgz"));
        text(&run(Command::new("tar").arg("-xzOf").arg(archive).arg(format!("memgate/{file}"))).stdout)
    };
    assert!(chart("values.yaml").contains(&format!("\n  repository: \"{IMAGE}\"\n")));
    assert!(chart("Chart.yaml").contains("\nhome: https://forge.example.com/someone/memgate\n"));
    checkout.files();
    assert_eq!(read("SHA256SUMS"), sums);
}

#[test]
#[ignore = "needs python3"]
fn what_is_published_is_pushed_once_and_drafted() {
    let checkout = Checkout::new();
    checkout.files();
    checkout.record();
    let release =
        |step: &str, variables: &[(&str, &str)]| checkout.script(&["tools/release.sh", step], variables);
    let said = release("push", &[]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let record = checkout.record();
    let image = format!("docker://{IMAGE}:{VERSION}");
    assert!(
        record
            .contains(&format!("skopeo copy --all --preserve-digests oci:target/image:{VERSION} {image}\n"))
    );
    assert!(record.contains(" oci://registry.example.com:5000/someone/charts\n"), "{record}");
    // The stand-in records its arguments, and then the password from its standard input.
    let login = "skopeo login --username robot --password-stdin registry.example.com:5000\ns3cret";
    assert!(record.starts_with(login) && record.matches("s3cret").count() == 1, "{record}");

    let silent = release("push", &[("FAULT", "connection refused")]);
    assert!(text(&silent.stderr).contains("cannot ask for") && !silent.status.success(), "{silent:?}");
    assert!(!checkout.record().contains(" copy "), "a tag may exist that cannot be seen");
    let other = release("push", &[("PUSHED", "yes")]);
    assert!(text(&other.stderr).contains("tags are not moved"), "{other:?}");
    assert!(!other.status.success() && !checkout.record().contains(" copy "));

    assert!(release("draft", &[]).status.success());
    let created = checkout.record();
    let start = format!("gh release create v{VERSION} --draft --verify-tag ");
    assert!(created.contains(&start) && created.contains("/SHA256SUMS"), "{created}");
    assert!(release("draft", &[("DRAFT", "true")]).status.success());
    let replaced = checkout.record();
    assert!(replaced.contains("gh release upload ") && !replaced.contains(" create "), "{replaced}");
    assert!(!release("draft", &[("DRAFT", "false")]).status.success(), "a published release is not changed");

    fs::write(checkout.release().join("memgate.yaml"), "another").expect("a file");
    for step in ["push", "draft"] {
        let said = release(step, &[]);
        assert!(!said.status.success() && text(&said.stderr).contains("are not those of"), "{said:?}");
    }
}
