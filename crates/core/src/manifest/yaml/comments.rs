//! The comments of a YAML text, from a reading of its own: the one that makes outlines goes without them, since nearly
//! no text has a comment that is looked for.

use granit_parser::{Event, Options, Parser, options};

use crate::manifest::outline::MAX_DEPTH;
use crate::manifest::yaml::{MAX_ERRORS, bytes};

/// The bytes of each comment, from its `#` to the end of its line. Documents that are no YAML are passed over.
pub(in crate::manifest) fn comments(text: &str) -> Vec<(usize, usize)> {
    let mut parser = Parser::new_from_str_with_options(text, parser_options(text.len()));
    let mut found = Vec::new();
    let mut errors = 0;
    while let Some(event) = parser.next_event() {
        match event {
            Ok((Event::Comment(..), range)) => found.push(bytes(range)),
            Ok(_) => {}
            Err(_) => {
                errors += 1;
                if errors >= MAX_ERRORS || !parser.proceed_next_document().unwrap_or(false) {
                    break;
                }
            }
        }
    }
    found
}

/// Those of the other reading, with any number of comments in a row: no text has more than bytes.
fn parser_options(bytes: usize) -> Options {
    options! {
        emit_comments: true,
        max_buffered_comment_events: bytes,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    }
}
