//! Plans what is written into the CA Secret, and which CA signs the next leaf. Pure functions.
//!
//! No clock, cluster or other replica is asked. New keys are the only thing that does not follow from the
//! arguments.
//!
//! A rotation takes three steps, so that no caller ever meets a leaf whose CA it does not trust:
//!
//! 1. The Secret gets a new CA as `ca.crt`; the old one moves to `previous.crt`, and both are in the bundle.
//!    Leaves are still signed by the old one.
//! 2. The bundle is written into both webhook configurations.
//! 3. When they have trusted the new CA for the propagation time, each replica signs a leaf with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;

use crate::server::cert_manager::path_tokens::{PATH_TOKENS, PathTokens};
use crate::server::certs::CertPolicy;
use crate::server::certs::ca::{Ca, CaError};
use crate::server::certs::ca_bundle::{self, CaBundle, CaCert};

/// The newest CA, PEM.
pub(super) const CA_CERTIFICATE: &str = "ca.crt";
/// Its key, PEM.
pub(super) const CA_KEY: &str = "ca.key";
/// The CA before it, PEM.
pub(super) const PREVIOUS_CERTIFICATE: &str = "previous.crt";
/// Its key, PEM.
pub(super) const PREVIOUS_KEY: &str = "previous.key";
/// All CAs that callers are to trust, PEM.
pub(super) const BUNDLE: &str = "bundle.crt";

/// The CAs that were revoked and have not expired, PEM: no replica may bring one back from memory.
pub(super) const REVOKED: &str = "revoked.crt";

/// How many CAs the bundle holds at most. In regular use there are two.
const MAX_BUNDLE_CERTS: usize = 8;

/// How many revoked CAs are remembered at most: those of a few whole bundles.
const MAX_REVOKED_CERTS: usize = 32;

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

/// The contents of the Secret: as they should be, or as a replica remembers them.
#[derive(Debug, Clone)]
pub(super) struct CaState {
    /// The CA that signs as soon as callers trust it.
    pub(super) newest: Arc<Ca>,
    /// The one that signs until then.
    pub(super) previous: Option<Arc<Ca>>,
    /// All CAs that callers are to trust, the two above among them.
    pub(super) bundle: Vec<CaCert>,
    /// The tokens of the paths under which reviews are sent.
    pub(super) tokens: PathTokens,
    /// The CAs that were revoked; none of them is among those above.
    pub(super) revoked: Vec<CaCert>,
}

/// What was found in the Secret.
struct SecretContents {
    newest: Result<Arc<Ca>, CaError>,
    previous: Result<Arc<Ca>, CaError>,
    bundle: CaBundle,
    tokens: PathTokens,
    /// Whether all of the tokens could be read.
    tokens_intact: bool,
    revoked: CaBundle,
}

/// Why the Secret must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretChange {
    /// There was no usable CA, neither in the Secret nor in memory.
    Made(CaError),
    /// The CA is due to be replaced.
    Rotated,
    /// A new CA was asked for.
    Requested,
    /// The new CA that was asked for is in use, and all others are revoked.
    Revoked,
    /// The new CA that was asked for is in use.
    InUse,
    /// The CA was damaged, and is written again from memory.
    Repaired(CaError),
    /// The CA is in order; the previous one or the bundle was not.
    Completed,
    /// The CAs are in order; the tokens of the paths were not, or there is a new one.
    PathToken,
}

impl SecretChange {
    /// Whether there is a new CA.
    pub(super) fn is_new_ca(self) -> bool {
        matches!(self, Self::Made(_) | Self::Rotated | Self::Requested)
    }

    /// Whether a CA replaces one that is valid by the clocks of other replicas: these could replace it in turn,
    /// for ever.
    pub(super) fn is_contested(self) -> bool {
        self == Self::Repaired(CaError::NotValid)
    }
}

/// What the Secret should hold.
#[derive(Debug)]
pub(super) struct SecretPlan {
    pub(super) state: CaState,
    /// Why it must be written; `None` when it holds that already.
    pub(super) change: Option<SecretChange>,
    /// What can be used of it unchanged, if it cannot be written; `None` when its CA cannot be used.
    pub(super) fallback: Option<CaState>,
}

