//! Managers against a stub of an apiserver, one round at a time.

use futures::future::join_all;
use serde_json::json;

use super::*;
use crate::CertPolicy;
use crate::metrics::result;
use crate::test_support::{SECRET, StubCluster, builtin, path};
use crate::tls::CertSource;

const DAY: i64 = 86400;

fn manager(cluster: &StubCluster) -> CertManager {
    manager_with(cluster, &Clock::default(), builtin())
}

fn manager_with(cluster: &StubCluster, clock: &Clock, builtin: Builtin) -> CertManager {
    let timers = ManagerTimers {
        watch_pause: Duration::from_secs(3),
        poll: Duration::from_secs(2),
        propagation: Duration::ZERO,
    };
    let source = CertSource::Builtin(builtin.clone());
    let certificate = ServingCert::load(&source, None, clock).expect("nothing to read");
    let metrics = Arc::new(CertMetrics::default());
    CertManager::new(builtin, cluster.client(), clock.clone(), timers, metrics, Arc::new(certificate))
}

/// How often a kind of certificate was replaced, or could not be used.
fn rotations(manager: &CertManager, kind: CertKind, usable: bool) -> u64 {
    manager.metrics.rotations.get_or_create(&[kind.label(), result(usable)]).get()
}

/// One round of a manager that has just seen both configurations.
async fn round(manager: &mut CertManager) -> Requeue {
    for config in &manager.configs {
        let _refused = config.observe().await;
    }
    Box::pin(manager.reconcile()).await
}

/// Rounds until there is nothing left to do.
async fn settle_down(manager: &mut CertManager) {
    for _ in 0..10 {
        let before = manager.leaf.clone();
        match round(manager).await {
            Requeue::OnChange if manager.leaf == before => return,
            Requeue::OnChange => {}
            Requeue::After(time) => sleep(time).await,
            Requeue::Backoff => panic!("{:?}", manager.failures),
        }
    }
    panic!("never comes to rest");
}

fn ca_of(cluster: &StubCluster) -> serde_json::Value {
    cluster.get(SECRET).expect("a Secret")["data"]["ca.crt"].clone()
}

/// Whether callers trust the leaf.
fn serves(manager: &CertManager, cluster: &StubCluster) -> bool {
    let leaf = manager.leaf.as_ref().expect("a leaf");
    Phase::ALL.iter().all(|kind| cluster.trusted(*kind).contains(&leaf.signer))
        && manager.serving_cert.not_ready_reason().is_none()
}

