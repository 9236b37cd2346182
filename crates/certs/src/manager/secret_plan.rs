//! Plans what the CA Secret should hold, and which CA signs the next leaf.
//!
//! All functions are pure: they use no clock and send no request. Only new keys are random.
//!
//! A rotation takes three steps, so that no caller ever gets a leaf whose CA it does not trust
//! (docs/adr/0005-certificates-without-a-leader.md):
//!
//! 1. The Secret gets a new CA as `ca.crt`; the old one moves to `previous.crt`, and both are in the bundle.
//!    Leaves are still signed by the old one.
//! 2. The bundle is written into both webhook configurations.
//! 3. When they have trusted the new CA for the propagation time, each replica signs a leaf with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;

use crate::CertPolicy;
use crate::ca::{Ca, CaError, CurrentLeaf};
use crate::ca_bundle::{self, CaBundle, CaCert};

/// The newest CA, PEM.
pub(super) const CA_CERTIFICATE: &str = "ca.crt";
/// Its key, PEM.
pub(super) const CA_KEY: &str = "ca.key";
/// The CA before it, PEM.
pub(super) const PREVIOUS_CERTIFICATE: &str = "previous.crt";
/// Its key, PEM.
pub(super) const PREVIOUS_KEY: &str = "previous.key";
/// All CAs that callers should trust, PEM.
pub(super) const BUNDLE: &str = "bundle.crt";

/// How many CAs the bundle holds at most. In regular use there are two.
const MAX_BUNDLE_CERTS: usize = 8;

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

/// The contents of the Secret, as planned or as remembered.
#[derive(Debug, Clone)]
pub(super) struct CaState {
    /// The CA that signs once callers trust it.
    pub(super) newest: Arc<Ca>,
    /// The CA that signs until then.
    pub(super) previous: Option<Arc<Ca>>,
    /// All CAs that callers should trust, including the two above.
    pub(super) bundle: Vec<CaCert>,
}

/// The contents of the Secret as read; damaged parts are errors.
struct SecretContents {
    newest: Result<Arc<Ca>, CaError>,
    previous: Result<Arc<Ca>, CaError>,
    bundle: CaBundle,
    /// Whether the Secret was deleted, by which a user asks for a new CA.
    is_gone: bool,
}

/// Why the Secret must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WriteReason {
    /// Neither the Secret nor memory has a usable CA.
    #[error("a new CA, since there is no usable one: {0}")]
    NoUsableCa(CaError),
    /// The CA is due to be replaced.
    #[error("a new CA, since the last one was due")]
    CaDue,
    /// The Secret was deleted.
    #[error("a new CA, since the Secret was deleted")]
    SecretDeleted,
    /// The CA in the Secret is damaged, and is restored from memory.
    #[error("the CA once more, since it was damaged: {0}")]
    CaDamaged(CaError),
    /// The CA is usable; the previous one or the bundle is not as planned.
    #[error("the complete bundle")]
    BundleIncomplete,
}

impl WriteReason {
    /// Whether there is a new CA.
    pub(super) fn is_new_ca(self) -> bool {
        matches!(self, Self::NoUsableCa(_) | Self::CaDue | Self::SecretDeleted)
    }

    /// Whether an administrator should know of it: a CA was lost or damaged.
    pub(super) const fn is_unexpected(self) -> bool {
        matches!(self, Self::NoUsableCa(_) | Self::CaDamaged(_) | Self::SecretDeleted)
    }

    /// Whether a CA replaces one that may be valid by the clocks of other replicas, which could replace it in turn
    /// without end.
    pub(super) fn is_contested(self) -> bool {
        self == Self::CaDamaged(CaError::NotValid)
    }
}

/// The inputs of a plan.
struct Planner<'a> {
    stored: SecretContents,
    /// What this replica remembers of the Secret.
    known: Option<&'a CaState>,
    /// The CA of the leaf that this replica presents.
    leaf_signer: Option<&'a CaCert>,
    now: i64,
    policy: &'a CertPolicy,
}

