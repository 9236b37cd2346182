//! The plan with the clock as an input. `World` is a Secret, entries that follow it late, and replicas that read it late.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::test_support::builtin;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
const START: i64 = 2_000_000_000;

fn planned(data: Option<&Data>, known: Option<&CertSet>, now: i64) -> (CertSet, Option<Step>) {
    plan(data, known, &Trusted::default(), now, &builtin()).expect("keys can be made")
}

/// As above, when all entries have long trusted a CA.
fn planned_trusting(
    cert: &CaCert,
    data: Option<&Data>,
    known: Option<&CertSet>,
    now: i64,
) -> (CertSet, Option<Step>) {
    let certs = BTreeSet::from([cert.clone()]);
    let trusted = Trusted { by_any: certs.clone(), by_all: certs };
    plan(data, known, &trusted, now, &builtin()).expect("keys can be made")
}

fn data(set: &CertSet) -> Data {
    let mut data = Data::new();
    set.write(&mut data);
    data
}

/// A first set, and what the Secret says of it.
fn fresh() -> (CertSet, Data) {
    let (set, step) = planned(None, None, START);
    assert_eq!(step, Some(Step::FirstCa));
    let data = data(&set);
    (set, data)
}

fn certs(set: &CertSet) -> Vec<&CaCert> {
    set.bundle.iter().collect()
}

#[test]
fn a_written_secret_does_not_change() {
    let (set, written) = fresh();
    for known in [None, Some(&set)] {
        let (again, step) = planned(Some(&written), known, START + HOUR);
        assert_eq!((step, data(&again)), (None, written.clone()));
    }
}

#[test]
fn other_keys_are_kept() {
    let (set, mut data) = fresh();
    data.insert("note".to_owned(), ByteString(b"mine".to_vec()));
    data.insert("next.crt".to_owned(), ByteString(b"half".to_vec()));
    set.write(&mut data);
    let keys: Vec<_> = data.keys().map(String::as_str).collect();
    assert_eq!(keys, ["bundle.crt", "ca.crt", "ca.key", "note", "tls.crt", "tls.key"]);
}

#[test]
fn a_ca_is_replaced_in_steps_when_it_is_due_and_not_before() {
    let (first, written) = fresh();
    let ca = &first.ca.cert;
    let due = ca.not_before + (ca.not_after - ca.not_before) * 66 / 100;
    let (_, early) = planned(Some(&written), Some(&first), due - 1);
    assert_ne!(early, Some(Step::CaDue));
    let (next, step) = planned(Some(&written), Some(&first), due + 1);
    assert_eq!(step, Some(Step::CaDue));
    let next_ca = &next.next.as_ref().expect("the next one").cert;
    assert_eq!(certs(&next), [ca, next_ca]);
    assert!(next.leaf == first.leaf && next.ca.cert == *ca, "nothing else changes");
    // Until entries trust it, the old one goes on signing.
    let (renewed, step) = planned(Some(&data(&next)), Some(&next), due + 2);
    assert_eq!(step, Some(Step::LeafUnfit), "the first certificate has expired long ago");
    assert!(renewed.ca.is_issuer(renewed.leaf.as_ref().expect("a leaf"), &builtin().names, due + 2));
    let (signs, step) = planned_trusting(next_ca, Some(&data(&renewed)), Some(&renewed), due + 3);
    assert_eq!(step, Some(Step::NextSigns));
    assert!(signs.ca.cert == *next_ca && signs.next.is_none());
    assert!(signs.ca.is_issuer(signs.leaf.as_ref().expect("a leaf"), &builtin().names, due + 3));
    assert_eq!(certs(&signs), [next_ca, ca]);
    let by_another = planned_trusting(next_ca, Some(&data(&renewed)), None, due + 3).0;
    assert_eq!(certs(&by_another), [next_ca, ca]);
    let (later, step) = planned(Some(&data(&signs)), Some(&signs), due + 5 * DAY);
    assert_eq!((step, certs(&later)), (Some(Step::LeafDue), vec![next_ca]));
}

