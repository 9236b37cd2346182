//! Pictures of the results.

use std::path::Path;

use anyhow::{Context, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::results::{Results, Table};
use super::tables::thousands;
use super::{LIMIT, MEMGATE, PEER, STATIC};

const SIZE: (u32, u32) = (860, 420);

/// The room of a server's name beside its colour: the length of a text is not known without its font.
const NAME_WIDTH: usize = 190;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One colour a server, fit for people who see few colours; any others are other builds of memgate.
const COLOURS: [(&str, RGBColor); 4] = [
    (LIMIT, RGBColor(120, 120, 120)),
    (MEMGATE, RGBColor(0, 114, 178)),
    (STATIC, RGBColor(86, 180, 233)),
    (PEER, RGBColor(213, 94, 0)),
];

/// Draws what was measured into files of this folder.
pub(crate) fn draw(results: &Results, folder: &Path) -> Result<()> {
    let table = |name| results.tables.iter().find(|table: &&Table| table.name == name).context("a table");
    throughput(table("Throughput")?, &folder.join("throughput.svg"))?;
    latency(results, &folder.join("latency.svg"))?;
    let state = table("State")?;
    growth(state, ("CPU, µs", "µs of CPU a request"), &folder.join("growth-cpu.svg"))?;
    growth(state, ("resident at rest, MiB", "MiB at rest"), &folder.join("growth-memory.svg"))
}

fn colour(server: &str) -> RGBColor {
    COLOURS.iter().find(|(name, _)| *name == server).map_or(BLACK, |(_, colour)| *colour)
}

/// A white area with a title and, below it, the colour and the name of each server. The chart goes into what is left.
fn area_below_legend<'a>(path: &'a Path, title: &str, servers: &[&str]) -> Result<(Area<'a>, Area<'a>)> {
    let whole = SVGBackend::new(path, SIZE).into_drawing_area();
    whole.fill(&WHITE)?;
    let (legend, chart) = whole.titled(title, ("sans-serif", 18))?.split_vertically(24);
    for (x, server) in (72..).step_by(NAME_WIDTH).zip(servers) {
        legend.draw(&Rectangle::new([(x, 8), (x + 14, 18)], colour(server).filled()))?;
        legend.draw(&Text::new((*server).to_owned(), (x + 20, 8), ("sans-serif", 12)))?;
    }
    Ok((whole, chart))
}

/// A number beside an axis, without digits that say nothing: 0.1, 1, 100,000.
fn tick(value: f64) -> String {
    if value < 0.95 {
        format!("{value:.2}").trim_end_matches('0').to_owned()
    } else {
        thousands(index_of(value.round()))
    }
}

/// Bars of requests a second, grouped by review; each step of the axis is ten times the one before.
fn throughput(table: &Table, path: &Path) -> Result<()> {
    let (mut cases, mut servers) = (Vec::new(), Vec::new());
    for row in &table.rows {
        for (name, names) in [(&row.case, &mut cases), (&row.server, &mut servers)] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let names: Vec<&str> = servers.iter().map(|server| server.as_str()).collect();
    let (whole, area) = area_below_legend(path, "requests a second on one core", &names)?;
    let groups = f64::from(u32::try_from(cases.len())?);
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(30)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..groups, (10.0..200_000.0).log_scale())?;
    let case_at = |x: &f64| cases.get(index_of(*x)).map(|name| (*name).clone()).unwrap_or_default();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(cases.len() * 2 + 1)
        .x_label_formatter(&|x: &f64| if (x.fract() - 0.5).abs() < 0.01 { case_at(x) } else { String::new() })
        .y_label_formatter(&|y: &f64| tick(*y))
        .draw()?;
    let width = 0.8 / f64::from(u32::try_from(servers.len())?);
    for (number, server) in servers.iter().enumerate() {
        let mut bars = Vec::new();
        for row in table.rows.iter().filter(|row| row.server == **server) {
            let group = cases.iter().position(|case| **case == row.case).context("a case")?;
            let Some(figure) = row.figures.first() else { continue };
            let left = f64::from(u32::try_from(group)?) + 0.1 + width * f64::from(u32::try_from(number)?);
            bars.push(Rectangle::new(
                [(left, 10.0), (left + width * 0.9, figure.spread().median)],
                colour(server).filled(),
            ));
        }
        chart.draw_series(bars)?;
    }
    Ok(whole.present()?)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
fn index_of(x: f64) -> usize {
    x.max(0.0) as usize
}

/// Times within which calls were answered, towards the slowest: each step to the right is a tenth of the calls left.
fn latency(results: &Results, path: &Path) -> Result<()> {
    let servers: Vec<&str> = results.curves.iter().map(|curve| curve.server.as_str()).collect();
    let title = "time to the answer, 2,000 reviews a second on one core";
    let (whole, area) = area_below_legend(path, title, &servers)?;
    // 0 is the median's side, 1 is 90 %, 2 is 99 % and 3 is 99.9 %.
    let nines = |percentile: f64| -(1.0 - percentile / 100.0).log10();
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..4.0, (0.01..1_000.0).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(5)
        .x_label_formatter(&|x: &f64| match index_of(x.round()) {
            0 => "all".to_owned(),
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            nines => format!("99.{} %", "9".repeat(nines - 2)),
        })
        .y_label_formatter(&|y: &f64| tick(*y))
        .y_desc("ms")
        .draw()?;
    for curve in &results.curves {
        let line = curve.points.iter().map(|&(percentile, millis)| (nines(percentile), millis.max(0.01)));
        chart.draw_series(LineSeries::new(line, colour(&curve.server).stroke_width(2)))?;
    }
    Ok(whole.present()?)
}

/// One figure by the number of objects in the state; each step of both axes is ten times the one before.
fn growth(table: &Table, (figure, title): (&str, &str), path: &Path) -> Result<()> {
    let mut lines: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for row in &table.rows {
        let objects: f64 = row.case.replace(',', "").parse()?;
        let Some(value) = row.figures.iter().find(|found| found.name == figure) else { continue };
        let point = (objects, value.spread().median);
        // A server that refused all calls has no CPU time for each, and an axis up to infinity has no end.
        if !point.1.is_finite() {
            continue;
        }
        match lines.iter_mut().find(|(server, _)| *server == row.server) {
            Some((_, points)) => points.push(point),
            None => lines.push((&row.server, vec![point])),
        }
    }
    let most = lines.iter().flat_map(|(_, points)| points).map(|&(_, value)| value).fold(1.0, f64::max);
    let servers: Vec<&str> = lines.iter().map(|&(server, _)| server).collect();
    let (whole, area) = area_below_legend(path, &format!("{title}, by objects in the state"), &servers)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((10.0..100_000.0).log_scale(), (1.0..most * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .x_label_formatter(&|x: &f64| thousands(index_of(*x)))
        .y_label_formatter(&|y: &f64| tick(*y))
        .draw()?;
    for (server, points) in lines {
        let colour = colour(server);
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, colour.filled())))?;
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    Ok(whole.present()?)
}
