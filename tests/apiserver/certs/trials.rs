//! One replica, two of them, and what gets in their way.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use memgate_certs::CertPolicy;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    certs::{
        installation::{CONFIGURATIONS, Installation, SECRET},
        load::{self, Loaded, Plan},
        wipes,
    },
    fixture::{Fixture, Trial},
    support::{certs::Authority, wait, webhook::Webhook},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("certs::builtin_serves_what_the_apiserver_trusts", builtin),
        Trial::new("certs::a_damaged_secret_is_written_again", damaged_secret),
        Trial::new("certs::an_applied_configuration_may_lose_an_entry", applied_without_an_entry),
        Trial::new("certs::two_replicas_share_one_ca", two_replicas),
        Trial::new("certs::a_lease_of_another_client_is_left_alone", foreign_lease),
        Trial::new("certs::changing_over_keeps_the_old_ca", changing_over),
        Trial::new("certs::without_rights_it_lives_on_and_says_why", without_rights),
        Trial::new("certs::rotations_lose_no_call", rotations),
        Trial::new("certs::a_deleted_secret_makes_a_new_ca_and_loses_no_call", deleted_secret),
        Trial::new("certs::wipes_are_repaired", wipes),
        Trial::soak("certs::soak_rotations", soak_rotations),
        Trial::soak("certs::soak_wipes", soak_wipes),
    ]
}

/// From nothing to an answered review, with the rights of the service account alone.
fn builtin(fixture: &Fixture) -> Result<()> {
    let installation = Installation::new(fixture.cluster()?, "builtin")?;
    let mut memgate = installation.serve().live()?;
    // There is a CA already, but no configuration that trusts it.
    wait::until("a CA", || Ok((!installation.secret("ca.crt")?.is_empty()).then_some(())))?;
    wait::until("a reason", || {
        let (status, text) = memgate.probe("/readyz").unwrap_or_default();
        ensure!(status != 200, "ready before a caBundle trusts it");
        Ok(text.contains("do not trust the certificate").then_some(()))
    })?;
    installation.register(&memgate.endpoint())?;
    memgate.wait_until_ready()?;
    installation.wait_until_repaired()?;
    installation.wait_until_asked()?;
    for kind in CONFIGURATIONS {
        owns_ca_bundle_alone(&installation.configuration(kind)?)?;
    }

    installation.overwrite_bundles(None)?;
    installation.wait_until_repaired()?;
    let stranger = Authority::new("a stranger")?.pem();
    installation.overwrite_bundles(Some(&stranger))?;
    installation.wait_until_repaired()?;
    installation.wait_until_asked()?;
    let log = memgate.log();
    ensure!(!log.contains("forbidden"), "{log}");
    Ok(())
}

fn owns_ca_bundle_alone(configuration: &Value) -> Result<()> {
    let managers = configuration["metadata"]["managedFields"].as_array().context("there are managers")?;
    let own: Vec<_> = managers.iter().filter(|entry| entry["manager"] == "memgate-cabundle").collect();
    let [own] = own.as_slice() else { anyhow::bail!("{managers:?}") };
    let fields = own["fieldsV1"].to_string();
    ensure!(fields.contains("f:caBundle"), "{fields}");
    for other in ["f:rules", "f:url", "f:name", "\".\"", "f:failurePolicy", "f:metadata"] {
        ensure!(!fields.contains(other), "{other} in {fields}");
    }
    Ok(())
}

