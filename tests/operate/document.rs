//! Commands in a Markdown document.
//!
//! A fenced `console` block is a script for bash, each line of it as it stands. In a block that begins with `$`, lines
//! that begin with `$` and `>` are commands, and the lines after one are what it prints, also when it fails.

/// One section of a document.
#[derive(Debug)]
pub(crate) struct Section {
    /// Its heading.
    pub(crate) title: String,
    /// Its blocks of commands, in order.
    pub(crate) blocks: Vec<String>,
}

/// The sections that have commands.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            sections.push(Section { title: title.to_owned(), blocks: Vec::new() });
        } else if line.trim_start() == "```console" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim_start() != "```").collect();
            if let Some(section) = sections.last_mut() {
                section.blocks.push(block.join("\n"));
            }
        } else if line.trim_start().starts_with("```") && line.trim_start().len() > 3 {
            // Another kind of block: passed over to its end.
            let _passed = lines.by_ref().take_while(|line| line.trim_start() != "```").count();
        }
    }
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

/// The commands of a block, each with the output that it shows, if it shows any.
pub(crate) fn commands(block: &str) -> Vec<(String, Option<Vec<String>>)> {
    if !block.starts_with("$ ") {
        return vec![(block.to_owned(), None)];
    }
    let mut commands: Vec<(String, Option<Vec<String>>)> = Vec::new();
    for line in block.lines() {
        match (line.split_once(' '), commands.last_mut()) {
            (Some(("$", command)), _) => commands.push((command.to_owned(), Some(Vec::new()))),
            (Some((">", more)), Some((command, _))) => command.extend(["\n", more]),
            (_, Some((_, Some(shown)))) => shown.push(line.to_owned()),
            _ => {}
        }
    }
    commands
}
