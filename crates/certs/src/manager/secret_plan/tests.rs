//! The plan with the clock as an input. `World` is a Secret, two live configurations that follow it,
//! and replicas; what one of them would do is done at once.

use super::*;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
const START: i64 = 2_000_000_000;
const PROPAGATION: Duration = Duration::from_secs(10);

fn policy() -> CertPolicy {
    CertPolicy::default()
}

fn ca(now: i64) -> Arc<Ca> {
    Arc::new(Ca::generate(now, &policy()).expect("a CA"))
}

fn data(state: &CaState) -> Data {
    let mut data = Data::new();
    state.write(&mut data);
    data
}

fn plan(data: Option<&Data>, known: Option<&CaState>, now: i64) -> SecretPlan {
    plan_secret(data, known, None, now, &policy()).expect("keys can be made")
}

/// A CA that was made at the start, and what the Secret says of it.
fn fresh() -> (CaState, Data) {
    let state = plan(None, None, START).state;
    let data = data(&state);
    (state, data)
}

/// After one rotation.
fn rotated() -> (CaState, Data, i64) {
    let (_, data) = fresh();
    let now = START + YEAR * 2 / 3;
    let rotated = plan(Some(&data), None, now);
    assert_eq!(rotated.reason, Some(WriteReason::CaDue));
    let data = self::data(&rotated.state);
    (rotated.state, data, now)
}

fn same(left: &CaState, right: &CaState) -> bool {
    let previous = |state: &CaState| {
        state.previous.as_ref().map(|previous| (previous.cert.clone(), previous.key_pem.clone()))
    };
    left.newest.cert == right.newest.cert
        && left.newest.key_pem == right.newest.key_pem
        && previous(left) == previous(right)
        && left.bundle == right.bundle
}

#[test]
fn a_written_secret_does_not_change() {
    let (state, data) = fresh();
    for known in [None, Some(&state)] {
        let again = plan(Some(&data), known, START + HOUR);
        assert_eq!(again.reason, None);
        assert!(same(&again.state, &state));
    }
    let (state, data, now) = rotated();
    let again = plan(Some(&data), Some(&state), now);
    assert_eq!(again.reason, None);
    assert!(same(&again.state, &state));
    assert_eq!(again.state.bundle.len(), 2);
}

#[test]
fn a_ca_is_replaced_when_it_is_due_and_not_before() {
    let (first, data) = fresh();
    let due = first.newest.cert.not_before
        + (first.newest.cert.not_after - first.newest.cert.not_before) * 66 / 100;
    assert_eq!(plan(Some(&data), Some(&first), due - 1).reason, None);
    let second = plan(Some(&data), Some(&first), due + 1);
    assert_eq!(second.reason, Some(WriteReason::CaDue));
    let CaState { newest, previous, bundle } = second.state;
    let previous = previous.expect("the one before");
    assert_eq!(previous.cert, first.newest.cert);
    assert_eq!(bundle, [newest.cert.clone(), previous.cert.clone()]);
    assert_eq!(newest.cert.not_after - due - 1, YEAR);
}

#[test]
fn a_replica_that_cannot_write_uses_the_stored_secret() {
    let (first, data) = fresh();
    let due = plan(Some(&data), None, START + YEAR * 2 / 3);
    assert!(same(&due.fallback.expect("it is still valid"), &first));
    assert!(plan(Some(&data), None, START + 2 * YEAR).fallback.is_none());
    assert!(plan(None, None, START).fallback.is_none());
}

/// What is written into a Secret, or taken out of it.
type Damage<'a> = Vec<(&'a str, Option<Vec<u8>>)>;

