//! The plan with the clock as an input. `World` is a Secret, two live configurations that follow it,
//! and replicas; what one of them would do is done at once.

use super::*;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
const START: i64 = 2_000_000_000;
const PROPAGATION: Duration = Duration::from_secs(10);

fn terms() -> Terms {
    Terms::default()
}

fn ca(now: i64) -> Arc<Ca> {
    Arc::new(Ca::make(now, &terms()).expect("a CA"))
}

fn data(authorities: &Authorities) -> Data {
    let mut data = Data::new();
    authorities.write(&mut data);
    data
}

fn settled(data: Option<&Data>, known: Option<&Authorities>, now: i64) -> Settled {
    settle(data, known, None, now, &terms()).expect("keys can be made")
}

/// A CA that was made at the start, and what the Secret says of it.
fn fresh() -> (Authorities, Data) {
    let authorities = settled(None, None, START).authorities;
    let data = data(&authorities);
    (authorities, data)
}

/// After one rotation.
fn rotated() -> (Authorities, Data, i64) {
    let (_, data) = fresh();
    let now = START + YEAR * 2 / 3;
    let rotated = settled(Some(&data), None, now);
    assert_eq!(rotated.change, Some(Change::Rotated));
    let data = self::data(&rotated.authorities);
    (rotated.authorities, data, now)
}

fn same(left: &Authorities, right: &Authorities) -> bool {
    let previous = |authorities: &Authorities| {
        authorities.previous.as_ref().map(|previous| (previous.anchor.clone(), previous.key_pem.clone()))
    };
    left.newest.anchor == right.newest.anchor
        && left.newest.key_pem == right.newest.key_pem
        && previous(left) == previous(right)
        && left.bundle == right.bundle
}

#[test]
fn what_was_written_needs_no_change() {
    let (authorities, data) = fresh();
    for known in [None, Some(&authorities)] {
        let again = settled(Some(&data), known, START + HOUR);
        assert_eq!(again.change, None);
        assert!(same(&again.authorities, &authorities));
    }
    let (authorities, data, now) = rotated();
    let again = settled(Some(&data), Some(&authorities), now);
    assert_eq!(again.change, None);
    assert!(same(&again.authorities, &authorities));
    assert_eq!(again.authorities.bundle.len(), 2);
}

#[test]
fn a_ca_is_replaced_when_it_is_due_and_not_before() {
    let (first, data) = fresh();
    let due = first.newest.anchor.not_before
        + (first.newest.anchor.not_after - first.newest.anchor.not_before) * 66 / 100;
    assert_eq!(settled(Some(&data), Some(&first), due - 1).change, None);
    let second = settled(Some(&data), Some(&first), due + 1);
    assert_eq!(second.change, Some(Change::Rotated));
    let Authorities { newest, previous, bundle } = second.authorities;
    let previous = previous.expect("the one before");
    assert_eq!(previous.anchor, first.newest.anchor);
    assert_eq!(bundle, [newest.anchor.clone(), previous.anchor.clone()]);
    assert_eq!(newest.anchor.not_after - due - 1, YEAR);
}

#[test]
fn whoever_cannot_write_uses_what_is_there() {
    let (first, data) = fresh();
    let due = settled(Some(&data), None, START + YEAR * 2 / 3);
    assert!(same(&due.unwritten.expect("it is still valid"), &first));
    assert!(settled(Some(&data), None, START + 2 * YEAR).unwritten.is_none());
    assert!(settled(None, None, START).unwritten.is_none());
}

/// What is written into a Secret, or taken out of it.
type Damage<'a> = Vec<(&'a str, Option<Vec<u8>>)>;

