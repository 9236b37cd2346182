//! Repositories that try to make the tools run, fetch or read something else: none of it happens, and each run says why.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::repository::{Repository, path};

/// What a file outside of each repository says.
const OUTSIDE: &str = "this-is-outside";

/// A memory, so that what it is in is built.
const MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: notes\nspec:\n  backend: in-context\n";

/// A hostile repository: its files, and the words of which its output must have one.
#[derive(Clone)]
struct Hostile {
    name: &'static str,
    files: Vec<(&'static str, String)>,
    arguments: &'static [&'static str],
    says: &'static str,
    exit: i32,
}

/// The kustomization with a memory and this text, in which `ADDRESS` stands for a server here.
fn kustomization(name: &'static str, text: &str, says: &'static str) -> Hostile {
    let text = format!("{text}\n");
    let files = vec![("m.yaml", MEMORY.to_owned()), ("kustomization.yaml", text)];
    Hostile { name, files, arguments: &["--strict"], says, exit: 1 }
}

fn with(hostile: Hostile, file: &'static str, text: &str) -> Hostile {
    let mut hostile = hostile;
    hostile.files.push((file, text.to_owned()));
    hostile
}

/// A chart with this template.
fn chart(name: &'static str, template: &str, says: &'static str, exit: i32) -> Hostile {
    let files = vec![
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n".to_owned()),
        ("values.yaml", "backend: in-context\n".to_owned()),
        ("templates/m.yaml", format!("{MEMORY}---\n{template}")),
    ];
    Hostile { name, files, arguments: &["--strict"], says, exit }
}

const FETCHED: &str = "nothing is fetched";
const RUN: &str = "none is run";

/// A generator that asks for a program.
const EXEC: &str = "apiVersion: h.example/v1\nkind: Run\nmetadata:\n  name: run\n  annotations:\n    config.kubernetes.io/function: |\n      exec:\n        path: ./run.sh\n";
const CONTAINER: &str = "apiVersion: h.example/v1\nkind: Run\nmetadata:\n  name: run\n  annotations:\n    config.kubernetes.io/function: |\n      container:\n        image: h.example/run\n";
const SCRIPT: &str = "#!/bin/sh\ntouch executed\n";

fn remote(name: &'static str, address: &str) -> Hostile {
    kustomization(name, &format!("resources: [m.yaml, \"{address}\"]"), FETCHED)
}

/// An Application with this file of values.
fn release(name: &'static str, file: &str, says: &'static str) -> Hostile {
    let application = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: r, namespace: a}}\nspec:\n  destination: \
         {{namespace: a}}\n  source: {{repoURL: r, path: c, helm: {{valueFiles: [{file}]}}}}\n"
    );
    let files = vec![
        ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n".to_owned()),
        ("c/templates/m.yaml", MEMORY.to_owned()),
        ("r.yaml", application),
    ];
    Hostile { files, ..chart(name, "", says, 1) }
}

/// A kustomization whose patch says that its memory comes from this file.
fn forged(name: &'static str, file: &str) -> Hostile {
    let patch = format!(
        "resources: [m.yaml, n.yaml]\npatches:\n- target: {{kind: ArkMemory}}\n  patch: |\n    - {{op: add, path: /metadata/annotations, \
         value: {{config.kubernetes.io/origin: \"path: {file}\"}}}}\n    - {{op: add, path: /spec/retries, value: 1}}\n"
    );
    with(kustomization(name, &patch, "retries"), "n.yaml", &MEMORY.replace("notes", "seton"))
}

