//! Managers against a stub of an apiserver, one round at a time.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::CertPolicy;
use crate::metrics::result;
use crate::test_support::{SECRET, StubCluster, builtin, path};
use crate::tls::CertSource;

const DAY: i64 = 86400;

/// The path of the Lease.
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/home/leases/memgate-ca";

fn manager_with(cluster: &StubCluster, clock: &Clock, builtin: Builtin) -> CertManager {
    let timers = ManagerTimers { poll: Duration::from_secs(2), propagation: Duration::ZERO };
    let source = CertSource::Builtin(builtin.clone());
    let certificate = ServingCert::load(&source, None, clock).expect("nothing to read");
    let metrics = Arc::new(CertMetrics::default());
    CertManager::new(
        builtin,
        clock.set_by(&cluster.client()),
        clock.clone(),
        timers,
        metrics,
        Arc::new(certificate),
    )
}

fn reader(cluster: &StubCluster) -> CertManager {
    manager_with(cluster, &Clock::default(), builtin())
}

fn writer(cluster: &StubCluster) -> CertManager {
    let manager = reader(cluster);
    manager.writes.send_replace(true);
    manager
}

/// How often a kind of certificate was replaced, or could not be used.
fn rotations(manager: &CertManager, kind: CertKind, usable: bool) -> u64 {
    manager.metrics.rotations.get_or_create(&[kind.label(), result(usable)]).get()
}

/// A round of a manager that has just seen both configurations.
async fn round(manager: &mut CertManager) {
    for config in &manager.configs {
        let _refused = config.observe().await;
    }
    Box::pin(manager.reconcile()).await;
}

/// So many rounds of all.
async fn rounds(managers: &mut [CertManager], count: usize) {
    for _ in 0..count {
        for manager in &mut *managers {
            round(manager).await;
        }
    }
}

/// Whether callers would accept what this replica presents.
fn serves(manager: &CertManager, cluster: &StubCluster) -> bool {
    let now = manager.clock.unix_now();
    let Some((leaf, _)) = &manager.presented else { return false };
    let accepts = |kind| {
        let mut trusted = cluster.trusted(kind).into_iter();
        trusted.any(|cert| Ca { cert, key_pem: String::new() }.is_issuer(leaf, &manager.builtin.names, now))
    };
    manager.serving_cert.not_ready_reason().is_none() && Phase::ALL.into_iter().all(accepts)
}

fn ca_of(cluster: &StubCluster) -> Value {
    cluster.get(SECRET).expect("a Secret")["data"]["ca.crt"].clone()
}

fn wipe(object: &mut Value) {
    for entry in object["webhooks"].as_array_mut().expect("entries") {
        entry["clientConfig"] = json!({"service": {}});
    }
}

