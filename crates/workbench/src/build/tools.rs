//! The user's own kustomize, kubectl and helm, and the walls around them: they run what a branch says, so nothing is there
//! that they could run, fetch or read besides its files.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;

use crate::build::layout::Tool;
use crate::build::program::{Failure, Limits, output};
use memgate_primitives::causes::in_words;
use memgate_primitives::credential::masked;

/// How long a program may take to say its version.
const TIME_OF_VERSION: Duration = Duration::from_secs(20);
/// How much a program may say of its version, in bytes.
const BYTES_OF_VERSION: usize = 64 << 10;
/// How much memory a program may take, in bytes: an endless loop of a template would take all.
const MOST_MEMORY: u64 = 8 << 30;
/// Nothing listens there.
const CLOSED_PROXY: &str = "http://127.0.0.1:9";
/// The oldest versions that work: those before know no annotations of origins, or other flags.
const OLDEST_KUSTOMIZE: Version = (5, 0);
const OLDEST_HELM: Version = (3, 8);

type Version = (u32, u32);

/// The programs of this machine, and the folder in which they run.
#[derive(Debug)]
pub(crate) struct Tools {
    folder: TempDir,
    /// What runs a program without a network, if the system has it.
    without_network: Vec<OsString>,
    kustomize: Result<Program, String>,
    helm: Result<Program, String>,
    /// Where programs are looked for.
    path: OsString,
    /// Whether one build took too long to say where objects come from: no other is asked.
    pub(crate) is_slow: AtomicBool,
}

/// A program that works.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// The command of it that builds.
    word: &'static str,
    /// Its name and version.
    pub(crate) title: String,
    /// What a user would type.
    pub(crate) shown: &'static str,
}

impl Tools {
    /// Looks for the programs on `PATH`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(crate) fn find(path: Option<&OsStr>) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("memgate-build-").tempdir()?;
        for name in ["bin", "home", "work"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let missing = || Err(String::new());
        let mut tools = Self {
            folder,
            without_network: Vec::new(),
            kustomize: missing(),
            helm: missing(),
            path: path.map(OsStr::to_owned).or_else(|| env::var_os("PATH")).unwrap_or_default(),
            is_slow: AtomicBool::default(),
        };
        tools.kustomize = tools.find_kustomize();
        tools.helm = tools.find_helm();
        Ok(tools)
    }

    fn find_kustomize(&mut self) -> Result<Program, String> {
        const NONE: &str = "there is no kustomize and no kubectl on PATH; install one, or leave out what they build with \
                            --no-render";
        let own = self.on_path("kustomize").map(|path| (path, "kustomize", "build", &["version"][..]));
        let of_kubectl = || {
            Some((
                self.on_path("kubectl")?,
                "kubectl",
                "kustomize",
                &["version", "--client", "--output=json"][..],
            ))
        };
        let (path, name, word, arguments) = own.or_else(of_kubectl).ok_or(NONE)?;
        let said = self.said(&path, arguments);
        let version = match said.split_once("kustomizeVersion") {
            Some((_, rest)) => version_in(rest),
            None if name == "kubectl" => None,
            None => version_in(&said),
        };
        let works = "5.0 and later work, and so does kubectl 1.27 and later";
        let Some((numbers, version)) = version else {
            return Err(format!("this {name} does not say the version of kustomize; {works}"));
        };
        let (shown, title) = match name {
            "kubectl" => ("kubectl kustomize", format!("kustomize {version} in kubectl")),
            _ => ("kustomize build", format!("kustomize {version}")),
        };
        if numbers < OLDEST_KUSTOMIZE {
            return Err(format!("{title} is too old; {works}"));
        }
        self.link("helm");
        Ok(Program { path, word, title, shown })
    }

    fn find_helm(&mut self) -> Result<Program, String> {
        const NONE: &str = "there is no helm on PATH; install it, or leave out charts with --no-render";
        let path = self.on_path("helm").ok_or(NONE)?;
        let version = version_in(&self.said(&path, &["version", "--template={{.Version}}"]));
        let (numbers, version) = version.ok_or("this helm does not say its version; 3.8 and later work")?;
        if numbers < OLDEST_HELM {
            return Err(format!("helm {version} is too old; 3.8 and later work"));
        }
        Ok(Program { path, word: "template", title: format!("helm {version}"), shown: "helm template" })
    }