/// The CAs of a plan, and why the Secret must be written for them.
struct ChosenCas {
    newest: Arc<Ca>,
    previous: Option<Arc<Ca>>,
    reason: Option<WriteReason>,
}

/// What the Secret should hold.
#[derive(Debug)]
pub(super) struct SecretPlan {
    pub(super) state: CaState,
    /// Why it must be written; `None` when it holds the state already.
    pub(super) reason: Option<WriteReason>,
    /// The state to use when the Secret cannot be written; `None` when the stored CA cannot be used.
    pub(super) fallback: Option<CaState>,
}

/// The CAs that both webhook configurations trust, and for how long they have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TrustedCas(pub(super) BTreeMap<CaCert, Duration>);

impl TrustedCas {
    fn contains(&self, cert: &CaCert) -> bool {
        self.0.contains_key(cert)
    }

    pub(super) fn for_at_least(&self, cert: &CaCert, time: Duration) -> bool {
        self.0.get(cert).is_some_and(|trusted| *trusted >= time)
    }
}

/// Plans what the Secret should hold. `known` is what this replica remembers of it, and `leaf_signer` the CA
/// of the leaf that it presents.
pub(super) fn plan_secret(
    data: Option<&Data>,
    known: Option<&CaState>,
    leaf_signer: Option<&CaCert>,
    now: i64,
    policy: &CertPolicy,
) -> Result<SecretPlan, rcgen::Error> {
    let stored = SecretContents::read(data);
    let leaf_signer = leaf_signer.filter(|signer| signer.not_after > now);
    let planner = Planner { stored, known, leaf_signer, now, policy };
    let usable = planner.usable_newest();
    let fallback = usable.as_ref().ok().map(|newest| planner.unchanged(newest));
    let chosen = planner.choose_cas(usable)?;
    let bundle = planner.planned_bundle(&chosen);
    let ChosenCas { newest, previous, reason } = chosen;
    let state = CaState { newest, previous, bundle };
    let reason = reason.or_else(|| (!planner.stored.holds(&state)).then_some(WriteReason::BundleIncomplete));
    Ok(SecretPlan { state, reason, fallback })
}

/// The CAs that callers should trust, each once and at most [`MAX_BUNDLE_CERTS`]. `leaf_signer` is always included, but
/// never changes the order of the others: replicas with leaves of different CAs must agree on the order, or they would
/// overwrite each other's Secret.
fn bundle<'a>(
    newest: &Arc<Ca>,
    previous: Option<&Arc<Ca>>,
    others: impl Iterator<Item = &'a CaCert>,
    leaf_signer: Option<&CaCert>,
) -> Vec<CaCert> {
    let mut bundle = vec![newest.cert.clone()];
    bundle.extend(previous.map(|previous| previous.cert.clone()));
    for cert in others {
        if bundle.len() < MAX_BUNDLE_CERTS && !bundle.contains(cert) {
            bundle.push(cert.clone());
        }
    }
    if let Some(signer) = leaf_signer.filter(|signer| !bundle.contains(signer)) {
        bundle.truncate(MAX_BUNDLE_CERTS - 1);
        bundle.push(signer.clone());
    }
    bundle
}

