//! Registration after the first ready replica (the component `after-ready`): no write is refused while an installation
//! comes, is updated and goes back, and what fails closed does so once all replicas are gone, whatever is applied then.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use memgate_install::metadata::REGISTERED;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::renamed::{of_kind, text};
use crate::{
    fixture::{Fixture, Trial},
    installed::{MANIFESTS, documents, install_crds, memgate},
    request::{Answer, create},
    samples::{agent, memory, memory_of, pod},
    side_by_side::serve,
    support::{balancer::Balancer, control_plane::ControlPlane, tools, wait, webhook::Webhook},
};

const HOME: &str = "memgate-system";

/// How many answers in a row show that a change had no effect: about as many as fit into the seconds that a repair takes.
const TRIES: usize = 50;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("deploy::after_ready_no_write_is_refused", no_write_is_refused),
        Trial::new("deploy::after_ready_stays_with_helm", stays_with_helm),
    ]
}

/// Writes of users, again and again, and what was refused of them.
struct Writes {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Result<(usize, Vec<String>)>>,
}

impl Writes {
    fn start(cluster: &ControlPlane, namespace: &str) -> Self {
        let (client, namespace) = (cluster.client(), namespace.to_owned());
        let is_over = Arc::new(AtomicBool::new(false));
        let task = cluster.runtime().spawn(write(client, namespace, Arc::clone(&is_over)));
        Self { is_over, task }
    }

    /// How many there were, and the messages of those that were refused.
    fn end(self, cluster: &ControlPlane) -> Result<(usize, Vec<String>)> {
        self.is_over.store(true, Relaxed);
        cluster.block_on(self.task)?
    }
}

async fn write(client: Client, namespace: String, is_over: Arc<AtomicBool>) -> Result<(usize, Vec<String>)> {
    let objects = [memory("more"), pod("scout", "scout", &[("memgate.dev/inject", "required")])];
    let (mut count, mut refused) = (0, Vec::new());
    while !is_over.load(Relaxed) {
        for object in &objects {
            let answer = create(&client, &namespace, object, "?dryRun=All").await?;
            count += 1;
            refused.extend((!answer.granted()).then(|| answer.message().to_owned()));
        }
    }
    Ok((count, refused))
}

fn no_write_is_refused(_: &Fixture) -> Result<()> {
    let cluster = &ControlPlane::start()?;
    install_crds(cluster)?;
    let agents = cluster.fresh_namespace("agents")?;
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&cluster.client(), &agents, &object, ""))?.object()?;
    }
    let bad = memory_of("bad", &json!({"backend": "redis"}));
    let ask = |object: &Value| -> Result<Answer> {
        cluster.block_on(create(&cluster.client(), &agents, object, "?dryRun=All"))
    };
    let is_refused = |object: &Value| Ok::<_, anyhow::Error>(!ask(object)?.granted());

    // A Service that leads to the replicas of this trial, which run outside of the cluster.
    let balancer = Balancer::start(cluster.runtime())?;
    let objects = memgate(&[&MANIFESTS[..], &["--component", "after-ready"]].concat())?;
    let mut objects = documents(&objects);
    for object in &mut objects {
        if object["kind"] == "Service" {
            object["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
        }
        for entry in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            entry["clientConfig"]["service"]["port"] = json!(balancer.address().port());
        }
    }
    let manifests = text(&objects);
    let apply = |flags: &[&str]| -> Result<()> {
        let apply = [&["apply"], flags, &["-f", "-"]].concat();
        cluster.admin().run_with_input(&apply, &manifests)?.ok()?;
        Ok(())
    };
    let start = || -> Result<Webhook> {
        let replica = serve(cluster, HOME, &objects)?.ready()?;
        balancer.add(replica.addresses());
        wait::until("the Service to lead there", || Ok(balancer.uses(replica.addresses()).then_some(())))?;
        Ok(replica)
    };
    // It goes on serving its connections, as long as callers have any.
    let stop = |replica: &mut Webhook| -> Result<()> {
        replica.process().signal("TERM")?;
        let at = replica.addresses();
        wait::until("new connections to go elsewhere", || Ok((!balancer.uses(at)).then_some(())))
    };

    let writes = Writes::start(cluster, &agents);
    apply(&[])?;
    for _ in 0..TRIES {
        ensure!(!is_refused(&bad)?, "an entry fails closed before a replica was ready");
    }
    let mut first = start()?;
    wait::until("the entries to be in force", || Ok(is_refused(&bad)?.then_some(())))?;
    ensure!(is_refused(&pod("scout", "absent", &[("memgate.dev/inject", "required")]))?);
    let mut second = start()?;
    stop(&mut first)?;
    let third = start()?;
    stop(&mut second)?;
    let (count, refused) = writes.end(cluster)?;
    ensure!(
        count > TRIES && refused.is_empty(),
        "{} of {count} writes were refused: {refused:?}",
        refused.len()
    );

    drop([first, second, third]);
    wait::until("a call to fail", || {
        let message = ask(&memory("more"))?.message().to_owned();
        Ok(message.contains("failed calling webhook").then_some(()))
    })?;
    let lost = |name: &str| -> Result<()> {
        let message = ask(&memory(name))?.message().to_owned();
        ensure!(message.contains("failed calling webhook \"defaults.resources.memgate.dev\""), "{message}");
        Ok(())
    };
    for flags in [&[][..], &["--server-side", "--force-conflicts"]] {
        lost("more")?;
        apply(flags)?;
        (0..TRIES).try_for_each(|_| lost("more"))?;
    }
    Ok(())
}