    /// What a program prints; nothing if it fails. The first one also shows whether it runs without a network.
    fn said(&mut self, path: &Path, arguments: &[&str]) -> String {
        let limits = Limits { time: TIME_OF_VERSION, bytes: BYTES_OF_VERSION };
        let ask = |tools: &Self| output(tools.command(path).args(arguments), &limits);
        let mut said = Err(Failure::Missing);
        if self.without_network.is_empty() {
            self.without_network = self.without_network();
            said = ask(self);
            if said.is_err() {
                self.without_network.clear();
            }
        }
        let said = said.or_else(|_| ask(self)).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Puts a program on the `PATH` of the others.
    fn link(&self, name: &str) {
        #[cfg(unix)]
        if let Some(path) = self.on_path(name) {
            // kustomize says that it does not find it.
            let _ = std::os::unix::fs::symlink(path, self.folder.path().join("bin").join(name));
        }
    }

    /// The program that builds a directory.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(crate) fn program(&self, tool: Tool) -> Result<&Program, &str> {
        let program = match tool {
            Tool::Kustomize => &self.kustomize,
            Tool::Helm => &self.helm,
        };
        program.as_ref().map_err(String::as_str)
    }

    /// A new folder for the files of one build.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn work(&self) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix("unit-").tempdir_in(self.folder.path().join("work"))
    }

    /// What a program prints with these arguments, at most so many bytes and in this time.
    ///
    /// # Errors
    /// In words: what the program says last, or which bound it exceeded.
    pub(crate) fn run(
        &self,
        program: &Program,
        arguments: &[OsString],
        (bytes, time): (usize, Duration),
    ) -> Result<Vec<u8>, String> {
        let limits = Limits { time, bytes };
        let mut command = self.command(&program.path);
        output(command.arg(program.word).args(arguments), &limits).map_err(|failure| match failure {
            Failure::Missing => "it is gone".to_owned(),
            Failure::Start(error) => format!("it cannot be run: {}", in_words(&error)),
            Failure::TooLong => format!("it did not end within {} s", time.as_secs()),
            Failure::TooMuch => format!("it wrote more than {bytes} bytes; see --max-file-size"),
            Failure::Failed(why) if why.is_empty() => "it failed and did not say why".to_owned(),
            Failure::Failed(why) => masked(&why).into_owned(),
        })
    }

    /// A program behind the walls: no other program on its `PATH`, no network where the system can take it away and a closed
    /// proxy elsewhere, and an empty home, so that no plugin, no cluster and no account is found.
    fn command(&self, program: &Path) -> Command {
        let mut command = match self.without_network.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            None => Command::new(program),
        };
        let folder = |name: &str| self.folder.path().join(name);
        command.env_clear().env("PATH", folder("bin"));
        let homes = [
            "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
            "XDG_DATA_HOME", "HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME", "HELM_PLUGINS",
            "KUSTOMIZE_PLUGIN_HOME",
        ];
        command.envs(homes.map(|name| (name, folder("home")))).env("KUBECONFIG", folder("home").join("none"));
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        command.envs(proxies.map(|name| (name, CLOSED_PROXY)));
        // Without it no program runs on Windows.
        command.envs(env::var_os("SYSTEMROOT").map(|root| ("SYSTEMROOT", root)));
        command
    }

    /// What runs a program with a bound of memory, without a network, and ends all that it has started when it ends.
    fn without_network(&self) -> Vec<OsString> {
        let Some(unshare) = self.on_path("unshare") else { return Vec::new() };
        let mut words = Vec::new();
        if let Some(prlimit) = self.on_path("prlimit") {
            words.extend([prlimit.into(), format!("--as={MOST_MEMORY}").into()]);
        }
        words.push(unshare.into());
        words.extend(["--map-root-user", "--net", "--pid", "--fork", "--kill-child"].map(OsString::from));
        words
    }

    /// A program in a directory of the path. A directory that is not absolute may be one of the repository.
    fn on_path(&self, name: &str) -> Option<PathBuf> {
        let file = |directory: PathBuf| directory.join(format!("{name}{}", env::consts::EXE_SUFFIX));
        env::split_paths(&self.path).filter(|it| it.is_absolute()).map(file).find(|it| it.is_file())
    }
}

/// The first version in a text, with its first two numbers.
fn version_in(text: &str) -> Option<(Version, String)> {
    let starts = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at);
    starts.into_iter().find_map(|at| {
        let version = text.get(at..)?.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut numbers = version.split('.').map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
        Some(((major, minor), version.trim_end_matches('.').to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        for (text, expected) in [
            ("v5.5.0\n", Some(((5, 5), "5.5.0"))),
            ("{Version:kustomize/v4.5.7 GitCommit:56d82a8}", Some(((4, 5), "4.5.7"))),
            ("\": \"v5.8.1\"\n}", Some(((5, 8), "5.8.1"))),
            ("v3.16.2+g13654a5", Some(((3, 16), "3.16.2"))),
            ("unknown", None),
            ("7", None),
        ] {
            let found = version_in(text);
            assert_eq!(found.as_ref().map(|(numbers, text)| (*numbers, text.as_str())), expected, "{text}");
        }
    }
}
