//! Plans the steps of a request for a new CA: first a new CA, then the record that it is in use. Pure functions; only
//! new keys are random.
//!
//! A requested CA is rolled out like one that was due: it signs once both configurations have trusted it for the
//! propagation time. The request is done after twice that time, since other replicas may see a change later than this
//! one. Only then are the old CAs revoked, if the request asks for that, so that no caller gets a leaf of a revoked CA.

use std::sync::Arc;
use std::time::Duration;

use crate::CertPolicy;
use crate::ca::Ca;
use crate::ca_bundle::CaCert;
use crate::manager::secret_plan::{CaState, TrustedCas, WriteReason, bundle};
use crate::rotation::{MadeCa, Progress, Rotation};

/// What one replica knows about the rollout of a new CA.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'s> {
    /// The CA of the leaf that it presents.
    pub(super) leaf_signer: Option<&'s CaCert>,
    pub(super) trusted: &'s TrustedCas,
    /// How long callers must have trusted the new CA before all replicas sign with it.
    pub(super) settled_after: Duration,
    /// Whether all entries that call a Service name the newest token.
    pub(super) names_newest_token: bool,
    /// Whether a revocation has waited for its maximum time.
    pub(super) is_overdue: bool,
}

/// The next step of a request: what the Secret should hold.
#[derive(Debug)]
pub(super) struct RequestPlan {
    pub(super) state: CaState,
    pub(super) rotation: Rotation,
    pub(super) reason: WriteReason,
}

/// Plans the next step of a request, in a Secret that is as planned; `None` when there is no step to take.
pub(super) fn plan_request(
    state: &CaState,
    rotation: &Rotation,
    situation: Situation<'_>,
    now: i64,
    policy: &CertPolicy,
) -> Result<Option<RequestPlan>, rcgen::Error> {
    let is_in_use = situation.leaf_signer == Some(&state.newest.cert);
    let made = match rotation.progress() {
        // One new CA at a time: if a second one came before the first is in use, the bundle could lose a CA that leaves
        // of other replicas still need. So a loop of requests does no harm.
        Progress::Requested(request) if is_in_use => {
            let state = with_new_ca(state, now, policy)?;
            let made = MadeCa { sha256: state.newest.cert.sha256(), request: request.clone() };
            let rotation = Rotation { made: Some(made), ..rotation.clone() };
            return Ok(Some(RequestPlan { state, rotation, reason: WriteReason::CaRequested }));
        }
        Progress::Made(made) => made,
        Progress::Idle | Progress::Requested(_) | Progress::Done(_) => return Ok(None),
    };
    let revoke = made.request.revoke;
    let is_forced = revoke && situation.is_overdue;
    let enough = if is_forced { Duration::ZERO } else { situation.settled_after };
    let is_settled = situation.trusted.for_at_least(&state.newest.cert, enough);
    // A revocation leaves only the newest token, so all entries must have it.
    let is_named = !revoke || is_forced || situation.names_newest_token;
    if !is_settled || !(is_in_use || is_forced) || !is_named {
        return Ok(None);
    }
    // A rotation that became due meanwhile has made a newer CA than the requested one.
    let made = MadeCa { sha256: state.newest.cert.sha256(), request: made.request.clone() };
    let (requested, done) = (rotation.requested.clone(), Some(made.request.clone()));
    let rotation = Rotation { requested, made: Some(made), done };
    Ok(Some(if revoke {
        RequestPlan { state: state.revoked(now), rotation, reason: WriteReason::RevocationDone }
    } else {
        RequestPlan { state: state.clone(), rotation, reason: WriteReason::RequestDone }
    }))
}

/// The state with a new CA, like a rotation of a CA that is due.
fn with_new_ca(state: &CaState, now: i64, policy: &CertPolicy) -> Result<CaState, rcgen::Error> {
    let (newest, previous) = (Arc::new(Ca::generate(now, policy)?), Arc::clone(&state.newest));
    let others = state.bundle.iter().filter(|cert| cert.not_after > now);
    let bundle = bundle(&newest, Some(&previous), others, None);
    let tokens = state.tokens.clone().renewed(true, now)?;
    Ok(CaState { newest, previous: Some(previous), bundle, tokens, revoked: state.revoked.clone() })
}

#[cfg(test)]
mod tests;
