//! That editors complete, explain and check manifests by memgate's schemas: npm's yaml-language-server, as they run
//! it, with the modeline and the settings of docs/editors.md.
//!
//! ```text
//! tools/editors/package-lock.json ──npm──▶ a language server in the cache
//! docs/editors.md, `memgate schema` ──workspace──▶ a folder as an editor would open it
//! text with a cursor ──client──▶ completion, hover, diagnostics
//! ```
//!
//! That Neovim and Emacs show findings of `memgate lsp` with the snippets of that page. And that the extension for Visual
//! Studio Code is packed, and starts memgate or reports why not.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

#[path = "../support/cache.rs"]
mod cache;
#[path = "../support/needs.rs"]
mod needs;
#[path = "../support/npm.rs"]
mod npm;
#[path = "../support/pip.rs"]
mod pip;

mod client;
mod completion;
mod diagnostics;
mod emacs;
mod neovim;
mod page;
mod repository;
mod vscode;
mod workspace;