/// The leaf that this replica presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CurrentLeaf {
    /// The CA that signed it.
    pub(super) signer: CaCert,
    pub(super) not_before: i64,
    pub(super) not_after: i64,
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
    let revoked = stored.revoked_with(known, now);
    let is_good = |cert: &CaCert| !revoked.contains(cert);
    let usable = match &stored.newest {
        Ok(ca) if !is_good(&ca.cert) => Err(CaError::Revoked),
        Ok(ca) if ca.cert.is_valid(now) => Ok(Arc::clone(ca)),
        Ok(_) => Err(CaError::NotValid),
        Err(error) => Err(*error),
    };
    let leaf_signer = leaf_signer.filter(|signer| signer.not_after > now && is_good(signer));
    let fallback = usable.as_ref().ok().map(|newest| stored.unchanged(newest, known, leaf_signer, &revoked));
    let usable_in_memory = |known: &&CaState| known.newest.cert.is_valid(now) && is_good(&known.newest.cert);
    let (newest, previous, change) = match (usable, known.filter(usable_in_memory)) {
        (Ok(newest), _) if is_due(newest.cert.not_before, newest.cert.not_after, now, policy) => {
            (Arc::new(Ca::generate(now, policy)?), Some(newest), Some(SecretChange::Rotated))
        }
        (Ok(newest), _) => {
            let previous = stored.previous_of(&newest, known);
            (newest, previous, None)
        }
        // Callers trust the CA in memory already, so writing it back is better than a new one.
        (Err(error), Some(known)) => {
            (Arc::clone(&known.newest), known.previous.clone(), Some(SecretChange::Repaired(error)))
        }
        (Err(error), None) => {
            let previous = stored.previous.as_ref().ok().cloned();
            let previous = previous.or_else(|| known.and_then(|known| known.previous.clone()));
            let previous = previous.filter(|previous| previous.cert.is_valid(now));
            (Arc::new(Ca::generate(now, policy)?), previous, Some(SecretChange::Made(error)))
        }
    };
    let previous = previous.filter(|previous| is_good(&previous.cert));
    // Where the Secret was damaged, its bundle may lack a CA that leaves of other replicas still need.
    let damaged = change.is_some() || !stored.bundle.intact || stored.bundle.certs.is_empty();
    let remembered = known.filter(|_| damaged).map(|known| known.bundle.as_slice()).unwrap_or_default();
    // A CA that is not valid by this clock may be valid by those of other replicas, so a new one does not
    // remove it from the bundle.
    let is_new = matches!(change, Some(SecretChange::Made(_)));
    let superseded = [stored.newest.as_ref().ok(), known.map(|known| &known.newest)];
    let superseded = superseded.into_iter().flatten().filter(|_| is_new).map(|ca| &ca.cert);
    let others = superseded.chain(&stored.bundle.certs).chain(remembered);
    // For the same reason expired CAs leave the bundle only at a rotation, which a clock that is wrong for a
    // moment does not cause.
    let others = others.filter(|cert| change != Some(SecretChange::Rotated) || cert.not_after > now);
    let others = others.filter(|cert| is_good(cert));
    let bundle = bundle(&newest, previous.as_ref(), others, leaf_signer);
    let is_new_ca = change.is_some_and(SecretChange::is_new_ca);
    let tokens = match change {
        // What is put back from before a revocation has tokens that whoever stole it knows as well.
        Some(SecretChange::Repaired(CaError::Revoked)) => known.map(|known| known.tokens.clone()),
        Some(SecretChange::Made(CaError::Revoked)) => None,
        _ => Some(stored.tokens_with(known)),
    };
    let tokens = tokens.unwrap_or_default().renewed(is_new_ca, now)?;
    let state = CaState { newest, previous, bundle, tokens, revoked };
    let change = change.or_else(|| stored.lacks(&state));
    Ok(SecretPlan { state, change, fallback })
}

/// The CAs that callers are to trust, each once and at most [`MAX_BUNDLE_CERTS`]. `leaf_signer` is always among
/// them, but never changes the order of the others: replicas with leaves of different CAs must agree on it, or
/// they would overwrite each other's Secret.
pub(super) fn bundle<'a>(
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

/// The CA that must sign a new leaf now; `None` when the current leaf will do.
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
    // Callers have given up a revoked CA, so a leaf of it is none.
    let leaf = leaf.filter(|leaf| !state.revoked.contains(&leaf.signer));
    let Some(leaf) = leaf.filter(|leaf| (leaf.not_before..leaf.not_after).contains(&now)) else {
        // Without a leaf there is nothing to lose: if callers trust neither CA, the newest is the one that
        // they will trust first.
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
    // In the middle of a rotation the previous CA renews the leaves that are due.
    previous.filter(|previous| is_due && (leaf.signer == previous.cert || trusted.contains(&previous.cert)))
}

/// Whether a certificate has reached the age at which it is replaced.
fn is_due(not_before: i64, not_after: i64, now: i64, policy: &CertPolicy) -> bool {
    now >= due_at(not_before, not_after, policy)
}

/// When a certificate is to be replaced, in seconds since 1970.
pub(super) fn due_at(not_before: i64, not_after: i64, policy: &CertPolicy) -> i64 {
    let life = i128::from(not_after) - i128::from(not_before);
    let age = (life * i128::from(policy.renew_percent) + 99).div_euclid(100);
    i64::try_from(i128::from(not_before) + age).unwrap_or(not_after)
}

