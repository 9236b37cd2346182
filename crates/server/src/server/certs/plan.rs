//! What is to be in the Secret, and which CA signs: from values alone.
//!
//! Nothing in here asks for the time, the cluster or another replica. New keys are the only thing
//! that does not follow from what goes in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;

use crate::server::certs::Terms;
use crate::server::certs::anchor::{self, Anchor, Bundle};
use crate::server::certs::ca::{Broken, Ca};

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

/// The most CAs that callers are asked to trust. In regular use there are two.
const MOST: usize = 8;

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

/// What the Secret is to say, and what a replica remembers of it.
#[derive(Debug, Clone)]
pub(super) struct Authorities {
    /// The CA that signs as soon as callers trust it.
    pub(super) newest: Arc<Ca>,
    /// The one that signs until then.
    pub(super) previous: Option<Arc<Ca>>,
    /// All that callers are to trust, the two above among them.
    pub(super) bundle: Vec<Anchor>,
}

/// What was found in the Secret.
struct Stored {
    newest: Result<Arc<Ca>, Broken>,
    previous: Result<Arc<Ca>, Broken>,
    bundle: Bundle,
}

/// Why the Secret is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// There was no usable CA, and nobody remembers one.
    Made(Broken),
    /// The CA is due to be replaced.
    Rotated,
    /// The CA was damaged, and is written again as it was.
    Repaired(Broken),
    /// The CA is as it should be; something beside it was not.
    Completed,
}

impl Change {
    /// Whether there is a new CA.
    pub(super) fn is_new_ca(self) -> bool {
        matches!(self, Self::Made(_) | Self::Rotated)
    }

    /// Whether a CA is written over one that others may hold to be good: those whose clocks differ could
    /// go on doing so for ever.
    pub(super) fn is_contested(self) -> bool {
        self == Self::Repaired(Broken::NotValid)
    }
}

/// What the Secret is to say; with a change when it does not say so yet.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) authorities: Authorities,
    pub(super) change: Option<Change>,
    /// What can be used of it as it is, for whoever cannot write.
    pub(super) unwritten: Option<Authorities>,
}

/// What is known of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// The CA that signed it.
    pub(super) signer: Anchor,
    pub(super) not_before: i64,
    pub(super) not_after: i64,
}

/// Which CAs the live webhook configurations trust, both of them, and for how long they have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Trust(pub(super) BTreeMap<Anchor, Duration>);

impl Trust {
    fn in_anchor(&self, anchor: &Anchor) -> bool {
        self.0.contains_key(anchor)
    }

    fn for_at_least(&self, anchor: &Anchor, time: Duration) -> bool {
        self.0.get(anchor).is_some_and(|trusted| *trusted >= time)
    }
}

/// Decides what the Secret is to say. `known` is what this replica remembers of it, and `held` the
/// CA of the leaf that it shows.
pub(super) fn settle(
    data: Option<&Data>,
    known: Option<&Authorities>,
    held: Option<&Anchor>,
    now: i64,
    terms: &Terms,
) -> Result<Settled, rcgen::Error> {
    let stored = Stored::read(data);
    let usable = match &stored.newest {
        Ok(ca) if ca.anchor.is_valid(now) => Ok(Arc::clone(ca)),
        Ok(_) => Err(Broken::NotValid),
        Err(broken) => Err(*broken),
    };
    let held = held.filter(|held| held.not_after > now);
    let unwritten = usable.as_ref().ok().map(|newest| stored.authorities(newest, known, held));
    let remembered = known.filter(|known| known.newest.anchor.is_valid(now));
    let (newest, previous, change) = match (usable, remembered) {
        (Ok(newest), _) if is_due(newest.anchor.not_before, newest.anchor.not_after, now, terms) => {
            (Arc::new(Ca::make(now, terms)?), Some(newest), Some(Change::Rotated))
        }
        (Ok(newest), _) => {
            let previous = stored.previous_beside(&newest, known);
            (newest, previous, None)
        }
        (Err(broken), Some(known)) => {
            (Arc::clone(&known.newest), known.previous.clone(), Some(Change::Repaired(broken)))
        }
        (Err(broken), None) => {
            let previous = stored.previous.as_ref().ok().cloned();
            let previous = previous.or_else(|| known.and_then(|known| known.previous.clone()));
            let previous = previous.filter(|previous| previous.anchor.is_valid(now));
            (Arc::new(Ca::make(now, terms)?), previous, Some(Change::Made(broken)))
        }
    };
    let damaged = change.is_some() || !stored.bundle.whole || stored.bundle.anchors.is_empty();
    let remembered = known.filter(|_| damaged).map(|known| known.bundle.as_slice()).unwrap_or_default();
    // Whose place a new CA takes: that may still be good by the clocks of others.
    let makes = matches!(change, Some(Change::Made(_)));
    let superseded = [stored.newest.as_ref().ok(), known.map(|known| &known.newest)];
    let superseded = superseded.into_iter().flatten().filter(|_| makes).map(|ca| &ca.anchor);
    let all = superseded.chain(&stored.bundle.anchors).chain(remembered);
    // Whichever clock is wrong, only a rotation makes others leave.
    let kept = all.filter(|anchor| change != Some(Change::Rotated) || anchor.not_after > now);
    let bundle = bundle(&newest, previous.as_ref(), kept, held);
    let authorities = Authorities { newest, previous, bundle };
    let change = change.or_else(|| (!stored.says(&authorities)).then_some(Change::Completed));
    Ok(Settled { authorities, change, unwritten })
}

