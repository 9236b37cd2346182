//! Lookups that fail, because memgate's account has lost its token or its rights: the author of a pod reads why.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    deploy::renamed::{manifests, text},
    faults::calls::Caller,
    fixture::{Fixture, Trial},
    installed::{MEMGATE, register, wait_until_asked_about_pods},
    request::{Answer, create},
    samples::{agent, memory, pod},
    support::{
        control_plane::ControlPlane,
        kubectl::Output,
        wait,
        webhook::{Serve, Webhook},
    },
};

const REQUIRED: (&str, &str) = ("memgate.dev/inject", "required");

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("failing_lookups::of_a_revoked_token_are_explained", revoked_token),
        Trial::new("failing_lookups::without_rights_are_explained", lost_rights),
    ]
}

/// The account is deleted, and with it its tokens.
fn revoked_token(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture)?;
    let name = format!("lookups-{}", scene.home);
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [scene.namespace]});
    register(scene.cluster, &scene.memgate.endpoint(), &name, &only)?;
    wait_until_asked_about_pods(scene.cluster, &scene.namespace)?;

    scene.cluster.kubectl(&["delete", "serviceaccount", "memgate", "-n", &scene.home])?.ok()?;
    scene.until_refused("401 Unauthorized")?;
    let reason = format!("ArkAgent \"{}/absent\" could not be looked up: 401 Unauthorized", scene.namespace);

    let refused = scene.apply("required", "absent", &[REQUIRED])?;
    let stderr = &refused.stderr;
    ensure!(!refused.status.success() && stderr.contains(&reason), "{stderr}");
    ensure!(stderr.starts_with("Error from server (ServiceUnavailable): "), "{stderr}");
    ensure!(!stderr.contains("is invalid") && !stderr.contains("failed calling webhook"), "{stderr}");

    let admitted = scene.apply("plain", "absent", &[])?.ok()?;
    ensure!(
        admitted.stderr.contains(&reason) && admitted.stderr.starts_with("Warning: "),
        "{}",
        admitted.stderr
    );
    scene.apply("known", "scout", &[REQUIRED])?.ok()?;

    let kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
    scene.cluster.kubectl(&["delete", kinds, &name])?.ok()?;
    let log = scene.memgate.log();
    ensure!(log.contains("401 Unauthorized: the credentials have expired, or were revoked"), "{log}");
    for dump in ["Status {", "ApiError", "ServiceError", "Some("] {
        ensure!(!log.contains(dump), "the log has {dump}:\n{log}");
    }
    Ok(())
}

fn lost_rights(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture)?;
    scene.cluster.kubectl(&["delete", "clusterrolebinding", &format!("memgate-{}", scene.home)])?.ok()?;
    scene.until_refused("403 Forbidden")?;
    let plain = scene.answer(&[])?;
    let response = &plain.body["response"];
    let warns = response["warnings"].to_string().contains("could not be looked up: 403 Forbidden");
    ensure!(response["allowed"] == true && warns, "{}", plain.body);
    ensure!(scene.ready()?.0 == 200, "{:?}", scene.ready()?);
    Ok(())
}

/// A memgate with an account of its own, which knows one agent with its memory.
struct Scene<'c> {
    cluster: &'c ControlPlane,
    home: String,
    namespace: String,
    memgate: Webhook,
    caller: Caller,
}

impl<'c> Scene<'c> {
    fn new(fixture: &'c Fixture) -> Result<Self> {
        let cluster = fixture.cluster()?;
        // The definitions come with it.
        fixture.memgate()?;
        let (home, namespace) = (cluster.fresh_namespace("home")?, cluster.fresh_namespace("failing")?);
        cluster.admin().apply(&text(&manifests(&home, &["--only", "rbac"])?))?;
        for object in [memory("notes"), agent("scout", "notes")] {
            cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?.object()?;
        }
        let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate")?;
        let memgate = Serve::new(MEMGATE).kubeconfig(&kubeconfig).ready()?;
        let caller = Caller::new(cluster, &memgate.endpoint(), &namespace)?;
        Ok(Self { cluster, home, namespace, memgate, caller })
    }

    /// Creates a pod, as a user does who tries it out first.
    fn apply(&self, name: &str, agent: &str, labels: &[(&str, &str)]) -> Result<Output> {
        let arguments = ["create", "--dry-run=server", "-n", &self.namespace, "-f", "-"];
        self.cluster.admin().run_with_input(&arguments, &pod(name, agent, labels).to_string())
    }

    /// The answer about a pod of an agent that memgate does not know.
    fn answer(&self, labels: &[(&str, &str)]) -> Result<Answer> {
        self.cluster.block_on(self.caller.answer("absent", labels))
    }

    /// Waits until a required pod is refused for this reason: an apiserver remembers tokens and rights for some seconds.
    fn until_refused(&self, why: &str) -> Result<()> {
        wait::until("lookups to fail", || {
            let answer = self.answer(&[REQUIRED])?;
            ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
            let status = &answer.body["response"]["status"];
            let message = status["message"].as_str().unwrap_or_default();
            Ok((status["code"] == 503 && message.contains(why)).then_some(()))
        })
    }

    fn ready(&self) -> Result<(u16, String)> {
        self.memgate.probe("/readyz").context("memgate does not answer probes")
    }
}
