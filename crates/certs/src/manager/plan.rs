//! What the CA Secret should hold next.
//!
//! All functions are pure: they use no clock and send no request. Only new keys are random.
//!
//! A CA is replaced in four steps, so that no caller ever gets a certificate whose CA it does not trust
//! (docs/adr/0033-one-writer-of-certificates.md):
//!
//! 1. The Secret gets the next CA, and the bundle both. The certificate stays.
//! 2. The bundle is written into all entries.
//! 3. When they have trusted the next CA for the propagation time, it becomes the CA and signs a certificate, which
//!    all replicas present as soon as they have read it.
//! 4. When that certificate is renewed, or another CA signs, the old CA leaves the bundle.
//!
//! A CA that another client put into the Secret is the next one, unless callers trust it already.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;

use crate::ca::{Ca, Leaf};
use crate::ca_bundle::{self, CaCert};
use crate::{Builtin, CertPolicy};

/// How many CAs the bundle holds at most. In regular use there are two.
const MAX_BUNDLE_CERTS: usize = 8;

/// The key of the bundle in the Secret.
const BUNDLE: &str = "bundle.crt";

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

/// The contents of the Secret.
#[derive(Clone)]
pub(super) struct CertSet {
    /// The CA that signs.
    pub(super) ca: Ca,
    /// The CA that signs once callers trust it.
    pub(super) next: Option<Ca>,
    /// The certificate that replicas present; `None` when it is missing or the CA has not signed it.
    pub(super) leaf: Option<Leaf>,
    /// All CAs that callers should trust, including the two above.
    pub(super) bundle: Vec<CaCert>,
}

/// Why the Secret must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Step {
    /// Neither the Secret nor memory has a usable CA.
    #[error("the first CA")]
    FirstCa,
    /// The CAs in the Secret cannot be used, or were deleted while one replaced the other, and come back from memory.
    #[error("the CAs once more, since they were damaged or deleted")]
    Restored,
    /// The Secret has a CA of another client.
    #[error("the last CA once more, until all entries trust the CA that another client wrote")]
    Foreign,
    /// The Secret was deleted.
    #[error("the next CA, since the Secret was deleted")]
    Deleted,
    /// The CA is due to be replaced.
    #[error("the next CA, since the last one was due")]
    CaDue,
    /// Callers trust the next CA.
    #[error("a certificate of the next CA, since all entries trust it")]
    NextSigns,
    /// The certificate is due to be replaced.
    #[error("a new certificate, since the last one was due")]
    LeafDue,
    /// The certificate cannot be used, or has not all names.
    #[error("a new certificate, since the last one does not fit")]
    LeafUnfit,
    /// The bundle is not as planned.
    #[error("the complete bundle")]
    Bundle,
}

impl Step {
    /// Whether a CA was made.
    pub(super) const fn is_new_ca(self) -> bool {
        matches!(self, Self::FirstCa | Self::Deleted | Self::CaDue)
    }

    /// Whether an administrator should know of it: something was lost or damaged.
    pub(super) const fn is_unexpected(self) -> bool {
        matches!(self, Self::Restored | Self::Foreign | Self::Deleted)
    }
}

/// The CAs that callers trust.
#[derive(Default)]
pub(super) struct Trusted {
    /// Those that any entry has.
    pub(super) by_any: BTreeSet<CaCert>,
    /// Those that all entries have had for the propagation time.
    pub(super) by_all: BTreeSet<CaCert>,
}

impl Trusted {
    /// Those that any entry has and that have not expired.
    fn valid(&self, now: i64) -> impl Iterator<Item = CaCert> {
        self.by_any.iter().filter(move |cert| cert.is_valid(now)).cloned()
    }
}

