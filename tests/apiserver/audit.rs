//! Audits of stored objects by the command, each trial in a cluster of its own: reports, the status of policies and
//! exemptions, pods without their memory, and what comes of an apiserver that does not take them. `house` is what they share.

mod house;
mod missed;
mod refused;
mod reports;

use crate::fixture::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("audit::reports_follow_what_is_stored", reports::follow),
        Trial::new("audit::says_in_the_status_what_it_found", reports::statuses),
        Trial::new("audit::reads_kinds_that_the_state_holds_in_part", reports::kinds),
        Trial::new("audit::reports_so_many_results_and_counts_all", reports::caps),
        Trial::new("audit::is_as_it_is_documented", reports::documented),
        Trial::new("audit::two_at_once_write_the_same", reports::both),
        Trial::new("audit::names_what_owns_pods_without_their_memory", missed::follows),
        Trial::new("audit::goes_on_without_reports", refused::definitions),
        Trial::new("audit::goes_on_beside_a_namespace_that_ends", refused::ending),
        Trial::new("audit::writes_what_was_refused_before", refused::writes),
        Trial::new("audit::needs_no_more_than_its_own_account_may", refused::rights),
    ]
}
