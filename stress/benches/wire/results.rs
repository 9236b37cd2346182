//! What was measured: every round of every figure, as it is kept in stress/benches/results.

use std::borrow::Cow;
use std::{env, fs};

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// A run of the bench.
#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) commit: String,
    pub(crate) date: String,
    pub(crate) machine: String,
    pub(crate) tables: Vec<Table>,
    /// For each server the times within which which share of calls was answered.
    pub(crate) curves: Vec<Curve>,
}

/// Rows that are measured in the same way.
#[derive(Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) name: Cow<'static, str>,
    /// What its rows differ in besides the server.
    pub(crate) by: Cow<'static, str>,
    pub(crate) rows: Vec<Row>,
}

/// One server in one case.
#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) server: String,
    pub(crate) figures: Vec<Figure>,
}

/// One number of each round.
#[derive(Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: Cow<'static, str>,
    pub(crate) rounds: Vec<f64>,
}

/// A distribution of latency: pairs of a percentile and milliseconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Curve {
    pub(crate) server: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// The least, the middle and the most.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Figure {
    pub(crate) fn spread(&self) -> Spread {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        let at = |index: usize| rounds.get(index).copied().unwrap_or(f64::NAN);
        Spread { least: at(0), median: at(rounds.len() / 2), most: at(rounds.len().saturating_sub(1)) }
    }
}

impl Row {
    /// Notes the figures of one round, always the same ones in the same order.
    pub(crate) fn note(&mut self, figures: &[(&'static str, f64)]) {
        for &(name, value) in figures {
            match self.figures.iter_mut().find(|figure| figure.name == name) {
                Some(figure) => figure.rounds.push(value),
                None => self.figures.push(Figure { name: name.into(), rounds: vec![value] }),
            }
        }
    }
}

impl Table {
    pub(crate) fn new(name: &'static str, by: &'static str) -> Self {
        Self { name: name.into(), by: by.into(), rows: Vec::new() }
    }

    /// The row of this case and server, new if need be.
    pub(crate) fn row(&mut self, case: &str, server: &str) -> &mut Row {
        let found = self.rows.iter().position(|row| row.case == case && row.server == server);
        let index = found.unwrap_or(self.rows.len());
        if found.is_none() {
            self.rows.push(Row { case: case.to_owned(), server: server.to_owned(), figures: Vec::new() });
        }
        &mut self.rows[index]
    }
}

impl Results {
    /// These, of this machine, and of the commit and the day that `tools/bench.sh` names.
    pub(crate) fn of(tables: Vec<Table>, curves: Vec<Curve>) -> Result<Self> {
        let said = |name: &str| env::var(name).unwrap_or_else(|_| "unknown".to_owned());
        let cpu = fs::read_to_string("/proc/cpuinfo")?;
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("unknown CPU");
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let cores = cpu.lines().filter(|line| line.starts_with("processor\t")).count();
        Ok(Self {
            commit: said("MEMGATE_BENCH_COMMIT"),
            date: said("MEMGATE_BENCH_DATE"),
            machine: format!("{cores} cores ({model}), Linux {}", kernel.trim()),
            tables,
            curves,
        })
    }

    /// The median of a figure, if it was measured.
    pub(crate) fn median(&self, table: &str, case: &str, server: &str, figure: &str) -> Option<f64> {
        let table = self.tables.iter().find(|found| found.name == table)?;
        let row = table.rows.iter().find(|row| row.case == case && row.server == server)?;
        row.figures.iter().find(|found| found.name == figure).map(|figure| figure.spread().median)
    }
}
