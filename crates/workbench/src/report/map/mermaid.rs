//! The map as a Mermaid flowchart: a subgraph for each namespace, a class for each verdict, lines across namespaces dotted.
//!
//! Names are in labels only, in double quotes, with every letter that Mermaid, Markdown or HTML could read as more than
//! itself as a numeric code. Nothing can be clicked.

use std::fmt::Write as _;

use super::Verdict;
use super::graph::{Edge, Graph, MAX_LABEL_BYTES, MAX_TEXT_BYTES, Node, Shape, Step, middle};

/// Room for the line that says how much of a table is left out.
const MORE_BYTES: usize = 100;

/// The most characters of a part of a label.
const MAX_CHARS: usize = 100;

/// Writes the map.
pub(super) fn write(graph: &Graph) -> String {
    let mut out = "flowchart LR\n".to_owned();
    let mut depth = 1;
    graph.walk(|step| {
        let indent = "  ".repeat(depth);
        let _ = match step {
            Step::Open(group) => {
                depth += 1;
                writeln!(
                    out,
                    "{indent}subgraph {}[\"{}\"]",
                    group.id,
                    label(&middle(&group.title, MAX_CHARS))
                )
            }
            Step::Node(node) => writeln!(out, "{indent}{}", of_node(node)),
            Step::Close => {
                depth -= 1;
                writeln!(out, "{}end", "  ".repeat(depth))
            }
        };
    });
    for edge in &graph.edges {
        out += &of_edge(edge, graph);
    }
    for verdict in Verdict::ALL {
        let nodes = graph.nodes.iter().filter(|node| node.verdict == Some(verdict));
        let (mut nodes, name, style) = (nodes.peekable(), verdict.name(), style(verdict));
        if style.is_empty() || nodes.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "  classDef {name} {style}");
        for node in nodes {
            let _ = writeln!(out, "  class {} {name}", node.id);
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

fn of_node(node: &Node) -> String {
    let [open, close] = match node.shape {
        Shape::Referrer => ["(", ")"],
        Shape::Pod => ["[[", "]]"],
        Shape::Memory | Shape::Unread => ["[", "]"],
        Shape::Store => ["[(", ")]"],
    };
    let parts: Vec<String> = node.label().iter().map(|part| middle(part, MAX_CHARS)).collect();
    format!("{}{open}\"{}\"{close}", node.id, label(&parts.join(", ")))
}

fn of_edge(edge: &Edge, graph: &Graph) -> String {
    let id = |number: usize| graph.nodes.get(number).map_or("", |node| &node.id);
    let arrow = if edge.crosses { "-.->" } else { "-->" };
    let text = middle(&edge.label(), MAX_CHARS);
    let text = if text.is_empty() { String::new() } else { format!("|\"{}\"|", label(&text)) };
    format!("  {} {arrow}{text} {}\n", id(edge.from), id(edge.to))
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
