//! The map as a Mermaid flowchart: a subgraph for each namespace, a class for each verdict, lines across namespaces dotted.
//!
//! Names are in labels only, in double quotes, with every letter that Mermaid, Markdown or HTML could read as more than
//! itself as a numeric code. Nothing can be clicked.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::graph::{Edge, Graph, Node, Shape, Step, expect_few, middle};
use super::{MappedObject, MemoryMap, Verdict};
use crate::report::fingerprint::hash;

/// The most bytes of a chart that GitHub and GitLab draw.
const MAX_TEXT_BYTES: usize = 50_000;

/// Room for the line that says how much of a table is left out.
const MORE_BYTES: usize = 100;

/// The most bytes of a label.
const MAX_LABEL_BYTES: usize = 280;

/// The most characters of a part of a label.
const MAX_CHARS: usize = 100;

/// The most bytes of an id: the names of most objects together have fewer.
const MAX_ID_BYTES: usize = 64;

/// Writes the map.
///
/// # Errors
/// In words, for a map that is too large.
pub(super) fn write(map: &MemoryMap) -> Result<String, String> {
    let text = draw(&Graph::of(map)?);
    expect_few(text.len(), MAX_TEXT_BYTES, "bytes")?;
    Ok(text)
}

fn draw(graph: &Graph<'_>) -> String {
    let mut out = "flowchart LR\n".to_owned();
    let mut depth = 1;
    let mut ids = Ids::default();
    let nodes: Vec<String> = graph.nodes.iter().map(|node| ids.of(node)).collect();
    let id = |number: usize| nodes.get(number).map_or("", String::as_str);
    graph.walk(|step| {
        let indent = "  ".repeat(depth);
        let _ = match step {
            Step::Open(group) => {
                depth += 1;
                let title = label(&middle(&group.title(), MAX_CHARS));
                writeln!(out, "{indent}subgraph {}[\"{title}\"]", ids.id(&group.0))
            }
            Step::Node(number, node) => writeln!(out, "{indent}{}{}", id(number), box_of(node)),
            Step::Close => {
                depth -= 1;
                writeln!(out, "{}end", "  ".repeat(depth))
            }
        };
    });
    for edge in &graph.edges {
        let _ = writeln!(out, "  {} {} {}", id(edge.from), arrow(edge), id(edge.to));
    }
    for verdict in Verdict::ALL {
        let nodes = graph.nodes.iter().zip(&nodes).filter(|(node, _)| node.verdict == Some(verdict));
        let (mut nodes, name, style) = (nodes.peekable(), verdict.name(), style(verdict));
        if style.is_empty() || nodes.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "  classDef {name} {style}");
        for (_, id) in nodes {
            let _ = writeln!(out, "  class {id} {name}");
        }
    }
    out
}

/// Writes the reason why there is no picture, and in comments as much of the table as Mermaid takes.
pub(super) fn write_table(why: &str, table: &str) -> String {
    let mut out = format!("flowchart LR\n  note[\"{}, so its table is in the comments\"]\n", label(why));
    // A comment without a letter is none.
    let lines: Vec<&str> = table.lines().filter(|line| !line.is_empty()).collect();
    for (number, line) in lines.iter().enumerate() {
        let comment = format!("  %% {}\n", coded(line, "→[]", usize::MAX));
        if out.len() + comment.len() > MAX_TEXT_BYTES - MORE_BYTES {
            let _ = writeln!(out, "  %% {} more lines are in memgate map -o text", lines.len() - number);
            break;
        }
        out += &comment;
    }
    out
}

/// How boxes of a verdict look; empty for one that is as usual.
const fn style(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Clean => "",
        Verdict::Unused => "stroke:#57606a,stroke-width:2px,stroke-dasharray:2 3",
        Verdict::Missing => "stroke:#b42318,stroke-width:2px,stroke-dasharray:5 5",
        Verdict::Warned => "stroke:#8a5300,stroke-width:2px",
        Verdict::Memoryless => "stroke:#b42318,stroke-width:2px",
        Verdict::Denied => "stroke:#b42318,stroke-width:3px",
    }
}

