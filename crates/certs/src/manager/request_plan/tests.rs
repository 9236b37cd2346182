//! One step at a time, by what a replica may know.

use super::*;
use crate::manager::secret_plan::{Data, plan_secret};
use crate::rotation::RotationRequest;

const NOW: i64 = 2_000_000_000;
const SETTLED: Duration = Duration::from_secs(20);

fn policy() -> CertPolicy {
    CertPolicy::default()
}

/// What a Secret holds that a replica has just made.
fn fresh() -> CaState {
    plan_secret(None, None, None, NOW, &policy()).expect("keys can be made").state
}

fn requested(revoke: bool) -> Rotation {
    Rotation { requested: Some(RotationRequest::new(NOW, revoke)), ..Rotation::default() }
}

fn trust(state: &CaState, seconds: u64) -> TrustedCas {
    TrustedCas([(state.newest.cert.clone(), Duration::from_secs(seconds))].into())
}

/// The next step of a replica that presents a leaf of `signer`.
fn step(
    state: &CaState,
    rotation: &Rotation,
    signer: Option<&CaCert>,
    trusted: &TrustedCas,
    is_overdue: bool,
) -> Option<RequestPlan> {
    let situation = Situation {
        leaf_signer: signer,
        trusted,
        settled_after: SETTLED,
        names_newest_token: true,
        is_overdue,
    };
    plan_request(state, rotation, situation, NOW, &policy()).expect("keys can be made")
}

/// After a replica has made the new CA.
fn made(revoke: bool) -> (CaState, RequestPlan) {
    let state = fresh();
    let plan = step(&state, &requested(revoke), Some(&state.newest.cert), &trust(&state, 99), false);
    (state, plan.expect("a new CA"))
}

#[test]
fn a_request_makes_one_new_ca_beside_the_old_one() {
    for revoke in [false, true] {
        let (old, RequestPlan { state, rotation, reason }) = made(revoke);
        assert_eq!(reason, WriteReason::CaRequested);
        assert_eq!(state.previous.as_ref().map(|ca| &ca.cert), Some(&old.newest.cert));
        assert_eq!(state.bundle, [state.newest.cert.clone(), old.newest.cert.clone()]);
        assert_eq!(state.tokens.iter().nth(1), old.tokens.iter().next(), "a new CA, a new path");
        assert!(state.revoked.is_empty(), "nothing is taken away yet");
        let Progress::Made(ca) = rotation.progress() else { panic!("{rotation:?}") };
        assert_eq!(ca.sha256, state.newest.cert.sha256());
        let again = step(&state, &rotation, Some(&state.newest.cert), &trust(&state, 19), false);
        assert!(again.is_none(), "one CA for each request: {again:?}");
    }
}

#[test]
fn a_request_waits_until_the_ca_before_it_is_in_use() {
    let (old, plan) = made(false);
    let state = plan.state;
    let another = Rotation { requested: Some(RotationRequest::new(NOW + 5, true)), ..plan.rotation };
    for signer in [None, Some(&old.newest.cert)] {
        assert!(step(&state, &another, signer, &trust(&state, 99), true).is_none());
    }
    let next = step(&state, &another, Some(&state.newest.cert), &trust(&state, 10), false);
    let next = next.expect("its turn").state;
    assert_eq!(next.bundle.len(), 3, "leaves of all three may be in use");
}

#[test]
fn without_a_request_nothing_happens() {
    let state = fresh();
    let done = Rotation { done: Some(RotationRequest::new(NOW, true)), ..made(true).1.rotation };
    for rotation in [Rotation::default(), done] {
        assert!(step(&state, &rotation, Some(&state.newest.cert), &trust(&state, 99), true).is_none());
    }
}

#[test]
fn it_is_done_once_every_replica_had_time_to_follow() {
    for (revoke, seconds, is_overdue, leaf_is_new, expected) in [
        (false, 19, false, true, None),
        (false, 20, false, false, None),
        (false, 20, false, true, Some(WriteReason::RequestDone)),
        (false, 0, true, true, None),
        (true, 19, false, true, None),
        (true, 20, false, false, None),
        (true, 20, false, true, Some(WriteReason::RevocationDone)),
        (true, 0, true, true, Some(WriteReason::RevocationDone)),
    ] {
        let (old, RequestPlan { state, rotation, .. }) = made(revoke);
        let signer = if leaf_is_new { &state.newest.cert } else { &old.newest.cert };
        let next = step(&state, &rotation, Some(signer), &trust(&state, seconds), is_overdue);
        assert_eq!(next.as_ref().map(|next| next.reason), expected, "{revoke} {seconds} {is_overdue}");
        let Some(next) = next else { continue };
        assert!(matches!(next.rotation.progress(), Progress::Done(_)), "{:?}", next.rotation);
        assert_eq!(next.state.newest.cert, state.newest.cert);
        assert_eq!(next.state.bundle.len(), if revoke { 1 } else { 2 });
    }
    let (_, RequestPlan { state, rotation, .. }) = made(true);
    let untrusted = TrustedCas::default();
    let next = step(&state, &rotation, Some(&state.newest.cert), &untrusted, true);
    assert!(next.is_none(), "however late, not while no configuration trusts the new one");
}

