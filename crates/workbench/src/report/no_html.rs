//! What a build without the feature `workstation` has in place of the page for a browser.

use std::io;

use super::Report;

/// Fails.
pub(super) fn write(_: &Report<'_>, _: &mut Vec<u8>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
