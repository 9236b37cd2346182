//! Flags for what differs from one installation of a platform to the next.

use crate::model::settings::{Orloj, Settings};

/// The choices on which decisions depend.
#[derive(Debug, clap::Args)]
pub struct SettingsArgs {
    /// A namespace in which Orloj runs the Jobs of agents; can be repeated
    ///
    /// Pods there may use the memory of any Orloj namespace, pods elsewhere only that of their own.
    #[arg(
        long = "orloj-job-namespace",
        value_name = "NAME",
        default_value = "orloj",
        help_heading = "Platforms"
    )]
    orloj_job_namespaces: Vec<String>,
}

impl SettingsArgs {
    /// The settings with these choices; all families are switched on.
    #[must_use]
    pub fn chosen(&self) -> Settings {
        let orloj = Orloj { job_namespaces: self.orloj_job_namespaces.clone() };
        Settings { orloj, ..Settings::default() }
    }
}
