//! Layouts of repositories: each finding stands at the line where a person would edit, at a terminal as on standard input.

use crate::repository::{Repository, path};
use crate::support::layouts::{Layout, all};

/// A line of the concise format without its column and message: `base/memory.yaml:5 deny arkonis/redis-required`.
fn place(line: &str) -> Option<String> {
    let (at, rest) = line.split_once(": ")?;
    let (at, _column) = at.rsplit_once(':')?;
    let (severity, code) =
        rest.split_once(']')?.0.split_once(" [").or_else(|| rest.split_once(']')?.0.split_once('['))?;
    Some(format!("{at} {} {code}", severity.trim()))
}

#[test]
#[ignore = "needs kubectl and helm"]
fn each_layout_is_judged_as_it_is_built() {
    let mut wrong = Vec::new();
    for Layout { name, arguments, files, exit, findings, .. } in all() {
        let repository = Repository::with(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        let words = ["check", "-o", "concise", "."].into_iter().chain(arguments.iter().map(String::as_str));
        let (code, output) = repository.memgate(&words.collect::<Vec<_>>(), path());
        let found: Vec<String> =
            output.lines().filter_map(place).filter(|it| !it.contains(" error ")).collect();
        let expected: Vec<String> = findings.iter().filter(|it| !it.contains(" error ")).cloned().collect();
        if code != Some(exit) || found != expected {
            wrong.push(format!(
                "{name}: exit {code:?}, wanted {exit}; found {found:#?}, wanted {expected:#?}\n{output}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
