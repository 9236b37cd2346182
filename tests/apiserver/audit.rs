//! Audits of stored objects by running replicas, each trial in a cluster of its own: reports, the status of policies
//! and exemptions, the Lease, and what comes of an apiserver that does not take them. `house` is what they share.

mod house;
mod refused;
mod reports;
mod scan;
mod turns;

use crate::fixture::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("audit::reports_follow_what_is_stored", reports::follow),
        Trial::new("audit::says_in_the_status_what_it_found", reports::statuses),
        Trial::new("audit::reads_kinds_that_the_state_holds_in_part", reports::kinds),
        Trial::new("audit::keeps_to_the_most_reports_and_counts_all", reports::caps),
        Trial::new("audit::is_as_it_is_documented", reports::documented),
        Trial::new("audit::another_replica_takes_its_turn", turns::taken),
        Trial::new("audit::two_that_hold_a_lease_write_the_same", turns::both_hold),
        Trial::new("audit::two_that_take_their_turn_write_the_same", turns::both),
        Trial::new("audit::counts_pods_without_their_memory", scan::follows),
        Trial::new("audit::counts_pods_of_so_many_owners", scan::bounded),
        Trial::new("audit::reads_no_pods_without_the_right", scan::without_right),
        Trial::new("audit::goes_on_without_reports", refused::definitions),
        Trial::new("audit::goes_on_beside_a_namespace_that_ends", refused::ending),
        Trial::new("audit::writes_what_was_refused_before", refused::writes),
    ]
}