#[test]
fn a_certificate_that_does_not_fit_is_replaced_at_once() {
    let (set, written) = fresh();
    let mut other = builtin();
    other.names.push("10.0.0.1".to_owned());
    let (renamed, step) =
        plan(Some(&written), Some(&set), &Trusted::default(), START, &other).expect("keys can be made");
    assert_eq!(step, Some(Step::LeafUnfit));
    assert!(renamed.ca.is_issuer(renamed.leaf.as_ref().expect("a leaf"), &other.names, START));
    let stranger = data(&fresh().0);
    for key in ["tls.crt", "tls.key"] {
        for damage in [None, Some(stranger[key].clone())] {
            let mut damaged = written.clone();
            damaged.remove(key);
            damaged.extend(damage.map(|text| (key.to_owned(), text)));
            let (mended, step) = planned(Some(&damaged), Some(&set), START);
            assert_eq!(step, Some(Step::LeafUnfit), "{key}");
            assert_eq!(mended.ca.cert, set.ca.cert, "{key}");
        }
    }
}

/// Keys of a Secret, and what is written there.
type Damage<'a> = Vec<(&'a str, Vec<u8>)>;

/// What becomes of a Secret in each state in which it may be found, without and with a memory of it.
#[test]
fn a_damaged_secret_is_restored_from_memory() {
    let (known, good) = fresh();
    let text = |data: &Data, key: &str| data[key].0.clone();
    let half = |key: &str| text(&good, key)[..text(&good, key).len() / 2].to_vec();
    let (stranger, expired) = (data(&fresh().0), data(&planned(None, None, START - 2 * YEAR).0));
    let leaf = |key: &str| text(&good, &key.replace("ca", "tls"));
    let rows: [(&str, Damage<'_>); 8] = [
        (
            "empty",
            ["ca.crt", "ca.key", "tls.crt", "tls.key", "bundle.crt"].map(|key| (key, Vec::new())).into(),
        ),
        ("half a certificate", vec![("ca.crt", half("ca.crt"))]),
        ("half a key", vec![("ca.key", half("ca.key"))]),
        ("another's key", vec![("ca.key", text(&stranger, "ca.key"))]),
        ("another's certificate", vec![("ca.crt", text(&stranger, "ca.crt"))]),
        ("not a CA", vec![("ca.crt", leaf("ca.crt")), ("ca.key", leaf("ca.key"))]),
        ("expired", vec![("ca.crt", text(&expired, "ca.crt")), ("ca.key", text(&expired, "ca.key"))]),
        ("not text", vec![("ca.key", vec![0xff; 100])]),
    ];
    for (name, damage) in rows {
        let mut damaged = good.clone();
        damaged.extend(damage.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text))));
        let (restored, step) = planned(Some(&damaged), Some(&known), START);
        assert_eq!(step, Some(Step::Restored), "{name}");
        assert_eq!(data(&restored), good, "{name}");
        let first = if name == "expired" { Step::CaDue } else { Step::FirstCa };
        assert_eq!(planned(Some(&damaged), None, START).1, Some(first), "{name}");
    }
    let mut damaged = good.clone();
    damaged.insert("bundle.crt".to_owned(), ByteString(b"hello".to_vec()));
    for known in [None, Some(&known)] {
        let (mended, step) = planned(Some(&damaged), known, START);
        assert_eq!((step, data(&mended)), (Some(Step::Bundle), good.clone()));
    }
}

/// Another CA, whole and with a certificate of its own, as after a restore.
#[test]
fn a_foreign_ca_is_the_next_one() {
    let ((known, _), (foreign, written)) = (fresh(), fresh());
    let (set, step) = planned(Some(&written), Some(&known), START);
    assert_eq!((step, certs(&set)), (Some(Step::Foreign), vec![&known.ca.cert, &foreign.ca.cert]));
    assert!(set.leaf == known.leaf && set.ca.cert == known.ca.cert);
    let (waits, step) = planned(Some(&data(&set)), Some(&set), START);
    assert_eq!((step, data(&waits)), (None, data(&set)));
    let (signs, step) = planned_trusting(&foreign.ca.cert, Some(&data(&set)), Some(&set), START);
    assert_eq!((step, certs(&signs)), (Some(Step::NextSigns), vec![&foreign.ca.cert, &known.ca.cert]));
    assert!(signs.ca.is_issuer(signs.leaf.as_ref().expect("a leaf"), &builtin().names, START));
    // What callers trust is not foreign: another writer was there before.
    let (set, step) = planned_trusting(&foreign.ca.cert, Some(&written), Some(&known), START);
    assert_eq!((step, set.ca.cert), (Some(Step::Bundle), foreign.ca.cert));
}

