//! `memgate certs rotate`: a new CA on request, and an old one that is revoked.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use memgate_certs::CertPolicy;
use memgate_server::options::Timers;
use serde_json::json;

use crate::{
    certs::{
        installation::{CONFIGURATIONS, Installation, SECRET},
        load::{Loaded, Plan, Report},
        paths::{one_path, register_service, status},
    },
    faults::calls::Caller,
    fixture::Fixture,
    installed::MEMGATE,
    support::{control_plane::ControlPlane, wait, webhook::Endpoint},
};

/// How soon a revoked CA is promised to be out of both bundles.
const PROMISED: Duration = Duration::from_mins(1);

/// First a CA that is only new, then one that revokes the others, at 200 reviews a second.
pub(super) fn under_load(fixture: &Fixture) -> Result<()> {
    run(fixture.cluster()?, Duration::from_secs(5))
}

/// The same with the propagation time of an installation.
pub(super) fn soak(fixture: &Fixture) -> Result<()> {
    run(fixture.cluster()?, Timers::default().propagation)
}

fn run(cluster: &ControlPlane, propagation: Duration) -> Result<()> {
    let plan = Plan {
        policy: CertPolicy::default(),
        replicas: 2,
        per_second: 200,
        cas: 0,
        leaves: 0,
        propagation,
        time_limit: Duration::from_mins(5),
    };
    let mut loaded = Loaded::start(cluster, &plan)?;
    let first = loaded.installation.secret("ca.crt")?;
    let (output, _) = rotate_under(&mut loaded, &[])?;
    ensure!(output.contains("signs memgate's certificates"), "{output}");
    let second = loaded.installation.secret("ca.crt")?;
    ensure!(second != first && (loaded.report.cas, loaded.report.leaves) == (1, 2), "{}", loaded.report);
    let bundles = loaded.installation.bundles()?;
    ensure!(bundles.iter().all(|bundle| bundle.contains(&first) && bundle.contains(&second)), "{bundles:?}");

    let (output, gone) = rotate_under(&mut loaded, &["--revoke"])?;
    ensure!(output.contains("No entry trusts any other CA"), "{output}");
    let third = loaded.installation.secret("ca.crt")?;
    ensure!((loaded.report.cas, loaded.report.leaves) == (2, 4), "{}", loaded.report);
    let gone = gone.context("the old ones were never seen to be gone")?;
    ensure!(gone <= PROMISED, "the old CAs were in the bundles for {gone:.0?}");
    for bundle in loaded.installation.bundles()? {
        ensure!(bundle == third, "not the new CA alone: {bundle}");
    }
    for address in loaded.addresses() {
        for (ca, is_trusted) in [(&first, false), (&second, false), (&third, true)] {
            let endpoint = Endpoint::new(address, ca);
            let caller = Caller::new(cluster, &endpoint, &loaded.installation.home)?;
            let answer = cluster.block_on(caller.send(Method::POST, "/mutate", &json!({})));
            ensure!(answer.is_ok() == is_trusted, "{address}: {answer:?}");
        }
    }
    let report = loaded.end();
    println!("propagation {propagation:?}: revoked within {gone:.1?}; {report}");
    Report::nothing_lost(&report)
}