/// Configurations of kustomize's own transformers that read other files.
const OF_FILES: &str = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nname: a\nfiles: [\"x=OUTSIDE/outside.txt\"]\n";
const OF_PATCH: &str = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: http://ADDRESS/p.yaml\ntarget: {kind: ArkMemory}\n";

impl Hostile {
    /// It is an error.
    fn fails(self) -> Self {
        Self { exit: 2, ..self }
    }
}

fn all() -> Vec<Hostile> {
    [of_addresses(), of_programs_and_files(), of_charts(), of_both()].concat()
}

fn of_addresses() -> Vec<Hostile> {
    vec![
        remote("remote-https", "https://ADDRESS/r//base?ref=v1"),
        remote("remote-http-file", "http://ADDRESS/m.yaml"),
        remote("remote-git-scheme", "git::http://ADDRESS/r"),
        remote("remote-ssh", "ssh://git@127.0.0.1/r"),
        remote("remote-account", "git@127.0.0.1:o/r.git"),
        remote("remote-host", "github.com/o/r//base"),
        remote("remote-host-with-a-version", "github.com/o/r?ref=main"),
        remote("remote-short", "gh:o/r"),
        remote("remote-file-scheme", "file:///etc"),
        remote("remote-s3", "s3::https://ADDRESS/b"),
        kustomization("remote-base", "resources: [m.yaml]\nbases: [\"https://ADDRESS/r\"]", FETCHED),
        kustomization(
            "remote-component",
            "resources: [m.yaml]\ncomponents: [\"https://ADDRESS/r\"]",
            FETCHED,
        ),
        kustomization("remote-in-capitals", "Resources: [m.yaml, \"http://ADDRESS/r\"]", FETCHED),
        kustomization(
            "remote-patch",
            "resources: [m.yaml]\npatches: [{path: \"http://ADDRESS/p.yaml\"}]",
            FETCHED,
        ),
        kustomization(
            "remote-merge-patch",
            "resources: [m.yaml]\npatchesStrategicMerge: [\"http://ADDRESS/p.yaml\"]",
            FETCHED,
        ),
        kustomization(
            "remote-replacement",
            "resources: [m.yaml]\nreplacements: [{path: \"http://ADDRESS/p.yaml\"}]",
            FETCHED,
        ),
        kustomization(
            "remote-schema",
            "resources: [m.yaml]\nopenapi: {path: \"http://ADDRESS/s.json\"}",
            FETCHED,
        ),
        kustomization(
            "remote-configuration",
            "resources: [m.yaml]\nconfigurations: [\"http://ADDRESS/c.yaml\"]",
            FETCHED,
        ),
        kustomization(
            "remote-data",
            "resources: [m.yaml]\nconfigMapGenerator: [{name: a, files: [\"http://ADDRESS/f\"]}]",
            FETCHED,
        ),
        with(
            kustomization("remote-behind-a-base", "resources: [m.yaml, base]", FETCHED),
            "base/kustomization.yaml",
            "resources: [\"http://ADDRESS/r\"]\n",
        ),
    ]
}

fn of_programs_and_files() -> Vec<Hostile> {
    vec![
        with(
            kustomization("exec-generator", "resources: [m.yaml]\ngenerators: [run.yaml]", RUN),
            "run.yaml",
            EXEC,
        ),
        with(
            kustomization("exec-transformer", "resources: [m.yaml]\ntransformers: [run.yaml]", RUN),
            "run.yaml",
            EXEC,
        ),
        with(
            kustomization("exec-validator", "resources: [m.yaml]\nvalidators: [run.yaml]", RUN),
            "run.yaml",
            EXEC,
        ),
        with(
            kustomization("container", "resources: [m.yaml]\ngenerators: [run.yaml]", RUN),
            "run.yaml",
            CONTAINER,
        ),
        with(
            kustomization("plugin-of-go", "resources: [m.yaml]\ngenerators: [run.yaml]", RUN),
            "run.yaml",
            "apiVersion: someteam.example.com/v1\nkind: SecretsFromDatabase\nmetadata:\n  name: a\n",
        ),
        kustomization(
            "plugin-as-a-text",
            "resources: [m.yaml]\ngenerators:\n- |\n  apiVersion: h.example/v1\n  kind: Run\n  metadata:\n    name: a\n",
            RUN,
        ),
        with(
            with(
                kustomization(
                    "plugins-in-a-directory",
                    "resources: [m.yaml]\ntransformers: [run]",
                    "not looked into",
                ),
                "run/kustomization.yaml",
                "resources: [run.yaml]\n",
            ),
            "run/run.yaml",
            EXEC,
        ),
        kustomization(
            "chart-of-a-repository",
            "resources: [m.yaml]\nhelmCharts: [{name: c, repo: \"http://ADDRESS/c\"}]",
            FETCHED,
        ),
        Hostile {
            arguments: &["--strict", "--kustomize-args=--enable-helm"],
            ..kustomization(
                "chart-that-is-enabled",
                "resources: [m.yaml]\nhelmCharts: [{name: c, repo: \"http://ADDRESS/c\"}]",
                FETCHED,
            )
        },
        kustomization(
            "file-above-the-repository",
            "resources: [m.yaml]\nconfigMapGenerator: [{name: a, files: [../outside.txt]}]",
            "not in the repository",
        ),
        kustomization(
            "file-of-the-system",
            "resources: [m.yaml]\nconfigMapGenerator: [{name: a, files: [/etc/passwd]}]",
            "not in the repository",
        ),
        kustomization(
            "link-out-of-the-repository",
            "resources: [m.yaml]\nconfigMapGenerator: [{name: a, files: [link.txt]}]",
            "leads out of the repository",
        ),
        kustomization("base-behind-a-link", "resources: [m.yaml, linked]", "leads out of the repository"),
        kustomization(
            "pipe",
            "resources: [m.yaml]\nconfigMapGenerator: [{name: a, files: [pipe]}]",
            "not an ordinary file",
        ),
        kustomization(
            "large-file",
            "resources: [m.yaml]\nconfigMapGenerator: [{name: a, files: [large.txt]}]",
            "--max-file-size",
        ),
    ]
}

fn of_charts() -> Vec<Hostile> {
    vec![
        chart("chart-with-a-link", "{{ .Files.Get \"link.txt\" }}\n", "leads out of the repository", 1),
        chart("chart-with-large-values", "a: 1\n", "--max-file-size", 1),
        chart("chart-that-asks-a-cluster", "{{ (lookup \"v1\" \"Secret\" \"default\" \"a\") | toYaml }}\n", "checked", 0),
        chart("chart-that-asks-for-names", "{{ getHostByName \"h.example\" }}\n", "", 0),
        chart("chart-that-prints-without-an-end", "{{ range until 2000000 }}{{ range until 2000 }}aaaaaaaaaaaaaaaa{{ end }}{{ end }}\n", "helm template", 2),
        chart("chart-with-a-forged-source", "# Source: c/../../outside.txt\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: forged}\nspec: {backend: reddis}\n", "reddis", 1),
        Hostile {
            files: vec![
                ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n".to_owned()),
                ("c/templates/m.yaml", MEMORY.to_owned()),
                ("r.yaml", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r, namespace: a}\nspec:\n  chart: {spec: {chart: c, sourceRef: {kind: GitRepository, name: g}}}\n  postRenderers: [{kustomize: {patches: []}}]\n".to_owned()),
            ],
            ..chart("release-with-a-post-renderer", "", "not run", 1)
        },
        Hostile {
            files: vec![
                ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n".to_owned()),
                ("c/templates/m.yaml", MEMORY.to_owned()),
                ("r.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: r, namespace: a}\nspec:\n  destination: {namespace: a}\n  source: {repoURL: r, path: c, helm: {valueFiles: [../../outside.txt, \"http://ADDRESS/v.yaml\"]}}\n".to_owned()),
            ],
            ..chart("release-with-values-from-elsewhere", "", "not in the repository", 1)
        },
    ]
}

/// What readers of memgate's own code have tried.
fn of_both() -> Vec<Hostile> {
    vec![
        release("release-with-a-list-of-values", "\"x,OUTSIDE/outside.txt\"", "for a list"),
        release("release-with-large-values", "../large.txt", "--max-file-size"),
        release("release-with-a-pipe", "../pipe", "not an ordinary file"),
        kustomization(
            "list-that-is-given-twice",
            "resources: [m.yaml]\nresources: [m.yaml, OUTSIDE]",
            "given twice",
        )
        .fails(),
        kustomization(
            "list-in-another-case",
            "resources: [m.yaml]\nResources: [m.yaml, OUTSIDE]",
            "for another one",
        )
        .fails(),
        kustomization(
            "list-in-other-letters",
            "re\u{17f}ources: [m.yaml, OUTSIDE]\nresources: [m.yaml]",
            "for another one",
        )
        .fails(),
        kustomization("merged-list", "x: &x {resources: [m.yaml, OUTSIDE]}\n<<: *x", "not in the repository"),
        Hostile {
            arguments: &["--strict", "--kustomize-args=--load-restrictor LoadRestrictionsNone"],
            ..with(
                kustomization(
                    "file-of-a-generator",
                    "resources: [m.yaml]\ngenerators: [g.yaml]",
                    "not in the repository",
                ),
                "g.yaml",
                OF_FILES,
            )
        },
        kustomization(
            "patch-of-a-transformer",
            &format!("resources: [m.yaml]\ntransformers:\n- |\n  {}", OF_PATCH.replace('\n', "\n  ")),
            "not in the repository",
        ),
        kustomization(
            "token-of-git",
            "resources: [m.yaml]\nconfigMapGenerator: [{name: a, files: [.git/config]}]",
            "not in the repository",
        ),
        forged("origin-that-is-forged", "OUTSIDE/outside.txt"),
        forged("origin-that-is-a-pipe", "pipe"),
        chart(
            "chart-with-a-link-to-a-link",
            "{{ .Files.Get \"inner/link.txt\" }}\n",
            "leads out of the repository",
            1,
        ),
        Hostile {
            arguments: &["--strict", "--kustomize-args=--enable-helm"],
            ..with(
                kustomization(
                    "flag-as-a-release",
                    "resources: [m.yaml]\nhelmCharts: [{name: c, releaseName: \"--set-file=x=OUTSIDE/outside.txt\"}]",
                    "for a flag",
                ),
                "charts/c/Chart.yaml",
                "apiVersion: v2\nname: c\nversion: 0.1.0\n",
            )
        },
        with(
            kustomization(
                "text-that-is-a-file",
                "resources: [m.yaml]\ngenerators: [\"./x: y.yaml\"]",
                "a text of it and a file",
            ),
            "x: y.yaml",
            &OF_FILES.replace("OUTSIDE/outside.txt", ".git/config"),
        ),
        with(
            kustomization("chart-as-a-generator", "resources: [m.yaml]\ngenerators: [g.yaml]", RUN),
            "g.yaml",
            "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: c}\nname: c\nchartHome: h\n",
        ),
        Hostile {
            files: vec![
                ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n".to_owned()),
                ("c/.helmignore", "files/all/c\n".to_owned()),
                (
                    "c/templates/m.yaml",
                    format!("{MEMORY}---\n{{{{ .Files.Get \"files/all/.git/config\" }}}}\n"),
                ),
            ],
            ..chart("chart-around-a-token", "", "what is around it", 1)
        },
        chart(
            "chart-that-reads-a-token",
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: token}\nspec: {backend: \"x{{ .Files.Get \".git/config\" }}\"}\n",
            "\"x\"",
            1,
        ),
    ]
}

/// A server that counts who asks it.
fn server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            seen.fetch_add(1, Ordering::SeqCst);
            let _ = stream.map(|mut stream| stream.read(&mut [0; 16]));
        }
    });
    (address, count)
}