/// Whatever damages the Secret, what is served stays trusted, and the CA is the same afterwards.
fn damaged_secret(fixture: &Fixture) -> Result<()> {
    let installation = Installation::new(fixture.cluster()?, "damaged")?;
    let mut memgate = installation.serve().live()?;
    installation.register(&memgate.endpoint())?;
    memgate.wait_until_ready()?;
    installation.wait_until_asked()?;
    let (cert, key) = (installation.secret("ca.crt")?, installation.secret("ca.key")?);
    let (other_cert, other_key) = expired_ca()?;
    let (half_cert, half_key) = (&cert[..cert.len() / 2], &key[..key.len() / 2]);
    let garbage = "\u{fffd}\u{0} hello ".repeat(5_000);
    let rows: [(&str, Vec<(&str, &str)>); 6] = [
        ("emptied", vec![("ca.crt", ""), ("ca.key", ""), ("bundle.crt", "")]),
        ("half a certificate", vec![("ca.crt", half_cert)]),
        ("half a key", vec![("ca.key", half_key)]),
        ("another's key", vec![("ca.key", &other_key)]),
        ("an expired CA", vec![("ca.crt", &other_cert), ("ca.key", &other_key)]),
        ("a garbage bundle", vec![("bundle.crt", &garbage)]),
    ];
    let mut slowest = Duration::ZERO;
    for (name, entries) in rows {
        let damaged = Instant::now();
        installation.write_secret(&entries)?;
        wait::until(&format!("the Secret to be repaired: {name}"), || {
            ensure!(installation.is_asked()?, "{name}: the apiserver got no answer");
            let same = installation.secret("ca.crt")? == cert && installation.secret("ca.key")? == key;
            Ok((same && installation.secret("bundle.crt")? == cert).then_some(()))
        })?;
        slowest = slowest.max(damaged.elapsed());
    }
    println!("6 kinds of damage to the Secret: repaired within {slowest:.1?}");
    ensure!(rotations_of(&memgate, "leaf") == Some(1), "callers noticed something\n{}", memgate.log());
    ensure!(rotations_of(&memgate, "ca") == Some(1), "there is a second CA\n{}", memgate.log());
    Ok(())
}

/// A user deletes the Secret: the new CA and the old one overlap until each replica presents a certificate of the new one.
fn deleted_secret(fixture: &Fixture) -> Result<()> {
    let plan = Plan {
        policy: CertPolicy::default(),
        replicas: 2,
        per_second: 200,
        cas: 1,
        leaves: 2,
        propagation: Duration::from_secs(5),
        time_limit: Duration::from_mins(5),
    };
    let mut loaded = Loaded::start(fixture.cluster()?, &plan)?;
    let first = loaded.installation.secret("ca.crt")?;
    let home = loaded.installation.home.clone();
    loaded.installation.cluster.kubectl(&["delete", "secret", SECRET, "-n", &home])?.ok()?;
    while loaded.report.cas < plan.cas || loaded.report.leaves < plan.leaves {
        loaded.look()?;
        thread::sleep(Duration::from_millis(50));
    }
    let second = loaded.installation.secret("ca.crt")?;
    ensure!(second != first, "the same CA");
    let bundles = loaded.installation.bundles()?;
    ensure!(bundles.iter().all(|bundle| bundle.contains(&first) && bundle.contains(&second)), "{bundles:?}");
    let report = loaded.end();
    println!("{report}");
    report.nothing_lost()
}