/// The certificates that callers are to trust, each once and not too many. `held` is among them in
/// any case, and moves none that is there already: replicas that hold different leaves want the same
/// order.
fn bundle<'a>(
    newest: &Arc<Ca>,
    previous: Option<&Arc<Ca>>,
    others: impl Iterator<Item = &'a Anchor>,
    held: Option<&Anchor>,
) -> Vec<Anchor> {
    let mut bundle = vec![newest.anchor.clone()];
    bundle.extend(previous.map(|previous| previous.anchor.clone()));
    for anchor in others {
        if bundle.len() < MOST && !bundle.contains(anchor) {
            bundle.push(anchor.clone());
        }
    }
    if let Some(held) = held.filter(|held| !bundle.contains(held)) {
        bundle.truncate(MOST - 1);
        bundle.push(held.clone());
    }
    bundle
}

/// Which CA is to sign a new leaf now; `None` when the leaf that is held does.
pub(super) fn signer<'a>(
    authorities: &'a Authorities,
    held: Option<&Held>,
    trust: &Trust,
    propagation: Duration,
    now: i64,
    terms: &Terms,
) -> Option<&'a Arc<Ca>> {
    let newest = Some(&authorities.newest).filter(|newest| newest.anchor.is_valid(now))?;
    let trusted = trust.for_at_least(&newest.anchor, propagation);
    let previous = authorities.previous.as_ref().filter(|previous| previous.anchor.is_valid(now));
    let Some(held) = held.filter(|held| (held.not_before..held.not_after).contains(&now)) else {
        // Nothing is lost by a CA that callers do not trust yet if they trust no other.
        let previous = previous.filter(|previous| !trusted && trust.in_anchor(&previous.anchor));
        return Some(previous.unwrap_or(newest));
    };
    let due = is_due(held.not_before, held.not_after, now, terms);
    if held.signer == newest.anchor {
        return Some(newest).filter(|_| due);
    }
    if trusted {
        return Some(newest);
    }
    previous.filter(|previous| due && (held.signer == previous.anchor || trust.in_anchor(&previous.anchor)))
}

/// Whether a certificate has lived that part of its life after which it is replaced.
fn is_due(not_before: i64, not_after: i64, now: i64, terms: &Terms) -> bool {
    let life = i128::from(not_after) - i128::from(not_before);
    let lived = i128::from(now) - i128::from(not_before);
    lived * 100 >= life * i128::from(terms.renew_percent)
}

impl Stored {
    fn read(data: Option<&Data>) -> Self {
        let text = |key| data.and_then(|data| data.get(key)).map_or(&[][..], |value| value.0.as_slice());
        let ca = |certificate, key| match (text(certificate), text(key)) {
            ([], []) => Err(Broken::Missing),
            (certificate, key) => Ca::read(certificate, key).map(Arc::new),
        };
        Self {
            newest: ca(CA_CERTIFICATE, CA_KEY),
            previous: ca(PREVIOUS_CERTIFICATE, PREVIOUS_KEY),
            bundle: anchor::parse(text(BUNDLE)),
        }
    }

    /// The CA before the newest; the one that is remembered when the stored one was damaged.
    fn previous_beside(&self, newest: &Arc<Ca>, known: Option<&Authorities>) -> Option<Arc<Ca>> {
        let remembered = || {
            let known = known.filter(|known| known.newest.anchor == newest.anchor)?;
            known.previous.clone()
        };
        self.previous.as_ref().ok().cloned().or_else(remembered)
    }

    /// All of it as it is.
    fn authorities(
        &self,
        newest: &Arc<Ca>,
        known: Option<&Authorities>,
        held: Option<&Anchor>,
    ) -> Authorities {
        let previous = self.previous_beside(newest, known);
        let bundle = bundle(newest, previous.as_ref(), self.bundle.anchors.iter(), held);
        Authorities { newest: Arc::clone(newest), previous, bundle }
    }

    /// Whether this is what it is to be.
    fn says(&self, authorities: &Authorities) -> bool {
        let newest = self.newest.as_ref().is_ok_and(|newest| newest.anchor == authorities.newest.anchor);
        let previous = match (&self.previous, &authorities.previous) {
            (Ok(stored), Some(wanted)) => stored.anchor == wanted.anchor,
            (stored, wanted) => stored.as_ref().err() == Some(&Broken::Missing) && wanted.is_none(),
        };
        newest && previous && self.bundle.whole && self.bundle.anchors == authorities.bundle
    }
}

impl Authorities {
    /// Writes them into the data of a Secret; what else is in it stays.
    pub(super) fn write(&self, data: &mut Data) {
        let mut put = |key: &str, text: String| data.insert(key.to_owned(), ByteString(text.into_bytes()));
        put(CA_CERTIFICATE, self.newest.certificate_pem());
        put(CA_KEY, self.newest.key_pem.clone());
        put(BUNDLE, anchor::pem(&self.bundle));
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
