//! Keepers against a stub of an apiserver, one round at a time.

use futures::future::join_all;
use serde_json::json;

use super::*;
use crate::server::certs::Terms;
use crate::server::certs::registration::look;
use crate::server::certs::stub::{Cluster, SECRET, builtin, path};
use crate::server::tls::Source;

const DAY: i64 = 86400;

fn keeper(cluster: &Cluster) -> Keeper {
    keeper_with(cluster, &Clock::default(), builtin())
}

fn keeper_with(cluster: &Cluster, clock: &Clock, builtin: Builtin) -> Keeper {
    let timers = Timers { propagation: Duration::ZERO, ..Timers::default() };
    let source = Source::Builtin(builtin.clone());
    let certificate = Certificate::obtain(&source, None, clock).expect("nothing to read");
    let metrics = Arc::new(Metrics::new());
    Keeper::new(builtin, cluster.client(), clock.clone(), &timers, metrics, Arc::new(certificate))
}

/// One round of a keeper that has just seen both configurations.
async fn round(keeper: &mut Keeper) -> Next {
    for which in Which::ALL {
        let _refused = look(keeper.client.clone(), which, "memgate", &keeper.live).await;
    }
    Box::pin(keeper.round()).await
}

/// Rounds until there is nothing left to do.
async fn settle_down(keeper: &mut Keeper) {
    for _ in 0..10 {
        let before = keeper.held.clone();
        match round(keeper).await {
            Next::Regular if keeper.held == before => return,
            Next::Regular => {}
            Next::Soon(time) => sleep(time).await,
            Next::Later => panic!("{:?}", keeper.troubles),
        }
    }
    panic!("never comes to rest");
}

fn ca_of(cluster: &Cluster) -> serde_json::Value {
    cluster.get(SECRET).expect("a Secret")["data"]["ca.crt"].clone()
}

fn serves(keeper: &Keeper, cluster: &Cluster) -> bool {
    let held = keeper.held.as_ref().expect("a leaf");
    Which::ALL.iter().all(|which| cluster.trusted(*which).contains(&held.signer))
        && keeper.certificate.missing().is_none()
}