/// The CA that must sign a new leaf now; `None` to keep the current leaf.
pub(super) fn choose_signer<'a>(
    state: &'a CaState,
    leaf: Option<&CurrentLeaf>,
    trusted: &TrustedCas,
    propagation: Duration,
    now: i64,
    policy: &CertPolicy,
) -> Option<&'a Arc<Ca>> {
    let newest = Some(&state.newest).filter(|newest| newest.cert.is_valid(now))?;
    let newest_is_trusted = trusted.for_at_least(&newest.cert, propagation);
    let previous = state.previous.as_ref().filter(|previous| previous.cert.is_valid(now));
    let Some(leaf) = leaf.filter(|leaf| (leaf.not_before..leaf.not_after).contains(&now)) else {
        // If callers trust neither CA, they will trust the newest first.
        let previous = previous.filter(|previous| !newest_is_trusted && trusted.contains(&previous.cert));
        return Some(previous.unwrap_or(newest));
    };
    let is_due = is_due(leaf.not_before, leaf.not_after, now, policy);
    if leaf.signer == newest.cert {
        return Some(newest).filter(|_| is_due);
    }
    // The last step of a rotation.
    if newest_is_trusted {
        return Some(newest);
    }
    // Until then the previous CA renews leaves that are due.
    previous.filter(|previous| is_due && (leaf.signer == previous.cert || trusted.contains(&previous.cert)))
}

/// Whether a certificate has reached the age at which it is replaced.
fn is_due(not_before: i64, not_after: i64, now: i64, policy: &CertPolicy) -> bool {
    now >= due_at(not_before, not_after, policy)
}

/// When a certificate must be replaced, in seconds since 1970.
pub(super) fn due_at(not_before: i64, not_after: i64, policy: &CertPolicy) -> i64 {
    let life = i128::from(not_after) - i128::from(not_before);
    let age = (life * i128::from(policy.renew_percent) + 99).div_euclid(100);
    i64::try_from(i128::from(not_before) + age).unwrap_or(not_after)
}

impl SecretContents {
    fn read(data: Option<&Data>) -> Self {
        let text = |key| data.and_then(|data| data.get(key)).map_or(&[][..], |value| value.0.as_slice());
        let ca = |certificate, key| match (text(certificate), text(key)) {
            ([], []) => Err(CaError::Missing),
            (certificate, key) => Ca::parse(certificate, key).map(Arc::new),
        };
        Self {
            newest: ca(CA_CERTIFICATE, CA_KEY),
            previous: ca(PREVIOUS_CERTIFICATE, PREVIOUS_KEY),
            bundle: ca_bundle::parse(text(BUNDLE)),
            is_gone: data.is_none(),
        }
    }

    /// Whether the Secret holds this state.
    fn holds(&self, state: &CaState) -> bool {
        let newest = self.newest.as_ref().is_ok_and(|newest| newest.cert == state.newest.cert);
        let previous = match (&self.previous, &state.previous) {
            (Ok(stored), Some(wanted)) => stored.cert == wanted.cert,
            (stored, wanted) => stored.as_ref().err() == Some(&CaError::Missing) && wanted.is_none(),
        };
        newest && previous && self.bundle.intact && self.bundle.certs == state.bundle
    }
}

