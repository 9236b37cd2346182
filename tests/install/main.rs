//! How memgate gets onto a machine and into a pipeline, tried from `file://`: install.sh with a good release and with
//! bad ones, and the shell of each step of the GitHub action and of the GitLab template, as their runners start it.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

#[path = "../support/needs.rs"]
mod needs;

mod archives;
mod newcomer;
mod packages;
mod pipelines;
mod pre_commit;
mod release;
mod script;
mod workflows;
