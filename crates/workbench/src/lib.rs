//! Files to decisions and reports: what the commands, the editor and the tests of memgate share.
//!
//! ```text
//! Plan ──build──▶ texts ──files──▶ Checked ──files::place──▶ Report ──report──▶ bytes
//! ```
//!
//! Three rooms, in the order in which one may use another: `report` knows no repository, `build` runs tools and judges
//! nothing, `files` reads and judges. None knows arguments, terminal or exit codes.

pub mod built;
pub mod paths;

pub(crate) mod in_order;

pub mod report;

pub mod build;

pub mod files;