fn expired_ca() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_after = date_time_ymd(2020, 1, 1);
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// How many certificates of a kind were made, by memgate's own word.
fn rotations_of(memgate: &Webhook, kind: &str) -> Option<u64> {
    let (_, metrics) = memgate.probe("/metrics")?;
    let series = format!("memgate_cert_rotations_total{{kind=\"{kind}\",result=\"ok\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&series))?.parse().ok()
}

/// A tool that installs by server-side apply can drop an entry that memgate wrote into, and bring it
/// back. If memgate applied its field instead of patching it, the first would be refused.
fn applied_without_an_entry(fixture: &Fixture) -> Result<()> {
    let installation = Installation::new(fixture.cluster()?, "applied")?;
    let mut memgate = installation.serve().live()?;
    installation.register(&memgate.endpoint())?;
    let kind = CONFIGURATIONS[1];
    let whole = bare(&installation.configuration(kind)?);
    installation.cluster.kubectl(&["delete", kind, &installation.home])?.ok()?;
    apply_as(&installation, "gitops", &whole)?.ok()?;
    memgate.wait_until_ready()?;
    installation.wait_until_repaired()?;

    let mut less = whole.clone();
    let entries = less["webhooks"].as_array_mut().context("there are webhooks")?;
    let (count, dropped) = (entries.len(), entries.remove(0));
    apply_as(&installation, "gitops", &less)?.ok()?;
    let left = installation.configuration(kind)?;
    let names: Vec<_> =
        left["webhooks"].as_array().into_iter().flatten().map(|entry| &entry["name"]).collect();
    ensure!(names.len() == count - 1 && !names.contains(&&dropped["name"]), "{names:?}");
    apply_as(&installation, "gitops", &whole)?.ok()?;
    installation.wait_until_repaired()?;
    owns_ca_bundle_alone(&installation.configuration(kind)?)?;

    // Had it been applied: the remains of the entry are not a webhook, and the tool is refused.
    let applied = json!({
        "apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": {"name": installation.home},
        "webhooks": [{"name": dropped["name"], "clientConfig": {"caBundle": "aGVsbG8="}}],
    });
    apply_as(&installation, "other-manager", &applied)?.ok()?;
    let refusal = apply_as(&installation, "gitops", &less)?.refusal()?;
    ensure!(refusal.contains("exactly one of url or service is required"), "{refusal}");
    Ok(())
}

fn apply_as(
    installation: &Installation<'_>,
    manager: &str,
    object: &Value,
) -> Result<crate::support::kubectl::Output> {
    let manager = format!("--field-manager={manager}");
    let apply = ["apply", "--server-side", "--force-conflicts", &manager, "-f", "-"];
    installation.cluster.admin().run_with_input(&apply, &object.to_string())
}

/// A configuration as it is kept in Git.
fn bare(configuration: &Value) -> Value {
    let mut bare = configuration.clone();
    bare["metadata"] = json!({"name": configuration["metadata"]["name"]});
    for webhook in bare["webhooks"].as_array_mut().into_iter().flatten() {
        if let Some(config) = webhook["clientConfig"].as_object_mut() {
            config.remove("caBundle");
        }
    }
    bare
}

/// Both start at the same moment, and the apiserver calls one for each kind of configuration.
fn two_replicas(fixture: &Fixture) -> Result<()> {
    let installation = Installation::new(fixture.cluster()?, "replicas")?;
    let (first, second) = (installation.serve().live()?, installation.serve().live()?);
    installation.register(&first.endpoint())?;
    let url = second.endpoint().client_config("/validate")["url"].clone();
    let configuration = installation.configuration(CONFIGURATIONS[1])?;
    let entries = configuration["webhooks"].as_array().map_or(0, Vec::len);
    let path = |index| format!("/webhooks/{index}/clientConfig/url");
    let moves: Vec<_> =
        (0..entries).map(|index| json!({"op": "replace", "path": path(index), "value": url})).collect();
    installation.patch(CONFIGURATIONS[1], &json!(moves))?;
    for mut memgate in [first, second] {
        memgate.wait_until_ready()?;
        let made = rotations_of(&memgate, "ca").unwrap_or_default();
        ensure!(made <= 1, "{}", memgate.log());
        ensure!(!memgate.log().contains("forbidden"), "{}", memgate.log());
        installation.wait_until_repaired()?;
        ensure!(installation.secret("bundle.crt")? == installation.secret("ca.crt")?, "more than one CA");
        if made == 1 {
            ensure!(!installation.secret("ca.crt")?.is_empty());
        }
    }
    Ok(())
}

/// The Lease of the writer is held by a client that is not memgate: nothing is written, and the log says why.
fn foreign_lease(fixture: &Fixture) -> Result<()> {
    let installation = Installation::new(fixture.cluster()?, "held")?;
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": SECRET, "namespace": installation.home},
        "spec": {"holderIdentity": "another", "renewTime": now, "acquireTime": now, "leaseDurationSeconds": 86400},
    });
    installation.cluster.admin().apply(&lease.to_string())?;
    let mut memgate = installation.serve().live()?;
    installation.register(&memgate.endpoint())?;
    wait::until("the log to tell", || {
        Ok(memgate.log().contains("the holder of the Lease memgate-ca does not write them").then_some(()))
    })?;
    let (status, text) = memgate.probe("/readyz").context("it answers")?;
    ensure!(status == 503 && text.contains("there is no certificate yet"), "{text}");
    ensure!(installation.secret("ca.crt")?.is_empty(), "a CA was written");
    installation.cluster.kubectl(&["delete", "lease", SECRET, "-n", &installation.home])?.ok()?;
    memgate.wait_until_ready()?;
    installation.wait_until_asked()?;
    ensure!(memgate.log().matches("does not write them").count() == 1, "{}", memgate.log());
    Ok(())
}

