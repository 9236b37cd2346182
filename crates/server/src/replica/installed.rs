//! Whether memgate's webhook configurations and rights are as memgate would install them: what `doctor` finds when somebody
//! runs it, a metric shows all the time.

use std::time::Duration;

use axum::http::Request;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::metrics::number;
use crate::options::OwnInstallation;
use crate::replica::{REQUEST_TIMEOUT, Replica};
use crate::store::lock;
use memgate_certs::failure_log::FailureLog;
use memgate_certs::kube_api::{jitter, webhook_configs, with_timeout};
use memgate_install::asked::asks;
use memgate_install::difference::{compared, differences};
use memgate_install::install_plan::InstallPlan;
use memgate_install::objects::{Objects, WebhookConfiguration};
use memgate_install::rights::{AUTHORIZATION, Right, rights};
use memgate_model::kind::NAMESPACE;
use memgate_model::object::KindState;
use memgate_primitives::review_path::{Phase, config_name};

/// How often the configurations are read.
const INTERVAL: Duration = Duration::from_secs(30);

/// How often the authorizer is asked about all rights: about a hundred questions.
const RIGHTS_INTERVAL: Duration = Duration::from_mins(10);

type Entries = Vec<MutatingWebhook>;

impl Replica {
    /// Looks again and again; never ends.
    pub(super) async fn look_at_installation(&self, client: &Client) {
        let Some(installation) = &self.installation else { return };
        let mut failures = FailureLog::default();
        let mut asked: Option<Instant> = None;
        loop {
            sleep(jitter(INTERVAL)).await;
            let Some(live) = configurations(client, installation, &mut failures).await else { continue };
            let names: Vec<&str> = live.iter().flatten().map(|entry| entry.name.as_str()).collect();
            let arguments: Vec<&str> = installation.arguments.iter().map(String::as_str).collect();
            let OwnInstallation { namespace, configuration, .. } = installation;
            let families = self.store.snapshot().settings.families.clone();
            let plan = InstallPlan::inferred(configuration, namespace, families, Some(&arguments), &names);
            let wanted = memgate_install::objects(&plan);
            self.note_entries(&live, &wanted, &mut failures).await;
            if asked.is_none_or(|at| at.elapsed() > RIGHTS_INTERVAL) {
                let missing = missing(client, &rights(&wanted)).await;
                let Some(missing) = failures.log("ask which rights memgate's account has", missing) else {
                    continue;
                };
                self.metrics.rights_missing.set(number(missing.len()));
                let all =
                    if missing.is_empty() { Ok(()) } else { Err(format!("missing: {}", missing.join(", "))) };
                failures.log("find all rights of memgate's account", all);
                asked = Some(Instant::now());
            }
        }
    }

    async fn note_entries(&self, live: &[Entries; 2], wanted: &Objects, failures: &mut FailureLog) {
        let snapshot = self.store.snapshot();
        let namespaces: Vec<_> = snapshot.kind(&NAMESPACE).into_iter().flat_map(KindState::objects).collect();
        for ((call, live), wanted) in
            Phase::ALL.into_iter().zip(live).zip([&wanted.mutating, &wanted.validating])
        {
            let named = |name: &str| wanted.webhooks.iter().flatten().find(|entry| entry.name == name);
            let mut asking = [("Fail", 0), ("Ignore", 0)];
            for entry in live {
                // There may be ten thousand Namespaces.
                yield_now().await;
                let policy = entry.failure_policy.as_deref().unwrap_or("Fail");
                if asks(entry, named(&entry.name), &namespaces) {
                    asking.iter_mut().filter(|(name, _)| *name == policy).for_each(|(_, count)| *count += 1);
                }
            }
            let live = WebhookConfiguration { webhooks: Some(live.clone()), ..<_>::default() };
            let mut differing = differences("", "", &compared(&live), &compared(wanted));
            differing.dedup_by_key(|one| one.field.split(' ').next().map(str::to_owned));
            self.metrics.set_entries(call, asking, differing.len());
            let (name, sum) = (config_name(call), asking.iter().map(|(_, count)| count).sum::<usize>());
            lock(&self.known).entries.insert(name.to_owned(), number(sum));
            let step =
                format!("find an entry of the {name} webhook configuration that asks memgate about anything");
            failures.log(&step, if sum == 0 { Err("all are missing or match nothing") } else { Ok(()) });
        }
    }
}

/// The entries of both configurations, none of one that does not exist; `None` when they could not be read.
async fn configurations(
    client: &Client,
    installation: &OwnInstallation,
    failures: &mut FailureLog,
) -> Option<[Entries; 2]> {
    let mut read = Vec::new();
    for call in Phase::ALL {
        let api = webhook_configs(client.clone(), call);
        let live = with_timeout(REQUEST_TIMEOUT, api.get_opt(&installation.configuration)).await;
        let step = format!("read the entries of the {} webhook configuration", config_name(call));
        let webhooks = failures.log(&step, live)?.and_then(|live| live.data.get("webhooks").cloned());
        read.push(serde_json::from_value(webhooks.unwrap_or_else(|| json!([]))).unwrap_or_default());
    }
    read.try_into().ok()
}

/// The rights that the account of this client lacks, in words.
async fn missing(client: &Client, rights: &[Right]) -> Result<Vec<String>, kube::Error> {
    let mut missing = Vec::new();
    for right in rights {
        let request = Request::post(format!("/apis/{AUTHORIZATION}/selfsubjectaccessreviews"))
            .header("content-type", "application/json")
            .body(right.review(None).to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        let answer = with_timeout(REQUEST_TIMEOUT, client.request::<Value>(request)).await?;
        let is_allowed = answer.pointer("/status/allowed") == Some(&Value::Bool(true));
        missing.extend((!is_allowed).then(|| right.to_string()));
    }
    Ok(missing)
}
