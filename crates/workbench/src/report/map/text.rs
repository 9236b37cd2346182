//! The map as text: memory resources by namespace, each with what is known of it and a line for each user.
//!
//! Every line about a user names both ends, so that a line of a diff can be read alone.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{MapLine, MapVerdict, MappedMemory, MemoryMap, UnitMap};
use crate::report::at_line_start;

const HEADER: Style = Style::new().bold();
const DENIED: Style = AnsiColor::Red.on_default().bold();
const MARK: Style = AnsiColor::Yellow.on_default();

/// The facts that share a line; each of the others has its own.
const TOGETHER: [&str; 4] = ["backend", "durable", "retention", "storage"];

/// Writes the map.
///
/// # Errors
/// Those of the writer.
pub fn write(map: &MemoryMap, out: &mut impl Write) -> io::Result<()> {
    let mut is_first = true;
    for unit in &map.units {
        for memories in unit.memories.chunk_by(|one, two| one.object.namespace == two.object.namespace) {
            let namespace = memories.first().map_or("", |memory| memory.object.namespace.as_str());
            if !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            let title = match namespace {
                "" => "without a namespace".to_owned(),
                namespace => format!("namespace {namespace}"),
            };
            let of_unit = if unit.unit.is_empty() { String::new() } else { format!("unit {}, ", unit.unit) };
            writeln!(out, "{HEADER}{}{HEADER:#}", at_line_start(&format!("{of_unit}{title}")))?;
            let names = |memory: &MappedMemory| (memory.object.kind.clone(), memory.object.name.clone());
            for same in memories.chunk_by(|one, two| names(one) == names(two)) {
                let names_family = same.chunk_by(|one, two| one.family == two.family).count() > 1;
                same.iter().try_for_each(|memory| write_memory(unit, memory, names_family, out))?;
            }
        }
    }
    Ok(())
}

/// Writes a memory resource, with its platform if that of another one has a kind and an object of the same names.
fn write_memory(
    unit: &UnitMap,
    memory: &MappedMemory,
    names_family: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let MappedMemory { object, family, presence, facts, users } = memory;
    let of_family = if names_family { format!(" (platform {family})") } else { String::new() };
    let verdict = tag(unit.verdict_of(memory));
    write!(out, "  {HEADER}{} {}{HEADER:#}{of_family}{verdict}", object.kind, object.name)?;
    match presence.words() {
        "" => writeln!(out)?,
        words => writeln!(out, " ({words})")?,
    }
    let (together, apart): (Vec<_>, Vec<_>) =
        facts.labelled().partition(|(label, _)| TOGETHER.contains(label));
    let words: Vec<String> = together.iter().map(|(label, fact)| format!("{label}: {fact}")).collect();
    if !words.is_empty() {
        writeln!(out, "    {}", words.join(", "))?;
    }
    for (label, fact) in apart {
        writeln!(out, "    {label}: {fact}")?;
    }
    if users.is_empty() {
        writeln!(out, "    no other object refers to it")?;
    }
    let title = object.title() + &of_family;
    users.iter().try_for_each(|line| write_line(unit, line, &title, out))
}

/// A verdict behind a name.
fn tag(verdict: MapVerdict) -> String {
    let style = match verdict {
        MapVerdict::Clean => return String::new(),
        MapVerdict::Denied | MapVerdict::Memoryless | MapVerdict::Missing => DENIED,
        MapVerdict::Warned => MARK,
    };
    format!(" {style}[{}]{style:#}", verdict.name())
}

fn write_line(unit: &UnitMap, line: &MapLine, memory: &str, out: &mut impl Write) -> io::Result<()> {
    write!(out, "    {}{} → {memory}", line.user.title(), tag(unit.verdict(&line.user)))?;
    if line.crosses {
        write!(out, "  {MARK}across namespaces{MARK:#}")?;
    }
    writeln!(out)
}
