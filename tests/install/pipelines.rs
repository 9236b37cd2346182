//! The GitHub action and the GitLab template: the shell of each step, with the variables that a runner sets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::release::{ROOT, Release, text};

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// The action with its inputs, on a runner of its own.
struct Action {
    release: Release,
    definition: Value,
    inputs: BTreeMap<String, String>,
    /// The repository that is checked.
    project: PathBuf,
}

impl Action {
    fn new(inputs: &[(&str, &str)]) -> Self {
        let (release, definition) = (Release::new(), yaml(include_str!("../../action.yml")));
        let defaults = definition["inputs"].as_object().expect("inputs").iter();
        let default = |(name, input): (&String, &Value)| {
            (name.clone(), input["default"].as_str().unwrap_or_default().to_owned())
        };
        let mut all: BTreeMap<_, _> = defaults.map(default).collect();
        all.insert("releases".to_owned(), release.url());
        for (name, value) in inputs {
            assert!(all.insert((*name).to_owned(), (*value).to_owned()).is_some(), "{name} is not an input");
        }
        fs::create_dir(release.directory.path().join("temp")).expect("a folder");
        Self { release, definition, inputs: all, project: ROOT.into() }
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.release.directory.path().join(name)).unwrap_or_default()
    }

    /// Runs a step as a runner does, with what earlier steps put into PATH.
    fn step(&self, number: usize) -> Output {
        let step = &self.definition["runs"]["steps"][number];
        assert_eq!(step["shell"], "bash");
        let here = self.release.directory.path();
        let script = here.join("step.sh");
        fs::write(&script, step["run"].as_str().expect("a script")).expect("a script");
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(&script).env_clear();
        let added = self.file("path").lines().rev().fold(String::new(), |all, line| all + line + ":");
        command.env("PATH", added + "/usr/local/bin:/usr/bin:/bin").env("HOME", self.release.home());
        command.env("RUNNER_TEMP", here.join("temp")).env("GITHUB_PATH", here.join("path"));
        command.env("GITHUB_OUTPUT", here.join("output")).env("GITHUB_STEP_SUMMARY", here.join("summary"));
        for (name, value) in step["env"].as_object().expect("variables") {
            command.env(name, self.expression(value.as_str().expect("a text")));
        }
        command.current_dir(&self.project).output().expect("bash")
    }

    /// What the runner makes of `${{ … }}`.
    fn expression(&self, text: &str) -> String {
        let name =
            text.strip_prefix("${{ ").and_then(|text| text.strip_suffix(" }}")).expect("an expression");
        match name.strip_prefix("inputs.") {
            Some(input) => self.inputs[input].clone(),
            None => match name {
                "github.action_path" => ROOT.to_owned(),
                "github.server_url" => "https://github.example".to_owned(),
                "github.repository" => "team/manifests".to_owned(),
                "github.event.pull_request.number" => "7".to_owned(),
                other => {
                    assert_eq!(other, "", "an expression that GitHub fills in");
                    String::new()
                }
            },
        }
    }
}

#[test]
fn the_action_installs_checks_annotates_and_sums_up() {
    let sarif = tempfile::tempdir().expect("a folder");
    let file = sarif.path().join("out.sarif");
    let inputs = [
        ("paths", "docs/tour\nexamples/arkonis"),
        ("flags", "--fail-on=warn\n"),
        ("sarif", file.to_str().expect("a path")),
    ];
    let action = Action::new(&inputs);
    let installed = action.step(0);
    assert!(installed.status.success(), "{}", text(&installed.stderr));
    let checked = action.step(1);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("::error file=docs/tour/"), "{}", text(&checked.stdout));
    let report: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("SARIF");
    assert!(!report["runs"][0]["results"].as_array().expect("results").is_empty());
    assert_eq!(action.file("output"), format!("exit-code=1\nsarif={}\n", file.display()));
    let summary = action.file("summary");
    assert!(summary.starts_with("### memgate check\n\n    ") && summary.contains(" denied, "), "{summary}");
    assert!(summary.contains("\n    docs/tour/"), "{summary}");
}

