//! That a replica knows how old its knowledge is, says so where somebody looks, and gives way to one that knows more. The long
//! trials wait for the minutes after which that happens; `.ci/night` takes them.

mod between;

use std::{
    net::SocketAddr,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use self::between::{Between, Mode};
use crate::{
    faults::{
        calls::Caller,
        without_apiserver::{address, by_way_of},
    },
    fixture::{Fixture, Trial},
    installed::{MEMGATE, documents, install_crds, memgate, register},
    request::create,
    samples::{agent, memory},
    support::{
        control_plane::ControlPlane,
        review::review,
        wait,
        webhook::{Serve, Webhook},
        wire::Wire,
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::soak("knowledge::one_broken_api_costs_only_what_needs_it", broken_api),
        Trial::soak("knowledge::a_replica_that_is_cut_off_says_so_and_gives_way", cut_off),
        Trial::soak("knowledge::entries_that_ask_nothing_are_counted_as_none", entries),
        Trial::soak("knowledge::rights_that_are_missing_are_counted_and_named", missing_rights),
        Trial::soak("knowledge::an_apiserver_that_answers_badly_costs_no_answer", bad_answers),
        Trial::soak("knowledge::a_machine_three_years_ahead_writes_no_ca", wrong_clock),
    ]
}

/// An installation of its own: its namespace, and the kubeconfig of its account.
struct Home<'c> {
    cluster: &'c ControlPlane,
    namespace: String,
    kubeconfig: std::path::PathBuf,
}

impl<'c> Home<'c> {
    fn new(cluster: &'c ControlPlane) -> Result<Self> {
        let namespace = cluster.fresh_namespace("home")?;
        let names = ["-n", &*namespace, "--name", &*namespace];
        cluster
            .admin()
            .apply(&memgate(&[&["manifests", "--only", "rbac", "--image", "none"][..], &names].concat())?)?;
        let kubeconfig = cluster.service_account_kubeconfig(&namespace, "memgate")?;
        Ok(Self { cluster, namespace, kubeconfig })
    }

    /// Makes a pod, of which nothing runs; its uid.
    fn pod(&self, pod: &str) -> Result<String> {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": pod, "labels": {"app.kubernetes.io/name": "memgate"}},
            "spec": {"containers": [{"name": "memgate", "image": "registry.invalid/memgate"}]},
        });
        let made =
            self.cluster.block_on(create(&self.cluster.client(), &self.namespace, &object, ""))?.object()?;
        Ok(made["metadata"]["uid"].as_str().context("a pod has a uid")?.to_owned())
    }

    /// A replica in a pod that exists, so that its Lease is not collected.
    fn replica(&self, pod: &str, kubeconfig: &std::path::Path) -> Result<Serve> {
        let uid = self.pod(pod)?;
        Ok(Serve::new(MEMGATE)
            .kubeconfig(kubeconfig)
            .arg(format!("--namespace={}", self.namespace))
            .arg(format!("--webhook-configuration={}", self.namespace))
            .env("POD_NAME", pod)
            .env("POD_UID", uid)
            .env("POD_IP", "127.0.0.1"))
    }

    fn lease(&self, pod: &str) -> Result<Value> {
        let output = self.cluster.kubectl(&["get", "lease", pod, "-n", &self.namespace, "-o", "json"])?;
        Ok(serde_json::from_str(&output.stdout).unwrap_or_default())
    }

    fn report(&self, pod: &str) -> Result<Value> {
        let lease = self.lease(pod)?;
        let text = lease["metadata"]["annotations"]["memgate.dev/replica"].as_str().unwrap_or("null");
        Ok(serde_json::from_str(text)?)
    }
}

fn warnings(memgate: &Webhook, text: &str) -> usize {
    memgate.log().lines().filter(|line| line.contains(" WARN ") && line.contains(text)).count()
}

fn ready(memgate: &Webhook) -> Result<(u16, String)> {
    memgate.probe("/readyz").context("memgate does not answer probes")
}

