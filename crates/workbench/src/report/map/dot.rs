//! The map for Graphviz: a cluster for each namespace, verdicts and marks in colour and in words.

use std::fmt::Write as _;

use super::Verdict;
use super::graph::{Edge, Graph, MAX_LABEL_BYTES, Node, Shape, Step, middle};

/// The most characters of a line of a label.
const MAX_CHARS: usize = 100;

/// Writes the map as one directed graph.
pub(super) fn write(graph: &Graph) -> String {
    let mut out = "digraph memory {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n".to_owned();
    let mut depth = 1;
    graph.walk(|step| {
        let indent = "  ".repeat(depth);
        let _ = match step {
            Step::Open(group) => {
                depth += 1;
                let title = quoted(&[&group.title]);
                writeln!(out, "{indent}subgraph cluster_{} {{\n{indent}  label=\"{title}\";", group.id)
            }
            Step::Node(node) => writeln!(out, "{indent}{}", of_node(node)),
            Step::Close => {
                depth -= 1;
                writeln!(out, "{}}}", "  ".repeat(depth))
            }
        };
    });
    for edge in &graph.edges {
        out += &of_edge(edge, graph);
    }
    out + "}\n"
}

/// Writes the reason why there is no picture, and the table in comments.
pub(super) fn write_table(why: &str, table: &str) -> String {
    let why = quoted(&[why, "its table is in the comments"]);
    let mut out = format!("digraph memory {{\n  note [shape=plaintext, label=\"{why}\"];\n");
    for line in table.lines() {
        let _ = writeln!(out, "{}", format!("  // {line}").trim_end());
    }
    out + "}\n"
}

/// The colour of a verdict; empty for one without.
const fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Clean => "",
        Verdict::Unused => "#57606a",
        Verdict::Missing | Verdict::Memoryless | Verdict::Denied => "#b42318",
        Verdict::Warned => "#8a5300",
    }
}

fn of_node(node: &Node) -> String {
    let mut attributes = match node.shape {
        Shape::Referrer => "shape=box, style=rounded",
        Shape::Pod => "shape=component",
        Shape::Memory if matches!(node.verdict, Some(Verdict::Missing | Verdict::Unused)) => {
            "shape=box, style=dashed"
        }
        Shape::Memory => "shape=box",
        Shape::Unread => "shape=box, style=dashed",
        Shape::Store => "shape=cylinder",
    }
    .to_owned();
    if let Some(verdict) = node.verdict.filter(|verdict| *verdict != Verdict::Clean) {
        let (class, colour) = (verdict.name(), colour(verdict));
        let _ = write!(attributes, ", class=\"{class}\", color=\"{colour}\", penwidth=2");
    }
    let label = node.label();
    let label = quoted(&label.iter().map(String::as_str).collect::<Vec<_>>());
    format!("{} [{attributes}, label=\"{label}\"];", node.id)
}

fn of_edge(edge: &Edge, graph: &Graph) -> String {
    let id = |number: usize| graph.nodes.get(number).map_or("", |node| &node.id);
    let mut attributes = Vec::new();
    let label = edge.label();
    if !label.is_empty() {
        attributes.push(format!("label=\"{}\"", quoted(&[&label])));
    }
    if edge.crosses {
        attributes.push(format!("style=dashed, color=\"{}\"", colour(Verdict::Denied)));
    } else if edge.lacks_tls {
        attributes.push(format!("style=dotted, color=\"{}\"", colour(Verdict::Warned)));
    }
    let attributes =
        if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) };
    format!("  {} -> {}{attributes};\n", id(edge.from), id(edge.to))
}

/// Lines inside of double quotes. Graphviz reads escapes behind `\`, and entities of HTML.
fn quoted(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(if text.is_empty() { "" } else { "\\n" });
        for c in middle(line, MAX_CHARS).chars() {
            match c {
                '&' => text.push_str("&amp;"),
                '#' => text.push_str("&#35;"),
                '"' => text.push_str("&quot;"),
                '\\' => text.push_str("&#92;"),
                c => text.push(c),
            }
            if text.len() > MAX_LABEL_BYTES {
                return text + "…";
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_quotes() {
        assert_eq!(quoted(&["a\"];\\n&amp;##[x]"]), "a&quot;];&#92;n&amp;amp;&#35;&#35;[x]");
        assert_eq!(quoted(&["a", "b"]), "a\\nb");
        assert!(quoted(&[&*"&".repeat(90); 9]).len() < MAX_LABEL_BYTES + 10);
    }
}
