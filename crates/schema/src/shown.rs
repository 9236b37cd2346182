//! Values as messages show them.

use std::io;

use crate::node::Node;
use memgate_primitives::credential::masked_start;
use memgate_primitives::plain_text::quoted_text;

/// How much of a value is written: more than is looked at for credentials.
const MAX_WRITTEN_BYTES: usize = 8 << 10;

/// A value as messages show it: texts in quotes, everything else as JSON. What in it looks like a credential
/// is masked.
pub(super) fn shown(value: &Node<'_>) -> String {
    const MAX_CHARS: usize = 256;
    if let Node::Text(text) = value {
        return quoted_text(text);
    }
    let mut start = Start(Vec::new());
    // It fails where the rest is left out.
    let _is_whole = serde_json::to_writer(&mut start, value);
    let json = String::from_utf8_lossy(&start.0);
    masked_start(&json).chars().take(MAX_CHARS).collect()
}

/// The fields that tell an element of a list apart, as messages show them.
pub(super) fn key_shown(element: &Node<'_>, names: &[String]) -> String {
    let fields = names.iter().filter_map(|name| Some((name.as_str().into(), element.get(name)?.clone())));
    shown(&Node::Map(fields.collect()))
}

/// Takes the first bytes that are written to it.
struct Start(Vec<u8>);

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_WRITTEN_BYTES.saturating_sub(self.0.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