/// The definition of ark's memories gets a second version, to which a webhook converts that is away: as while a platform is
/// upgraded.
pub(crate) fn break_ark(cluster: &ControlPlane) -> Result<()> {
    let crd = cluster.kubectl(&["get", "crd", "memories.ark.mckinsey.com", "-o", "json"])?.ok()?.stdout;
    let crd: Value = serde_json::from_str(&crd)?;
    let mut newer = crd["spec"]["versions"][0].clone();
    newer["name"] = json!("v2");
    newer["schema"] =
        json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let index = crd["spec"]["versions"].as_array().context("versions")?.len();
    let stored: Vec<Value> = (0..index)
        .map(|index| json!({"op": "replace", "path": format!("/spec/versions/{index}/storage"), "value": false}))
        .collect();
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "ark-system", "name": "ark-webhook", "path": "/convert"}},
        },
    });
    let mut patch = stored;
    patch.push(json!({"op": "add", "path": "/spec/versions/-", "value": newer}));
    let patch_crd = |kind: &str, patch: &Value| {
        let patch = patch.to_string();
        cluster.kubectl(&["patch", "crd", "memories.ark.mckinsey.com", kind, "-p", &patch])?.ok().map(|_| ())
    };
    patch_crd("--type=json", &Value::from(patch))?;
    let object = json!({
        "apiVersion": "ark.mckinsey.com/v2", "kind": "Memory", "metadata": {"name": "newer", "namespace": "default"},
        "spec": {"address": {"value": "http://memory.example.com"}},
    });
    wait::until("the newer version to be served", || {
        let applied = cluster.admin().run_with_input(&["apply", "-f", "-"], &object.to_string())?;
        Ok(applied.status.success().then_some(()))
    })?;
    patch_crd("--type=merge", &json!({"spec": {"conversion": conversion}}))?;
    wait::until("the list to fail", || {
        let listed = cluster.kubectl(&["get", "--raw", "/apis/ark.mckinsey.com/v1alpha1/memories"])?;
        Ok((!listed.status.success()).then_some(()))
    })
}

/// As if the webhook was back: nothing is converted.
pub(crate) fn mend_ark(cluster: &ControlPlane) -> Result<()> {
    let patch = r#"{"spec": {"conversion": {"strategy": "None", "webhook": null}}}"#;
    cluster
        .kubectl(&["patch", "crd", "memories.ark.mckinsey.com", "--type=merge", "-p", patch])?
        .ok()
        .map(|_| ())
}

fn broken_api(_: &Fixture) -> Result<()> {
    let cluster = ControlPlane::start()?;
    install_crds(&cluster)?;
    break_ark(&cluster)?;
    let home = Home::new(&cluster)?;
    let namespace = cluster.fresh_namespace("broken")?;
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?.object()?;
    }
    let started = Instant::now();
    let replica = home.replica("memgate-0", &home.kubeconfig)?.live()?;
    let (status, text) = ready(&replica)?;
    ensure!(status == 503, "ready after {:?}: {text}", started.elapsed());
    wait::until("the replica to be ready", || Ok((ready(&replica)?.0 == 200).then_some(())))?;
    let took = started.elapsed();
    ensure!((29..60).contains(&took.as_secs()), "ready after {took:?}");
    let (_, text) = ready(&replica)?;
    let line = "- not read, so reviews that need it get 503: ark.mckinsey.com/v1alpha1 Memory (";
    ensure!(text.contains(line) && text.lines().count() == 2, "{text}");
    wait::until("it to say so once it is not ready, and once it goes on without", || {
        Ok((warnings(&replica, "ark.mckinsey.com/v1alpha1 Memory") == 2).then_some(()))
    })?;

    let caller = Caller::new(&cluster, &replica.endpoint(), &namespace)?;
    cluster.block_on(caller.ask("scout")).map_err(|failure| anyhow::anyhow!("{failure:?}"))?;
    let wrong = json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "metadata": {"name": "wrong"},
        "spec": {"backend": "redis"},
    });
    let judged = cluster.block_on(caller.send(Method::POST, "/validate", &review(&namespace, &wrong)))?;
    ensure!(judged.status == 200 && judged.body["response"]["allowed"] == false, "{judged:?}");
    let query = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query", "metadata": {"name": "q"},
        "spec": {"input": "hello", "memory": {"name": "notes"}},
    });
    let needs_it = cluster.block_on(caller.send(Method::POST, "/validate", &review(&namespace, &query)))?;
    ensure!(needs_it.status == 503, "{needs_it:?}");

    let report = wait::until("the Lease to say it", || {
        let report = home.report("memgate-0")?;
        Ok(report["notReady"].as_array().is_some_and(Vec::is_empty).then_some(report))
    })?;
    let why = &report["notRead"]["ark.mckinsey.com/v1alpha1 Memory"];
    ensure!(report["notRead"].as_object().is_some_and(|kinds| kinds.len() == 1), "{report}");
    ensure!(why.as_str().is_some_and(|why| !why.is_empty()), "{report}");
    println!("why it was not read: {why}");

    mend_ark(&cluster)?;
    wait::until("the kind to be read", || Ok((ready(&replica)?.1 == "ok\n").then_some(())))?;
    wait::until("it to say so", || {
        let line = "could answer reviews that need ark.mckinsey.com/v1alpha1 Memory again";
        Ok(replica.log().contains(line).then_some(()))
    })
}