impl SecretContents {
    fn read(data: Option<&Data>) -> Self {
        let text = |key| data.and_then(|data| data.get(key)).map_or(&[][..], |value| value.0.as_slice());
        let (tokens, tokens_intact) = PathTokens::read(text(PATH_TOKENS));
        let ca = |certificate, key| match (text(certificate), text(key)) {
            ([], []) => Err(CaError::Missing),
            (certificate, key) => Ca::parse(certificate, key).map(Arc::new),
        };
        Self {
            newest: ca(CA_CERTIFICATE, CA_KEY),
            previous: ca(PREVIOUS_CERTIFICATE, PREVIOUS_KEY),
            bundle: ca_bundle::parse(text(BUNDLE)),
            tokens,
            tokens_intact,
            revoked: ca_bundle::parse(text(REVOKED)),
        }
    }

    /// The CA before the newest; from memory when the stored one is damaged.
    fn previous_of(&self, newest: &Arc<Ca>, known: Option<&CaState>) -> Option<Arc<Ca>> {
        let remembered = || {
            let known = known.filter(|known| known.newest.cert == newest.cert)?;
            known.previous.clone()
        };
        self.previous.as_ref().ok().cloned().or_else(remembered)
    }

    /// The state without any change to the Secret, apart from the signer of the current leaf.
    fn unchanged(
        &self,
        newest: &Arc<Ca>,
        known: Option<&CaState>,
        leaf_signer: Option<&CaCert>,
        revoked: &[CaCert],
    ) -> CaState {
        let previous = self.previous_of(newest, known).filter(|previous| !revoked.contains(&previous.cert));
        let others = self.bundle.certs.iter().filter(|cert| !revoked.contains(cert));
        let bundle = bundle(newest, previous.as_ref(), others, leaf_signer);
        let (newest, tokens) = (Arc::clone(newest), self.tokens_with(known));
        CaState { newest, previous, bundle, tokens, revoked: revoked.to_vec() }
    }

    /// The CAs that are revoked, those in memory among them: an old Secret that somebody puts back must not bring
    /// one into use again.
    fn revoked_with(&self, known: Option<&CaState>, now: i64) -> Vec<CaCert> {
        let mut revoked = self.revoked.certs.clone();
        let remembered = known.into_iter().flat_map(|known| &known.revoked);
        for cert in remembered.filter(|cert| cert.not_after > now) {
            if !revoked.contains(cert) {
                revoked.push(cert.clone());
            }
        }
        revoked.truncate(MAX_REVOKED_CERTS);
        revoked
    }

    /// The tokens; where the stored ones are damaged or gone, with those in memory.
    fn tokens_with(&self, known: Option<&CaState>) -> PathTokens {
        let damaged = !self.tokens_intact || self.tokens.is_empty();
        match known.filter(|_| damaged) {
            Some(known) => self.tokens.with(&known.tokens),
            None => self.tokens.clone(),
        }
    }

    /// What of this state the Secret does not hold yet.
    fn lacks(&self, state: &CaState) -> Option<SecretChange> {
        if !self.holds_cas_of(state) {
            return Some(SecretChange::Completed);
        }
        let same_tokens = self.tokens_intact && self.tokens == state.tokens;
        (!same_tokens).then_some(SecretChange::PathToken)
    }

    fn holds_cas_of(&self, state: &CaState) -> bool {
        let newest = self.newest.as_ref().is_ok_and(|newest| newest.cert == state.newest.cert);
        let previous = match (&self.previous, &state.previous) {
            (Ok(stored), Some(wanted)) => stored.cert == wanted.cert,
            (stored, wanted) => stored.as_ref().err() == Some(&CaError::Missing) && wanted.is_none(),
        };
        let revoked = self.revoked.intact && self.revoked.certs == state.revoked;
        newest && previous && revoked && self.bundle.intact && self.bundle.certs == state.bundle
    }
}

impl CaState {
    /// Writes the state into the data of a Secret; other keys stay.
    pub(super) fn write(&self, data: &mut Data) {
        let mut put = |key: &str, text: String| data.insert(key.to_owned(), ByteString(text.into_bytes()));
        put(CA_CERTIFICATE, self.newest.certificate_pem());
        put(CA_KEY, self.newest.key_pem.clone());
        put(BUNDLE, ca_bundle::pem(&self.bundle));
        put(PATH_TOKENS, self.tokens.text());
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
        if self.revoked.is_empty() {
            data.remove(REVOKED);
        } else {
            data.insert(REVOKED.to_owned(), ByteString(ca_bundle::pem(&self.revoked).into_bytes()));
        }
    }

    /// The same with nothing left of all CAs but the newest, and of all tokens: whoever had the Secret had these.
    pub(super) fn revoked(&self, now: i64) -> Self {
        let gone = self.bundle.iter().filter(|cert| **cert != self.newest.cert).chain(&self.revoked);
        let gone = gone.filter(|cert| cert.not_after > now);
        Self {
            newest: Arc::clone(&self.newest),
            previous: None,
            bundle: vec![self.newest.cert.clone()],
            tokens: self.tokens.newest(),
            revoked: gone.take(MAX_REVOKED_CERTS).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
