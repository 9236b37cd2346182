//! The map for Graphviz: a cluster for each namespace, lines across namespaces dashed.

use std::io::{self, Write};

use super::MemoryMap;
use super::graph::{Edge, Graph, Node, Shape, graphs};

/// Writes the map as one directed graph.
///
/// # Errors
/// Those of the writer.
pub(super) fn write(map: &MemoryMap, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "digraph memory {{\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];")?;
    for graph in graphs(map) {
        match &graph.set {
            None => write_graph(&graph, "  ", out)?,
            Some((id, name)) => {
                writeln!(
                    out,
                    "  subgraph cluster_{id} {{\n    label=\"{}\";",
                    quoted(&format!("set {name}"))
                )?;
                write_graph(&graph, "    ", out)?;
                writeln!(out, "  }}")?;
            }
        }
    }
    writeln!(out, "}}")
}

fn write_graph(graph: &Graph, indent: &str, out: &mut impl Write) -> io::Result<()> {
    for namespace in &graph.namespaces {
        if namespace.name.is_empty() {
            namespace.nodes.iter().try_for_each(|node| write_node(node, indent, out))?;
            continue;
        }
        let title = quoted(&format!("namespace {}", namespace.name));
        writeln!(out, "{indent}subgraph cluster_{} {{\n{indent}  label=\"{title}\";", namespace.id)?;
        let inside = format!("{indent}  ");
        namespace.nodes.iter().try_for_each(|node| write_node(node, &inside, out))?;
        writeln!(out, "{indent}}}")?;
    }
    graph.stores.iter().try_for_each(|node| write_node(node, indent, out))?;
    graph.edges.iter().try_for_each(|edge| write_edge(edge, indent, out))
}

fn write_node(node: &Node, indent: &str, out: &mut impl Write) -> io::Result<()> {
    let shape = match node.shape {
        Shape::Referrer => "shape=box, style=rounded",
        Shape::Pod => "shape=component",
        Shape::Memory => "shape=box",
        Shape::Missing => "shape=box, style=dashed, color=red",
        Shape::Store => "shape=cylinder",
    };
    let label: Vec<String> = node.label.iter().map(|line| quoted(line)).collect();
    writeln!(out, "{indent}{} [{shape}, label=\"{}\"];", node.id, label.join("\\n"))
}

fn write_edge(edge: &Edge, indent: &str, out: &mut impl Write) -> io::Result<()> {
    let Edge { from, to, label, crosses } = edge;
    let mut attributes = Vec::new();
    if !label.is_empty() {
        attributes.push(format!("label=\"{}\"", quoted(label)));
    }
    if *crosses {
        attributes.push("style=dashed, color=red".to_owned());
    }
    let attributes =
        if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) };
    writeln!(out, "{indent}{from} -> {to}{attributes};")
}

/// A text inside of double quotes. Graphviz reads escapes behind `\`, and entities of HTML.
fn quoted(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('#', "&#35;");
    text.replace('"', "&quot;").replace('\\', "&#92;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_quotes() {
        assert_eq!(quoted("a\"];\\n&amp;##[x]"), "a&quot;];&#92;n&amp;amp;&#35;&#35;[x]");
    }
}