/// Two replicas, of which one loses its apiserver without a sign.
fn cut_off(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let home = Home::new(cluster)?;
    let namespace = cluster.fresh_namespace("cut")?;
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?.object()?;
    }
    let wire = Wire::start(cluster.runtime(), address(&cluster.url())?)?;
    let through = by_way_of(cluster, &home.kubeconfig, wire.address(), &format!("{namespace}-cut"))?;
    let cut_off = home.replica("memgate-cut", &through)?.ready()?;
    let mut partner = home.replica("memgate-fresh", &home.kubeconfig)?.ready()?;
    let stranger = Between::start(cluster, &home.kubeconfig, Mode::Says("0"))?;
    strangers(&home, stranger.address())?;
    // It reads the Leases of the others every half a minute.
    let counts =
        |replica: &Webhook, state: &str| replica.metric(&format!("memgate_replicas{{state=\"{state}\"}}"));
    wait::until("both replicas to know each other", || {
        let known = |replica| counts(replica, "heard").is_ok_and(|count| (count - 3.0).abs() < 0.1);
        Ok((known(&cut_off) && known(&partner)).then_some(()))
    })?;
    ensure!((counts(&partner, "unknown")? - 1.0).abs() < 0.1, "{}", partner.metrics()?);

    let caller = Caller::new(cluster, &cut_off.endpoint(), &namespace)?;
    let answer = || cluster.block_on(caller.answer("scout", &[]));
    let age = |answer: &Value| -> Option<u64> {
        answer["response"]["auditAnnotations"]["state-age"].as_str()?.parse().ok()
    };
    wire.cut();
    let cut = Instant::now();
    ensure!(age(&answer()?.body).is_none() && ready(&cut_off)?.1 == "ok\n", "{:?}", ready(&cut_off)?);
    // The last word on a kind may have been a minute old.
    sleep_until(cut, 40);
    let early = answer()?.body;
    ensure!(age(&early).is_none() && early["response"].get("warnings").is_none(), "{early}");
    sleep_until(cut, 130);
    let old = answer()?.body;
    let warning = old["response"]["warnings"][0].as_str().unwrap_or_default().to_owned();
    ensure!(age(&old).is_some_and(|age| (120..200).contains(&age)), "{old}");
    ensure!(warning.starts_with("memgate has heard nothing from the apiserver for 1"), "{old}");
    ensure!(warning.ends_with(" (memgate memgate/state-age)") && warning.len() < 148, "{warning}");
    ensure!(ready(&cut_off)?.0 == 200, "{:?}", ready(&cut_off)?);
    ensure!(
        age(&cluster
            .block_on(Caller::new(cluster, &partner.endpoint(), &namespace)?.answer("scout", &[]))?
            .body)
        .is_none()
    );

    wait::until_within(Duration::from_mins(2), "the partner to count a silent replica", || {
        Ok(counts(&partner, "silent").is_ok_and(|count| count > 0.5).then_some(()))
    })?;
    sleep_until(cut, 215);
    ensure!(ready(&cut_off)?.0 == 200, "{:?}", ready(&cut_off)?);
    let (_, reason) = wait::until_within(Duration::from_secs(150), "it to give way", || {
        Ok(Some(ready(&cut_off)?).filter(|(status, _)| *status == 503))
    })?;
    let better = format!("and the replica at {} hears more", partner.addresses().health);
    ensure!(reason.contains(&better), "{reason}");
    ensure!(age(&answer()?.body).is_some_and(|age| age > 300), "it still answers");
    ensure!(ready(&partner)?.0 == 200, "{:?}", ready(&partner)?);
    ensure!(warnings(&cut_off, "nothing heard from the apiserver; going on") == 1, "{}", cut_off.log());
    ensure!(warnings(&cut_off, "the watch failed") == 0, "{}", cut_off.log());

    // Old knowledge is better than none.
    partner.process().kill()?;
    wait::until_within(Duration::from_secs(100), "it to be ready alone", || {
        Ok((ready(&cut_off)?.0 == 200).then_some(()))
    })?;
    ensure!(age(&answer()?.body).is_some_and(|age| age > 300), "it still says how old it is");
    wire.mend();
    wait::until_within(Duration::from_mins(3), "it to hear again", || {
        let heard = cut_off.log().matches("heard again from the apiserver").count();
        Ok((heard == 1 && ready(&cut_off)?.1 == "ok\n").then_some(()))
    })?;
    ensure!(age(&answer()?.body).is_none(), "{:?}", answer()?);
    Ok(())
}

