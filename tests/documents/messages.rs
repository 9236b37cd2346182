//! Every message with a sample, in one file that is read in review: `messages.txt` beside this one.
//!
//! The samples are the findings of all cases, in the order of the codes. Messages that differ only in names, values and
//! paths are one message. A code that needs files takes the failing example of its page.
//! `BLESS=1 cargo test --test documents messages` writes the file anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use memgate_core::admission;
use memgate_core::decide::codes;
use memgate_model::finding::{Code, Finding};
use memgate_model::request::Occasion;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::Value;

use super::cases::cases;
use super::codes::{WITHOUT_EXAMPLE, block};
use super::memgate;

/// A sample by its code, its severity and its text without values.
type Samples = BTreeMap<(String, String, String), String>;

#[test]
fn every_code_has_a_sample() {
    let samples = samples().expect("every case has a decision");
    let known: BTreeSet<&str> = samples.keys().map(|(code, ..)| code.as_str()).collect();
    for code in codes::all(&memgate_platforms::ALL).map(|code| code.name) {
        let excepted = WITHOUT_EXAMPLE.iter().any(|(name, _)| *name == code);
        assert!(known.contains(code) || excepted, "{code} has no sample: write a case that reports it");
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents/messages.txt");
    let text: String = samples.values().map(String::as_str).collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, &text).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&page).expect("the page can be read");
    let differs = text.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(
        text == written,
        "messages.txt is out of date: {differs:?}; BLESS=1 cargo test --test documents messages writes it anew"
    );
}

fn samples() -> Result<Samples> {
    let mut samples = Samples::new();
    for (file, case) in cases()? {
        for finding in findings(&case).with_context(|| format!("{file}: {}", case.name))? {
            let (message, help) = (finding.message(), finding.help_text().unwrap_or_default());
            let texts: [&str; 2] = [&message, &help];
            add(
                &mut samples,
                finding.code.name,
                finding.severity.name(),
                &finding.pointer.field(),
                texts,
                &case.name,
            );
        }
    }
    for code in codes::all(&memgate_platforms::ALL) {
        if WITHOUT_EXAMPLE.iter().all(|(name, _)| *name != code.name) {
            add_of_page(&mut samples, code)?;
        }
    }
    Ok(samples)
}

/// What the library finds in a case.
fn findings(case: &Case) -> Result<Vec<Finding>> {
    let body = request::review(case).to_string();
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    Ok(admission::admit(&review.request, &request::state(case)?)?.decision.findings)
}

/// What the command finds in the failing example of a page.
fn add_of_page(samples: &mut Samples, code: &'static Code) -> Result<()> {
    let (language, example) = block(code.page.text(), code.name, "## Failing example");
    if language != "yaml" {
        return Ok(());
    }
    let output = memgate(&["check", "-o", "json", "-"], example);
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let found = report.get("findings").and_then(Value::as_array).context("findings")?;
    for finding in found {
        let text = |name: &str| finding.get(name).and_then(Value::as_str).unwrap_or_default();
        let texts = [text("message"), text("help")];
        add(samples, text("code"), text("severity"), text("field"), texts, "its page");
    }
    Ok(())
}

/// Keeps the first finding of each text.
fn add(samples: &mut Samples, code: &str, severity: &str, field: &str, texts: [&str; 2], from: &str) {
    let [message, help] = texts;
    let key = (code.to_owned(), severity.to_owned(), without_values(message, field));
    samples.entry(key).or_insert_with(|| {
        let help = if help.is_empty() { String::new() } else { format!("  help: {help}\n") };
        format!("{code} {severity} at {field} ({from})\n  {message}\n{help}")
    });
}

/// A message without its field, and without what it quotes and counts.
fn without_values(message: &str, field: &str) -> String {
    let message = message.strip_prefix(field).unwrap_or(message);
    let unquoted: String = message.split('"').step_by(2).collect();
    unquoted.split(|it: char| it.is_ascii_digit()).collect()
}
