//! The map as a Mermaid flowchart: a subgraph for each namespace, lines across namespaces dotted.
//!
//! Names are in labels only, in double quotes, with every letter that Mermaid, Markdown or HTML could read as more than
//! itself as a numeric code. Nothing can be clicked.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::MemoryMap;
use super::graph::{Edge, Graph, Node, Shape, graphs};

/// Writes the map.
///
/// # Errors
/// Those of the writer.
pub(super) fn write(map: &MemoryMap, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "flowchart LR")?;
    let mut missing: Vec<String> = Vec::new();
    for graph in graphs(map) {
        match &graph.set {
            None => write_graph(&graph, "  ", out)?,
            Some((id, name)) => {
                writeln!(out, "  subgraph {id}[\"{}\"]", label(&format!("set {name}")))?;
                write_graph(&graph, "    ", out)?;
                writeln!(out, "  end")?;
            }
        }
        let nodes = graph.namespaces.iter().flat_map(|namespace| &namespace.nodes);
        missing.extend(nodes.filter(|node| node.shape == Shape::Missing).map(|node| node.id.clone()));
    }
    if !missing.is_empty() {
        writeln!(out, "  classDef missing stroke:#d1242f,stroke-dasharray:5 5")?;
    }
    missing.iter().try_for_each(|id| writeln!(out, "  class {id} missing"))
}

fn write_graph(graph: &Graph, indent: &str, out: &mut impl Write) -> io::Result<()> {
    for namespace in &graph.namespaces {
        if namespace.name.is_empty() {
            namespace.nodes.iter().try_for_each(|node| write_node(node, indent, out))?;
            continue;
        }
        let title = label(&format!("namespace {}", namespace.name));
        writeln!(out, "{indent}subgraph {}[\"{title}\"]", namespace.id)?;
        let inside = format!("{indent}  ");
        namespace.nodes.iter().try_for_each(|node| write_node(node, &inside, out))?;
        writeln!(out, "{indent}end")?;
    }
    graph.stores.iter().try_for_each(|node| write_node(node, indent, out))?;
    graph.edges.iter().try_for_each(|edge| write_edge(edge, indent, out))
}

fn write_node(node: &Node, indent: &str, out: &mut impl Write) -> io::Result<()> {
    let [open, close] = match node.shape {
        Shape::Referrer => ["(", ")"],
        Shape::Pod => ["[[", "]]"],
        Shape::Memory | Shape::Missing => ["[", "]"],
        Shape::Store => ["[(", ")]"],
    };
    writeln!(out, "{indent}{}{open}\"{}\"{close}", node.id, label(&node.label.join(", ")))
}

fn write_edge(edge: &Edge, indent: &str, out: &mut impl Write) -> io::Result<()> {
    let Edge { from, to, label: text, crosses } = edge;
    let arrow = if *crosses { "-.->" } else { "-->" };
    let text = if text.is_empty() { String::new() } else { format!("|\"{}\"|", label(text)) };
    writeln!(out, "{indent}{from} {arrow}{text} {to}")
}

/// A text inside of double quotes. Letters with a meaning become codes. So do the dot of `www.` and a colon without a
/// blank behind it: they make links, and behind the word `style` Mermaid takes a code after such a colon for a colour.
fn label(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    let mut behind = text.chars().peekable();
    while let Some(c) = behind.next() {
        let has_meaning = (c == ':' && behind.peek() != Some(&' ')) || (c == '.' && label.ends_with("www"));
        let is_plain =
            c.is_alphanumeric() || matches!(c, ' ' | '-' | '.' | '/' | ':' | ',' | '(' | ')' | '…');
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
    fn letters_with_a_meaning_become_codes() {
        assert_eq!(label("ArkMemory team-a/notes, a: 1.5 (x)"), "ArkMemory team-a/notes, a: 1.5 (x)");
        assert_eq!(label("\"]; <b>`#&"), "#34;#93;#59; #60;b#62;#96;#35;#38;");
        assert_eq!(label("style x:80:"), "style x#58;80#58;");
        assert_eq!(label("_a_ http://www.x"), "#95;a#95; http#58;//www#46;x");
    }
}