fn sleep_until(start: Instant, seconds: u64) {
    sleep(Duration::from_secs(seconds).saturating_sub(start.elapsed()));
}

/// A Lease that somebody else wrote with our label, and one of a replica at whose address another server answers now.
fn strangers(home: &Home<'_>, elsewhere: SocketAddr) -> Result<()> {
    let uid = home.pod("memgate-moved")?;
    let moved =
        json!({"version": "0.1.0", "address": elsewhere.to_string(), "heardUntil": "2100-01-01T00:00:00Z"});
    for (name, annotation) in
        [("foreign", "{\"version\": 3".to_owned()), ("memgate-moved", moved.to_string())]
    {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": name, "namespace": home.namespace, "labels": {"app.kubernetes.io/component": "replica"},
                "annotations": {"memgate.dev/replica": annotation},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "memgate-moved", "uid": uid}],
            },
            "spec": {"renewTime": "2100-01-01T00:00:00.000000Z"},
        });
        home.cluster.admin().apply(&lease.to_string())?;
    }
    Ok(())
}

/// A replica of an installation whose configurations are taken away, or edited until they match nothing.
fn entries(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let home = Home::new(cluster)?;
    let replica = home.replica("memgate-0", &home.kubeconfig)?.ready()?;
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [home.namespace]});
    let total = |config: &str| -> Option<f64> {
        let metrics = replica.metrics().ok()?;
        let start = format!("webhook_config=\"{config}\"}}");
        let mut counts = metrics
            .lines()
            .filter(|line| line.starts_with("memgate_webhook_entries{") && line.contains(&start))
            .peekable();
        counts.peek()?;
        Some(counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    };
    let until = |what: &str, is_good: &dyn Fn(f64, f64) -> bool| {
        wait::until(what, || {
            let counts = total("mutating").zip(total("validating"));
            Ok(counts.filter(|(mutating, validating)| is_good(*mutating, *validating)))
        })
    };
    until("nothing to ask", &|mutating, validating| mutating + validating < 0.5)?;
    let warned = "failed to find an entry of the";
    ensure!(warnings(&replica, warned) == 2, "{}", replica.log());
    register(cluster, &replica.endpoint(), &home.namespace, &only)?;
    until("entries to ask", &|mutating, validating| mutating > 0.5 && validating > 0.5)?;
    ensure!(replica.log().matches("could find an entry of the").count() == 2, "{}", replica.log());
    ensure!(
        replica.metric("memgate_webhook_entries_differing{webhook_config=\"mutating\"}")? > 0.5,
        "a test's differ"
    );
    let report = wait::until("the Lease to have them", || {
        Ok(Some(home.report("memgate-0")?).filter(|report| report["entries"]["mutating"].as_i64() > Some(0)))
    })?;
    ensure!(report["version"] == env!("CARGO_PKG_VERSION") && report["notRead"] == json!({}), "{report}");

    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &home.namespace])?.ok()?;
    until("one configuration to be gone", &|mutating, validating| mutating > 0.5 && validating < 0.5)?;
    let never = json!({"namespaceSelector": {"matchLabels": {"no-namespace": "has-this"}}});
    for edit in [
        never,
        json!({"matchConditions": [{"name": "never", "expression": "false"}]}),
        json!({"objectSelector": {"matchLabels": {"no": "one"}}}),
    ] {
        register(cluster, &replica.endpoint(), &home.namespace, &only)?;
        until("all entries", &|mutating, validating| mutating > 0.5 && validating > 0.5)?;
        for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
            let live = cluster.kubectl(&["get", kind, &home.namespace, "-o", "json"])?.ok()?.stdout;
            let mut live: Value = serde_json::from_str(&live)?;
            for webhook in live["webhooks"].as_array_mut().into_iter().flatten() {
                for (field, value) in edit.as_object().into_iter().flatten() {
                    webhook[field] = value.clone();
                }
            }
            let patch = json!({"webhooks": live["webhooks"]}).to_string();
            cluster.kubectl(&["patch", kind, &home.namespace, "--type=merge", "-p", &patch])?.ok()?;
        }
        until("entries that match nothing", &|mutating, validating| mutating + validating < 0.5)?;
        for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
            cluster.kubectl(&["delete", kind, &home.namespace])?.ok()?;
        }
    }
    Ok(())
}