#[tokio::test(start_paused = true)]
async fn from_nothing_to_a_trusted_leaf() {
    let cluster = Cluster::new();
    let mut keeper = keeper(&cluster);
    assert!(keeper.certificate.missing().is_some());
    settle_down(&mut keeper).await;
    assert!(serves(&keeper, &cluster));
    assert_eq!(cluster.writes(SECRET), 1);
    for which in Which::ALL {
        assert_eq!(cluster.writes(&path(which)), 1);
    }
    for _ in 0..5 {
        assert_eq!(round(&mut keeper).await, Next::Regular);
    }
    assert_eq!((cluster.writes(SECRET), cluster.writes(&path(Which::Mutating))), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn several_that_begin_at_once_agree_on_one_ca() {
    for count in 2..=5 {
        let cluster = Cluster::new();
        let mut keepers: Vec<_> = (0..count).map(|_| keeper(&cluster)).collect();
        join_all(keepers.iter_mut().map(settle_down)).await;
        assert_eq!(cluster.writes(SECRET), 1, "one CA wins");
        let signers: Vec<_> =
            keepers.iter().map(|keeper| &keeper.held.as_ref().expect("a leaf").signer).collect();
        assert!(signers.iter().all(|signer| *signer == signers[0]), "{count}");
        assert!(keepers.iter().all(|keeper| serves(keeper, &cluster)), "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_that_rotate_at_once_agree_on_one_ca() {
    for count in 2..=5 {
        let (cluster, clock) = (Cluster::new(), Clock::default());
        let mut keepers: Vec<_> = (0..count).map(|_| keeper_with(&cluster, &clock, builtin())).collect();
        join_all(keepers.iter_mut().map(settle_down)).await;
        let old = ca_of(&cluster);
        sleep(BETWEEN_CAS.1).await;
        clock.shift(300 * DAY);
        join_all(keepers.iter_mut().map(settle_down)).await;
        assert_eq!(cluster.writes(SECRET), 2, "one rotation, once");
        assert_ne!(ca_of(&cluster), old);
        assert_eq!(cluster.get(SECRET).expect("a Secret")["data"]["previous.crt"], old);
        assert_eq!(cluster.trusted(Which::Validating).len(), 2);
        assert!(keepers.iter().all(|keeper| serves(keeper, &cluster)), "{count}");
        let newest = &keepers[0].known.as_ref().expect("a CA").newest.anchor;
        let signed = |keeper: &Keeper| keeper.held.as_ref().is_some_and(|held| held.signer == *newest);
        assert!(keepers.iter().all(signed), "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_gone_comes_back_as_it_was() {
    let cluster = Cluster::new();
    let mut keepers = [keeper(&cluster), keeper(&cluster)];
    join_all(keepers.iter_mut().map(settle_down)).await;
    let (ca, held) = (ca_of(&cluster), keepers[0].held.clone());
    let damages: [fn(&Cluster); 4] = [
        |cluster| cluster.remove(SECRET),
        |cluster| cluster.change(SECRET, |secret| secret["data"] = json!({})),
        |cluster| cluster.change(SECRET, |secret| secret["data"]["ca.key"] = json!("aGVsbG8=")),
        |cluster| cluster.change(SECRET, |secret| secret["data"]["bundle.crt"] = json!("aGVsbG8=")),
    ];
    for damage in damages {
        damage(&cluster);
        join_all(keepers.iter_mut().map(settle_down)).await;
        assert_eq!(ca_of(&cluster), ca);
        assert_eq!(keepers[0].held, held, "nothing changes for callers");
        assert!(keepers.iter().all(|keeper| serves(keeper, &cluster)));
    }
}

#[tokio::test(start_paused = true)]
async fn ca_bundle_is_repaired_and_never_more_than_once_a_second() {
    let cluster = Cluster::new();
    let mut keeper = keeper(&cluster);
    settle_down(&mut keeper).await;
    let started = Instant::now();
    let mutating = path(Which::Mutating);
    let before = cluster.writes(&mutating);
    for turn in 0..10 {
        cluster.change(&mutating, |object| object["webhooks"][turn % 2]["clientConfig"] = json!({}));
        settle_down(&mut keeper).await;
        assert!(serves(&keeper, &cluster));
    }
    assert_eq!(cluster.writes(&mutating), before + 10);
    assert!(started.elapsed() >= Duration::from_secs(9), "{:?}", started.elapsed());
    assert_eq!(cluster.writes(&path(Which::Validating)), 1, "the other one is left alone");
}

#[tokio::test(start_paused = true)]
async fn two_that_see_the_same_damage_seldom_both_repair_it() {
    let cluster = Cluster::new();
    let mut keepers = [keeper(&cluster), keeper(&cluster)];
    join_all(keepers.iter_mut().map(settle_down)).await;
    let validating = path(Which::Validating);
    let before = cluster.writes(&validating);
    for _ in 0..20 {
        sleep(Duration::from_secs(2)).await;
        cluster.change(&validating, |object| object["webhooks"][0]["clientConfig"] = json!({}));
        join_all(keepers.iter_mut().map(settle_down)).await;
    }
    let writes = cluster.writes(&validating) - before;
    assert!((20..25).contains(&writes), "{writes} writes for 20 repairs");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_is_not_there_is_waited_for_and_never_made() {
    let cluster = Cluster::new();
    let objects = Which::ALL.map(|which| (path(which), cluster.get(&path(which)).expect("an object")));
    for (path, _) in &objects {
        cluster.remove(path);
    }
    let mut keeper = keeper(&cluster);
    settle_down(&mut keeper).await;
    assert!(keeper.held.is_some());
    assert!(keeper.certificate.missing().is_some_and(|missing| missing.contains("do not trust")));
    for (path, object) in objects {
        assert!(cluster.get(&path).is_none());
        cluster.put(&path, object);
    }
    settle_down(&mut keeper).await;
    assert!(serves(&keeper, &cluster));
    // Once ready, a slip of somebody else takes no replica out.
    cluster.remove(&path(Which::Mutating));
    settle_down(&mut keeper).await;
    assert_eq!(keeper.certificate.missing(), None);
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_write_serves_with_what_there_is() {
    let (cluster, clock) = (Cluster::new(), Clock::default());
    let mut owner = keeper_with(&cluster, &clock, builtin());
    settle_down(&mut owner).await;
    cluster.refuse("PUT", 403);
    cluster.refuse("PATCH", 403);
    let mut guest = keeper_with(&cluster, &clock, builtin());
    settle_down(&mut guest).await;
    assert!(serves(&guest, &cluster));
    // The CA is due, and nobody may replace it.
    clock.shift(300 * DAY);
    let old = ca_of(&cluster);
    for _ in 0..3 {
        assert_eq!(round(&mut guest).await, Next::Later);
    }
    assert_eq!(ca_of(&cluster), old);
    assert!(serves(&guest, &cluster), "a new leaf of the old CA");
    let text = guest.metrics.text().expect("metrics");
    assert!(text.contains("memgate_cert_rotations_total{kind=\"ca\",result=\"failed\"} 3"), "{text}");
    cluster.refuse("PUT", 0);
    cluster.refuse("PATCH", 0);
    settle_down(&mut guest).await;
    assert_ne!(ca_of(&cluster), old);
    assert!(guest.troubles.0.is_empty(), "{:?}", guest.troubles);
}

#[tokio::test(start_paused = true)]
async fn a_leaf_is_renewed_while_the_apiserver_is_away() {
    let (cluster, clock) = (Cluster::new(), Clock::default());
    let mut keeper = keeper_with(&cluster, &clock, builtin());
    settle_down(&mut keeper).await;
    for method in ["GET", "PUT", "PATCH"] {
        cluster.refuse(method, 503);
    }
    // A machine that was suspended for eight hours, a week, and whose clock is then set right.
    for shift in [DAY / 3, 7 * DAY, -DAY] {
        clock.shift(shift);
        assert_eq!(round(&mut keeper).await, Next::Later);
        assert!(serves(&keeper, &cluster), "{shift}");
    }
}

#[tokio::test(start_paused = true)]
async fn makes_no_second_ca_right_after_the_first() {
    let (cluster, clock) = (Cluster::new(), Clock::default());
    let mut keeper = keeper_with(&cluster, &clock, builtin());
    settle_down(&mut keeper).await;
    clock.shift(400 * DAY);
    assert_eq!(round(&mut keeper).await, Next::Later);
    assert_eq!(cluster.writes(SECRET), 1);
    sleep(BETWEEN_CAS.1).await;
    settle_down(&mut keeper).await;
    assert_eq!(cluster.writes(SECRET), 2);
    assert!(serves(&keeper, &cluster));
}

#[tokio::test(start_paused = true)]
async fn without_rights_on_the_configurations_it_serves_and_says_so() {
    let cluster = Cluster::new();
    cluster.refuse("GET /apis/admissionregistration", 403);
    let mut keeper = keeper(&cluster);
    settle_down(&mut keeper).await;
    assert_eq!(keeper.certificate.missing(), None);
    let text = keeper.metrics.text().expect("metrics");
    assert!(!text.contains("memgate_cabundle_repairs_total{"), "{text}");
    // What can be read then is what counts.
    cluster.refuse("GET /apis/admissionregistration", 0);
    cluster.refuse("PATCH", 403);
    assert_eq!(round(&mut keeper).await, Next::Later);
    assert!(keeper.certificate.missing().is_some());
    cluster.refuse("PATCH", 0);
    settle_down(&mut keeper).await;
    assert!(serves(&keeper, &cluster));
}

#[tokio::test(start_paused = true)]
async fn one_configuration_that_cannot_be_written_does_not_keep_the_other_from_it() {
    for refused in Which::ALL {
        let cluster = Cluster::new();
        let mut keeper = keeper(&cluster);
        settle_down(&mut keeper).await;
        sleep(BETWEEN_WRITES).await;
        cluster.refuse(&format!("PATCH {}", path(refused)), 422);
        for which in Which::ALL {
            cluster.change(&path(which), |object| {
                for entry in object["webhooks"].as_array_mut().expect("entries") {
                    entry["clientConfig"] = json!({});
                }
            });
        }
        assert_eq!(round(&mut keeper).await, Next::Later);
        for which in Which::ALL {
            assert_eq!(cluster.trusted(which).is_empty(), which == refused, "{which:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_clocks_fight_over_the_secret_once_a_minute_at_the_most() {
    for days in [400, -400] {
        let (cluster, ahead) = (Cluster::new(), Clock::default());
        ahead.shift(days * DAY);
        let mut right = keeper(&cluster);
        settle_down(&mut right).await;
        let mut wrong = keeper_with(&cluster, &ahead, builtin());
        for _ in 0..60 {
            for keeper in [&mut wrong, &mut right] {
                let _next = round(keeper).await;
            }
            assert!(serves(&right, &cluster), "{days}");
            sleep(Duration::from_secs(2)).await;
        }
        let held = wrong.held.as_ref().expect("a leaf");
        assert!(cluster.trusted(Which::Mutating).contains(&held.signer), "{days}");
        let writes = cluster.writes(SECRET);
        assert!((2..10).contains(&writes), "{days}: {writes} writes");
        let writes = cluster.writes(&path(Which::Mutating));
        assert!(writes < 10, "{days}: {writes} writes of caBundle");
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_is_no_lost_race() {
    let cluster = Cluster::new();
    cluster.refuse("POST", 404);
    let mut keeper = keeper(&cluster);
    assert_eq!(round(&mut keeper).await, Next::Later);
    assert!(keeper.troubles.0.contains_key(WRITE), "{:?}", keeper.troubles);
    let text = keeper.metrics.text().expect("metrics");
    assert!(text.contains("memgate_cert_rotations_total{kind=\"ca\",result=\"failed\"} 1"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_short_life_is_lived_by_the_same_rules() {
    let (cluster, clock) = (Cluster::new(), Clock::default());
    let terms = Terms { ca: Duration::from_mins(1), leaf: Duration::from_secs(20), ..Terms::default() };
    let mut keeper = keeper_with(&cluster, &clock, Builtin { terms, ..builtin() });
    settle_down(&mut keeper).await;
    for _ in 0..100 {
        clock.shift(2);
        sleep(Duration::from_secs(2)).await;
        settle_down(&mut keeper).await;
        assert!(serves(&keeper, &cluster));
    }
    let text = keeper.metrics.text().expect("metrics");
    let count = |kind: &str| {
        let series = format!("memgate_cert_rotations_total{{kind=\"{kind}\",result=\"ok\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned));
        line.and_then(|count| count.parse::<u32>().ok()).unwrap_or_default()
    };
    assert!(count("leaf") >= 15 && count("ca") >= 5, "{text}");
}
