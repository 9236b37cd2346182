//! Plans what follows from a request for a new CA: first the CA, then that it is in use. Pure functions; new keys are
//! the only thing that does not follow from the arguments.
//!
//! A CA that was asked for takes the same way as one that was due: it signs once both configurations have trusted it
//! for the propagation time. A request is carried out when that was as long ago again, since the other replicas may
//! see a change later than this one. Only then are the old CAs revoked, if that was asked for, so that nobody meets a
//! leaf of theirs.

use std::sync::Arc;
use std::time::Duration;

use crate::server::cert_manager::plan::{CaState, SecretChange, TrustedCas, bundle};
use crate::server::certs::CertPolicy;
use crate::server::certs::ca::Ca;
use crate::server::certs::ca_bundle::CaCert;
use crate::server::certs::rotation::{MadeCa, Progress, Rotation};

/// What one replica knows about how far a new CA is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'s> {
    /// The CA of the leaf that it presents.
    pub(super) leaf_signer: Option<&'s CaCert>,
    pub(super) trusted: &'s TrustedCas,
    /// For how long callers must have trusted the new CA until all replicas sign with it.
    pub(super) settled_after: Duration,
    /// Whether both configurations name the newest token, wherever they call a Service.
    pub(super) names_newest_token: bool,
    /// Whether a revocation has waited for that long enough.
    pub(super) is_overdue: bool,
}

/// What the Secret should hold.
#[derive(Debug)]
pub(super) struct RequestPlan {
    pub(super) state: CaState,
    pub(super) rotation: Rotation,
    pub(super) change: SecretChange,
}

/// Plans the next step of a request, in a Secret that is in order; `None` while there is none to take.
pub(super) fn plan_request(
    state: &CaState,
    rotation: &Rotation,
    situation: Situation<'_>,
    now: i64,
    policy: &CertPolicy,
) -> Result<Option<RequestPlan>, rcgen::Error> {
    let is_in_use = situation.leaf_signer == Some(&state.newest.cert);
    let made = match rotation.progress() {
        // One new CA at a time: with a second one before the first is in use, a bundle could lose a CA that leaves of
        // other replicas still need. It is also why a loop of requests cannot do harm.
        Progress::Requested(request) if is_in_use => {
            let state = with_new_ca(state, now, policy)?;
            let made = MadeCa { sha256: state.newest.cert.sha256(), request: request.clone() };
            let rotation = Rotation { made: Some(made), ..rotation.clone() };
            return Ok(Some(RequestPlan { state, rotation, change: SecretChange::Requested }));
        }
        Progress::Made(made) => made,
        Progress::Idle | Progress::Requested(_) | Progress::Done(_) => return Ok(None),
    };
    let revoke = made.request.revoke;
    let is_forced = revoke && situation.is_overdue;
    let enough = if is_forced { Duration::ZERO } else { situation.settled_after };
    let is_settled = situation.trusted.for_at_least(&state.newest.cert, enough);
    // The token is the only one that is left after a revocation.
    let is_named = !revoke || is_forced || situation.names_newest_token;
    if !is_settled || !(is_in_use || is_forced) || !is_named {
        return Ok(None);
    }
    // It may have been due meanwhile, and be yet another one.
    let made = MadeCa { sha256: state.newest.cert.sha256(), request: made.request.clone() };
    let (requested, done) = (rotation.requested.clone(), Some(made.request.clone()));
    let rotation = Rotation { requested, made: Some(made), done };
    let (state, change) = if revoke {
        (state.revoked(now), SecretChange::Revoked)
    } else {
        (state.clone(), SecretChange::InUse)
    };
    Ok(Some(RequestPlan { state, rotation, change }))
}

/// The state with a new CA, as when the newest is due.
fn with_new_ca(state: &CaState, now: i64, policy: &CertPolicy) -> Result<CaState, rcgen::Error> {
    let (newest, previous) = (Arc::new(Ca::generate(now, policy)?), Arc::clone(&state.newest));
    let others = state.bundle.iter().filter(|cert| cert.not_after > now);
    let bundle = bundle(&newest, Some(&previous), others, None);
    let tokens = state.tokens.clone().renewed(true, now)?;
    Ok(CaState { newest, previous: Some(previous), bundle, tokens, revoked: state.revoked.clone() })
}

#[cfg(test)]
mod tests;
