//! Plans what the CA Secret should hold, and which CA signs the next leaf.
//!
//! All functions are pure: they use no clock and send no request. Only new keys and tokens are random.
//!
//! A rotation takes three steps, so that no caller ever gets a leaf whose CA it does not trust
//! (docs/adr/0005-certificates-without-a-leader.md has a diagram):
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
/// All CAs that callers should trust, PEM.
pub(super) const BUNDLE: &str = "bundle.crt";

/// The CAs that were revoked and have not expired, PEM. No replica may restore one of them from memory.
pub(super) const REVOKED: &str = "revoked.crt";

/// How many CAs the bundle holds at most. In regular use there are two.
const MAX_BUNDLE_CERTS: usize = 8;

/// How many revoked CAs are remembered at most: those of four full bundles.
const MAX_REVOKED_CERTS: usize = 32;

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
    /// The tokens of the paths under which reviews are sent.
    pub(super) tokens: PathTokens,
    /// The revoked CAs; the fields above have none of them.
    pub(super) revoked: Vec<CaCert>,
}

/// The contents of the Secret as read; damaged parts are errors.
struct SecretContents {
    newest: Result<Arc<Ca>, CaError>,
    previous: Result<Arc<Ca>, CaError>,
    bundle: CaBundle,
    tokens: PathTokens,
    /// Whether all tokens could be read.
    tokens_intact: bool,
    revoked: CaBundle,
}

/// Why the Secret must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteReason {
    /// Neither the Secret nor memory has a usable CA, so there is a new one.
    NoUsableCa(CaError),
    /// The CA is due to be replaced, so there is a new one.
    CaDue,
    /// A request asks for a new CA, so there is one.
    CaRequested,
    /// The requested CA is in use, and all others are revoked.
    RevocationDone,
    /// The requested CA is in use.
    RequestDone,
    /// The CA in the Secret is damaged, and is restored from memory.
    CaDamaged(CaError),
    /// The CA is usable; the previous one or the bundle is not as planned.
    BundleIncomplete,
    /// The CAs are as planned; the path tokens are not, or there is a new one.
    TokensOutdated,
}

impl WriteReason {
    /// Whether there is a new CA.
    pub(super) fn is_new_ca(self) -> bool {
        matches!(self, Self::NoUsableCa(_) | Self::CaDue | Self::CaRequested)
    }

    /// Whether a CA replaces one that may be valid by the clocks of other replicas, which could replace it in turn
    /// without end.
    pub(super) fn is_contested(self) -> bool {
        self == Self::CaDamaged(CaError::NotValid)
    }
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
    let usable = stored.usable_newest(&revoked, now);
    let leaf_signer = leaf_signer.filter(|signer| signer.not_after > now && !revoked.contains(signer));
    let fallback = usable.as_ref().ok().map(|newest| stored.unchanged(newest, known, leaf_signer, &revoked));
    let chosen = stored.choose_cas(usable, known, &revoked, now, policy)?;
    let bundle = stored.planned_bundle(&chosen, known, leaf_signer, &revoked, now);
    let is_new_ca = chosen.reason.is_some_and(WriteReason::is_new_ca);
    let tokens = stored.planned_tokens(chosen.reason, known).renewed(is_new_ca, now)?;
    let ChosenCas { newest, previous, reason } = chosen;
    let state = CaState { newest, previous, bundle, tokens, revoked };
    let reason = reason.or_else(|| stored.lacks(&state));
    Ok(SecretPlan { state, reason, fallback })
}

