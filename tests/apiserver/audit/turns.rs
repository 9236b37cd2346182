//! One replica at a time.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context, Result, ensure};
use memgate_certs::tls::CertSource;
use memgate_server::options::{AuditOptions, Options};
use memgate_server::{Server, State};
use serde_json::json;

use super::house::{
    House, PATIENCE, durable, is_leading, memories, pass_twice, passes, policy, same, value, versions,
};
use crate::{
    fixture::Fixture,
    support::{wait, webhook::Webhook},
};

/// How soon another replica goes on.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);

fn house() -> Result<(House, String)> {
    let house = House::with_reports()?;
    let namespace = house.cluster.fresh_namespace("team")?;
    house.fill(memories(&namespace, (0..20).map(|it| (format!("notes-{it}"), false))))?;
    house.apply(&policy("durable", &json!({}), &durable()))?;
    Ok((house, namespace))
}

/// The replica that audits, and the one that does not.
fn by_turn(house: &House) -> Result<(Webhook, Webhook)> {
    let (one, two) = (house.replica(&[])?, house.replica(&[])?);
    let is_first = wait::until_within(PATIENCE, "one of them audits", || {
        Ok(match (is_leading(&one)?, is_leading(&two)?) {
            (false, false) => None,
            (first, _) => Some(first),
        })
    })?;
    Ok(if is_first { (one, two) } else { (two, one) })
}

/// The replica that audits is killed: the other one goes on.
pub(super) fn taken(_: &Fixture) -> Result<()> {
    let (house, namespace) = house()?;
    let (mut auditing, other) = by_turn(&house)?;
    house.until_reports(20)?;
    ensure!(passes(&other)? < 0.5, "both audit");
    auditing.process().kill()?;
    house.kubectl(&["-n", &namespace, "delete", "arkmemory", "notes-0", "notes-1"])?;
    // A moment for the pass itself, on a machine where other trials run.
    wait::until_within(TAKEN_WITHIN + Duration::from_secs(10), "the other one audits", || {
        Ok((passes(&other)? > 0.5).then_some(()))
    })?;
    house.until_reports(18)?;
    // One that ends by itself gives its turn up.
    let third = house.replica(&[])?;
    other.terminate()?;
    // Sooner than its Lease ends.
    wait::until_within(Duration::from_secs(10), "the third one audits", || {
        Ok(is_leading(&third)?.then_some(()))
    })
}

/// Two servers, each with a Lease of its own, so that both audit all the time.
pub(super) fn both_hold(_: &Fixture) -> Result<()> {
    let (house, namespace) = house()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut done = Vec::new();
    for lease in ["one", "two"] {
        let lease = house.cluster.fresh_namespace(lease)?;
        let ca = house.cluster.scratch().path().join(format!("{lease}.crt"));
        let mut options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca });
        options.listen = (Ipv4Addr::LOCALHOST, 0).into();
        options.health = (Ipv4Addr::LOCALHOST, 0).into();
        options.audit = Some(AuditOptions {
            interval: Duration::from_secs(2),
            max_reports: 100,
            rate: None,
            lease: "memgate-audit".to_owned(),
            namespace: lease,
            installation: house.home.clone(),
        });
        let client = house.cluster.client();
        let _inside = runtime.enter();
        let server = Server::bind(
            options,
            State::Cluster { client, settings: memgate_platforms::default_settings() },
        )?;
        let health = server.addresses()?.health;
        runtime.spawn(server.run(std::future::pending()));
        done.push(move || -> Result<f64> {
            let (_, metrics) = wait::http_get(health, "/metrics").context("no metrics")?;
            value(&metrics, "memgate_audit_passes_total{result=\"ok\"}")
        });
    }
    let passes = |count: f64| {
        wait::until_within(PATIENCE, "both audit", || {
            let both: Vec<f64> = done.iter().map(|done| done()).collect::<Result<_>>()?;
            Ok(both.iter().all(|passes| *passes >= count).then_some(()))
        })
    };
    let reports = house.until_reports(20)?;
    passes(3.0)?;
    let found = house.until(&["mempol", "durable"], |it| it["status"]["violations"] == 20)?;
    passes(6.0)?;
    let again = house.until_reports(20)?;
    ensure!(versions(&again) == versions(&reports), "they write against each other");
    same(&house.until(&["mempol", "durable"], |_| true)?["metadata"], &found["metadata"])?;
    house.kubectl(&["-n", &namespace, "delete", "arkmemory", "notes-0"])?;
    house.until_reports(19)?;
    Ok(())
}

/// A replica is stopped while its Lease expires, and goes on later. Then a user deletes the Lease: for a while both
/// replicas hold one.
pub(super) fn both(_: &Fixture) -> Result<()> {
    let (house, namespace) = house()?;
    let (mut stopped, other) = by_turn(&house)?;
    house.until_reports(20)?;
    stopped.process().signal("STOP")?;
    house.kubectl(&["-n", &namespace, "delete", "arkmemory", "notes-0"])?;
    let reports = house.until_reports(19)?;
    ensure!(is_leading(&other)?, "the other replica does not audit");
    stopped.process().signal("CONT")?;
    pass_twice(&other)?;
    one_audits(&stopped, &other)?;

    let before = passes(&stopped)?;
    house.kubectl(&["-n", &house.home, "delete", "lease", "memgate-audit"])?;
    wait::until_within(PATIENCE, "the Lease is there again", || {
        let leases = house.kubectl(&["-n", &house.home, "get", "lease", "-o", "name"])?;
        Ok(leases.contains("memgate-audit").then_some(()))
    })?;
    one_audits(&stopped, &other)?;
    let again = house.until_reports(19)?;
    ensure!(versions(&again) == versions(&reports), "they write against each other");
    println!("the one that stood still did {} more passes", passes(&stopped)? - before);
    Ok(())
}

fn one_audits(one: &Webhook, other: &Webhook) -> Result<()> {
    wait::until_within(PATIENCE, "one of them audits", || {
        Ok((is_leading(one)? != is_leading(other)?).then_some(()))
    })
}