/// An account that may write no Lease and no Event, and one that loses a right.
fn missing_rights(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let home = Home::new(cluster)?;
    for mut object in documents(&memgate(&[
        "manifests", "--only", "rbac", "--image", "none", "-n", &home.namespace, "--name", &home.namespace,
    ])?) {
        if ["Role", "ClusterRole"].contains(&object["kind"].as_str().unwrap_or_default()) {
            let rules = object["rules"].as_array_mut().context("rules")?;
            rules.retain(|rule| !["leases", "events"].iter().any(|one| rule["resources"] == json!([one])));
            cluster.admin().apply(&object.to_string())?;
        }
    }
    let namespace = cluster.fresh_namespace("rightless")?;
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?.object()?;
    }
    let replica = home.replica("memgate-0", &home.kubeconfig)?.ready()?;
    let count = wait::until("the rights to be counted", || {
        Ok(replica.metric("memgate_rights_missing").ok().filter(|count| *count > 0.5))
    })?;
    ensure!((5.0..9.0).contains(&count), "{count} rights: {}", replica.log());
    let log = replica.log();
    for right in [
        "create leases.coordination.k8s.io",
        "list leases.coordination.k8s.io",
        "create events.events.k8s.io",
    ] {
        ensure!(log.contains(right), "{right} is not in\n{log}");
    }
    let caller = Caller::new(cluster, &replica.endpoint(), &namespace)?;
    cluster.block_on(caller.ask("scout")).map_err(|failure| anyhow::anyhow!("{failure:?}"))?;
    sleep(Duration::from_secs(25));
    ensure!(
        warnings(&replica, "failed to write the Lease") == 1,
        "one line, however often: {}",
        replica.log()
    );
    ensure!(ready(&replica)?.1 == "ok\n", "its loss changes nothing: {:?}", ready(&replica)?);
    ensure!(home.lease("memgate-0")?.is_null(), "there is none");
    // Whoever scrapes it learns counts, and nothing about pods and addresses.
    let metrics = replica.metrics()?;
    for told in ["memgate-0", &home.namespace, "127.0.0.1"] {
        ensure!(!metrics.contains(told), "{told} is in\n{metrics}");
    }
    ensure!(replica.probe("/silent/of-another-pod").context("no answer")?.0 == 404, "it answers for others");
    Ok(())
}

