//! Values as messages show them.

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
    let mut written = vec![0; MAX_WRITTEN_BYTES];
    let mut room = written.as_mut_slice();
    // It fails where the rest is left out.
    let _is_whole = serde_json::to_writer(&mut room, value);
    let unused = room.len();
    written.truncate(MAX_WRITTEN_BYTES - unused);
    masked_start(&String::from_utf8_lossy(&written)).chars().take(MAX_CHARS).collect()
}

/// The fields that tell an element of a list apart, as messages show them.
pub(super) fn key_shown(element: &Node<'_>, names: &[String]) -> String {
    let fields = names.iter().filter_map(|name| Some((name.as_str().into(), element.get(name)?.clone())));
    shown(&Node::Map(fields.collect()))
}