/// The binding keeps its subject through an upgrade and a rollback.
fn stays_with_helm(_: &Fixture) -> Result<()> {
    let cluster = &ControlPlane::start()?;
    let helm = tools::helm()?;
    let run = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new(&helm);
        command
            .args(arguments)
            .args(["--namespace", HOME])
            .arg("--kubeconfig")
            .arg(cluster.admin_kubeconfig());
        let output = command.env_clear().env("HOME", cluster.scratch().path()).output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    let upgrade = |replicas: &str| -> Result<()> {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/memgate");
        let values = format!("image.repository=registry.example.com/memgate,register=after-ready,{replicas}");
        run(&["upgrade", "--install", "memgate", chart, "--create-namespace", "--set", &values])
    };
    upgrade("replicaCount=2")?;
    let config = cluster.config(&cluster.service_account_kubeconfig(HOME, "memgate")?)?;
    let bindings: Api<RoleBinding> =
        cluster.block_on(async { Ok::<_, kube::Error>(Api::namespaced(Client::try_from(config)?, HOME)) })?;
    let patch = |name: &str, patch: &Value, params: &PatchParams| -> Result<Option<String>> {
        match cluster.block_on(bindings.patch(name, params, &Patch::Merge(patch))) {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
            Err(error) => Err(error.into()),
        }
    };
    let subjects =
        |name: &str| json!({"subjects": [{"kind": "ServiceAccount", "name": name, "namespace": HOME}]});
    let subject = subjects(REGISTERED);
    let refusal = patch(REGISTERED, &subject, &PatchParams::default())?;
    ensure!(refusal.is_none(), "{refusal:?}");
    ensure!(
        patch("memgate", &subject, &PatchParams::default())?.is_some(),
        "the account may give other roles"
    );
    // It can neither take the subject back nor add another one.
    for forbidden in
        [json!({"subjects": null}), subjects("memgate"), json!({"metadata": {"labels": {"a": "b"}}})]
    {
        wait::until("the self-guard to refuse it", || {
            let refusal = patch(REGISTERED, &forbidden, &PatchParams::default().dry_run())?;
            Ok(refusal.filter(|message| message.contains("self-guard")))
        })?;
    }
    let refusal = patch(REGISTERED, &subject, &PatchParams::default())?;
    ensure!(refusal.is_none(), "{refusal:?}");
    let get = |kind: &str| cluster.kubectl(&["get", kind, REGISTERED, "-n", HOME, "-o", "json"])?.ok();
    let is_bound = || -> Result<bool> {
        let binding: Value = serde_json::from_str(&get("rolebinding")?.stdout)?;
        Ok(binding["subjects"] == subject["subjects"])
    };
    ensure!(is_bound()?, "the subject was not written");
    upgrade("replicaCount=3")?;
    ensure!(is_bound()?, "an upgrade removes the subject");
    run(&["rollback", "memgate", "1"])?;
    ensure!(is_bound()?, "a rollback removes the subject");
    let installed = documents(&memgate(&[&MANIFESTS[..], &["--component", "after-ready"]].concat())?);
    let role: Value = serde_json::from_str(&get("role")?.stdout)?;
    let is_mark = |object: &&Value| object["metadata"]["name"] == REGISTERED;
    let mark = installed.iter().filter(is_mark).cloned().collect::<Vec<_>>();
    ensure!(role["rules"] == of_kind(&mark, "Role")?["rules"], "{role}");
    let binding = of_kind(&mark, "RoleBinding").context("there is a binding")?;
    ensure!(binding["subjects"].is_null(), "{binding}");
    Ok(())
}