/// Every way in which a Secret was ever found, and what becomes of it.
#[test]
fn a_damaged_secret_is_written_again_from_memory() {
    let (mut known, _, now) = rotated();
    known.bundle.push(ca(now).cert.clone());
    let good = data(&known);
    let other = data(&plan(None, None, now).state);
    let text = |data: &Data, key: &str| data[key].0.clone();
    let half = |key: &str| text(&good, key)[..text(&good, key).len() / 2].to_vec();
    let expired = ca(START - 2 * YEAR);
    let rows: [(&str, Damage<'_>, WriteReason); 15] = [
        (
            "empty",
            [CA_CERTIFICATE, CA_KEY, PREVIOUS_CERTIFICATE, PREVIOUS_KEY, BUNDLE]
                .map(|key| (key, None))
                .into(),
            WriteReason::CaDamaged(CaError::Missing),
        ),
        ("no CA", vec![(CA_CERTIFICATE, None), (CA_KEY, None)], WriteReason::CaDamaged(CaError::Missing)),
        ("no certificate", vec![(CA_CERTIFICATE, None)], WriteReason::CaDamaged(CaError::Certificate)),
        ("no key", vec![(CA_KEY, None)], WriteReason::CaDamaged(CaError::Key)),
        (
            "half a certificate",
            vec![(CA_CERTIFICATE, Some(half(CA_CERTIFICATE)))],
            WriteReason::CaDamaged(CaError::Certificate),
        ),
        ("half a key", vec![(CA_KEY, Some(half(CA_KEY)))], WriteReason::CaDamaged(CaError::Key)),
        (
            "another's key",
            vec![(CA_KEY, Some(text(&other, CA_KEY)))],
            WriteReason::CaDamaged(CaError::OtherKey),
        ),
        (
            "an expired CA",
            vec![
                (CA_CERTIFICATE, Some(expired.certificate_pem().into())),
                (CA_KEY, Some(expired.key_pem.clone().into())),
            ],
            WriteReason::CaDamaged(CaError::NotValid),
        ),
        (
            "too much",
            vec![(CA_CERTIFICATE, Some(vec![b'x'; 1 << 20]))],
            WriteReason::CaDamaged(CaError::Certificate),
        ),
        ("a garbage bundle", vec![(BUNDLE, Some(b"\xff\xfe hello".to_vec()))], WriteReason::BundleIncomplete),
        ("half a bundle", vec![(BUNDLE, Some(half(BUNDLE)))], WriteReason::BundleIncomplete),
        ("no bundle", vec![(BUNDLE, None)], WriteReason::BundleIncomplete),
        ("an empty bundle", vec![(BUNDLE, Some(Vec::new()))], WriteReason::BundleIncomplete),
        ("no previous key", vec![(PREVIOUS_KEY, None)], WriteReason::BundleIncomplete),
        (
            "no previous",
            vec![(PREVIOUS_KEY, None), (PREVIOUS_CERTIFICATE, None)],
            WriteReason::BundleIncomplete,
        ),
    ];
    for (name, changes, expected) in rows {
        let mut bad = good.clone();
        for (key, value) in changes {
            match value {
                Some(value) => bad.insert(key.to_owned(), ByteString(value)),
                None => bad.remove(key),
            };
        }
        let repaired = plan(Some(&bad), Some(&known), now);
        assert_eq!(repaired.reason, Some(expected), "{name}");
        for cert in &known.bundle {
            assert!(repaired.state.bundle.contains(cert), "{name}: a CA is no longer trusted");
        }
        assert_eq!(repaired.state.newest.cert, known.newest.cert, "{name}");
        assert_eq!(data(&repaired.state)[CA_KEY], good[CA_KEY], "{name}");
        let again = plan(Some(&data(&repaired.state)), Some(&known), now);
        assert_eq!(again.reason, None, "{name}");
    }
}

#[test]
fn a_deleted_secret_makes_a_new_ca_and_the_one_before_it_stays_trusted() {
    let (first, _) = fresh();
    let old = first.newest.cert.clone();
    let deleted =
        plan_secret(None, Some(&first), Some(&old), START + HOUR, &policy()).expect("keys can be made");
    assert_eq!(deleted.reason, Some(WriteReason::SecretDeleted));
    let second = deleted.state;
    assert_eq!(second.previous.as_ref().map(|previous| &previous.cert), Some(&old));
    assert_eq!(second.bundle, [second.newest.cert.clone(), old.clone()]);
    let again = plan(Some(&data(&second)), Some(&second), START + HOUR);
    assert_eq!(again.reason, None, "once");
    let third = plan(None, Some(&second), START + 2 * HOUR).state;
    assert!(!third.bundle.contains(&old), "after a second deletion the first CA is not trusted");
    assert_eq!(third.bundle, [third.newest.cert.clone(), second.newest.cert.clone()]);
    let in_use = plan_secret(None, Some(&second), Some(&old), START + 2 * HOUR, &policy());
    assert!(in_use.expect("keys can be made").state.bundle.contains(&old), "a leaf still needs it");
}

#[test]
fn a_replica_that_knows_no_ca_makes_one_and_keeps_what_can_be_read() {
    let (known, mut data, now) = rotated();
    data.remove(CA_KEY);
    let made = plan(Some(&data), None, now);
    assert_eq!(made.reason, Some(WriteReason::NoUsableCa(CaError::Key)));
    let CaState { newest, previous, bundle } = made.state;
    assert!(!known.bundle.contains(&newest.cert));
    let previous = previous.expect("it can still be read, and signs until the new one is trusted");
    assert_eq!(Some(previous.cert.clone()), known.previous.map(|previous| previous.cert.clone()));
    assert_eq!(bundle, [newest.cert.clone(), previous.cert.clone(), known.newest.cert.clone()]);
}

#[test]
fn a_ca_that_is_superseded_stays_trusted_whatever_else_there_is() {
    let (first, mut data) = fresh();
    let many: Vec<_> = (0..MAX_BUNDLE_CERTS).map(|_| ca(START).cert.clone()).collect();
    for bundle in [Vec::new(), many] {
        data.insert(BUNDLE.to_owned(), ByteString(ca_bundle::pem(&bundle).into_bytes()));
        for (data, known) in [(Some(&data), None), (None, Some(&first)), (Some(&data), Some(&first))] {
            let made = plan(data, known, START + 2 * YEAR);
            assert!(matches!(made.reason, Some(WriteReason::NoUsableCa(_))));
            assert!(made.state.bundle.contains(&first.newest.cert));
            assert!(made.state.bundle.len() <= MAX_BUNDLE_CERTS);
        }
    }
}

/// How an installation changes over from another way without losing a call.
#[test]
fn a_bundle_that_was_there_before_any_ca_goes_on_being_trusted() {
    let before = ca(START).cert.clone();
    let data = Data::from([(
        BUNDLE.to_owned(),
        ByteString(ca_bundle::pem(std::slice::from_ref(&before)).into_bytes()),
    )]);
    let made = plan(Some(&data), None, START);
    assert_eq!(made.reason, Some(WriteReason::NoUsableCa(CaError::Missing)));
    assert_eq!(made.state.bundle, [made.state.newest.cert.clone(), before]);
}

#[test]
fn what_others_keep_in_the_secret_stays() {
    let foreign = ByteString(b"hello".to_vec());
    let mut data = Data::from([("tls.crt".to_owned(), foreign.clone())]);
    let made = plan(Some(&data), None, START);
    assert_eq!(made.reason, Some(WriteReason::NoUsableCa(CaError::Missing)));
    made.state.write(&mut data);
    assert_eq!(data["tls.crt"], foreign);
    assert_eq!(plan(Some(&data), None, START).reason, None);
}

#[test]
fn a_ca_of_an_operator_is_used() {
    let (known, _) = fresh();
    let (brought, data) = fresh();
    let leaf = &known.newest.cert;
    let taken = plan_secret(Some(&data), Some(&known), Some(leaf), START, &policy()).expect("plan");
    assert_eq!(taken.reason, Some(WriteReason::BundleIncomplete));
    assert_eq!(taken.state.newest.cert, brought.newest.cert);
    assert_eq!(taken.state.bundle, [brought.newest.cert.clone(), leaf.clone()]);
}

#[test]
fn replicas_that_hold_different_leaves_want_the_same() {
    let (state, mut data, now) = rotated();
    let third = ca(now).cert.clone();
    let mut all = state.bundle.clone();
    all.push(third.clone());
    data.insert(BUNDLE.to_owned(), ByteString(ca_bundle::pem(&all).into_bytes()));
    for leaf in &all {
        let plan = plan_secret(Some(&data), None, Some(leaf), now, &policy()).expect("plan");
        assert_eq!(plan.reason, None);
    }
}

#[test]
fn a_bundle_has_an_end_and_the_ca_of_ones_own_leaf_is_always_in_it() {
    let (_, mut data) = fresh();
    let many: Vec<_> = (0..20).map(|_| ca(START).cert.clone()).collect();
    data.insert(BUNDLE.to_owned(), ByteString(ca_bundle::pem(&many).into_bytes()));
    let leaf = ca(START).cert.clone();
    let plan = plan_secret(Some(&data), None, Some(&leaf), START, &policy()).expect("plan");
    assert_eq!(plan.reason, Some(WriteReason::BundleIncomplete));
    assert_eq!(plan.state.bundle.len(), MAX_BUNDLE_CERTS);
    assert!(plan.state.bundle.contains(&leaf));
    let expired = leaf.not_after + 1;
    let later = plan_secret(None, None, Some(&leaf), expired, &policy()).expect("plan");
    assert!(!later.state.bundle.contains(&leaf), "an expired CA cannot be used");
}

#[test]
fn only_a_rotation_drops_those_that_have_expired() {
    let (state, mut data) = fresh();
    let old = ca(START - YEAR + HOUR).cert.clone();
    let all = [state.newest.cert.clone(), old.clone()];
    data.insert(BUNDLE.to_owned(), ByteString(ca_bundle::pem(&all).into_bytes()));
    assert_eq!(plan(Some(&data), None, START + HOUR).reason, None);
    let rotated = plan(Some(&data), None, START + YEAR * 2 / 3);
    assert_eq!(rotated.reason, Some(WriteReason::CaDue));
    assert!(!rotated.state.bundle.contains(&old));
    assert_eq!(rotated.state.bundle.len(), 2);
}

fn leaf_of(ca: &Ca, now: i64) -> CurrentLeaf {
    ca.sign(&[], now, &policy()).expect("a leaf").current
}

fn trust(certs: &[(&CaCert, u64)]) -> TrustedCas {
    let pair = |(cert, seconds): &(&CaCert, u64)| ((*cert).clone(), Duration::from_secs(*seconds));
    TrustedCas(certs.iter().map(pair).collect())
}

#[test]
fn a_new_ca_signs_once_it_has_been_trusted_for_a_while() {
    let (state, _, now) = rotated();
    let newest = &state.newest.cert;
    let previous = state.previous.as_ref().expect("the one before");
    let old = &previous.cert;
    let leaf = leaf_of(previous, now);
    let due = leaf_of(previous, now - 6 * DAY);
    let gone = leaf_of(previous, now - 8 * DAY);
    let own = leaf_of(&state.newest, now);
    let rows: [(&str, Option<&CurrentLeaf>, TrustedCas, Option<&CaCert>); 13] = [
        ("nothing is trusted, no leaf", None, trust(&[]), Some(newest)),
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
    for (name, leaf, trust, expected) in rows {
        let signer = choose_signer(&state, leaf, &trust, PROPAGATION, now, &policy());
        assert_eq!(signer.map(|ca| &ca.cert), expected, "{name}");
    }
    let due = leaf_of(&state.newest, now - 6 * DAY);
    let signer = choose_signer(&state, Some(&due), &trust(&[]), PROPAGATION, now, &policy());
    assert_eq!(signer.map(|ca| &ca.cert), Some(newest), "the same CA loses nothing");
}

/// A Secret, live configurations that follow it, and one replica whose clock jumps.
struct World {
    data: Option<Data>,
    known: Option<CaState>,
    leaf: Option<CurrentLeaf>,
    live: Vec<CaCert>,
    made: usize,
}

impl World {
    fn new() -> Self {
        Self { data: None, known: None, leaf: None, live: Vec::new(), made: 0 }
    }

    /// One round at a time of the replica's clock, long after the last; then `caBundle` follows.
    fn round(&mut self, now: i64) {
        let signer_of = |leaf: &Option<CurrentLeaf>| leaf.as_ref().map(|leaf| leaf.signer.clone());
        let leaf = signer_of(&self.leaf);
        let plan = plan_secret(self.data.as_ref(), self.known.as_ref(), leaf.as_ref(), now, &policy());
        let plan = plan.expect("plan");
        if let Some(change) = plan.reason {
            self.made += usize::from(change.is_new_ca());
            plan.state.write(self.data.get_or_insert_default());
        }
        let trust = TrustedCas(self.live.iter().map(|cert| (cert.clone(), PROPAGATION)).collect());
        let ca = choose_signer(&plan.state, self.leaf.as_ref(), &trust, PROPAGATION, now, &policy());
        if let Some(ca) = ca {
            self.leaf = Some(leaf_of(ca, now));
        }
        self.live.clone_from(&plan.state.bundle);
        self.known = Some(plan.state);
    }

    /// Whether a caller whose clock says `now` would talk to the replica.
    fn serves(&self, now: i64) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| {
            let trusted = self.live.iter().find(|cert| **cert == leaf.signer);
            (leaf.not_before..leaf.not_after).contains(&now) && trusted.is_some_and(|ca| ca.is_valid(now))
        })
    }
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
        assert!(!days || world.made == 1, "{name}: a day does not cause a new CA");
    }
}

#[test]
fn a_replica_lives_through_years_and_never_loses_a_caller() {
    let mut world = World::new();
    let mut leaves = Vec::new();
    for round in 0..(3 * 365 * 4) {
        let now = START + round * 6 * HOUR;
        assert!(world.leaf.is_none() || world.serves(now), "round {round}");
        world.round(now);
        let signer = world.leaf.as_ref().map(|leaf| leaf.not_before);
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