/// A box, behind its id.
fn box_of(node: &Node<'_>) -> String {
    let [open, close] = match node.shape {
        Shape::Referrer => ["(", ")"],
        Shape::Pod => ["[[", "]]"],
        Shape::Memory | Shape::Unread => ["[", "]"],
        Shape::Store => ["[(", ")]"],
    };
    let MappedObject { namespace, kind, name, .. } = &node.object;
    let of_host = node.shape == Shape::Store && !namespace.is_empty();
    let behind = if of_host { format!(" (namespace {namespace})") } else { String::new() };
    let verdict = node.verdict.filter(|verdict| *verdict != Verdict::Clean).map(|it| it.words().to_owned());
    let parts =
        [format!("{kind} {name}{behind}")].into_iter().chain(verdict).chain(node.words.iter().cloned());
    let parts: Vec<String> = parts.map(|part| middle(&part, MAX_CHARS)).collect();
    format!("{open}\"{}\"{close}", label(&parts.join(", ")))
}

/// The arrow of a line, with its label.
fn arrow(edge: &Edge) -> String {
    let arrow = if edge.crosses { "-.->" } else { "-->" };
    let words: Vec<&str> = edge.marks().map(|(_, words)| words).chain(edge.differs.as_deref()).collect();
    match middle(&words.join(", "), MAX_CHARS) {
        text if text.is_empty() => arrow.to_owned(),
        text => format!("{arrow}|\"{}\"|", label(&text)),
    }
}

/// A text inside of double quotes.
fn label(text: &str) -> String {
    coded(text, "", MAX_LABEL_BYTES)
}

/// A text of about so many bytes. Letters with a meaning become codes, but for these. So do the dot of `www.` and a colon
/// without a blank behind it: they make links, and behind the word `style` Mermaid takes a code after such a colon for a
/// colour.
fn coded(text: &str, kept: &str, most: usize) -> String {
    let mut label = String::with_capacity(text.len());
    let mut behind = text.chars().peekable();
    while let Some(c) = behind.next() {
        if label.len() > most {
            return label + "…";
        }
        let has_meaning = (c == ':' && behind.peek() != Some(&' ')) || (c == '.' && label.ends_with("www"));
        let is_plain = c.is_alphanumeric()
            || matches!(c, ' ' | '-' | '.' | '/' | ':' | ',' | '(' | ')' | '…')
            || kept.contains(c);
        if is_plain && !has_meaning {
            label.push(c);
        } else {
            let _ = write!(label, "#{};", u32::from(c));
        }
    }
    label
}

/// The ids so far.
#[derive(Default)]
struct Ids(BTreeSet<String>);

impl Ids {
    /// The id of a box.
    fn of(&mut self, Node { unit, family, object, shape, .. }: &Node<'_>) -> String {
        let MappedObject { namespace, kind, name, .. } = object;
        match shape {
            Shape::Store => self.id(&["host", unit, namespace, name]),
            Shape::Memory | Shape::Unread => self.id(&["memory", unit, family, kind, namespace, name]),
            Shape::Referrer | Shape::Pod => self.id(&["user", unit, family, kind, namespace, name]),
        }
    }