#[test]
fn the_action_tells_bad_input_and_nothing_to_check() {
    for (paths, code) in
        [("none.yaml", 2), ("Cargo.toml", 2), ("deploy/crds", 3), ("$(touch hacked)\n`id`", 2)]
    {
        let action = Action::new(&[("paths", paths), ("sarif", "/dev/null")]);
        assert!(action.step(0).status.success());
        let checked = action.step(1);
        assert_eq!(checked.status.code(), Some(code), "{paths}: {}", text(&checked.stderr));
        assert!(action.file("output").starts_with(&format!("exit-code={code}\n")));
    }
    assert!(!Path::new(ROOT).join("hacked").exists());
    let action = Action::new(&[("flags", "--fail-onn=warn")]);
    assert!(action.step(0).status.success());
    let checked = action.step(1);
    assert_eq!(checked.status.code(), Some(2), "{}", text(&checked.stderr));
    assert!(text(&checked.stderr).contains("--fail-onn"), "{}", text(&checked.stderr));
    assert!(action.file("output").starts_with("exit-code=2\n"));
}

/// Without the input `paths` the repository decides.
#[test]
fn the_action_leaves_paths_to_the_repository() {
    for (choices, expected) in [("paths: [deploy]\n", 0), ("failOn: deny\n", 1)] {
        let project = tempfile::tempdir().expect("a folder");
        fs::create_dir(project.path().join("deploy")).expect("a folder");
        let manifest = include_str!("../../docs/tour/memory.yaml");
        fs::write(project.path().join("memory.yaml"), manifest).expect("a file");
        let good = include_str!("../../examples/arkonis/memory-in-context.yaml");
        fs::write(project.path().join("deploy/memory.yaml"), good).expect("a file");
        fs::write(project.path().join(".memgate.yaml"), choices).expect("a file");
        let mut action = Action::new(&[]);
        action.project = project.path().to_owned();
        assert!(action.step(0).status.success());
        let checked = action.step(1);
        assert_eq!(checked.status.code(), Some(expected), "{choices} {}", text(&checked.stderr));
    }
}

#[test]
fn the_action_takes_a_memgate_that_is_there() {
    let action = Action::new(&[("releases", "")]);
    let programs = action.release.directory.path().join("programs");
    fs::create_dir(&programs).expect("a folder");
    let without = action.step(0);
    assert!(text(&without.stderr).contains("set MEMGATE_RELEASES"), "{}", text(&without.stderr));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_memgate"), programs.join("memgate")).expect("a link");
    fs::write(action.release.directory.path().join("path"), format!("{}\n", programs.display()))
        .expect("a file");
    assert!(action.step(0).status.success());
}

