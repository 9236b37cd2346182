//! Errors about texts that do not parse, on the line of the credential.

use std::fs;
use std::sync::Arc;

use libtest_mimic::Failed;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;

use crate::fields::Field;
use crate::outputs::{expect_masked, memgate};
use crate::styles::{STYLES, holds_marker};
use crate::{MARKER, expect_no_marker};

/// A way to break a text: the text before the line of the marker, the line, and the text behind it.
type Break = fn(&str, &str, &str) -> String;

const BREAKS: [Break; 13] = [
    |before, line, behind| format!("{before}{line}\n{line}\n{behind}"),
    |before, line, behind| format!("{before}{line}: x: y\n{behind}"),
    |before, line, behind| format!("{before}{}\n{behind}", line.replace(MARKER, &format!("{MARKER}\u{1}"))),
    |before, line, behind| format!("{before}{}\n{behind}", line.replace(MARKER, &format!("\"{MARKER}"))),
    |before, line, behind| format!("{before}{}\n{behind}", line.replace(MARKER, &format!("x: {MARKER}"))),
    |before, line, behind| format!("{before}{}\n{behind}", line.replacen(':', ":\t- ", 1)),
    |before, line, behind| format!("{before}\t{line}\n{behind}"),
    |before, line, behind| format!("{before}{line} ]\n{behind}"),
    |before, line, behind| format!("{before}{line}\n  }}\n{behind}"),
    |before, line, _| format!("{before}{}\n\t]", line.trim_end_matches(['"', '\'', '}', ']'])),
    |before, line, behind| format!("{before}{}\n{behind}", line.replace(MARKER, &format!("\n{MARKER}"))),
    |before, line, behind| format!("{before}{}\n{behind}", line.replace(MARKER, &format!("|\r\n{MARKER}"))),
    |before, line, behind| {
        format!("{before}{}\n{behind}", line.replace(MARKER, &format!("-----BEGIN KEY-----\n{MARKER}")))
    },
];

fn is_broken(text: &str) -> bool {
    let mut errors = Vec::new();
    let _values = values(&Arc::new(Source::new("text", text)), &mut errors);
    !errors.is_empty()
}

/// Checks the objects of a field broken in each way, in each style.
pub(crate) fn check(field: &Field) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut errors = 0;
    for style in STYLES {
        let text = style.write(&field.text());
        let Some(line) = text.lines().find(|line| holds_marker(line)) else { continue };
        let (before, behind) = text.split_once(line).expect("the line is in the text");
        for (number, damage) in BREAKS.iter().enumerate() {
            let name = format!("{number}-{}-{}", style.name.replace(' ', "-"), style.file);
            let text = damage(before, line, behind);
            // Some of this is good YAML, and then something else than it was.
            if !is_broken(&text) {
                continue;
            }
            expect_masked(&name, &text).map_err(|failed| format!("{name}: {failed:?}"))?;
            fs::write(directory.path().join(name), text)?;
        }
    }
    for line in ["check .", "check -o json .", "check -o concise .", "mutate .", "test ."] {
        let (out, err) = memgate(line, "", &directory, None)?;
        errors += err.matches("error").count();
        expect_no_marker(line, &err)?;
        if !line.starts_with("mutate") {
            expect_no_marker(line, &out)?;
        }
    }
    if errors == 0 { Err("nothing was wrong with any text".into()) } else { Ok(()) }
}