    /// An id of ASCII letters, digits and underscores, made from a word and names. Names that Kubernetes accepts have an
    /// id that no others have; a long id ends with a hash of them. Of other names, an id has a number if an earlier one is
    /// the same.
    fn id(&mut self, names: &[&str]) -> String {
        let mut base = String::new();
        for name in names.iter().filter(|name| !name.is_empty()) {
            base.push_str(if base.is_empty() { "" } else { "__" });
            let mut before = ' ';
            for c in name.chars() {
                match c {
                    c if c.is_ascii_alphanumeric() => base.push(c),
                    // A second one would look like the border of two names.
                    '-' | ' ' if before != '-' => base.push('_'),
                    c => _ = write!(base, "_{:X}_", u32::from(c)),
                }
                before = c;
            }
        }
        if base.len() > MAX_ID_BYTES {
            let end = format!("__{}", hash(names));
            base.truncate(MAX_ID_BYTES - end.len());
            base += &end;
        }
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let mut all = std::iter::once(base.clone()).chain(numbered);
        all.find(|id| self.0.insert(id.clone())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::map::graph::samples::map;
    use crate::report::map::{Facts, MapLine};

    #[test]
    fn no_name_leaves_its_comment() {
        let table = "a\n\n  <b> → %%{init: x}%% [denied]\n";
        let codes = "  &#60;b&#62; → &#37;&#37;&#123;init: x&#125;&#37;&#37; [denied]".replace('&', "");
        let expected =
            format!("flowchart LR\n  note[\"why, so its table is in the comments\"]\n  %% a\n  %% {codes}\n");
        assert_eq!(write_table("why", table), expected);
    }

    #[test]
    fn letters_with_a_meaning_become_codes() {
        assert_eq!(label("ArkMemory team-a/notes, a: 1.5 (x)"), "ArkMemory team-a/notes, a: 1.5 (x)");
        assert_eq!(label("\"]; <b>`#&"), "#34;#93;#59; #60;b#62;#96;#35;#38;");
        assert_eq!(label("style x:80:"), "style x#58;80#58;");
        assert_eq!(label("_a_ http://www.x"), "#95;a#95; http#58;//www#46;x");
    }

    #[test]
    fn a_text_that_is_not_drawn_is_too_large() {
        // Twelve memory resources that all of twenty pods use, each with long variables of its own.
        let mut map = map([1, 12, 0], 1);
        for memory in &mut map.units[0].memories {
            memory.facts = Facts::default();
            let line = |number: usize| MapLine {
                user: MappedObject { name: number.to_string(), ..MappedObject::default() },
                differs: Some("\"".repeat(300)),
                ..MapLine::default()
            };
            memory.users = (0..20).map(line).collect();
        }
        assert!(Graph::of(&map).is_ok());
        let error = write(&map).expect_err("is long");
        assert!(error.contains("a picture at most 50000"), "{error}");
    }

    #[test]
    fn names_of_kubernetes_have_ids_without_numbers() {
        let names = [
            ["user", "Agent", "a-b", "c"],
            ["user", "Agent", "a", "b-c"],
            ["user", "Agent", "a", "b--c"],
            ["user", "Agent", "a", "b.c"],
            ["user", "Agent", "a", "b-2e-c"],
            ["user", "Agent", "1a", ""],
        ];
        let mut ids = Ids::default();
        assert_eq!(
            names.map(|names| ids.id(&names)),
            [
                "user__Agent__a_b__c", "user__Agent__a__b_c", "user__Agent__a__b__2D_c",
                "user__Agent__a__b_2E_c", "user__Agent__a__b_2e_c", "user__Agent__1a",
            ]
        );
    }

    #[test]
    fn ids_occur_once() {
        let mut ids = Ids::default();
        let names = [["host", "a b"], ["host", "a-b"], ["host", "a-b"], ["host", "a b 2"]];
        assert_eq!(
            names.map(|names| ids.id(&names)),
            ["host__a_b", "host__a_b_2", "host__a_b_3", "host__a_b_2_2"]
        );
        let long = ["\u{e4}\"", "a"].map(|text| text.repeat(500));
        let long = long.map(|name| ids.id(&["host", &name]));
        assert_eq!(long.each_ref().map(String::len), [MAX_ID_BYTES; 2]);
        assert_ne!(long[0].rsplit_once("__"), long[1].rsplit_once("__"));
    }
}
