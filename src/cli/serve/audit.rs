//! The flags of `memgate serve` about audits of stored objects.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::cli::limits::{parse_count, parse_grace};
use memgate_install::metadata::AUDIT_LEASE;
use memgate_server::options::AuditOptions;

/// How stored objects are audited.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Audit")]
pub(super) struct AuditArgs {
    /// How often to judge all stored objects by policies when nothing changes; 0 for never
    #[arg(long, value_name = "DURATION", value_parser = parse_grace, default_value = "10m")]
    audit_interval: Duration,

    /// The most stored objects to judge a second; 0 for as many as it can
    #[arg(long, value_name = "COUNT", default_value = "500")]
    audit_rate: u32,

    /// The most reports on objects that violate policies; further objects are only counted
    #[arg(long, value_name = "COUNT", value_parser = parse_count, default_value = "10000")]
    max_reports: usize,
}

impl AuditArgs {
    /// The options of the server; `namespace` is memgate's own.
    pub(super) fn options(&self, namespace: String) -> Option<AuditOptions> {
        let (interval, max_reports) = (self.audit_interval, self.max_reports);
        let rate = NonZeroU32::new(self.audit_rate);
        let (lease, installation) = (AUDIT_LEASE.to_owned(), namespace.clone());
        let options = AuditOptions { interval, max_reports, rate, lease, namespace, installation };
        (!interval.is_zero()).then_some(options)
    }
}
