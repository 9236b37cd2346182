//! JUnit's XML, for systems that show tests: a suite for each file, and in it a test for each checked object without
//! findings, or for each code that was found in it. So objects that pass are visible too.
//!
//! A denial is a failure, an input that cannot be read an error, and an object with an exemption from a policy is
//! skipped. Warnings pass, with their text as output, unless the run fails on them. The form is the one that Jenkins
//! publishes. It has no field for a line, so the text names it. Times are left out: two runs over the same files write
//! the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::report::{InputError, LocatedFinding, ObjectRef, Report, at_line_start, plain, relative};
use memgate_model::finding::Severity;
use memgate_model::policy_rule::PolicyStatus;

/// A suite: tests under one name.
#[derive(Debug)]
struct Suite {
    name: String,
    tests: Vec<Test>,
}

/// A test, with what is said of it unless it just passed.
#[derive(Debug)]
pub(super) struct Test {
    pub name: String,
    pub result: Option<TestResult>,
}

/// What is said of a test.
#[derive(Debug)]
pub(super) struct TestResult {
    /// The element: `system-out` of a test that passed, `skipped` for an exemption from a policy, `failure` or `error`.
    pub element: &'static str,
    /// Of a failure and an error its type and message.
    pub about: Option<[String; 2]>,
    /// The text in the element.
    pub text: String,
}

/// Writes the report as suites; warnings are failures with `warnings_fail`.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, warnings_fail: bool, out: &mut impl Write) -> io::Result<()> {
    let mut suites = Suites::default();
    for error in &report.errors {
        suites.add_error(error);
    }
    // The findings of one object are put together. Two objects may have one name, so the address tells them apart.
    let mut findings: BTreeMap<*const ObjectRef, Vec<&LocatedFinding<'_>>> = BTreeMap::new();
    for located in report.causes().flat_map(|located| std::iter::once(located).chain(&located.in_others)) {
        findings.entry(std::ptr::from_ref(located.object_ref)).or_default().push(located);
    }
    let denies = |found: &Vec<&LocatedFinding<'_>>| found.iter().any(|located| located.finding.is_denial());
    let refused: BTreeSet<_> =
        findings.iter().filter(|(_, found)| denies(found)).map(|(of, _)| *of).collect();
    let mut objects: Vec<_> = report.objects.iter().collect();
    objects.sort_by_key(|object| !refused.contains(&std::ptr::from_ref(object.object_ref)));
    for object in objects {
        let found = findings.remove(&std::ptr::from_ref(object.object_ref)).unwrap_or_default();
        suites.add(object.file, tests(&title(object.object_ref, object.file), &found, warnings_fail));
    }
    // Findings about a file, or about an object that was not judged.
    for located in report.denials_first() {
        if let Some(found) = findings.remove(&std::ptr::from_ref(located.object_ref)) {
            let file = located.location.file;
            suites.add(file, tests(&title(located.object_ref, file), &found, warnings_fail));
        }
    }
    suites.write(out)
}

/// The name of a test: that of the object, else of the file.
fn title(about: &ObjectRef, file: &str) -> String {
    if about.kind.is_empty() { file.to_owned() } else { about.title() }
}

/// The suites of a document, one for each file.
#[derive(Default)]
pub(super) struct Suites {
    all: Vec<Suite>,
    numbers: BTreeMap<String, usize>,
}

impl Suites {
    /// Adds tests to the suite of a file.
    pub(super) fn add(&mut self, file: &str, tests: impl IntoIterator<Item = Test>) {
        let file = relative(file).into_owned();
        let number = *self.numbers.entry(file.clone()).or_insert(self.all.len());
        if number == self.all.len() {
            self.all.push(Suite { name: file, tests: Vec::new() });
        }
        if let Some(suite) = self.all.get_mut(number) {
            suite.tests.extend(tests);
        }
    }

    /// Adds the error of an input.
    pub(super) fn add_error(&mut self, error: &InputError<'_>) {
        let (kind, message) = (error.code().to_owned(), error.line.clone());
        let name = format!("{} can be read", error.file.map_or_else(|| "the input".into(), relative));
        let result = TestResult { element: "error", about: Some([kind, message]), text: String::new() };
        let test = Test { name, result: Some(result) };
        self.add(error.file.unwrap_or("memgate"), [test]);
    }

