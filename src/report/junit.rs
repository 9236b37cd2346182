//! JUnit's XML, for systems that show tests: a suite for each file, in it a test for each object that was checked,
//! and for each code that objects to it one of its own, so that what passes is visible too.
//!
//! What would be denied is a failure, an input that cannot be read an error, what is exempt from a policy is skipped.
//! Warnings pass, with their text as output,
//! unless the run fails on them. The form is the one that Jenkins publishes; it has no place for a line, so that
//! stands in the text. Times are left out: two runs over the same files write the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::model::finding::Severity;
use crate::model::policy_rule::PolicyStatus;
use crate::report::path::relative;
use crate::report::xml::{Quoted, Text};
use crate::report::{LocatedFinding, ObjectRef, Report, plain};

/// A suite: what stands under one name.
#[derive(Debug, Default)]
pub(super) struct Suite {
    pub name: String,
    pub tests: Vec<Test>,
}

/// A test, and what came of it.
#[derive(Debug)]
pub(super) struct Test {
    pub name: String,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Passed,
    /// It passed, and there is something to say.
    Remarked(String),
    /// It does not count: an exemption from a policy does.
    Skipped(String),
    Failed {
        kind: String,
        message: String,
        text: String,
    },
    Error {
        kind: String,
        message: String,
    },
}

/// Writes the report as suites; warnings are failures with `warnings_fail`.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, warnings_fail: bool, out: &mut impl Write) -> io::Result<()> {
    let mut suites = Suites::default();
    for error in &report.errors {
        let (kind, message) = (error.code().to_owned(), error.line.clone());
        let name = format!("{} can be read", error.file.map_or("the input", relative));
        let test = Test { name, outcome: Outcome::Error { kind, message } };
        suites.add(error.file.unwrap_or("memgate"), [test]);
    }
    // The findings of one object stand together. Two objects of one name are two, so it is the place that counts.
    let mut findings: BTreeMap<*const ObjectRef, Vec<&LocatedFinding<'_>>> = BTreeMap::new();
    for located in &report.findings {
        findings.entry(std::ptr::from_ref(located.object_ref)).or_default().push(located);
    }
    for object in &report.objects {
        let found = findings.remove(&std::ptr::from_ref(object.object_ref)).unwrap_or_default();
        suites.add(object.file, tests(&object.object_ref.title(), &found, warnings_fail));
    }
    // What is said of a file, or of an object that nobody judged.
    for located in &report.findings {
        if let Some(found) = findings.remove(&std::ptr::from_ref(located.object_ref)) {
            let about = located.object_ref;
            let title = if about.kind.is_empty() { located.location.file.to_owned() } else { about.title() };
            suites.add(located.location.file, tests(&title, &found, warnings_fail));
        }
    }
    write_suites(&suites.all, out)
}

#[derive(Default)]
struct Suites {
    all: Vec<Suite>,
    numbers: BTreeMap<String, usize>,
}

impl Suites {
    /// Adds tests to the suite of a file, which is made if there is none.
    fn add(&mut self, file: &str, tests: impl IntoIterator<Item = Test>) {
        let file = relative(file);
        let number = *self.numbers.entry(file.to_owned()).or_insert(self.all.len());
        if number == self.all.len() {
            self.all.push(Suite { name: file.to_owned(), tests: Vec::new() });
        }
        if let Some(suite) = self.all.get_mut(number) {
            suite.tests.extend(tests);
        }
    }
}

/// One test for the object if nothing is found, else one for each code.
fn tests(title: &str, found: &[&LocatedFinding<'_>], warnings_fail: bool) -> Vec<Test> {
    if found.is_empty() {
        return vec![Test { name: title.to_owned(), outcome: Outcome::Passed }];
    }
    let mut codes: Vec<&str> = found.iter().map(|located| located.finding.code_name()).collect();
    codes.sort_unstable();
    codes.dedup();
    let of_code = |code| found.iter().filter(move |located| located.finding.code_name() == code);
    codes
        .into_iter()
        .map(|code| {
            let fails = |located: &&&LocatedFinding<'_>| match located.finding.severity {
                Severity::Deny => true,
                Severity::Warn => warnings_fail,
                Severity::Note => false,
            };
            let text = of_code(code).fold(String::new(), |text, located| text + &lines(located));
            let outcome = match of_code(code).find(fails) {
                None if of_code(code).all(|located| is_exempt(located)) => Outcome::Skipped(text),
                None => Outcome::Remarked(text),
                Some(first) => Outcome::Failed {
                    kind: code.to_owned(),
                    message: first.finding.message().into_owned(),
                    text,
                },
            };
            Test { name: format!("{title}: {code}"), outcome }
        })
        .collect()
}

fn is_exempt(located: &LocatedFinding<'_>) -> bool {
    located.finding.policy.as_ref().is_some_and(|policy| policy.status == PolicyStatus::Exempt)
}

/// A finding with its place and its help.
fn lines(located: &LocatedFinding<'_>) -> String {
    let (location, finding) = (&located.location, located.finding);
    let mut text = format!(
        "{}:{}:{}: {} {}\n",
        plain(location.file),
        location.line,
        location.column,
        finding.severity.name(),
        plain(&finding.message())
    );
    if let Some(help) = finding.help_text() {
        let _infallible = writeln!(text, "help: {}", plain(&help));
    }
    text
}

/// Writes the suites as one document.
pub(super) fn write_suites(suites: &[Suite], out: &mut impl Write) -> io::Result<()> {
    let tests = || suites.iter().flat_map(|suite| &suite.tests);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"memgate\" {}>", counts(tests()))?;
    for suite in suites {
        writeln!(out, "  <testsuite name={} {}>", Quoted(&suite.name), counts(suite.tests.iter()))?;
        for test in &suite.tests {
            write_test(&suite.name, test, out)?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn counts<'t>(tests: impl Iterator<Item = &'t Test>) -> String {
    let (mut all, mut failures, mut errors) = (0, 0, 0);
    for test in tests {
        all += 1;
        match test.outcome {
            Outcome::Failed { .. } => failures += 1,
            Outcome::Error { .. } => errors += 1,
            Outcome::Passed | Outcome::Remarked(_) | Outcome::Skipped(_) => {}
        }
    }
    format!("tests=\"{all}\" failures=\"{failures}\" errors=\"{errors}\"")
}

fn write_test(suite: &str, test: &Test, out: &mut impl Write) -> io::Result<()> {
    write!(out, "    <testcase classname={} name={}", Quoted(suite), Quoted(&test.name))?;
    match &test.outcome {
        Outcome::Passed => return writeln!(out, "/>"),
        Outcome::Remarked(remark) => write!(out, "><system-out>{}</system-out>", Text(remark)),
        Outcome::Skipped(why) => write!(out, "><skipped>{}</skipped>", Text(why)),
        Outcome::Failed { kind, message, text } => {
            let (kind, message, lines) = (Quoted(kind), Quoted(message), Text(text));
            write!(out, "><failure type={kind} message={message}>{lines}</failure>")
        }
        Outcome::Error { kind, message } => {
            write!(out, "><error type={} message={}/>", Quoted(kind), Quoted(message))
        }
    }?;
    writeln!(out, "</testcase>")
}