/// Programs that leave a mark where they run.
fn programs(folder: &Path, mark: &Path) {
    for name in ["git", "docker", "ssh", "curl", "podman", "go"] {
        let program = folder.join(name);
        fs::write(&program, format!("#!/bin/sh\necho {name} >> '{}'\n", mark.display())).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("can be run");
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn nothing_is_executed_fetched_or_read() {
    let (address, asked) = server();
    let around = tempfile::tempdir().expect("a directory");
    let mark = around.path().join("mark");
    programs(around.path(), &mark);
    let whole = format!("{}:{}", around.path().display(), path());
    let bare = path().split(':').next().expect("a directory with the tools").to_owned();
    let would_fetch = |it: &Hostile| it.files.iter().any(|(_, text)| text.contains("ADDRESS"));
    // What would fetch also meets a machine on which no program can take the network away.
    let again = all().into_iter().filter(would_fetch).map(|it| (it, &bare));
    let mut wrong = Vec::new();
    for (Hostile { name, files, arguments, says, exit }, path) in
        all().into_iter().map(|it| (it, &whole)).chain(again)
    {
        let repository = Repository::with([]);
        let root = repository.path();
        let outside = root.with_extension("outside");
        for (name, text) in &files {
            let text = text.replace("ADDRESS", &address);
            repository.write(name, text.replace("OUTSIDE", &outside.display().to_string()));
        }
        repository.write(".git/config", OUTSIDE);
        fs::create_dir_all(&outside).expect("a directory");
        fs::write(
            outside.join("kustomization.yaml"),
            format!("namePrefix: {OUTSIDE}-\nresources: [m.yaml]\n"),
        )
        .expect("written");
        fs::write(outside.join("m.yaml"), MEMORY).expect("written");
        fs::write(outside.join("outside.txt"), OUTSIDE).expect("written");
        fs::write(root.parent().expect("above").join("outside.txt"), OUTSIDE).expect("written");
        if name.contains("link") {
            symlink(outside.join("outside.txt"), root.join("link.txt")).expect("a link");
            symlink(&outside, root.join("linked")).expect("a link");
        }
        if name == "chart-around-a-token" {
            fs::create_dir(root.join("c/files")).expect("a directory");
            symlink("../..", root.join("c/files/all")).expect("a link");
        }
        if name.ends_with("to-a-link") {
            fs::create_dir(root.join("shared")).expect("a directory");
            fs::rename(root.join("link.txt"), root.join("shared/link.txt")).expect("a link");
            fs::remove_file(root.join("linked")).expect("a link");
            symlink("shared", root.join("inner")).expect("a link");
        }
        repository.write("run.sh", SCRIPT);
        fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("can be run");
        if name.contains("large") {
            let large = if name.starts_with("chart") { "values.yaml" } else { "large.txt" };
            let file = fs::File::create(root.join(large)).expect("a file");
            file.set_len(1 << 30).expect("a gigabyte of nothing");
        }
        if name.ends_with("pipe") {
            let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status();
            assert!(made.is_ok_and(|status| status.success()), "a pipe");
        }
        let words: Vec<&str> =
            ["check", ".", "--max-file-size", "4Mi"].iter().chain(arguments).copied().collect();
        let (code, output) = repository.memgate(&words, path);
        let executed = root.join("executed").exists() || mark.exists();
        let fetched = asked.swap(0, Ordering::SeqCst);
        if code != Some(exit) || !output.contains(says) || output.contains(OUTSIDE) || executed || fetched > 0
        {
            let found = format!("exit {code:?}, executed {executed}, fetched {fetched}");
            wrong.push(format!("{name}: {found}, wanted {exit} and {says:?}\n{output}"));
            let _ = fs::remove_file(&mark);
        }
        let _ = fs::remove_dir_all(&outside);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