    /// Writes the suites as one document.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let all: Vec<&Test> = self.all.iter().flat_map(|suite| &suite.tests).collect();
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<testsuites name=\"memgate\" {}>", counts(&all))?;
        for suite in &self.all {
            writeln!(
                out,
                "  <testsuite name={} {}>",
                quoted(&suite.name),
                counts(&suite.tests.iter().collect::<Vec<_>>())
            )?;
            for test in &suite.tests {
                write_test(&suite.name, test, out)?;
            }
            writeln!(out, "  </testsuite>")?;
        }
        writeln!(out, "</testsuites>")
    }
}

/// One test for the object if nothing is found, else one for each code.
fn tests(title: &str, found: &[&LocatedFinding<'_>], warnings_fail: bool) -> Vec<Test> {
    if found.is_empty() {
        return vec![Test { name: title.to_owned(), result: None }];
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
            let failure = of_code(code).find(fails).map(|it| it.finding.message().into_owned());
            let element = match &failure {
                Some(_) => "failure",
                None if of_code(code).all(|located| is_exempt(located)) => "skipped",
                None => "system-out",
            };
            let about = failure.map(|message| [code.to_owned(), message]);
            let result = Some(TestResult { element, about, text });
            Test { name: format!("{title}: {code}"), result }
        })
        .collect()
}

fn is_exempt(located: &LocatedFinding<'_>) -> bool {
    located.finding.policy.as_ref().is_some_and(|policy| policy.status == PolicyStatus::Exempt)
}

/// A finding with its place and its help.
fn lines(located: &LocatedFinding<'_>) -> String {
    let (location, finding) = (&located.location, located.finding);
    let place = format!("{}:{}:{}", relative(location.file), location.line, location.column);
    let (severity, message) = (finding.severity.name(), finding.message());
    let mut text = format!("{}: {severity} {}\n", at_line_start(&place), plain(&message));
    if let Some(namespaces) = located.in_namespaces() {
        let _infallible = writeln!(text, "{namespaces}");
    }
    if let Some(help) = finding.help_text() {
        let _infallible = writeln!(text, "help: {}", plain(&help));
    }
    text
}

fn counts(tests: &[&Test]) -> String {
    let results = || tests.iter().filter_map(|it| it.result.as_ref());
    let of = |element| results().filter(|it| it.element == element).count();
    let (all, failures, errors) = (tests.len(), of("failure"), of("error"));
    format!("tests=\"{all}\" failures=\"{failures}\" errors=\"{errors}\"")
}

fn write_test(suite: &str, test: &Test, out: &mut impl Write) -> io::Result<()> {
    write!(out, "    <testcase classname={} name={}", quoted(suite), quoted(&test.name))?;
    let Some(TestResult { element, about, text: lines }) = &test.result else { return writeln!(out, "/>") };
    let about =
        about.as_ref().map(|[kind, message]| format!(" type={} message={}", quoted(kind), quoted(message)));
    writeln!(out, "><{element}{}>{}</{element}></testcase>", about.unwrap_or_default(), text(lines))
}

/// Text inside an element.
fn text(text: &str) -> String {
    text.split_inclusive(['\n', '\t']).fold(String::new(), |all, part| {
        let line = part.trim_end_matches(['\n', '\t']);
        all + &escaped(line) + part.get(line.len()..).unwrap_or_default()
    })
}

/// The value of an attribute, with its quotes. Line ends are escaped, since a reader would turn them into blanks or end
/// its line there.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A character that XML 1.0 cannot hold (most control characters) becomes a `?`.
fn escaped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            // In text only needed behind ]], and harmless elsewhere.
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => {
                let _infallible = write!(all, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => all.push('?'),
            c => all.push(c),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_would_end_the_text() {
        let text = "a<b>&\"c\"\n\u{1b}[31m\u{0}\r";
        assert_eq!(self::text(text), "a&lt;b&gt;&amp;&quot;c&quot;\n?[31m?&#13;");
        assert_eq!(quoted(text), "\"a&lt;b&gt;&amp;&quot;c&quot;&#10;?[31m?&#13;\"");
    }
}
