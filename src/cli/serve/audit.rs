//! The flags and keys of `memgate serve` about audits of stored objects.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::cli::limits::{parse_count, parse_grace};
use crate::cli::server_keys::ServerKeys;
use memgate_install::metadata::AUDIT_LEASE;
use memgate_server::options::AuditOptions;

/// How stored objects are audited.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Audit")]
pub(super) struct AuditArgs {
    /// How often to judge all stored objects by policies when nothing changes; 0 for never
    #[arg(long, value_name = "DURATION", value_parser = parse_grace, default_value = "10m")]
    audit_interval: Duration,
}

impl AuditArgs {
    /// The options of the server; `namespace` is memgate's own.
    ///
    /// # Errors
    /// When a value of the settings file cannot be used.
    pub(super) fn options(
        &self,
        keys: &ServerKeys,
        namespace: String,
    ) -> anyhow::Result<Option<AuditOptions>> {
        let (mut rate, mut max_reports) = (NonZeroU32::new(500), 10_000);
        keys.set("auditRate", parse_rate, &mut rate)?;
        keys.set("maxReports", parse_count, &mut max_reports)?;
        let (lease, installation) = (AUDIT_LEASE.to_owned(), namespace.clone());
        let interval = self.audit_interval;
        let options = AuditOptions { interval, max_reports, rate, lease, namespace, installation };
        Ok((!interval.is_zero()).then_some(options))
    }
}

/// Objects a second; zero stands for any number.
fn parse_rate(text: &str) -> Result<Option<NonZeroU32>, String> {
    text.parse().map(NonZeroU32::new).map_err(|_| "give a whole number, or 0 for no limit".to_owned())
}