/// A CA that may not sign for the names of memgate.
fn constrained() -> Data {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let other = rcgen::GeneralSubtree::DnsName("example.com".to_owned());
    params.name_constraints =
        Some(rcgen::NameConstraints { permitted_subtrees: vec![other], excluded_subtrees: vec![] });
    let pem = params.self_signed(&key).expect("a certificate").pem();
    let text = |text: String| ByteString(text.into_bytes());
    Data::from([("ca.crt".to_owned(), text(pem)), ("ca.key".to_owned(), text(key.serialize_pem()))])
}

#[test]
fn a_ca_that_cannot_sign_is_not_waited_for() {
    let (known, written) = fresh();
    let foreign = constrained();
    let (set, step) = planned(Some(&foreign), Some(&known), START);
    assert_eq!((step, data(&set)), (Some(Step::Restored), written.clone()));
    let (set, step) = planned(Some(&foreign), None, START);
    assert_eq!(step, Some(Step::CaDue));
    let next = set.next.as_ref().expect("the next one").cert.clone();
    let (waits, step) = planned(Some(&data(&set)), Some(&set), START);
    assert_eq!((step, data(&waits)), (None, data(&set)), "nothing more to write until entries trust it");
    let (signs, step) = planned_trusting(&next, Some(&data(&set)), Some(&set), START);
    assert!(step == Some(Step::NextSigns) && signs.ca.cert == next && signs.leaf.is_some());
    let mut with_next = written.clone();
    for (key, text) in &foreign {
        with_next.insert(key.replace("ca.", "next."), text.clone());
    }
    let next = CertSet::read(&with_next, START).and_then(|set| set.next).expect("the next one").cert;
    let (set, step) = planned_trusting(&next, Some(&with_next), Some(&known), START);
    assert!(step == Some(Step::Restored) && set.next.is_none() && set.leaf == known.leaf);
}

/// An apiserver whose clock is a year off, for a time or for good.
#[test]
fn dates_alone_make_no_first_ca() {
    let (set, written) = fresh();
    for now in [START - 2 * YEAR, START + 2 * YEAR] {
        for known in [None, Some(&set)] {
            let (due, step) = planned(Some(&written), known, now);
            assert_eq!(step, Some(Step::CaDue));
            assert!(due.ca.cert == set.ca.cert && due.leaf == set.leaf && due.bundle.len() == 2);
            let (waits, step) = planned(Some(&data(&due)), Some(&due), now);
            assert_eq!((step, data(&waits)), (None, data(&due)));
            let next = &due.next.as_ref().expect("the next one").cert;
            let (signs, step) = planned_trusting(next, Some(&data(&due)), Some(&due), now);
            assert_eq!((step, &signs.ca.cert), (Some(Step::NextSigns), next));
            assert!(signs.ca.is_issuer(signs.leaf.as_ref().expect("a leaf"), &builtin().names, now));
        }
        let (deleted, step) = planned(None, Some(&set), now);
        assert_eq!((step, deleted.ca.cert), (Some(Step::Deleted), set.ca.cert.clone()));
    }
}

/// The Secret was deleted, and the new writer has never read it.
#[test]
fn a_first_ca_is_added_to_what_callers_trust() {
    let ((old, written), (other, _)) = (fresh(), fresh());
    let expired = planned(None, None, START - 2 * YEAR).0.ca.cert;
    let seed = Data::from([(BUNDLE.to_owned(), written[BUNDLE].clone())]);
    let by_any = BTreeSet::from([other.ca.cert.clone(), expired]);
    let trusted = Trusted { by_any, by_all: BTreeSet::new() };
    for (stored, expected) in
        [(None, vec![&other.ca.cert]), (Some(&seed), vec![&other.ca.cert, &old.ca.cert])]
    {
        let (set, step) = plan(stored, None, &trusted, START, &builtin()).expect("keys can be made");
        assert_eq!(step, Some(Step::FirstCa));
        assert_eq!(certs(&set), [vec![&set.ca.cert], expected].concat());
    }
}

#[test]
fn a_secret_that_is_deleted_again_comes_back_with_the_same_next_ca() {
    let (first, step) = planned(None, Some(&fresh().0), START);
    assert_eq!(step, Some(Step::Deleted));
    let (second, step) = planned(None, Some(&first), START);
    assert_eq!((step, data(&second)), (Some(Step::Restored), data(&first)));
}