/// As docs/certificates.md says: callers still trust the old CA, and the new one too.
fn changing_over(fixture: &Fixture) -> Result<()> {
    let installation = Installation::new(fixture.cluster()?, "changed")?;
    let old = Authority::new("the old way")?.pem();
    let file = installation.cluster.scratch().write("old-ca.crt", &old)?;
    let from = format!("--from-file=bundle.crt={}", file.display());
    installation
        .cluster
        .kubectl(&["-n", &installation.home, "create", "secret", "generic", SECRET, &from])?
        .ok()?;
    let mut memgate = installation.serve().live()?;
    installation.register(&memgate.endpoint())?;
    installation.overwrite_bundles(Some(&old))?;
    memgate.wait_until_ready()?;
    installation.wait_until_repaired()?;
    installation.wait_until_asked()?;
    let bundles = installation.bundles()?;
    let (new, end) = (installation.secret("ca.crt")?, old.trim());
    ensure!(bundles.iter().all(|bundle| bundle.starts_with(&new)), "{bundles:?}");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    ensure!(lines(&bundles[0]) == [lines(&new), lines(end)].concat(), "{bundles:?}");
    Ok(())
}

/// Neither the Secret nor the configurations may be touched: no crash, and one line for each cause.
fn without_rights(fixture: &Fixture) -> Result<()> {
    let installation = Installation::without_own_rights(fixture.cluster()?, "poor")?;
    let memgate = installation.serve().live()?;
    wait::until("the log to tell", || {
        let log = memgate.log();
        let logged = log.contains("failed to read the CA Secret") && log.contains("forbidden");
        Ok(logged.then_some(()))
    })?;
    let (status, text) = memgate.probe("/readyz").context("it answers")?;
    ensure!(status == 503 && text.contains("there is no certificate yet"), "{text}");
    // With the right it goes on without a restart.
    installation.grant()?;
    installation.register(&memgate.endpoint())?;
    let mut memgate = memgate;
    memgate.wait_until_ready()?;
    installation.wait_until_asked()?;
    let log = memgate.log();
    ensure!(log.matches("failed to read the CA Secret").count() == 1, "{log}");
    ensure!(log.contains("could read the CA Secret again"), "{log}");
    Ok(())
}

/// Two CAs and several leaves later no caller has noticed.
fn rotations(fixture: &Fixture) -> Result<()> {
    let policy = CertPolicy { ca: Duration::from_secs(30), leaf: Duration::from_secs(12), renew_percent: 50 };
    let plan = Plan {
        policy,
        replicas: 2,
        per_second: 50,
        cas: 2,
        leaves: 6,
        propagation: Duration::from_secs(5),
        time_limit: Duration::from_secs(150),
    };
    let report = load::run(fixture.cluster()?, &plan)?;
    println!("{report}");
    report.nothing_lost()
}

/// 1,000 leaves and 50 CAs at 500 reviews a second, in about ten minutes.
fn soak_rotations(fixture: &Fixture) -> Result<()> {
    let policy = CertPolicy { ca: Duration::from_secs(90), leaf: Duration::from_secs(12), renew_percent: 20 };
    let time_limit = wipes::seconds("MEMGATE_SOAK_SECONDS", 900);
    let plan = Plan {
        policy,
        replicas: 3,
        per_second: 500,
        cas: 50,
        leaves: 1000,
        propagation: Duration::from_secs(8),
        time_limit,
    };
    let report = load::run(fixture.cluster()?, &plan)?;
    println!("{report}");
    report.nothing_lost()
}

fn wipes(fixture: &Fixture) -> Result<()> {
    wipes::run(fixture.cluster()?, Duration::from_secs(8))
}

/// Once a second for ten minutes.
fn soak_wipes(fixture: &Fixture) -> Result<()> {
    wipes::run(fixture.cluster()?, wipes::seconds("MEMGATE_SOAK_SECONDS", 600))
}
