//! What the request path should be like, beside what it is.

use super::measure::{LARGE, OTHER, SMALL, quiet, rotating};
use super::results::Results;
use super::{LIMIT, MEMGATE, PEER, STATIC, cluster};

/// A goal with what was measured.
pub(crate) struct Goal {
    pub(crate) what: String,
    bound: Bound,
    measured: f64,
}

/// On which side of a number a goal is.
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    pub(crate) fn bound(&self) -> String {
        match self.bound {
            Bound::AtLeast(bound) => format!("≥ {bound}"),
            Bound::AtMost(bound) => format!("≤ {bound}"),
        }
    }

    pub(crate) fn measured(&self) -> f64 {
        self.measured
    }
}

/// All goals of which everything was measured.
pub(crate) fn goals(results: &Results) -> Vec<Goal> {
    use Bound::{AtLeast, AtMost};
    let rate = |case, server| results.median("Throughput", case, server, "requests/s");
    let cpu = |case, server| results.median("Throughput", case, server, "CPU, µs");
    let times = |case| Some(rate(case, MEMGATE)? / rate(case, PEER)?);
    let share = |case| Some(100.0 * rate(case, MEMGATE)? / rate(case, LIMIT)?);
    let beyond = |case| Some(cpu(case, MEMGATE)? - cpu(case, LIMIT)?);
    let case = quiet();
    let p99 = |server| results.median("Latency", &case, server, "p99, ms");
    let slowest = |case: &str| results.median("Latency", case, MEMGATE, "p99.9, ms");
    let state = |objects, figure| results.median("State", objects, MEMGATE, figure);
    let grown = |objects| Some(100.0 * (state(objects, "CPU, µs")? / state("10", "CPU, µs")? - 1.0));
    let more_cpu = |case| Some(100.0 * (cpu(case, STATIC)? / cpu(case, MEMGATE)? - 1.0));
    let memory = results.tables.iter().find(|table| table.name == "Memory");
    let loaded = memory.and_then(|table| table.rows.first()).map(|row| row.case.clone()).unwrap_or_default();
    let after = |server| results.median("Memory", &loaded, server, "resident after, MiB");
    let goals = [
        (format!("times the Go peer, {SMALL}"), AtLeast(20.0), times(SMALL)),
        (format!("times the Go peer, {LARGE}"), AtLeast(45.0), times(LARGE)),
        (format!("% of the limit, {SMALL}"), AtLeast(45.0), share(SMALL)),
        (format!("% of the limit, {LARGE}"), AtLeast(25.0), share(LARGE)),
        (format!("% of the limit, {OTHER}"), AtLeast(65.0), share(OTHER)),
        (format!("µs of CPU beyond the limit, {SMALL}"), AtMost(10.0), beyond(SMALL)),
        (format!("µs of CPU beyond the limit, {LARGE}"), AtMost(65.0), beyond(LARGE)),
        (format!("p99 in ms at {case}"), AtMost(0.5), p99(MEMGATE)),
        (
            "the Go peer's p99 in times of it".to_owned(),
            AtLeast(40.0),
            p99(PEER).zip(p99(MEMGATE)).map(|(peer, own)| peer / own),
        ),
        (
            "p99.9 while the certificate is replaced, in times of the quiet one".to_owned(),
            AtMost(3.0),
            slowest(&rotating()).zip(slowest(&case)).map(|(rotating, quiet)| rotating / quiet),
        ),
        (
            "new connections a second, one review each".to_owned(),
            AtLeast(3_000.0),
            results.median("Handshakes", SMALL, MEMGATE, "requests/s"),
        ),
        (
            "ms from start to first answer, 10 objects".to_owned(),
            AtMost(20.0),
            state("10", "start to first answer, ms"),
        ),
        (
            "ms from start to first answer, 10,000 objects".to_owned(),
            AtMost(1_000.0),
            state("10,000", "start to first answer, ms"),
        ),
        ("MiB at rest, 1,000 objects".to_owned(), AtMost(20.0), state("1,000", "resident at rest, MiB")),
        ("MiB at rest, 50,000 objects".to_owned(), AtMost(80.0), state("50,000", "resident at rest, MiB")),
        ("MiB at rest, 100,000 objects".to_owned(), AtMost(150.0), state("100,000", "resident at rest, MiB")),
        ("% more CPU with 100,000 objects than with 10".to_owned(), AtMost(10.0), grown("100,000")),
        ("MiB of the static binary after load".to_owned(), AtMost(20.0), after(STATIC)),
        (format!("% more CPU of the static binary, {SMALL}"), AtMost(5.0), more_cpu(SMALL)),
        (format!("% more CPU of the static binary, {LARGE}"), AtMost(5.0), more_cpu(LARGE)),
    ];
    let measured = goals
        .into_iter()
        .chain(cluster::goals::goals(results))
        .filter_map(|(what, bound, measured)| Some(Goal { what, bound, measured: measured? }));
    measured.collect()
}
