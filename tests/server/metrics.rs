//! The metrics of a server that has seen every case file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use memgate_core::state;
use memgate_manifest::document::values;
use memgate_server::State;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::read::read;
use memgate_workbench::files::casefile::request;
use memgate_workbench::files::read::collect;

use crate::client::post;
use crate::running::Running;

const DOCUMENTATION: &str = include_str!("../../docs/metrics.md");

/// How many series one replica may have.
const MAX_SERIES: usize = 1_500;

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let collected = collect(&[root.display().to_string()], &Plan::default(), &mut std::io::empty());
    assert!(collected.errors.is_empty(), "{:?}", collected.errors);
    let mut errors = Vec::new();
    let sources = collected.sources.iter();
    let documents: Vec<_> = sources.flat_map(|source| values(source, &mut errors)).collect();
    let cases = documents.iter().flat_map(|document| read(document.value()).unwrap()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    cases
}

/// The objects of all cases together; where two have the same name the last one stays.
fn state(cases: &[Case]) -> State {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    for object in cases.iter().flat_map(|case| &case.state) {
        state::add(&mut snapshot, object).unwrap();
    }
    State::Fixed(snapshot)
}

/// The label pairs of a series.
fn labels(series: &str) -> Vec<(&str, &str)> {
    let labels = series.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
    labels.split(',').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k, v.trim_matches('"'))).collect()
}

/// The values that each label may have, as they are documented.
fn documented() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let rows = DOCUMENTATION.split("| label |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = rows.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    rows.map(|(label, row)| (label, row.split('`').skip(1).step_by(2).collect())).collect()
}

#[tokio::test]
async fn no_case_makes_a_label_that_is_not_from_a_list() {
    let cases = cases();
    let server = Running::start_with(state(&cases), |_| {});
    let before = server.health("/metrics").await.text();
    let mut connection = server.connect().await;
    for case in &cases {
        let body = request::review(case).to_string();
        for path in ["/mutate", "/validate"] {
            connection.send(&post(path, body.as_bytes())).await;
            connection.answer().await;
        }
    }
    let text = server.health("/metrics").await.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series: Vec<_> = lines.map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert!(series.len() <= MAX_SERIES, "{} series", series.len());

    // What a request can be counted as was there before, so that the first of its kind is an increase.
    let counted = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| line.starts_with("memgate_admission_requests_total"));
        lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    assert_eq!(counted(&before), counted(&text));

    let documented = documented();
    let mut seen: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (label, value) in series.iter().flat_map(|series| labels(series)) {
        seen.entry(label).or_default().insert(value);
    }
    for (label, values) in &seen {
        match *label {
            // The cases have policies of any name.
            "le" | "policy" => {}
            "version" => assert_eq!(values.iter().collect::<Vec<_>>(), [&env!("CARGO_PKG_VERSION")]),
            label => assert!(values.is_subset(&documented[label]), "{label}: {values:?}"),
        }
    }
    // The cases reach most of what can be counted, or the rest of this would say little.
    assert!(seen["reason"].len() >= 15, "{:?}", seen["reason"]);
    assert_eq!(seen["family"], documented["family"]);
    let total: u64 = text
        .lines()
        .filter(|line| line.starts_with("memgate_admission_requests_total"))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(total, 2 * cases.len() as u64, "every request is counted once");
}

/// Its caller waits for the head too.
#[tokio::test]
async fn time_counts_from_the_first_byte() {
    let server = Running::start(|_| {});
    let mut connection = server.connect().await;
    let request = post("/mutate", b"{}");
    let (first, rest) = request.split_at(10);
    connection.send(first).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    connection.send(rest).await;
    assert_eq!(connection.answer().await.status, 400);
    for (bucket, count) in [("0.1", "0"), ("+Inf", "1")] {
        let series =
            format!(r#"memgate_admission_duration_seconds_bucket{{le="{bucket}",webhook="mutate"}}"#);
        assert_eq!(server.metric(&series).await.as_deref(), Some(count), "{bucket}");
    }
}
