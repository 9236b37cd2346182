//! Workflow commands, read as GitHub's runner reads them.

use serde_json::Value;

use crate::run::{Scratch, many};

/// A command as the runner has it.
#[derive(Debug)]
pub(crate) struct Annotation {
    pub(crate) kind: String,
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) message: String,
}

impl Annotation {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The runner's own way: up to the second `::` stands the command with its properties, which commas part.
pub(crate) fn parse(text: &str) -> Vec<Annotation> {
    let annotation = |line: &str| {
        let (command, message) = line.strip_prefix("::")?.split_once("::")?;
        let (kind, properties) = command.split_once(' ')?;
        let property = |text: &str| {
            let (name, value) = text.split_once('=')?;
            let value = value.replace("%3A", ":").replace("%2C", ",");
            Some((name.to_owned(), decoded(&value)))
        };
        let properties: Option<Vec<_>> = properties.split(',').map(property).collect();
        Some(Annotation { kind: kind.to_owned(), properties: properties?, message: decoded(message) })
    };
    text.lines().map(|line| annotation(line).unwrap_or_else(|| panic!("no command: {line:?}"))).collect()
}

fn decoded(text: &str) -> String {
    text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
}

/// A command for each finding, at most ten of a kind.
pub(crate) fn expect_good(text: &str, report: &Value, name: &str) {
    let annotations = parse(text);
    for (kind, severities) in
        [("error", ["deny", "error"]), ("warning", ["warn", ""]), ("notice", ["note", ""])]
    {
        let entries = report["inputErrors"].as_array().expect("errors").iter();
        let entries = entries.chain(report["findings"].as_array().expect("findings"));
        let entries: Vec<&Value> = entries
            .filter(|entry| severities.contains(&entry["severity"].as_str().unwrap_or("error")))
            .collect();
        let of_kind: Vec<_> = annotations.iter().filter(|it| it.kind == kind).collect();
        assert!(of_kind.len() <= 10 && of_kind.len() >= entries.len().min(10), "{name}: {text}");
        for (annotation, entry) in of_kind.iter().zip(&entries).take(9) {
            assert_eq!(annotation.get("title"), entry["code"].as_str(), "{name}");
            assert!(
                annotation.message.starts_with(entry["message"].as_str().expect("one")),
                "{name}: {annotation:?}"
            );
            let number = |key| annotation.get(key).map(|number| number.parse::<u64>().expect("a number"));
            if annotation.get("file").is_some() {
                assert_eq!(number("line"), entry["line"].as_u64(), "{name}");
            }
            let is_on_one_line = entry["endLine"] == entry["line"] || entry["endLine"].is_null();
            assert!(
                number("col").is_none() || is_on_one_line && number("col") == entry["column"].as_u64(),
                "{name}"
            );
        }
    }
}

#[test]
fn tells_how_many_more_there_are() {
    let scratch = Scratch::with(&[("many.yaml", &many(3))]);
    let report = scratch.json(&["check", "many.yaml", "-o", "json"]);
    let all = report["summary"]["deny"].as_u64().expect("a number");
    let annotations = parse(&scratch.out(&["check", "many.yaml", "-o", "github"]));
    let of_kind: Vec<_> = annotations.iter().filter(|it| it.kind == "error").collect();
    assert_eq!(of_kind.len(), 10);
    assert!(of_kind[9].message.starts_with(&format!("{} more errors", all - 9)), "{annotations:?}");
}