/// A stand-in for gh: it keeps what it gets, and has the comments in the file `comments`, unless `refuses` is there.
const GH: &str = r#"#!/bin/sh
here=${0%/*}
echo "$GH_HOST ${GH_TOKEN:+token} $*" >> "$here/calls"
[ ! -e "$here/refuses" ] || exit 1
case "$*" in
  *--paginate*) for last; do :; done; jq -r "$last" "$here/comments" ;;
  *body=@*) file=${*##*body=@}; cp "$file" "$here/body" ;;
esac
"#;

/// One comment of the action is written, and then updated; where that is forbidden, the job goes on.
#[test]
fn the_action_comments_in_one_place() {
    let action = Action::new(&[
        ("paths", "docs/tour"),
        ("comment", "true"),
        ("sarif", "/dev/null"),
        ("token", "secret-of-the-job"),
    ]);
    assert!(action.step(0).status.success());
    let programs = action.release.directory.path().join("programs");
    fs::create_dir(&programs).expect("a folder");
    let write = |name: &str, text: &str| fs::write(programs.join(name), text).expect("a file");
    let read = |name: &str| fs::read_to_string(programs.join(name)).unwrap_or_default();
    write("script", GH);
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(programs.join("script")).arg(programs.join("gh"));
    assert!(install.status().expect("install runs").success());
    let path = action.file("path") + &format!("{}\n", programs.display());
    fs::write(action.release.directory.path().join("path"), path).expect("a file");
    assert_eq!(action.step(1).status.code(), Some(1));

    let comment = |id: u32, user: &str| serde_json::json!({"id": id, "user": {"type": user}, "body": "<!-- memgate check -->\nold"});
    let of_person = [comment(3, "User")];
    let with_own = [comment(3, "User"), comment(4, "Bot"), comment(5, "User")];
    for (comments, call) in [
        (&of_person[..], "--method POST repos/team/manifests/issues/7/comments"),
        (&with_own[..], "--method PATCH repos/team/manifests/issues/comments/4"),
    ] {
        write("comments", &Value::from(comments.to_vec()).to_string());
        write("calls", "");
        let commented = action.step(2);
        assert!(commented.status.success(), "{}", text(&commented.stderr));
        assert!(read("calls").contains(call), "{}", read("calls"));
        assert!(read("calls").lines().all(|line| line.starts_with("github.example token api ")));
        assert!(!read("calls").contains("secret-of-the-job"));
        assert!(read("body").starts_with("<!-- memgate check -->\n### memgate: "), "{}", read("body"));
        assert!(commented.stdout.is_empty(), "{}", text(&commented.stdout));
    }
    write("refuses", "");
    let refused = action.step(2);
    assert!(refused.status.success(), "{}", text(&refused.stderr));
    assert!(text(&refused.stdout).contains("::notice title=memgate::The comment was not written"));
}

/// Without a report nothing is written, and without the input the report is not made.
#[test]
fn the_action_comments_only_when_asked() {
    for (comment, paths) in [("false", "docs/tour"), ("true", "none.yaml")] {
        let action = Action::new(&[("paths", paths), ("comment", comment), ("sarif", "/dev/null")]);
        assert!(action.step(0).status.success());
        action.step(1);
        let has_text = action.file("temp/memgate-comment").contains("### memgate");
        let commented = action.step(2);
        assert!(commented.status.success() && commented.stdout.is_empty() != has_text, "{comment} {paths}");
        assert_eq!(has_text, comment == "true", "{comment} {paths}");
    }
}

/// Runs the job of the template as a runner does, in a project with a manifest.
fn gitlab(release: &Release, releases: &str) -> (Output, PathBuf) {
    gitlab_with(release, &[("MEMGATE_RELEASES", releases)])
}

/// The same with these variables of the job, and a second manifest whose name a shell would run.
fn gitlab_with(release: &Release, given: &[(&str, &str)]) -> (Output, PathBuf) {
    let template = yaml(include_str!("../../ci/memgate.gitlab-ci.yml"));
    let job = &template[".memgate"];
    let project = release.directory.path().join("project");
    fs::create_dir(&project).expect("a folder");
    let manifest = include_str!("../../docs/tour/memory.yaml");
    fs::write(project.join("memory.yaml"), manifest).expect("a file");
    fs::write(project.join(HOSTILE), manifest.replace("notes", "others")).expect("a file");
    let mut lines = Vec::new();
    for part in ["before_script", "script"] {
        lines.extend(job[part].as_array().expect("lines").iter().filter_map(Value::as_str));
    }
    let mut command = Command::new("sh");
    command.args(["-ec", &lines.join("\n")]).env_clear().current_dir(&project);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", release.home());
    // Links of the names of reports, as a change may bring them.
    let outside = release.directory.path().join("outside");
    for (target, name) in [("file", "memgate.xml"), ("folder", "gl-code-quality-report.json")] {
        fs::create_dir_all(outside.join("folder")).expect("a folder");
        fs::write(outside.join("file"), "mine").expect("a file");
        std::os::unix::fs::symlink(outside.join(target), project.join(name)).expect("a link");
    }
    let job_id = release.directory.path().file_name().expect("a name").to_string_lossy().into_owned();
    let mut variables = BTreeMap::from([
        ("CI_PROJECT_DIR".to_owned(), project.display().to_string()),
        ("CI_JOB_ID".to_owned(), job_id.clone()),
    ]);
    // Later ones may use earlier ones, in any order.
    for (name, value) in job["variables"].as_object().expect("variables") {
        variables.insert(name.clone(), value.as_str().expect("a text").to_owned());
    }
    variables.extend(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let names: Vec<String> = variables.keys().cloned().collect();
    for _ in 0..3 {
        for name in &names {
            let known = variables[name].clone();
            for value in variables.values_mut() {
                *value = value.replace(&format!("${name}"), &known);
            }
        }
    }
    let output = command.envs(&variables).output().expect("a shell");
    drop(fs::remove_dir_all(Path::new("/tmp").join(format!("memgate-{job_id}"))));
    assert_eq!(fs::read_to_string(outside.join("file")).expect("a file"), "mine");
    assert!(fs::read_dir(outside.join("folder")).expect("a folder").next().is_none());
    (output, project)
}

#[test]
fn the_template_of_gitlab_installs_and_checks() {
    let release = Release::new();
    let (checked, project) = gitlab(&release, &release.url());
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked.stderr));
    let template = yaml(include_str!("../../ci/memgate.gitlab-ci.yml"));
    let reports = template[".memgate"]["artifacts"]["reports"].as_object().expect("reports");
    assert_eq!(reports.len(), 2);
    for report in reports.values() {
        let report = fs::read_to_string(project.join(report.as_str().expect("a file"))).expect("a report");
        assert!(report.contains("memory.yaml"), "{report}");
    }
}

/// A name that a shell would run.
const HOSTILE: &str = "a b;touch hacked $(touch hacked) `touch hacked` '.yaml";

#[test]
fn the_template_of_gitlab_runs_nothing_of_a_path() {
    let release = Release::new();
    let paths = format!("{HOSTILE}\nno such $(touch hacked)\n-o\n*.none");
    let releases = release.url();
    let given =
        [("MEMGATE_RELEASES", releases.as_str()), ("MEMGATE_PATHS", &paths), ("MEMGATE_ARGUMENTS", "-q")];
    let (checked, project) = gitlab_with(&release, &given);
    let said = text(&checked.stderr) + &text(&checked.stdout);
    assert_eq!(checked.status.code(), Some(2), "{said}");
    for path in ["a b;touch hacked", "no such $(touch hacked): no such file", "-o: no such file"] {
        assert!(said.contains(path), "{path}: {said}");
    }
    assert!(!said.contains("memory.yaml"), "{said}");
    assert!(!project.join("hacked").exists());

    let release = Release::new();
    let releases = release.url();
    let words = "$(touch${IFS}hacked) ;touch${IFS}hacked `id` * --fail-on warn";
    let (checked, project) =
        gitlab_with(&release, &[("MEMGATE_RELEASES", &releases), ("MEMGATE_ARGUMENTS", words)]);
    let said = text(&checked.stderr);
    assert_eq!(checked.status.code(), Some(2), "{said}");
    assert!(said.contains("in $(touch${IFS}hacked)"), "{said}");
    assert!(!project.join("hacked").exists());
}

#[test]
fn the_template_of_gitlab_says_what_to_set() {
    let (failed, _) = gitlab(&Release::new(), "");
    assert!(!failed.status.success());
    let said = text(&failed.stderr);
    assert!(said.contains("MEMGATE_RELEASES: has to be set to the place of releases of memgate"), "{said}");
}

/// Hooks run a command that exists, with flags that it has.
#[test]
fn the_hooks_of_pre_commit_are_commands() {
    let hooks = yaml(include_str!("../../.pre-commit-hooks.yaml"));
    let hooks = hooks.as_array().expect("hooks");
    assert_eq!(hooks.len(), 2);
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = include_str!("../../docs/tour/memory.yaml");
    fs::write(folder.path().join("memory.yaml"), manifest).expect("a file");
    for hook in hooks {
        let mut words = hook["entry"].as_str().expect("a command").split(' ');
        assert_eq!(words.next(), Some("memgate"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
        let output = command.args(words).arg(".").current_dir(folder.path()).output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    }
}

/// The lines of docs/ci.md that install memgate, as shells get them.
fn installing() -> Vec<String> {
    let page = include_str!("../../docs/ci.md").lines();
    let lines = page
        .map(|line| line.trim().trim_start_matches("- ").trim_start_matches("sh '").trim_end_matches('\''));
    let wanted =
        |line: &&str| line.starts_with("curl ") || line.ends_with("sh install.sh") && !line.contains("://");
    lines.filter(wanted).map(str::to_owned).collect()
}

#[test]
fn the_pipelines_of_the_page_install() {
    let lines = installing();
    assert!(lines.len() >= 8 && lines.len().is_multiple_of(2), "{lines:?}");
    for pair in lines.chunks(2) {
        for releases in ["", "set"] {
            let release = Release::new();
            let bin = release.home().join(".local/bin");
            let script = pair.join("\n").replace("/usr/local/bin", &bin.display().to_string());
            let mut command = Command::new("bash");
            command.args(["-ec", &script]).env_clear().current_dir(release.directory.path());
            command.env("PATH", "/usr/bin:/bin").env("HOME", release.home());
            command.env("MEMGATE_RELEASES", if releases.is_empty() { String::new() } else { release.url() });
            let output = command.output().expect("bash");
            assert_eq!(output.status.success(), !releases.is_empty(), "{script}: {}", text(&output.stderr));
            assert_eq!(release.installed().exists(), !releases.is_empty(), "{script}");
            if releases.is_empty() {
                assert!(text(&output.stderr).contains("MEMGATE_RELEASES"), "{}", text(&output.stderr));
            }
        }
    }
}