/// The Secret after a revocation, with what it held before.
fn revoked() -> (CaState, CaState) {
    let (_, RequestPlan { state, rotation, .. }) = made(true);
    let next = step(&state, &rotation, Some(&state.newest.cert), &trust(&state, 20), false);
    (state, next.expect("the old one goes").state)
}

fn data(state: &CaState) -> Data {
    let mut data = Data::new();
    state.write(&mut data);
    data
}

#[test]
fn a_revocation_leaves_nothing_that_a_stolen_secret_had() {
    let (before, after) = revoked();
    let old = before.previous.as_ref().expect("the one before").cert.clone();
    assert_eq!(after.bundle, std::slice::from_ref(&after.newest.cert));
    assert_eq!(after.revoked, [old]);
    assert!(after.previous.is_none());
    assert_eq!(after.tokens.iter().collect::<Vec<_>>(), before.tokens.iter().take(1).collect::<Vec<_>>());
    // Written over what was there, as the Secret is.
    let mut data = data(&before);
    after.write(&mut data);
    let text: String = data.values().map(|value| String::from_utf8_lossy(&value.0).into_owned()).collect();
    assert_eq!(text.matches("PRIVATE KEY").count(), 2, "the beginning and the end of one");
    assert_eq!(text.matches("BEGIN CERTIFICATE").count(), 3, "ca.crt, bundle.crt and revoked.crt");
}

#[test]
fn no_replica_brings_a_revoked_ca_back() {
    let (before, after) = revoked();
    let old = before.previous.as_ref().expect("the one before").cert.clone();
    let plan = |data: Option<&Data>, known: &CaState, signer: &CaCert| {
        plan_secret(data, Some(known), Some(signer), NOW, &policy()).expect("keys can be made")
    };
    let is_free = |state: &CaState| {
        let previous = state.previous.as_ref().map(|ca| &ca.cert);
        !state.bundle.contains(&old) && previous != Some(&old) && state.newest.cert != old
    };
    // One that was away, and remembers how it was.
    let late = plan(Some(&data(&after)), &before, &old);
    assert_eq!(late.reason, None, "there is nothing to mend");
    assert!(is_free(&late.state) && is_free(&late.fallback.expect("the CA is good")));
    // Damage that is repaired from memory.
    let mut damaged = data(&after);
    damaged.remove("bundle.crt");
    let mended = plan(Some(&damaged), &before, &old);
    assert_eq!(mended.reason, Some(WriteReason::BundleIncomplete));
    assert!(is_free(&mended.state));
    // A Secret that is gone, or from before.
    for stored in [None, Some(data(&before)), Some(data(&made(false).0))] {
        let again = plan(stored.as_ref(), &after, &after.newest.cert);
        assert!(again.reason.is_some() && is_free(&again.state), "{:?}", again.reason);
        assert_eq!(again.state.revoked, after.revoked);
    }
}

#[test]
fn nothing_is_revoked_before_both_configurations_name_the_token_that_stays() {
    let (_, first) = made(true);
    let (signer, trusted) = (Some(&first.state.newest.cert), trust(&first.state, 99));
    let step = |names_newest_token, is_overdue| {
        let situation = Situation {
            leaf_signer: signer,
            trusted: &trusted,
            settled_after: SETTLED,
            names_newest_token,
            is_overdue,
        };
        let plan = plan_request(&first.state, &first.rotation, situation, NOW, &policy());
        plan.expect("keys can be made").map(|plan| plan.reason)
    };
    assert_eq!(step(false, false), None);
    assert_eq!(step(true, false), Some(WriteReason::RevocationDone));
    assert_eq!(step(false, true), Some(WriteReason::RevocationDone), "not for ever");
}

#[test]
fn a_secret_from_before_the_revocation_is_written_again_as_it_was() {
    let old = fresh();
    let signer = Some(&old.newest.cert);
    let first = step(&old, &requested(true), signer, &trust(&old, 99), false).expect("a new CA");
    let signer = Some(&first.state.newest.cert);
    let after = step(&first.state, &first.rotation, signer, &trust(&first.state, 20), false);
    let after = after.expect("the old one goes").state;
    let restored = data(&old);
    let plan = plan_secret(Some(&restored), Some(&after), signer, NOW, &policy()).expect("a plan");
    let reason = crate::ca::CaError::Revoked;
    assert_eq!(plan.reason, Some(WriteReason::CaDamaged(reason)));
    assert!(plan.fallback.is_none(), "it is not used even for a moment");
    assert_eq!(plan.state.newest.cert, after.newest.cert);
    assert_eq!((&plan.state.tokens, &plan.state.bundle), (&after.tokens, &after.bundle));
    let known = CaState { newest: Arc::clone(&old.newest), ..after };
    let plan = plan_secret(Some(&restored), Some(&known), None, NOW, &policy()).expect("a plan");
    assert_eq!(plan.reason, Some(WriteReason::NoUsableCa(reason)), "what is in memory is revoked as well");
    assert_eq!(plan.state.tokens.iter().filter(|token| old.tokens.position(token).is_some()).count(), 0);
}

#[test]
fn what_is_revoked_is_forgotten_once_it_has_expired() {
    let (_, after) = revoked();
    assert_eq!(after.revoked(NOW).revoked, after.revoked);
    let later = after.revoked.first().expect("the old one").not_after;
    assert!(after.revoked(later).revoked.is_empty());
}