#[tokio::test]
async fn from_nothing_to_a_trusted_certificate() {
    let cluster = StubCluster::new();
    let mut manager = writer(&cluster);
    assert!(manager.serving_cert.not_ready_reason().is_some());
    rounds(std::slice::from_mut(&mut manager), 5).await;
    assert!(serves(&manager, &cluster));
    let writes = [SECRET, &path(Phase::Mutate), &path(Phase::Validate)].map(|path| cluster.writes(path));
    assert_eq!(writes, [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_hold_the_lease_only_reads() {
    let cluster = StubCluster::new();
    let mut reader = reader(&cluster);
    let step = "find current certificates in the CA Secret";
    round(&mut reader).await;
    assert_eq!(reader.failures.last(step), "", "the writer has just begun");
    sleep(PATIENCE).await;
    round(&mut reader).await;
    assert_eq!(reader.serving_cert.not_ready_reason(), Some("there is no certificate yet"));
    let reported = "the holder of the Lease memgate-ca does not write them";
    assert_eq!(reader.failures.last(step), reported);
    assert_eq!(cluster.get(SECRET), None);
    let mut writer = writer(&cluster);
    rounds(std::slice::from_mut(&mut writer), 2).await;
    let before = cluster.writes(SECRET);
    round(&mut reader).await;
    assert!(serves(&reader, &cluster) && reader.failures.last(step).is_empty());
    // What the holder does not renew or mend is reported, and goes on being presented.
    let faults: [fn(&mut Value, &Clock); 2] =
        [|_, clock| clock.shift(6 * DAY), |secret, _| secret["data"] = json!({"ca.crt": "aGVsbG8="})];
    for fault in faults {
        cluster.change(SECRET, |secret| fault(secret, &reader.clock));
        sleep(PATIENCE).await;
        cluster.change(&path(Phase::Mutate), wipe);
        round(&mut reader).await;
        assert_eq!(reader.failures.last(step), reported);
        assert!(reader.presented.is_some() && reader.serving_cert.not_ready_reason().is_none());
    }
    assert_eq!((cluster.writes(SECRET), cluster.writes(&path(Phase::Mutate))), (before, 1));
}

/// As when a Lease was taken while its holder hung.
#[tokio::test]
async fn two_writers_agree_on_one_ca() {
    let cluster = StubCluster::new();
    let mut managers = [writer(&cluster), writer(&cluster)];
    {
        let [first, second] = &mut managers;
        tokio::join!(round(first), round(second));
    }
    rounds(&mut managers, 3).await;
    assert_eq!(cluster.writes(SECRET), 1, "one CA wins");
    assert!(managers.iter().all(|manager| serves(manager, &cluster)));
    assert!(managers[0].presented == managers[1].presented);
}

#[tokio::test]
async fn a_secret_that_is_damaged_comes_back_as_it_was() {
    let cluster = StubCluster::new();
    let mut managers = [writer(&cluster), reader(&cluster)];
    rounds(&mut managers, 3).await;
    let whole = cluster.get(SECRET).expect("a Secret")["data"].clone();
    let damages: [fn(&mut Value); 4] = [
        |secret| secret["data"] = json!({}),
        |secret| secret["data"]["ca.key"] = json!("aGVsbG8="),
        |secret| secret["data"]["bundle.crt"] = json!("aGVsbG8="),
        |secret| drop(secret.as_object_mut().expect("an object").remove("data")),
    ];
    for damage in damages {
        cluster.change(SECRET, damage);
        rounds(&mut managers, 2).await;
        assert_eq!(cluster.get(SECRET).expect("a Secret")["data"], whole);
        assert!(managers.iter().all(|manager| serves(manager, &cluster)));
    }
    assert!(managers.iter().all(|manager| rotations(manager, CertKind::Leaf, true) == 1));
}

/// A certificate of another CA, with or without that CA: replicas go on presenting what callers trust.
#[tokio::test]
async fn a_foreign_certificate_is_not_presented_before_callers_trust_it() {
    let (cluster, other) = (StubCluster::new(), StubCluster::new());
    let (mut managers, mut stranger) = ([writer(&cluster), reader(&cluster)], writer(&other));
    rounds(&mut managers, 3).await;
    round(&mut stranger).await;
    let foreign = other.get(SECRET).expect("a Secret")["data"].clone();
    cluster.change(SECRET, |secret| {
        for key in ["tls.crt", "tls.key"] {
            secret["data"][key] = foreign[key].clone();
        }
    });
    round(&mut managers[1]).await;
    assert_eq!(rotations(&managers[1], CertKind::Leaf, true), 1);
    rounds(&mut managers, 2).await;
    assert!(managers.iter().all(|manager| serves(manager, &cluster)));
    cluster.change(SECRET, |secret| secret["data"] = foreign.clone());
    for _ in 0..3 {
        for manager in managers.iter_mut().rev() {
            round(manager).await;
            assert!(serves(manager, &cluster));
        }
    }
    assert_eq!(ca_of(&cluster), foreign["ca.crt"]);
    assert!(managers[0].presented == managers[1].presented);
}

/// An update adds a name while a replica of the old version holds the Lease.
#[tokio::test]
async fn a_replica_that_wants_more_names_is_ready_before_it_may_write() {
    let cluster = StubCluster::new();
    let mut more = builtin();
    more.names.push("10.0.0.1".to_owned());
    let mut managers = [writer(&cluster), manager_with(&cluster, &Clock::default(), more)];
    rounds(&mut managers, 3).await;
    assert!(managers[1].serving_cert.not_ready_reason().is_none());
    assert!(!serves(&managers[1], &cluster));
    for (index, manager) in managers.iter().enumerate() {
        manager.writes.send_replace(index == 1);
    }
    rounds(&mut managers, 2).await;
    assert!(managers.iter().all(|manager| serves(manager, &cluster)));
}

#[tokio::test]
async fn ca_bundle_is_repaired_and_the_other_configuration_left_alone() {
    let cluster = StubCluster::new();
    let mut manager = writer(&cluster);
    rounds(std::slice::from_mut(&mut manager), 3).await;
    let mutating = path(Phase::Mutate);
    for turn in 0..10 {
        cluster.change(&mutating, |object| {
            object["webhooks"][turn % 2]["clientConfig"] = json!({"service": {}});
        });
        round(&mut manager).await;
        assert!(serves(&manager, &cluster));
    }
    assert_eq!((cluster.writes(&mutating), cluster.writes(&path(Phase::Validate))), (11, 1));
}

#[tokio::test]
async fn a_configuration_that_is_not_there_is_waited_for_and_never_made() {
    let cluster = StubCluster::new();
    let objects = Phase::ALL.map(|kind| (path(kind), cluster.get(&path(kind)).expect("an object")));
    for (path, _) in &objects {
        cluster.remove(path);
    }
    let mut manager = writer(&cluster);
    rounds(std::slice::from_mut(&mut manager), 2).await;
    let reason = manager.serving_cert.not_ready_reason();
    assert!(reason.is_some_and(|reason| reason.contains("do not trust")), "{reason:?}");
    for (path, object) in objects {
        assert!(cluster.get(&path).is_none());
        cluster.put(&path, object);
    }
    rounds(std::slice::from_mut(&mut manager), 2).await;
    assert!(serves(&manager, &cluster));
    // Once ready, a mistake in a configuration makes no replica unready.
    cluster.remove(&path(Phase::Mutate));
    cluster.remove(&path(Phase::Validate));
    round(&mut manager).await;
    assert_eq!(manager.serving_cert.not_ready_reason(), None);
}

#[tokio::test]
async fn a_writer_that_may_not_write_serves_with_what_there_is() {
    let cluster = StubCluster::new();
    let mut manager = writer(&cluster);
    rounds(std::slice::from_mut(&mut manager), 3).await;
    for method in ["PUT", "PATCH"] {
        cluster.refuse(method, 403);
    }
    manager.clock.shift(5 * DAY);
    cluster.change(&path(Phase::Validate), wipe);
    rounds(std::slice::from_mut(&mut manager), 3).await;
    assert!(manager.serving_cert.not_ready_reason().is_none());
    let steps = ["write the CA Secret", "write caBundle into the validating webhook configuration"];
    assert_eq!(steps.map(|step| manager.failures.last(step)), ["refused", "refused"]);
    for method in ["PUT", "PATCH"] {
        cluster.refuse(method, 0);
    }
    rounds(std::slice::from_mut(&mut manager), 3).await;
    assert!(serves(&manager, &cluster));
    assert_eq!(steps.map(|step| manager.failures.last(step)), ["", ""]);
    assert_eq!(rotations(&manager, CertKind::Leaf, true), 2);
}

#[tokio::test]
async fn one_configuration_that_cannot_be_written_does_not_keep_the_other_from_it() {
    for refused in Phase::ALL {
        let cluster = StubCluster::new();
        let mut manager = writer(&cluster);
        rounds(std::slice::from_mut(&mut manager), 3).await;
        cluster.refuse(&format!("PATCH {}", path(refused)), 422);
        for kind in Phase::ALL {
            cluster.change(&path(kind), wipe);
        }
        round(&mut manager).await;
        for kind in Phase::ALL {
            assert_eq!(cluster.trusted(kind).is_empty(), kind == refused, "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_reported() {
    let cluster = StubCluster::new();
    cluster.refuse("POST", 404);
    let mut manager = writer(&cluster);
    round(&mut manager).await;
    assert_eq!(manager.failures.last("write the CA Secret"), "refused");
    assert_eq!(rotations(&manager, CertKind::Ca, false), 1);
    assert!(manager.presented.is_none(), "no other replica would know the CA");
}

#[tokio::test(start_paused = true)]
async fn a_short_life_is_lived_by_the_same_rules() {
    let (cluster, clock) = (StubCluster::new(), Clock::default());
    let policy =
        CertPolicy { ca: Duration::from_mins(1), leaf: Duration::from_secs(20), ..CertPolicy::default() };
    let short = Builtin { policy, ..builtin() };
    let mut managers = [manager_with(&cluster, &clock, short.clone()), manager_with(&cluster, &clock, short)];
    managers[0].writes.send_replace(true);
    rounds(&mut managers, 3).await;
    for second in 0..200 {
        clock.shift(1);
        sleep(Duration::from_secs(1)).await;
        // The Lease goes from one to the other.
        for (index, manager) in managers.iter_mut().enumerate() {
            manager.writes.send_replace(second / 30 % 2 == index);
            round(manager).await;
        }
        assert!(managers.iter().all(|manager| serves(manager, &cluster)), "after {second} s");
        assert!(cluster.trusted(Phase::Mutate).len() <= 3, "after {second} s");
    }
    let counts = |kind| managers.iter().map(|manager| rotations(manager, kind, true)).sum::<u64>();
    assert!(counts(CertKind::Leaf) >= 30 && counts(CertKind::Ca) >= 4);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_secret_makes_a_new_ca_that_overlaps_with_the_old_one() {
    let cluster = StubCluster::new();
    let mut managers = [writer(&cluster), reader(&cluster)];
    for manager in &mut managers {
        manager.timers.propagation = Duration::from_secs(10);
    }
    rounds(&mut managers, 3).await;
    let (old, old_bundle) = (ca_of(&cluster), cluster.trusted(Phase::Mutate));
    cluster.remove(SECRET);
    for second in 0..30 {
        for manager in &mut managers {
            round(manager).await;
            assert!(serves(manager, &cluster), "no call fails meanwhile");
        }
        assert_eq!(ca_of(&cluster) == old, second < 11, "after {second} s");
        sleep(Duration::from_secs(1)).await;
    }
    for kind in Phase::ALL {
        let bundle = cluster.trusted(kind);
        assert!(bundle.len() == 2 && bundle.contains(&old_bundle[0]));
    }
    assert!(managers.iter().all(|manager| rotations(manager, CertKind::Leaf, true) == 2));
    // Five days later no replica presents the old CA.
    for manager in &managers {
        manager.clock.shift(5 * DAY);
    }
    rounds(&mut managers, 2).await;
    assert!(
        cluster.trusted(Phase::Mutate).len() == 1 && !cluster.trusted(Phase::Mutate).contains(&old_bundle[0])
    );
    assert!(managers.iter().all(|manager| serves(manager, &cluster)));
}

/// As a tool does that removes what it does not know.
#[tokio::test(start_paused = true)]
async fn a_secret_that_is_deleted_again_and_again_makes_one_ca_at_a_time() {
    let cluster = StubCluster::new();
    let mut managers = [writer(&cluster), reader(&cluster)];
    for manager in &mut managers {
        manager.timers.propagation = Duration::from_secs(10);
    }
    rounds(&mut managers, 3).await;
    for second in 0..60 {
        cluster.remove(SECRET);
        for manager in &mut managers {
            round(manager).await;
            assert!(serves(manager, &cluster), "after {second} s");
        }
        assert!(cluster.trusted(Phase::Mutate).len() <= 3, "after {second} s");
        sleep(Duration::from_secs(1)).await;
    }
    let cas = rotations(&managers[0], CertKind::Ca, true);
    assert!((5..=7).contains(&cas), "{cas} CAs in a minute, of which each takes ten seconds");
}

/// The replicas that know the old CA do not hold the Lease while the Secret is deleted, or gets another CA.
#[tokio::test(start_paused = true)]
async fn a_fresh_writer_keeps_the_ca_trusted_that_others_present() {
    let other = StubCluster::new();
    round(&mut writer(&other)).await;
    for foreign in [None, other.get(SECRET)] {
        let cluster = StubCluster::new();
        let mut old = writer(&cluster);
        rounds(std::slice::from_mut(&mut old), 3).await;
        old.writes.send_replace(false);
        let mut managers = [old, writer(&cluster)];
        for manager in &mut managers {
            manager.timers.propagation = Duration::from_secs(10);
        }
        match &foreign {
            Some(foreign) => cluster.change(SECRET, |secret| secret["data"] = foreign["data"].clone()),
            None => cluster.remove(SECRET),
        }
        let writes = cluster.writes(SECRET);
        // Nothing is written before both configurations are known.
        Box::pin(managers[1].reconcile()).await;
        assert_eq!(cluster.writes(SECRET), writes);
        for second in 0..30 {
            for manager in &mut managers {
                round(manager).await;
            }
            assert!(serves(&managers[0], &cluster), "after {second} s");
            assert_eq!(managers[0].presented == managers[1].presented, second >= 11, "after {second} s");
            sleep(Duration::from_secs(1)).await;
        }
        assert!(serves(&managers[1], &cluster));
        assert_eq!(cluster.trusted(Phase::Mutate).len(), 2);
    }
}

/// Another tool takes `caBundle` away again and again, so no CA is ever trusted for long.
#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_of_the_same_ca_is_presented_at_once() {
    let cluster = StubCluster::new();
    let mut managers = [writer(&cluster), reader(&cluster)];
    for manager in &mut managers {
        manager.timers.propagation = Duration::from_secs(10);
    }
    rounds(&mut managers, 3).await;
    for manager in &managers {
        manager.clock.shift(5 * DAY);
    }
    for _ in 0..4 {
        cluster.change(&path(Phase::Mutate), wipe);
        rounds(&mut managers, 2).await;
        sleep(Duration::from_secs(5)).await;
        rounds(&mut managers, 1).await;
        assert!(managers.iter().all(|manager| rotations(manager, CertKind::Leaf, true) == 2));
    }
}

/// While a CA waits for its step, replicas that do not write find nothing to report.
#[tokio::test(start_paused = true)]
async fn a_ca_that_waits_is_not_reported() {
    let cluster = StubCluster::new();
    let mut managers = [writer(&cluster), reader(&cluster)];
    for manager in &mut managers {
        manager.timers.propagation = 3 * PATIENCE;
    }
    rounds(&mut managers, 3).await;
    for manager in &managers {
        manager.clock.shift(300 * DAY);
    }
    for _ in 0..5 {
        rounds(&mut managers, 2).await;
        assert_eq!(managers[1].failures.last("find current certificates in the CA Secret"), "");
        sleep(PATIENCE / 2).await;
    }
    assert!(managers[0].known.as_ref().is_some_and(|known| known.next.is_some()));
}

/// The time so many days from now.
fn in_days(days: i64) -> Timestamp {
    Clock::default().timestamp() + SignedDuration::from_hours(24 * days)
}

/// A machine whose clock is minutes off, as the dates of the apiserver's answers show.
#[tokio::test]
async fn dates_count_by_the_clock_of_the_apiserver() {
    for seconds in [250, -250] {
        let now = Clock::default().timestamp() + SignedDuration::from_secs(seconds);
        let cluster = StubCluster::new();
        cluster.set_date(now);
        let mut managers = [writer(&cluster), writer(&cluster)];
        rounds(&mut managers, 3).await;
        let leaf = managers[0].known.as_ref().and_then(|known| known.leaf.as_ref()).expect("a leaf");
        assert!((leaf.not_after - now.as_second() - 7 * DAY).abs() < 60, "{seconds}");
        assert!(managers.iter().all(|manager| serves(manager, &cluster)), "{seconds}");
        assert_eq!(cluster.writes(SECRET), 1, "{seconds}");
    }
}

#[tokio::test]
async fn a_replica_whose_clock_is_days_off_writes_nothing() {
    for days in [400, -400] {
        let cluster = StubCluster::new();
        let mut manager = writer(&cluster);
        rounds(std::slice::from_mut(&mut manager), 3).await;
        let presented = manager.presented.clone();
        cluster.set_date(in_days(days));
        cluster.change(&path(Phase::Mutate), wipe);
        rounds(std::slice::from_mut(&mut manager), 3).await;
        let writes = [SECRET, &path(Phase::Mutate), &path(Phase::Validate)].map(|path| cluster.writes(path));
        assert_eq!(writes, [1, 1, 1], "{days}");
        assert!(manager.presented == presented, "{days}");
    }
}

/// A Lease that another client has renewed at this time.
fn foreign_lease(renewed: Timestamp) -> Value {
    let time = renewed.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    json!({"metadata": {"name": "memgate-ca"}, "spec": {
        "holderIdentity": "another", "acquireTime": time, "renewTime": time, "leaseDurationSeconds": 15,
    }})
}

/// Whether a replica gets the Lease within a day.
async fn is_taken(cluster: &StubCluster) -> bool {
    let (clock, held) = (Clock::default(), Sender::default());
    let mut changes = held.subscribe();
    let client = clock.set_by(&cluster.client());
    tokio::select! {
        () = lease::hold(client, builtin(), clock, held) => panic!("holding never ends"),
        held = changes.wait_for(|held| *held) => held.is_ok(),
        () = sleep(Duration::from_hours(24)) => false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_free_or_stale_is_taken() {
    for lease in [None, Some(foreign_lease(in_days(-1)))] {
        let cluster = StubCluster::new();
        if let Some(lease) = lease {
            cluster.put(LEASE, lease);
        }
        assert!(is_taken(&cluster).await);
        let holder = &cluster.get(LEASE).expect("a Lease")["spec"]["holderIdentity"];
        assert!(holder.as_str().is_some_and(|holder| holder != "another"), "{holder}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_another_client_is_left_alone() {
    let (cluster, lease) = (StubCluster::new(), foreign_lease(in_days(2)));
    cluster.put(LEASE, lease.clone());
    assert!(!is_taken(&cluster).await);
    assert_eq!(cluster.get(LEASE).expect("a Lease")["spec"], lease["spec"]);
}

/// By its clock the Lease of another client may look stale.
#[tokio::test(start_paused = true)]
async fn a_replica_whose_clock_is_wrong_takes_no_lease() {
    for days in [3, -3] {
        let cluster = StubCluster::new();
        cluster.set_date(in_days(days));
        let lease = foreign_lease(in_days(-1));
        cluster.put(LEASE, lease.clone());
        assert!(!is_taken(&cluster).await, "{days}");
        assert_eq!(cluster.get(LEASE).expect("a Lease")["spec"], lease["spec"], "{days}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_used_is_tried_again() {
    let cluster = StubCluster::new();
    cluster.refuse("POST", 403);
    let allow = async {
        sleep(Duration::from_mins(1)).await;
        cluster.refuse("POST", 0);
    };
    let (taken, ()) = tokio::join!(is_taken(&cluster), allow);
    assert!(taken);
}