impl Planner<'_> {
    /// The newest stored CA, or why it cannot be used.
    fn usable_newest(&self) -> Result<Arc<Ca>, CaError> {
        match &self.stored.newest {
            Ok(ca) if !ca.cert.is_valid(self.now) => Err(CaError::NotValid),
            Ok(ca) => Ok(Arc::clone(ca)),
            Err(error) => Err(*error),
        }
    }

    /// Chooses the newest and the previous CA. A CA in memory wins over a new one, since callers trust it already, unless
    /// the Secret was deleted.
    fn choose_cas(&self, usable: Result<Arc<Ca>, CaError>) -> Result<ChosenCas, rcgen::Error> {
        let Self { stored, known, now, policy, .. } = self;
        let new_ca = || Ca::generate(*now, policy).map(Arc::new);
        let (newest, previous, reason) =
            match (usable, known.filter(|known| known.newest.cert.is_valid(*now))) {
                (Ok(newest), _) if is_due(newest.cert.not_before, newest.cert.not_after, *now, policy) => {
                    (new_ca()?, Some(newest), Some(WriteReason::CaDue))
                }
                (Ok(newest), _) => {
                    let previous = self.previous_of(&newest);
                    (newest, previous, None)
                }
                (Err(_), Some(known)) if stored.is_gone => {
                    (new_ca()?, Some(Arc::clone(&known.newest)), Some(WriteReason::SecretDeleted))
                }
                (Err(error), Some(known)) => {
                    (Arc::clone(&known.newest), known.previous.clone(), Some(WriteReason::CaDamaged(error)))
                }
                (Err(error), None) => {
                    let stored = stored.previous.as_ref().ok().cloned();
                    let previous = stored.or_else(|| known.and_then(|known| known.previous.clone()));
                    let previous = previous.filter(|previous| previous.cert.is_valid(*now));
                    (new_ca()?, previous, Some(WriteReason::NoUsableCa(error)))
                }
            };
        Ok(ChosenCas { newest, previous, reason })
    }

    /// The bundle for these CAs. Three cases keep CAs in it that leaves of other replicas may still need:
    ///
    /// - The bundle of a damaged Secret may lack some, so those in memory are added.
    /// - A CA that is not valid by this clock may be valid by the clocks of other replicas, so a new CA does not
    ///   remove it.
    /// - For the same reason an expired CA leaves the bundle only at a rotation, which a clock that is wrong for a
    ///   moment does not cause.
    fn planned_bundle(&self, ChosenCas { newest, previous, reason }: &ChosenCas) -> Vec<CaCert> {
        let Self { stored, known, .. } = self;
        let is_damaged = reason.is_some() || !stored.bundle.intact || stored.bundle.certs.is_empty();
        let remembered = known.filter(|_| is_damaged).into_iter().flat_map(|known| &known.bundle);
        let superseded = [stored.newest.as_ref().ok(), known.map(|known| &known.newest)];
        let is_new = matches!(reason, Some(WriteReason::NoUsableCa(_)));
        let superseded = superseded.into_iter().flatten().filter(|_| is_new).map(|ca| &ca.cert);
        let others = superseded.chain(&stored.bundle.certs).chain(remembered);
        let others = others.filter(|cert| match reason {
            Some(WriteReason::CaDue) => cert.not_after > self.now,
            // So a stolen CA is trusted no more after the Secret was deleted twice.
            Some(WriteReason::SecretDeleted) => false,
            _ => true,
        });
        bundle(newest, previous.as_ref(), others, self.leaf_signer)
    }

    /// The CA before the newest; from memory when the stored one is damaged.
    fn previous_of(&self, newest: &Arc<Ca>) -> Option<Arc<Ca>> {
        let known = self.known.filter(|known| known.newest.cert == newest.cert);
        let remembered = || known.and_then(|known| known.previous.clone());
        self.stored.previous.as_ref().ok().cloned().or_else(remembered)
    }

    /// The state that the Secret holds, with the signer of the current leaf in the bundle.
    fn unchanged(&self, newest: &Arc<Ca>) -> CaState {
        let previous = self.previous_of(newest);
        let bundle = bundle(newest, previous.as_ref(), self.stored.bundle.certs.iter(), self.leaf_signer);
        CaState { newest: Arc::clone(newest), previous, bundle }
    }
}

impl CaState {
    /// Writes the state into the data of a Secret; other keys stay.
    pub(super) fn write(&self, data: &mut Data) {
        let mut put = |key: &str, text: String| data.insert(key.to_owned(), ByteString(text.into_bytes()));
        put(CA_CERTIFICATE, self.newest.certificate_pem());
        put(CA_KEY, self.newest.key_pem.clone());
        put(BUNDLE, ca_bundle::pem(&self.bundle));
        match &self.previous {
            Some(previous) => {
                put(PREVIOUS_CERTIFICATE, previous.certificate_pem());
                put(PREVIOUS_KEY, previous.key_pem.clone());
            }
            None => {
                data.remove(PREVIOUS_CERTIFICATE);
                data.remove(PREVIOUS_KEY);
            }
        }
    }
}

#[cfg(test)]
mod tests;