/// The CAs that callers should trust, each once and at most [`MAX_BUNDLE_CERTS`]. `leaf_signer` is always included, but
/// never changes the order of the others: replicas with leaves of different CAs must agree on the order, or they would
/// overwrite each other's Secret.
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
    // Callers do not trust a leaf of a revoked CA.
    let leaf = leaf.filter(|leaf| !state.revoked.contains(&leaf.signer));
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

    /// The newest stored CA, or why it cannot be used.
    fn usable_newest(&self, revoked: &[CaCert], now: i64) -> Result<Arc<Ca>, CaError> {
        match &self.newest {
            Ok(ca) if revoked.contains(&ca.cert) => Err(CaError::Revoked),
            Ok(ca) if !ca.cert.is_valid(now) => Err(CaError::NotValid),
            Ok(ca) => Ok(Arc::clone(ca)),
            Err(error) => Err(*error),
        }
    }

    /// Chooses the newest and the previous CA. A CA in memory wins over a new one: callers trust it already.
    fn choose_cas(
        &self,
        usable: Result<Arc<Ca>, CaError>,
        known: Option<&CaState>,
        revoked: &[CaCert],
        now: i64,
        policy: &CertPolicy,
    ) -> Result<ChosenCas, rcgen::Error> {
        let is_usable = |ca: &CaCert| ca.is_valid(now) && !revoked.contains(ca);
        let new_ca = || Ca::generate(now, policy).map(Arc::new);
        let (newest, previous, reason) = match (usable, known.filter(|known| is_usable(&known.newest.cert))) {
            (Ok(newest), _) if is_due(newest.cert.not_before, newest.cert.not_after, now, policy) => {
                (new_ca()?, Some(newest), Some(WriteReason::CaDue))
            }
            (Ok(newest), _) => {
                let previous = self.previous_of(&newest, known);
                (newest, previous, None)
            }
            (Err(error), Some(known)) => {
                (Arc::clone(&known.newest), known.previous.clone(), Some(WriteReason::CaDamaged(error)))
            }
            (Err(error), None) => {
                let stored = self.previous.as_ref().ok().cloned();
                let previous = stored.or_else(|| known.and_then(|known| known.previous.clone()));
                let previous = previous.filter(|previous| previous.cert.is_valid(now));
                (new_ca()?, previous, Some(WriteReason::NoUsableCa(error)))
            }
        };
        let previous = previous.filter(|previous| !revoked.contains(&previous.cert));
        Ok(ChosenCas { newest, previous, reason })
    }

    /// The bundle for these CAs. Three cases keep CAs in it that leaves of other replicas may still need:
    ///
    /// - The bundle of a damaged Secret may lack some, so those in memory are added.
    /// - A CA that is not valid by this clock may be valid by the clocks of other replicas, so a new CA does not
    ///   remove it.
    /// - For the same reason an expired CA leaves the bundle only at a rotation, which a clock that is wrong for a
    ///   moment does not cause.
    fn planned_bundle(
        &self,
        ChosenCas { newest, previous, reason }: &ChosenCas,
        known: Option<&CaState>,
        leaf_signer: Option<&CaCert>,
        revoked: &[CaCert],
        now: i64,
    ) -> Vec<CaCert> {
        let is_damaged = reason.is_some() || !self.bundle.intact || self.bundle.certs.is_empty();
        let remembered = known.filter(|_| is_damaged).into_iter().flat_map(|known| &known.bundle);
        let superseded = [self.newest.as_ref().ok(), known.map(|known| &known.newest)];
        let is_new = matches!(reason, Some(WriteReason::NoUsableCa(_)));
        let superseded = superseded.into_iter().flatten().filter(|_| is_new).map(|ca| &ca.cert);
        let others = superseded.chain(&self.bundle.certs).chain(remembered);
        let others = others.filter(|cert| *reason != Some(WriteReason::CaDue) || cert.not_after > now);
        let others = others.filter(|cert| !revoked.contains(cert));
        bundle(newest, previous.as_ref(), others, leaf_signer)
    }

    /// The tokens to keep. A Secret from before a revocation has tokens that an attacker may know, so these are dropped.
    fn planned_tokens(&self, reason: Option<WriteReason>, known: Option<&CaState>) -> PathTokens {
        match reason {
            Some(WriteReason::CaDamaged(CaError::Revoked)) => known.map(|known| known.tokens.clone()),
            Some(WriteReason::NoUsableCa(CaError::Revoked)) => None,
            _ => Some(self.tokens_with(known)),
        }
        .unwrap_or_default()
    }

    /// The CA before the newest; from memory when the stored one is damaged.
    fn previous_of(&self, newest: &Arc<Ca>, known: Option<&CaState>) -> Option<Arc<Ca>> {
        let remembered = || {
            let known = known.filter(|known| known.newest.cert == newest.cert)?;
            known.previous.clone()
        };
        self.previous.as_ref().ok().cloned().or_else(remembered)
    }

    /// The state that the Secret holds, with the signer of the current leaf in the bundle.
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

    /// The revoked CAs of the Secret and of memory: an old Secret that is restored from a backup must not bring a revoked
    /// CA into use again.
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

    /// The tokens; if the stored ones are damaged or missing, also those in memory.
    fn tokens_with(&self, known: Option<&CaState>) -> PathTokens {
        let damaged = !self.tokens_intact || self.tokens.is_empty();
        match known.filter(|_| damaged) {
            Some(known) => self.tokens.with(&known.tokens),
            None => self.tokens.clone(),
        }
    }

    /// Why the Secret must be written, if it differs from this state.
    fn lacks(&self, state: &CaState) -> Option<WriteReason> {
        if !self.holds_cas_of(state) {
            return Some(WriteReason::BundleIncomplete);
        }
        let same_tokens = self.tokens_intact && self.tokens == state.tokens;
        (!same_tokens).then_some(WriteReason::TokensOutdated)
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

    /// Revokes every CA except the newest, and every token except the newest: a thief of the Secret knows the others.
    pub(super) fn revoked(&self, now: i64) -> Self {
        let revoked = self.bundle.iter().filter(|cert| **cert != self.newest.cert).chain(&self.revoked);
        let revoked = revoked.filter(|cert| cert.not_after > now);
        Self {
            newest: Arc::clone(&self.newest),
            previous: None,
            bundle: vec![self.newest.cert.clone()],
            tokens: self.tokens.newest(),
            revoked: revoked.take(MAX_REVOKED_CERTS).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
