//! The map for Graphviz: a cluster for each namespace, verdicts and marks in colour and in words.

use std::fmt::Write as _;

use super::Verdict;
use super::graph::{Edge, FoldOf, Graph, MAX_LABEL_BYTES, Node, Shape, Step, middle};

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
    if graph.left_out > 0 {
        let _ = writeln!(out, "  // {} more lines have no room", graph.left_out);
    }
    out + "}\n"
}

/// The colour of a verdict; empty for one without.
const fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Clean => "",
        Verdict::Unused => "#57606a",
        Verdict::Missing | Verdict::Denied => "#b42318",
        Verdict::Warned => "#8a5300",
    }
}

fn of_node(node: &Node) -> String {
    let mut attributes = match node.shape {
        Shape::Referrer => "shape=box, style=rounded",
        Shape::Pod => "shape=component",
        Shape::Memory if matches!(node.verdict, Verdict::Missing | Verdict::Unused) => {
            "shape=box, style=dashed"
        }
        Shape::Memory => "shape=box",
        Shape::Unread => "shape=box, style=dashed",
        Shape::Store => "shape=cylinder",
        Shape::Fold => "shape=box3d",
    }
    .to_owned();
    if node.verdict != Verdict::Clean {
        let (class, colour) = (node.verdict.name(), colour(node.verdict));
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
    // Namespaces stand below one another, whichever reaches which.
    let is_namespace = |number: usize| {
        let fold = graph.nodes.get(number).and_then(|node| node.fold.as_ref());
        fold.is_some_and(|fold| matches!(fold.of, FoldOf::Namespace(_) | FoldOf::Rest(_)))
    };
    if is_namespace(edge.from) && is_namespace(edge.to) {
        attributes.push("constraint=false".to_owned());
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
