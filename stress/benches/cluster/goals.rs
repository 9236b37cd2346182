//! What the creation of pods through an apiserver should be like.

use super::cases::{
    BOTH, CALL, CREATION, CREATION_CPU, DISTURBANCES, DRAINED, LISTED, LOADS, MEMGATE, P50, P50_ADDED,
    P99_ADDED, PEER, POLICY, QUIET, REFUSED, SLOWEST,
};
use crate::goals::Bound::{self, AtMost};
use crate::results::Results;

/// Each goal, and what was measured if it was.
pub(crate) fn goals(results: &Results) -> Vec<(String, Bound, Option<f64>)> {
    let mut goals = Vec::new();
    for load in LOADS {
        let case = load.case();
        let time = |server, figure| results.median(CREATION, &case, server, figure);
        let cpu = |server| results.median(CREATION_CPU, &case, server, BOTH);
        let above = || Some(time(MEMGATE, P50)? - time(POLICY, P50)? - time(MEMGATE, CALL)?);
        let share = || Some(100.0 * cpu(MEMGATE)? / cpu(PEER)?);
        goals.extend([
            (
                format!("ms added to the p50 of a pod's creation, {case}"),
                AtMost(0.5),
                time(MEMGATE, P50_ADDED),
            ),
            (
                format!(
                    "ms of p50 above the policy's, less the mean of the whole call of the webhook, {case}"
                ),
                AtMost(0.0),
                above(),
            ),
            (
                format!("CPU of apiserver and webhook a pod, in % of that with the Go peer, {case}"),
                AtMost(100.0),
                share(),
            ),
        ]);
        if load.creators == 200 {
            let added = time(MEMGATE, P99_ADDED);
            goals.push((format!("ms added to the p99 of a pod's creation, {case}"), AtMost(5.0), added));
        }
    }
    let slowest = |case| results.median(DISTURBANCES, case, MEMGATE, SLOWEST);
    for (case, meanwhile) in [(LISTED, "all ArkMemories are listed again"), (DRAINED, "it is drained")] {
        let times = || Some(slowest(case)? / slowest(QUIET)?);
        goals.push((format!("p99.9 while {meanwhile}, in times of the quiet one"), AtMost(3.0), times()));
        let refused = results.median(DISTURBANCES, case, MEMGATE, REFUSED);
        goals.push((format!("% of calls refused while {meanwhile}"), AtMost(0.0), refused));
    }
    goals
}