/// All that an apiserver may answer, for a while each.
fn bad_answers(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let home = Home::new(cluster)?;
    let namespace = cluster.fresh_namespace("bad")?;
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?.object()?;
    }
    let between = Between::start(cluster, &home.kubeconfig, Mode::Honest)?;
    let replica = home.replica("memgate-0", &between.kubeconfig(cluster)?)?.ready()?;
    let caller = Caller::new(cluster, &replica.endpoint(), &namespace)?;
    for mode in [
        Mode::Refuses(401),
        Mode::Refuses(429),
        Mode::Refuses(410),
        Mode::Refuses(500),
        Mode::Halves,
        Mode::Hangs,
    ] {
        between.set(mode);
        for _ in 0..24 {
            cluster
                .block_on(caller.ask("scout"))
                .map_err(|failure| anyhow::anyhow!("{mode:?}: {failure:?}"))?;
            let (status, text) = ready(&replica)?;
            ensure!(status == 200, "{mode:?}: {text}");
            sleep(Duration::from_millis(500));
        }
    }
    between.set(Mode::Honest);
    let before = home.lease("memgate-0")?["spec"]["renewTime"].clone();
    wait::until("the Lease to be renewed", || {
        Ok((home.lease("memgate-0")?["spec"]["renewTime"] != before).then_some(()))
    })?;
    let log = replica.log();
    let lines = log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).count();
    ensure!(lines < 30, "{lines} lines:\n{log}");
    ensure!(!log.contains("panicked"), "{log}");
    Ok(())
}

/// The dates of the apiserver are three years behind the clock of the machine.
fn wrong_clock(fixture: &Fixture) -> Result<()> {
    const THREE_YEARS: i64 = 3 * 365 * 86_400;
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let home = Home::new(cluster)?;
    let between = Between::start(cluster, &home.kubeconfig, Mode::Dated(-THREE_YEARS))?;
    let serve =
        home.replica("memgate-0", &between.kubeconfig(cluster)?)?.own_certificate().arg("--certs=builtin");
    let replica = serve.live()?;
    let offset = || replica.metric("memgate_clock_offset_seconds");
    wait::until("the clock to be known", || {
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let wrong = THREE_YEARS as f64;
        Ok(offset().is_ok_and(|offset| (offset - wrong).abs() < 60.0).then_some(()))
    })?;
    let report = wait::until("the Lease to say it", || {
        Ok(Some(home.report("memgate-0")?)
            .filter(|report| report["clockSeconds"].as_i64() > Some(THREE_YEARS - 60)))
    })?;
    ensure!(report["heardUntil"].as_str().is_some_and(|heard| heard < "2025"), "one clock: {report}");
    sleep(Duration::from_secs(20));
    let secret = ["get", "secret", "memgate-ca", "-n", &home.namespace];
    ensure!(!cluster.kubectl(&secret)?.status.success(), "a CA was written");
    ensure!(warnings(&replica, "failed to use the clock of this machine") == 1, "{}", replica.log());
    between.set(Mode::Honest);
    wait::until("the CA to be written", || Ok(cluster.kubectl(&secret)?.status.success().then_some(())))?;
    wait::until("the clock to be good again", || {
        let line = "could use the clock of this machine again";
        Ok((offset().is_ok_and(|offset| offset.abs() < 60.0) && replica.log().contains(line)).then_some(()))
    })
}