/// Runs the command while the load goes on: what it prints, and after how long every bundle had one CA alone.
fn rotate_under(loaded: &mut Loaded<'_>, flags: &[&str]) -> Result<(String, Option<Duration>)> {
    let (started, mut gone) = (Instant::now(), None);
    let kubeconfig = loaded.installation.cluster.admin_kubeconfig().to_owned();
    let mut child =
        command(&loaded.installation, &kubeconfig, flags).spawn().context("memgate does not start")?;
    while child.try_wait()?.is_none() {
        loaded.look()?;
        if gone.is_none() && loaded.report.cas > 1 && is_one_ca_left(&loaded.installation)? {
            gone = Some(started.elapsed());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let gone = match gone {
        None if is_one_ca_left(&loaded.installation)? => Some(started.elapsed()),
        gone => gone,
    };
    loaded.look()?;
    let output = child.wait_with_output()?;
    ensure!(output.status.code() == Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Ok((String::from_utf8(output.stdout)?, gone))
}

fn is_one_ca_left(installation: &Installation<'_>) -> Result<bool> {
    let bundles: BTreeSet<_> = installation.bundles()?.into_iter().collect();
    Ok(bundles.len() == 1 && bundles.iter().all(|bundle| bundle.matches("BEGIN CERTIFICATE").count() == 1))
}

/// A copy of the old Secret has no key that callers trust and no path that is served. The replicas are
/// programs with the defaults, and the user has the rights that the help names, and no others.
pub(super) fn stolen(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let installation = Installation::new(cluster, "stolen")?;
    let (mut first, second) = (installation.serve().live()?, installation.serve().live()?);
    register_service(&installation, &first)?;
    first.wait_until_ready()?;
    installation.wait_until_asked()?;
    let (old_ca, old_key) = (installation.secret("ca.crt")?, installation.secret("ca.key")?);
    let old_path = one_path(&installation)?;
    ensure!(status(&installation, &first, &old_path)? == 200, "{old_path} is not served");

    let user = user(&installation, &["get", "patch"])?;
    let started = Instant::now();
    let output = command(&installation, &user, &["--revoke"]).output()?;
    let took = started.elapsed();
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{told}");
    ensure!(took <= PROMISED, "{took:.0?}: {told}");
    println!("a CA was revoked after {took:.0?}, with the defaults:\n{told}");

    let new_ca = installation.secret("ca.crt")?;
    ensure!(new_ca != old_ca, "the same CA");
    ensure!(installation.bundles()?.iter().all(|bundle| *bundle == new_ca), "not the new CA alone");
    ensure!(installation.secret("previous.key")?.is_empty(), "the old key is kept");
    let new_path = one_path(&installation)?;
    ensure!(new_path != old_path && status(&installation, &first, &new_path)? == 200, "no new path");
    ensure!(status(&installation, &first, &old_path)? == 503, "the old path is served");
    for replica in [&first, &second] {
        for (ca, is_trusted) in [(&old_ca, false), (&new_ca, true)] {
            let caller =
                Caller::new(cluster, &Endpoint::new(replica.addresses().listen, ca), &installation.home)?;
            let answer = cluster.block_on(caller.send(Method::POST, &new_path, &json!({})));
            ensure!(answer.is_ok() == is_trusted, "{answer:?}");
        }
    }
    installation.wait_until_asked()?;
    // The thief puts the Secret back as it was.
    let old =
        [("ca.crt", old_ca.as_str()), ("ca.key", &old_key), ("bundle.crt", &old_ca), ("revoked.crt", "")];
    installation.write_secret(&old)?;
    wait::until("the Secret to be repaired", || {
        let same = installation.secret("ca.crt")? == new_ca && installation.secret("bundle.crt")? == new_ca;
        Ok((same && installation.secret("revoked.crt")? == old_ca).then_some(()))
    })?;
    ensure!(installation.bundles()?.iter().all(|bundle| *bundle == new_ca), "the old CA is back");
    for replica in [&first, &second] {
        let log = replica.log();
        ensure!(!log.contains("forbidden") && !log.contains("panicked"), "{log}");
    }
    Ok(())
}

/// What is missing is said, and nothing is changed.
pub(super) fn refused(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let installation = Installation::new(cluster, "refused")?;
    let admin = cluster.admin_kubeconfig();
    let run = |kubeconfig: &Path, flags: &[&str]| -> Result<(Option<i32>, String)> {
        let output = command(&installation, kubeconfig, flags).output()?;
        ensure!(output.stdout.is_empty(), "{output:?}");
        Ok((output.status.code(), String::from_utf8(output.stderr)?))
    };
    let expect = |(code, told): (Option<i32>, String), expected: i32, words: &[&str]| -> Result<()> {
        let complete = words.iter().all(|word| told.contains(word));
        ensure!(code == Some(expected) && complete, "{code:?}: {told}");
        Ok(())
    };
    expect(run(admin, &[])?, 2, &["found no Secret memgate-ca in the namespace", "--ca-secret"])?;

    let create = ["-n", &installation.home, "create", "secret", "generic", SECRET, "--from-literal=a=b"];
    cluster.kubectl(&create)?.ok()?;
    expect(run(admin, &[])?, 2, &["found no webhook configuration named", "--webhook-configuration"])?;

    installation.register(&Endpoint::new(([127, 0, 0, 1], 1).into(), ""))?;
    let reader = user(&installation, &["get"])?;
    expect(run(&reader, &[])?, 2, &["you may not patch the Secret memgate-ca", "this right is needed"])?;
    let stranger = cluster.user_kubeconfig(&format!("stranger-{}", installation.home), &[])?;
    expect(run(&stranger, &[])?, 2, &["you may not get the Secret memgate-ca"])?;
    let requested = || -> Result<String> {
        let jsonpath = "jsonpath={.metadata.annotations.memgate\\.dev/rotate-requested}";
        let get = ["-n", &installation.home, "get", "secret", SECRET, "-o", jsonpath];
        Ok(cluster.kubectl(&get)?.ok()?.stdout)
    };
    ensure!(requested()?.is_empty(), "a request without the right to make one");

    // No replica runs.
    let late = run(admin, &["--timeout", "2s"])?;
    expect(late, 1, &["requested a new CA", "no replica has made a new CA", "The request stays"])?;
    let first = requested()?;
    expect(run(admin, &["--timeout", "1s"])?, 1, &["a new CA was requested already", &first])?;
    ensure!(requested()? == first, "asked twice");
    expect(run(admin, &["--timeout", "1s", "--revoke"])?, 1, &["requested a new CA", " revoke"])?;
    ensure!(requested()?.ends_with(" revoke"), "{}", requested()?);

    let annotate = ["annotate", CONFIGURATIONS[0], &installation.home, "cert-manager.io/inject-ca-from=a/b"];
    cluster.kubectl(&annotate)?.ok()?;
    expect(run(admin, &[])?, 2, &["cert-manager writes caBundle"])
}

/// A user who may do that with the Secret, and read both configurations.
fn user(installation: &Installation<'_>, verbs: &[&str]) -> Result<PathBuf> {
    let (cluster, home) = (installation.cluster, installation.home.as_str());
    let name = format!("{}-{home}", verbs.join("-"));
    let group = "rbac.authorization.k8s.io";
    let subjects = json!([{"kind": "User", "name": name, "apiGroup": group}]);
    for object in [
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": name, "namespace": home},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": verbs}],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": home}, "subjects": subjects,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{
                "apiGroups": ["admissionregistration.k8s.io"], "resources": CONFIGURATIONS,
                "resourceNames": [home], "verbs": ["get"],
            }],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "subjects": subjects, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        }),
    ] {
        cluster.admin().apply(&object.to_string())?;
    }
    cluster.user_kubeconfig(&name, &[])
}

fn command(installation: &Installation<'_>, kubeconfig: &Path, flags: &[&str]) -> Command {
    let home = installation.home.as_str();
    let mut command = Command::new(MEMGATE);
    command.args(["certs", "rotate", "-n", home, "--webhook-configuration", home, "--kubeconfig"]);
    command.arg(kubeconfig).args(flags).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