#[tokio::test(start_paused = true)]
async fn from_nothing_to_a_trusted_leaf() {
    let cluster = StubCluster::new();
    let mut manager = manager(&cluster);
    assert!(manager.serving_cert.not_ready_reason().is_some());
    settle_down(&mut manager).await;
    assert!(serves(&manager, &cluster));
    assert_eq!(cluster.writes(SECRET), 1);
    for kind in Phase::ALL {
        assert_eq!(cluster.writes(&path(kind)), 1);
    }
    for _ in 0..5 {
        assert_eq!(round(&mut manager).await, Requeue::OnChange);
    }
    assert_eq!((cluster.writes(SECRET), cluster.writes(&path(Phase::Mutate))), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn several_that_begin_at_once_agree_on_one_ca() {
    for count in 2..=5 {
        let cluster = StubCluster::new();
        let mut managers: Vec<_> = (0..count).map(|_| manager(&cluster)).collect();
        join_all(managers.iter_mut().map(settle_down)).await;
        assert_eq!(cluster.writes(SECRET), 1, "one CA wins");
        let signers: Vec<_> =
            managers.iter().map(|manager| &manager.leaf.as_ref().expect("a leaf").signer).collect();
        assert!(signers.iter().all(|signer| *signer == signers[0]), "{count}");
        assert!(managers.iter().all(|manager| serves(manager, &cluster)), "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_that_rotate_at_once_agree_on_one_ca() {
    for count in 2..=5 {
        let (cluster, clock) = (StubCluster::new(), Clock::default());
        let mut managers: Vec<_> = (0..count).map(|_| manager_with(&cluster, &clock, builtin())).collect();
        join_all(managers.iter_mut().map(settle_down)).await;
        let old = ca_of(&cluster);
        sleep(MIN_CA_INTERVAL.1).await;
        clock.shift(300 * DAY);
        join_all(managers.iter_mut().map(settle_down)).await;
        assert_eq!(cluster.writes(SECRET), 2, "one rotation, once");
        assert_ne!(ca_of(&cluster), old);
        assert_eq!(cluster.get(SECRET).expect("a Secret")["data"]["previous.crt"], old);
        assert_eq!(cluster.trusted(Phase::Validate).len(), 2);
        assert!(managers.iter().all(|manager| serves(manager, &cluster)), "{count}");
        let newest = &managers[0].ca_state.as_ref().expect("a CA").newest.cert;
        let signed = |manager: &CertManager| manager.leaf.as_ref().is_some_and(|leaf| leaf.signer == *newest);
        assert!(managers.iter().all(signed), "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_damaged_comes_back_as_it_was() {
    let cluster = StubCluster::new();
    let mut managers = [manager(&cluster), manager(&cluster)];
    join_all(managers.iter_mut().map(settle_down)).await;
    let (ca, leaf) = (ca_of(&cluster), managers[0].leaf.clone());
    let damages: [fn(&StubCluster); 3] = [
        |cluster| cluster.change(SECRET, |secret| secret["data"] = json!({})),
        |cluster| cluster.change(SECRET, |secret| secret["data"]["ca.key"] = json!("aGVsbG8=")),
        |cluster| cluster.change(SECRET, |secret| secret["data"]["bundle.crt"] = json!("aGVsbG8=")),
    ];
    for damage in damages {
        damage(&cluster);
        join_all(managers.iter_mut().map(settle_down)).await;
        assert_eq!(ca_of(&cluster), ca);
        assert_eq!(managers[0].leaf, leaf, "nothing changes for callers");
        assert!(managers.iter().all(|manager| serves(manager, &cluster)));
    }
}

#[tokio::test(start_paused = true)]
async fn ca_bundle_is_repaired_and_never_more_than_once_a_second() {
    let cluster = StubCluster::new();
    let mut manager = manager(&cluster);
    settle_down(&mut manager).await;
    let started = Instant::now();
    let mutating = path(Phase::Mutate);
    let before = cluster.writes(&mutating);
    for turn in 0..10 {
        cluster.change(&mutating, |object| {
            object["webhooks"][turn % 2]["clientConfig"] = json!({"service": {}});
        });
        settle_down(&mut manager).await;
        assert!(serves(&manager, &cluster));
    }
    assert_eq!(cluster.writes(&mutating), before + 10);
    assert!(started.elapsed() >= Duration::from_secs(9), "{:?}", started.elapsed());
    assert_eq!(cluster.writes(&path(Phase::Validate)), 1, "the other one is left alone");
}

#[tokio::test(start_paused = true)]
async fn two_that_see_the_same_damage_seldom_both_repair_it() {
    let cluster = StubCluster::new();
    let mut managers = [manager(&cluster), manager(&cluster)];
    join_all(managers.iter_mut().map(settle_down)).await;
    let validating = path(Phase::Validate);
    let before = cluster.writes(&validating);
    for _ in 0..20 {
        sleep(Duration::from_secs(2)).await;
        cluster.change(&validating, |object| object["webhooks"][0]["clientConfig"] = json!({"service": {}}));
        join_all(managers.iter_mut().map(settle_down)).await;
    }
    let writes = cluster.writes(&validating) - before;
    assert!((20..25).contains(&writes), "{writes} writes for 20 repairs");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_is_not_there_is_waited_for_and_never_made() {
    let cluster = StubCluster::new();
    let objects = Phase::ALL.map(|kind| (path(kind), cluster.get(&path(kind)).expect("an object")));
    for (path, _) in &objects {
        cluster.remove(path);
    }
    let mut manager = manager(&cluster);
    settle_down(&mut manager).await;
    assert!(manager.leaf.is_some());
    assert!(
        manager
            .serving_cert
            .not_ready_reason()
            .is_some_and(|not_ready_reason| not_ready_reason.contains("do not trust"))
    );
    for (path, object) in objects {
        assert!(cluster.get(&path).is_none());
        cluster.put(&path, object);
    }
    settle_down(&mut manager).await;
    assert!(serves(&manager, &cluster));
    // Once ready, a mistake in a configuration makes no replica unready.
    cluster.remove(&path(Phase::Mutate));
    settle_down(&mut manager).await;
    assert_eq!(manager.serving_cert.not_ready_reason(), None);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_may_not_write_serves_with_what_there_is() {
    let (cluster, clock) = (StubCluster::new(), Clock::default());
    let mut owner = manager_with(&cluster, &clock, builtin());
    settle_down(&mut owner).await;
    cluster.refuse("PUT", 403);
    cluster.refuse("PATCH", 403);
    let mut guest = manager_with(&cluster, &clock, builtin());
    settle_down(&mut guest).await;
    assert!(serves(&guest, &cluster));
    // The CA is due, and no replica may replace it.
    clock.shift(300 * DAY);
    let old = ca_of(&cluster);
    for _ in 0..3 {
        assert_eq!(round(&mut guest).await, Requeue::Backoff);
    }
    assert_eq!(ca_of(&cluster), old);
    assert!(serves(&guest, &cluster), "a new leaf of the old CA");
    assert_eq!(rotations(&guest, CertKind::Ca, false), 3);
    cluster.refuse("PUT", 0);
    cluster.refuse("PATCH", 0);
    settle_down(&mut guest).await;
    assert_ne!(ca_of(&cluster), old);
    assert!(guest.failures.is_empty(), "{:?}", guest.failures);
}

#[tokio::test(start_paused = true)]
async fn a_leaf_is_renewed_while_the_apiserver_is_away() {
    let (cluster, clock) = (StubCluster::new(), Clock::default());
    let mut manager = manager_with(&cluster, &clock, builtin());
    settle_down(&mut manager).await;
    for method in ["GET", "PUT", "PATCH"] {
        cluster.refuse(method, 503);
    }
    // A machine that was suspended for eight hours, a week, and whose clock is then set right.
    for shift in [DAY / 3, 7 * DAY, -DAY] {
        clock.shift(shift);
        assert_eq!(round(&mut manager).await, Requeue::Backoff);
        assert!(serves(&manager, &cluster), "{shift}");
    }
}

#[tokio::test(start_paused = true)]
async fn makes_no_second_ca_right_after_the_first() {
    let (cluster, clock) = (StubCluster::new(), Clock::default());
    let mut manager = manager_with(&cluster, &clock, builtin());
    settle_down(&mut manager).await;
    clock.shift(400 * DAY);
    assert_eq!(round(&mut manager).await, Requeue::Backoff);
    assert_eq!(cluster.writes(SECRET), 1);
    sleep(MIN_CA_INTERVAL.1).await;
    settle_down(&mut manager).await;
    assert_eq!(cluster.writes(SECRET), 2);
    assert!(serves(&manager, &cluster));
}

#[tokio::test(start_paused = true)]
async fn without_rights_on_the_configurations_it_serves_and_says_so() {
    let cluster = StubCluster::new();
    cluster.refuse("GET /apis/admissionregistration", 403);
    let mut manager = manager(&cluster);
    settle_down(&mut manager).await;
    assert_eq!(manager.serving_cert.not_ready_reason(), None);
    let writes =
        CertMetrics::repair_labels().map(|labels| manager.metrics.repairs.get_or_create(&labels).get());
    assert_eq!(writes.sum::<u64>(), 0);
    // What can be read then is what counts.
    cluster.refuse("GET /apis/admissionregistration", 0);
    cluster.refuse("PATCH", 403);
    assert_eq!(round(&mut manager).await, Requeue::Backoff);
    assert!(manager.serving_cert.not_ready_reason().is_some());
    cluster.refuse("PATCH", 0);
    settle_down(&mut manager).await;
    assert!(serves(&manager, &cluster));
}

#[tokio::test(start_paused = true)]
async fn one_configuration_that_cannot_be_written_does_not_keep_the_other_from_it() {
    for refused in Phase::ALL {
        let cluster = StubCluster::new();
        let mut manager = manager(&cluster);
        settle_down(&mut manager).await;
        sleep(MIN_CONFIG_WRITE_INTERVAL).await;
        cluster.refuse(&format!("PATCH {}", path(refused)), 422);
        for kind in Phase::ALL {
            cluster.change(&path(kind), |object| {
                for entry in object["webhooks"].as_array_mut().expect("entries") {
                    entry["clientConfig"] = json!({"service": {}});
                }
            });
        }
        assert_eq!(round(&mut manager).await, Requeue::Backoff);
        for kind in Phase::ALL {
            assert_eq!(cluster.trusted(kind).is_empty(), kind == refused, "{kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_clocks_fight_over_the_secret_once_a_minute_at_the_most() {
    for days in [400, -400] {
        let (cluster, ahead) = (StubCluster::new(), Clock::default());
        ahead.shift(days * DAY);
        let mut right = manager(&cluster);
        settle_down(&mut right).await;
        let mut wrong = manager_with(&cluster, &ahead, builtin());
        for _ in 0..60 {
            for manager in [&mut wrong, &mut right] {
                let _next = round(manager).await;
            }
            assert!(serves(&right, &cluster), "{days}");
            sleep(Duration::from_secs(2)).await;
        }
        let leaf = wrong.leaf.as_ref().expect("a leaf");
        assert!(cluster.trusted(Phase::Mutate).contains(&leaf.signer), "{days}");
        let writes = cluster.writes(SECRET);
        assert!((2..10).contains(&writes), "{days}: {writes} writes");
        let writes = cluster.writes(&path(Phase::Mutate));
        assert!(writes < 10, "{days}: {writes} writes of caBundle");
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_is_no_lost_race() {
    let cluster = StubCluster::new();
    cluster.refuse("POST", 404);
    let mut manager = manager(&cluster);
    assert_eq!(round(&mut manager).await, Requeue::Backoff);
    assert!(!manager.failures.last(WRITE_SECRET).is_empty(), "{:?}", manager.failures);
    assert_eq!(rotations(&manager, CertKind::Ca, false), 1);
}

#[tokio::test(start_paused = true)]
async fn a_short_life_is_lived_by_the_same_rules() {
    let (cluster, clock) = (StubCluster::new(), Clock::default());
    let policy =
        CertPolicy { ca: Duration::from_mins(1), leaf: Duration::from_secs(20), ..CertPolicy::default() };
    let mut manager = manager_with(&cluster, &clock, Builtin { policy, ..builtin() });
    settle_down(&mut manager).await;
    for _ in 0..100 {
        clock.shift(2);
        sleep(Duration::from_secs(2)).await;
        settle_down(&mut manager).await;
        assert!(serves(&manager, &cluster));
    }
    let counts = [CertKind::Leaf, CertKind::Ca].map(|kind| rotations(&manager, kind, true));
    assert!(counts[0] >= 15 && counts[1] >= 5, "{counts:?}");
}

/// Rounds of all, two seconds apart, for a minute.
async fn rounds_of_a_minute(managers: &mut [CertManager]) {
    for _ in 0..30 {
        for manager in &mut *managers {
            let _next = round(manager).await;
        }
        sleep(Duration::from_secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_secret_makes_a_new_ca_that_overlaps_with_the_old_one() {
    let cluster = StubCluster::new();
    let mut managers = [manager(&cluster), manager(&cluster)];
    for manager in &mut managers {
        manager.timers.propagation = Duration::from_secs(10);
    }
    rounds_of_a_minute(&mut managers).await;
    let (old, old_bundle) = (ca_of(&cluster), cluster.trusted(Phase::Mutate));
    cluster.remove(SECRET);
    for _ in 0..30 {
        for manager in &mut managers {
            let _next = round(manager).await;
            assert!(serves(manager, &cluster), "no call fails meanwhile");
        }
        sleep(Duration::from_secs(2)).await;
    }
    assert_ne!(ca_of(&cluster), old);
    assert_eq!(cluster.get(SECRET).expect("a Secret")["data"]["previous.crt"], old);
    let newest = &managers[0].ca_state.as_ref().expect("a CA").newest.cert;
    for manager in &managers {
        assert_eq!(manager.leaf.as_ref().map(|leaf| &leaf.signer), Some(newest));
    }
    for kind in Phase::ALL {
        let bundle = cluster.trusted(kind);
        assert!(bundle.len() == 2 && bundle.contains(newest) && bundle.contains(&old_bundle[0]));
    }
    // Once more, after which the first CA is not trusted.
    cluster.remove(SECRET);
    rounds_of_a_minute(&mut managers).await;
    rounds_of_a_minute(&mut managers).await;
    assert!(!cluster.trusted(Phase::Mutate).contains(&old_bundle[0]));
    assert!(managers.iter().all(|manager| serves(manager, &cluster)));
}