#[test]
fn a_stolen_ca_is_not_trusted_after_two_new_ones() {
    let (stolen, _) = fresh();
    let mut known = stolen.clone();
    for _ in 0..2 {
        let old = known.ca.cert.clone();
        let (set, step) = planned(None, Some(&known), START);
        assert_eq!(step, Some(Step::Deleted));
        let next = &set.next.as_ref().expect("the next one").cert;
        assert!(certs(&set).starts_with(&[&old, next]) && set.leaf == known.leaf);
        known = planned_trusting(next, Some(&data(&set)), Some(&set), START).0;
        assert_eq!(certs(&known), [next, &old]);
    }
    assert!(!known.bundle.contains(&stolen.ca.cert));
}

#[test]
fn a_bundle_has_a_bound() {
    let (set, mut written) = fresh();
    let many: Vec<_> = (0..20).map(|_| fresh().0.ca.cert).collect();
    written.insert(BUNDLE.to_owned(), ByteString(ca_bundle::pem(&many).into_bytes()));
    let (bounded, step) = planned(Some(&written), Some(&set), START);
    assert_eq!((step, bounded.bundle.len()), (Some(Step::Bundle), MAX_BUNDLE_CERTS));
    assert_eq!(bounded.bundle[0], set.ca.cert);
}

#[test]
fn due_dates_do_not_overflow() {
    let policy = CertPolicy { renew_percent: 90, ..CertPolicy::default() };
    assert_eq!(due_at(0, 100, &policy), 90);
    assert_eq!(due_at(0, 1, &policy), 1);
    assert!(due_at(i64::MIN, i64::MAX, &policy) > 0);
    assert_eq!(due_at(i64::MAX - 1, i64::MAX, &policy), i64::MAX);
}

/// Ten years of a writer, with deletions, damage and writers that know nothing, in which no replica ever presents what the
/// callers do not trust.
#[test]
fn no_replica_ever_presents_what_callers_do_not_trust() {
    let policy = CertPolicy { ca: Duration::from_hours(60 * 24), ..CertPolicy::default() };
    let builtin = Builtin { policy, ..builtin() };
    let (mut stored, mut known): (Option<Data>, Option<CertSet>) = (None, None);
    // What callers have trusted, and what the Secret said, in the last rounds.
    let (mut trusted, mut secrets): (VecDeque<Vec<CaCert>>, VecDeque<CertSet>) =
        (VecDeque::new(), VecDeque::new());
    let (mut cas, mut leaves) = (0, 0);
    for round in 0..2000 {
        let now = START + round * DAY / 2;
        match round % 97 {
            13 => stored = None,
            31 => drop(stored.as_mut().and_then(|data| data.remove("ca.key"))),
            57 => {
                drop(stored.as_mut().and_then(|data| data.insert(BUNDLE.to_owned(), ByteString::default())));
            }
            // Another replica becomes the writer, and reads first.
            71 => known = stored.as_ref().and_then(|data| CertSet::read(data, now)),
            _ => {}
        }
        let last = trusted.back().cloned().unwrap_or_default();
        let long = |cert: &&CaCert| trusted.iter().rev().take(3).all(|bundle| bundle.contains(cert));
        let by_all = last.iter().filter(long).cloned().collect();
        let entries = Trusted { by_all, by_any: last.into_iter().collect() };
        let (set, step) =
            plan(stored.as_ref(), known.as_ref(), &entries, now, &builtin).expect("keys can be made");
        cas += i32::from(step.is_some_and(Step::is_new_ca));
        leaves += i32::from(matches!(step, Some(Step::LeafDue | Step::NextSigns)));
        stored = Some(data(&set));
        trusted.push_back(set.bundle.clone());
        secrets.push_back(set.clone());
        known = Some(set);
        // An apiserver that is a round late, and replicas that are up to two rounds late.
        let callers = trusted.iter().rev().nth(1).unwrap_or(&trusted[0]);
        for set in secrets.iter().rev().take(3) {
            let leaf = set.leaf.as_ref().expect("a leaf");
            let signs = |cert: &&CaCert| {
                Ca { cert: (*cert).clone(), key_pem: String::new() }.is_issuer(leaf, &builtin.names, now)
            };
            assert!(callers.iter().any(|cert| signs(&cert)), "round {round}: {step:?}");
        }
        if secrets.len() > 3 {
            secrets.pop_front();
            trusted.pop_front();
        }
    }
    assert!(cas > 40 && leaves > 200, "{cas} CAs, {leaves} leaves");
}