/// Every way in which a Secret was ever found, and what becomes of it.
#[test]
fn a_damaged_secret_is_written_again_from_memory() {
    let (mut known, _, now) = rotated();
    known.bundle.push(ca(now).anchor.clone());
    let good = data(&known);
    let other = data(&settled(None, None, now).authorities);
    let text = |data: &Data, key: &str| data[key].0.clone();
    let half = |key: &str| text(&good, key)[..text(&good, key).len() / 2].to_vec();
    let expired = ca(START - 2 * YEAR);
    let rows: [(&str, Damage<'_>, Change); 15] = [
        (
            "empty",
            [CA_CERTIFICATE, CA_KEY, PREVIOUS_CERTIFICATE, PREVIOUS_KEY, BUNDLE]
                .map(|key| (key, None))
                .into(),
            Change::Repaired(Broken::Missing),
        ),
        ("no CA", vec![(CA_CERTIFICATE, None), (CA_KEY, None)], Change::Repaired(Broken::Missing)),
        ("no certificate", vec![(CA_CERTIFICATE, None)], Change::Repaired(Broken::Certificate)),
        ("no key", vec![(CA_KEY, None)], Change::Repaired(Broken::Key)),
        (
            "half a certificate",
            vec![(CA_CERTIFICATE, Some(half(CA_CERTIFICATE)))],
            Change::Repaired(Broken::Certificate),
        ),
        ("half a key", vec![(CA_KEY, Some(half(CA_KEY)))], Change::Repaired(Broken::Key)),
        ("another's key", vec![(CA_KEY, Some(text(&other, CA_KEY)))], Change::Repaired(Broken::OtherKey)),
        (
            "an expired CA",
            vec![
                (CA_CERTIFICATE, Some(expired.certificate_pem().into())),
                (CA_KEY, Some(expired.key_pem.clone().into())),
            ],
            Change::Repaired(Broken::NotValid),
        ),
        (
            "too much",
            vec![(CA_CERTIFICATE, Some(vec![b'x'; 1 << 20]))],
            Change::Repaired(Broken::Certificate),
        ),
        ("a garbage bundle", vec![(BUNDLE, Some(b"\xff\xfe hello".to_vec()))], Change::Completed),
        ("half a bundle", vec![(BUNDLE, Some(half(BUNDLE)))], Change::Completed),
        ("no bundle", vec![(BUNDLE, None)], Change::Completed),
        ("an empty bundle", vec![(BUNDLE, Some(Vec::new()))], Change::Completed),
        ("no previous key", vec![(PREVIOUS_KEY, None)], Change::Completed),
        ("no previous", vec![(PREVIOUS_KEY, None), (PREVIOUS_CERTIFICATE, None)], Change::Completed),
    ];
    for (name, changes, expected) in rows {
        let mut bad = good.clone();
        for (key, value) in changes {
            match value {
                Some(value) => bad.insert(key.to_owned(), ByteString(value)),
                None => bad.remove(key),
            };
        }
        let repaired = settled(Some(&bad), Some(&known), now);
        assert_eq!(repaired.change, Some(expected), "{name}");
        for anchor in &known.bundle {
            assert!(repaired.authorities.bundle.contains(anchor), "{name}: a CA is no longer trusted");
        }
        assert_eq!(repaired.authorities.newest.anchor, known.newest.anchor, "{name}");
        assert_eq!(data(&repaired.authorities)[CA_KEY], good[CA_KEY], "{name}");
        let again = settled(Some(&data(&repaired.authorities)), Some(&known), now);
        assert_eq!(again.change, None, "{name}");
    }
    let deleted = settled(None, Some(&known), now);
    assert_eq!(deleted.change, Some(Change::Repaired(Broken::Missing)));
    assert!(same(&deleted.authorities, &known));
}

#[test]
fn whoever_knows_no_ca_makes_one_and_keeps_what_can_be_read() {
    let (known, mut data, now) = rotated();
    data.remove(CA_KEY);
    let made = settled(Some(&data), None, now);
    assert_eq!(made.change, Some(Change::Made(Broken::Key)));
    let Authorities { newest, previous, bundle } = made.authorities;
    assert!(!known.bundle.contains(&newest.anchor));
    let previous = previous.expect("it can still be read, and signs until the new one is trusted");
    assert_eq!(Some(previous.anchor.clone()), known.previous.map(|previous| previous.anchor.clone()));
    assert_eq!(bundle, [newest.anchor.clone(), previous.anchor.clone(), known.newest.anchor.clone()]);
}

#[test]
fn a_ca_that_is_superseded_stays_trusted_whatever_else_there_is() {
    let (first, mut data) = fresh();
    let many: Vec<_> = (0..MOST).map(|_| ca(START).anchor.clone()).collect();
    for bundle in [Vec::new(), many] {
        data.insert(BUNDLE.to_owned(), ByteString(anchor::pem(&bundle).into_bytes()));
        for (data, known) in [(Some(&data), None), (None, Some(&first)), (Some(&data), Some(&first))] {
            let made = settled(data, known, START + 2 * YEAR);
            assert!(matches!(made.change, Some(Change::Made(_))));
            assert!(made.authorities.bundle.contains(&first.newest.anchor));
            assert!(made.authorities.bundle.len() <= MOST);
        }
    }
}

/// How an installation changes over from another way without losing a call.
#[test]
fn a_bundle_that_was_there_before_any_ca_goes_on_being_trusted() {
    let before = ca(START).anchor.clone();
    let data = Data::from([(
        BUNDLE.to_owned(),
        ByteString(anchor::pem(std::slice::from_ref(&before)).into_bytes()),
    )]);
    let made = settled(Some(&data), None, START);
    assert_eq!(made.change, Some(Change::Made(Broken::Missing)));
    assert_eq!(made.authorities.bundle, [made.authorities.newest.anchor.clone(), before]);
}

#[test]
fn what_others_keep_in_the_secret_stays() {
    let foreign = ByteString(b"hello".to_vec());
    let mut data = Data::from([("tls.crt".to_owned(), foreign.clone())]);
    let made = settled(Some(&data), None, START);
    assert_eq!(made.change, Some(Change::Made(Broken::Missing)));
    made.authorities.write(&mut data);
    assert_eq!(data["tls.crt"], foreign);
    assert_eq!(settled(Some(&data), None, START).change, None);
}

#[test]
fn a_ca_that_somebody_brings_is_taken() {
    let (known, _) = fresh();
    let (brought, data) = fresh();
    let held = &known.newest.anchor;
    let taken = settle(Some(&data), Some(&known), Some(held), START, &terms()).expect("settled");
    assert_eq!(taken.change, Some(Change::Completed));
    assert_eq!(taken.authorities.newest.anchor, brought.newest.anchor);
    assert_eq!(taken.authorities.bundle, [brought.newest.anchor.clone(), held.clone()]);
}

#[test]
fn replicas_that_hold_different_leaves_want_the_same() {
    let (authorities, mut data, now) = rotated();
    let third = ca(now).anchor.clone();
    let mut all = authorities.bundle.clone();
    all.push(third.clone());
    data.insert(BUNDLE.to_owned(), ByteString(anchor::pem(&all).into_bytes()));
    for held in &all {
        let settled = settle(Some(&data), None, Some(held), now, &terms()).expect("settled");
        assert_eq!(settled.change, None);
    }
}

#[test]
fn a_bundle_has_an_end_and_the_ca_of_ones_own_leaf_is_always_in_it() {
    let (_, mut data) = fresh();
    let many: Vec<_> = (0..20).map(|_| ca(START).anchor.clone()).collect();
    data.insert(BUNDLE.to_owned(), ByteString(anchor::pem(&many).into_bytes()));
    let held = ca(START).anchor.clone();
    let settled = settle(Some(&data), None, Some(&held), START, &terms()).expect("settled");
    assert_eq!(settled.change, Some(Change::Completed));
    assert_eq!(settled.authorities.bundle.len(), MOST);
    assert!(settled.authorities.bundle.contains(&held));
    let expired = held.not_after + 1;
    let later = settle(None, None, Some(&held), expired, &terms()).expect("settled");
    assert!(!later.authorities.bundle.contains(&held), "an expired CA is of no use");
}

#[test]
fn only_a_rotation_drops_those_that_have_expired() {
    let (authorities, mut data) = fresh();
    let old = ca(START - YEAR + HOUR).anchor.clone();
    let all = [authorities.newest.anchor.clone(), old.clone()];
    data.insert(BUNDLE.to_owned(), ByteString(anchor::pem(&all).into_bytes()));
    assert_eq!(settled(Some(&data), None, START + DAY).change, None);
    let rotated = settled(Some(&data), None, START + YEAR * 2 / 3);
    assert_eq!(rotated.change, Some(Change::Rotated));
    assert!(!rotated.authorities.bundle.contains(&old));
    assert_eq!(rotated.authorities.bundle.len(), 2);
}

fn held(ca: &Ca, now: i64) -> Held {
    let leaf = ca.sign(&[], now, &terms()).expect("a leaf");
    Held { signer: leaf.signer, not_before: leaf.not_before, not_after: leaf.not_after }
}

fn trust(anchors: &[(&Anchor, u64)]) -> Trust {
    let pair = |(anchor, seconds): &(&Anchor, u64)| ((*anchor).clone(), Duration::from_secs(*seconds));
    Trust(anchors.iter().map(pair).collect())
}

#[test]
fn a_new_ca_signs_once_it_has_been_trusted_for_a_while() {
    let (authorities, _, now) = rotated();
    let newest = &authorities.newest.anchor;
    let previous = authorities.previous.as_ref().expect("the one before");
    let old = &previous.anchor;
    let leaf = held(previous, now);
    let due = held(previous, now - 6 * DAY);
    let gone = held(previous, now - 8 * DAY);
    let own = held(&authorities.newest, now);
    let rows: [(&str, Option<&Held>, Trust, Option<&Anchor>); 13] = [
        ("nobody trusts anything, no leaf", None, trust(&[]), Some(newest)),
        ("only the old one is trusted, no leaf", None, trust(&[(old, 0)]), Some(old)),
        ("the new one is trusted for a moment, no leaf", None, trust(&[(old, 99), (newest, 9)]), Some(old)),
        ("the new one is trusted, no leaf", None, trust(&[(old, 99), (newest, 10)]), Some(newest)),
        ("only the new one is trusted, no leaf", None, trust(&[(newest, 0)]), Some(newest)),
        ("a leaf of the old one", Some(&leaf), trust(&[(old, 99), (newest, 9)]), None),
        ("the time has come", Some(&leaf), trust(&[(old, 99), (newest, 10)]), Some(newest)),
        ("caBundle was wiped", Some(&leaf), trust(&[]), None),
        ("a due leaf of the old one", Some(&due), trust(&[(old, 99)]), Some(old)),
        ("a due leaf while caBundle is wiped", Some(&due), trust(&[]), Some(old)),
        ("an expired leaf while caBundle is wiped", Some(&gone), trust(&[]), Some(newest)),
        ("a leaf of the new one", Some(&own), trust(&[(old, 99), (newest, 99)]), None),
        ("a leaf of the new one that was wiped", Some(&own), trust(&[]), None),
    ];
    for (name, held, trust, expected) in rows {
        let signer = signer(&authorities, held, &trust, PROPAGATION, now, &terms());
        assert_eq!(signer.map(|ca| &ca.anchor), expected, "{name}");
    }
    let due = held(&authorities.newest, now - 6 * DAY);
    let signer = signer(&authorities, Some(&due), &trust(&[]), PROPAGATION, now, &terms());
    assert_eq!(signer.map(|ca| &ca.anchor), Some(newest), "the same CA loses nothing");
}

/// A Secret, live configurations that follow it, and one replica whose clock jumps.
struct World {
    data: Option<Data>,
    known: Option<Authorities>,
    held: Option<Held>,
    live: Vec<Anchor>,
    made: usize,
}

impl World {
    fn new() -> Self {
        Self { data: None, known: None, held: None, live: Vec::new(), made: 0 }
    }

    /// One round at a time of the replica's clock, long after the last; then `caBundle` follows.
    fn round(&mut self, now: i64) {
        let signer_of = |held: &Option<Held>| held.as_ref().map(|held| held.signer.clone());
        let held = signer_of(&self.held);
        let settled = settle(self.data.as_ref(), self.known.as_ref(), held.as_ref(), now, &terms());
        let settled = settled.expect("settled");
        if let Some(change) = settled.change {
            self.made += usize::from(change.is_new_ca());
            settled.authorities.write(self.data.get_or_insert_default());
        }
        let trust = Trust(self.live.iter().map(|anchor| (anchor.clone(), PROPAGATION)).collect());
        let ca = signer(&settled.authorities, self.held.as_ref(), &trust, PROPAGATION, now, &terms());
        if let Some(ca) = ca {
            self.held = Some(held_of(ca, now));
        }
        self.live.clone_from(&settled.authorities.bundle);
        self.known = Some(settled.authorities);
    }

    /// Whether a caller whose clock says `now` would talk to the replica.
    fn serves(&self, now: i64) -> bool {
        self.held.as_ref().is_some_and(|held| {
            let trusted = self.live.iter().find(|anchor| **anchor == held.signer);
            (held.not_before..held.not_after).contains(&now) && trusted.is_some_and(|ca| ca.is_valid(now))
        })
    }
}

fn held_of(ca: &Ca, now: i64) -> Held {
    held(ca, now)
}

#[test]
fn whatever_the_clock_does_the_next_round_serves_again() {
    let rows: [(&str, &[i64]); 9] = [
        ("a suspend of 8 h", &[0, 8 * HOUR]),
        ("a day ahead", &[0, DAY]),
        ("a day back", &[0, -DAY]),
        ("a day ahead and back", &[0, DAY, 0]),
        ("a year ahead", &[0, YEAR]),
        ("a year back", &[0, -YEAR]),
        ("a year ahead and back", &[0, YEAR, 0]),
        ("a year back and ahead", &[0, -YEAR, 0]),
        ("back and forth", &[0, YEAR, -YEAR, DAY, -DAY, 0]),
    ];
    for (name, shifts) in rows {
        let mut world = World::new();
        world.round(START - 30 * DAY);
        for shift in shifts {
            let now = START + shift;
            world.round(now);
            assert!(world.serves(now), "{name}: {shift}");
            world.round(now + 2);
            assert!(world.serves(now + 2), "{name}: {shift}, a round later");
            let made = world.made;
            world.round(now + 4);
            assert_eq!(world.made, made, "{name}: {shift}: it comes to rest");
        }
        let days = shifts.iter().all(|shift| shift.abs() <= DAY);
        assert!(!days || world.made == 1, "{name}: a day is no reason for a new CA");
    }
}

#[test]
fn a_replica_lives_through_years_and_never_loses_a_caller() {
    let mut world = World::new();
    let mut leaves = Vec::new();
    for round in 0..(3 * 365 * 4) {
        let now = START + round * 6 * HOUR;
        assert!(world.held.is_none() || world.serves(now), "round {round}");
        world.round(now);
        let signer = world.held.as_ref().map(|held| held.not_before);
        if leaves.last() != Some(&signer) {
            leaves.push(signer);
        }
    }
    assert_eq!(world.made, 5, "one CA each eight months");
    assert!((230..260).contains(&leaves.len()), "{} leaves", leaves.len());
}

#[test]
fn no_wrong_clock_of_another_replica_takes_a_leaf_away() {
    for shift in [YEAR, -YEAR] {
        let mut right = World::new();
        right.round(START);
        for round in 1..20 {
            let now = START + round * 2;
            let mut wrong = World { data: right.data.take(), ..World::new() };
            wrong.round(now + shift);
            right.data = wrong.data;
            right.live = wrong.live;
            assert!(right.serves(now), "{shift}: round {round}, as the other one left it");
            right.round(now);
            assert!(right.serves(now), "{shift}: round {round}");
        }
    }
}