/// Plans what the Secret should hold, and why it must be written; `None` when it holds that already.
///
/// `known` is what this replica last read or wrote.
///
/// # Errors
/// When a key or certificate cannot be made.
pub(super) fn plan(
    stored: Option<&Data>,
    known: Option<&CertSet>,
    trusted: &Trusted,
    now: i64,
    Builtin { names, policy, .. }: &Builtin,
) -> Result<(CertSet, Option<Step>), rcgen::Error> {
    let text = stored.map(|data| text(data, BUNDLE)).unwrap_or_default();
    let (mut set, mut step) = match (stored.and_then(|data| CertSet::read(data, now)), known) {
        (Some(found), Some(known)) if found.is_foreign(known, trusted) => {
            // One that cannot sign is as good as damaged.
            match found.ca.issue(names, now, policy) {
                Some(_) => {
                    let bundle = [known.bundle.clone(), found.bundle].concat();
                    (CertSet { next: Some(found.ca), bundle, ..known.clone() }, Some(Step::Foreign))
                }
                None => (known.clone(), Some(Step::Restored)),
            }
        }
        // Entries may trust the CA of the certificate that other replicas present.
        (Some(mut found), None) if !trusted.by_any.contains(&found.ca.cert) => {
            found.bundle.extend(trusted.valid(now));
            (found, None)
        }
        (Some(found), _) => (found, None),
        (None, Some(known)) if stored.is_none() && known.next.is_none() => {
            (known.clone(), Some(Step::Deleted))
        }
        (None, Some(known)) => (known.clone(), Some(Step::Restored)),
        (None, None) => {
            let bundle = trusted.valid(now).chain(ca_bundle::parse(text)).collect();
            (CertSet { ca: Ca::generate(now, policy)?, next: None, leaf: None, bundle }, Some(Step::FirstCa))
        }
    };
    // What comes back goes on from where it was.
    if matches!(step, None | Some(Step::Restored)) {
        step = set.due_step(trusted, now, names, policy).or(step);
    }
    // No replica presents a certificate of an older CA any more after these two steps.
    match step {
        Some(Step::LeafDue) => set.bundle.clear(),
        Some(Step::NextSigns) => {
            let next = set.next.take();
            match next.and_then(|next| Some((next.issue(names, now, policy)?, next))) {
                Some((leaf, next)) => {
                    set.bundle = vec![std::mem::replace(&mut set.ca, next).cert];
                    set.leaf = Some(leaf);
                }
                None => step = Some(Step::Restored),
            }
        }
        _ => {}
    }
    if matches!(step, Some(Step::FirstCa | Step::LeafUnfit | Step::LeafDue)) {
        match set.ca.issue(names, now, policy) {
            Some(leaf) => set.leaf = Some(leaf),
            None => step = set.next.is_none().then_some(Step::CaDue),
        }
    }
    if matches!(step, Some(Step::Deleted | Step::CaDue)) {
        set.next = Some(Ca::generate(now, policy)?);
    }
    set.complete_bundle(known);
    let has_bundle = ca_bundle::pem(&set.bundle).as_bytes() == text;
    Ok((set, step.or_else(|| (!has_bundle).then_some(Step::Bundle))))
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

fn text<'a>(data: &'a Data, key: &str) -> &'a [u8] {
    data.get(key).map_or(&[], |value| value.0.as_slice())
}

impl CertSet {
    /// Reads the data of a Secret; `None` when its CA cannot be read.
    pub(super) fn read(data: &Data, now: i64) -> Option<Self> {
        let ca = Ca::parse(text(data, "ca.crt"), text(data, "ca.key"))?;
        let next = Ca::parse(text(data, "next.crt"), text(data, "next.key"));
        let next = next.filter(|next| next.cert.is_valid(now));
        let leaf = Leaf::parse(text(data, "tls.crt"), text(data, "tls.key"));
        Some(Self { ca, next, leaf, bundle: ca_bundle::parse(text(data, BUNDLE)) })
    }

    /// Whether its CA is not the one that replicas use, and not one that callers trust.
    pub(super) fn is_foreign(&self, known: &Self, trusted: &Trusted) -> bool {
        self.ca.cert != known.ca.cert && !trusted.by_all.contains(&self.ca.cert)
    }

    /// The step that is due when the stored set can be used.
    pub(super) fn due_step(
        &self,
        trusted: &Trusted,
        now: i64,
        names: &[String],
        policy: &CertPolicy,
    ) -> Option<Step> {
        let ca = &self.ca.cert;
        let next_is_trusted = self.next.as_ref().map(|next| trusted.by_all.contains(&next.cert));
        match &self.leaf {
            _ if next_is_trusted == Some(true) => Some(Step::NextSigns),
            // An expired CA waits for the next one.
            _ if next_is_trusted.is_some() && !ca.is_valid(now) => None,
            _ if next_is_trusted.is_none() && is_due(ca.not_before, ca.not_after, now, policy) => {
                Some(Step::CaDue)
            }
            // A certificate that ends with its CA cannot be renewed.
            Some(leaf) if self.ca.is_issuer(leaf, names, now) => (leaf.not_after < ca.not_after
                && is_due(leaf.not_before, leaf.not_after, now, policy))
            .then_some(Step::LeafDue),
            _ => Some(Step::LeafUnfit),
        }
    }

    /// Writes the set into the data of a Secret; other keys stay.
    pub(super) fn write(&self, data: &mut Data) {
        let ca = |ca: &Ca| [ca.certificate_pem(), ca.key_pem.clone()];
        let leaf = self.leaf.as_ref().map(|leaf| [leaf.cert_pem.clone(), leaf.key_pem.clone()]);
        for (name, pair) in [("ca", Some(ca(&self.ca))), ("next", self.next.as_ref().map(ca)), ("tls", leaf)]
        {
            let keys = [format!("{name}.crt"), format!("{name}.key")];
            data.retain(|key, _| !keys.contains(key));
            let texts = pair.into_iter().flatten().map(|text| ByteString(text.into_bytes()));
            data.extend(keys.into_iter().zip(texts));
        }
        data.insert(BUNDLE.to_owned(), ByteString(ca_bundle::pem(&self.bundle).into_bytes()));
    }

    /// Puts the CAs of this set first into its bundle, and that of the certificate which replicas present last; each once,
    /// and at most [`MAX_BUNDLE_CERTS`].
    fn complete_bundle(&mut self, known: Option<&Self>) {
        let own = [Some(&self.ca), self.next.as_ref(), known.map(|known| &known.ca)].into_iter().flatten();
        let all = own.map(|ca| ca.cert.clone()).chain(std::mem::take(&mut self.bundle));
        for cert in all {
            if self.bundle.len() < MAX_BUNDLE_CERTS && !self.bundle.contains(&cert) {
                self.bundle.push(cert);
            }
        }
    }
}

#[cfg(test)]
mod tests;
