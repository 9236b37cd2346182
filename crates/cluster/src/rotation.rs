//! Requests a new CA, and reports the progress, for `memgate certs rotate`.
//!
//! The request is an annotation of the CA Secret, written only if the Secret has not changed since it was read. Only the
//! metadata of the Secret are read, so this program never gets a key. Replicas do the rest, also if no command waits.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use thiserror::Error as ThisError;
use tokio::time::{Instant, sleep};

use crate::cluster_state::Fetched;
use crate::reader::fetch;
use memgate_certs::live_bundles::{LiveBundles, live_bundles};
use memgate_certs::rotation::{MadeCa, Progress, REQUESTED, Rotation, RotationRequest};
use memgate_workbench::report::plain;

/// The field manager of the request.
const FIELD_MANAGER: &str = "memgate-rotate";

/// How often a conflicting write of the request is tried.
const MAX_WRITES: usize = 5;

/// The pause between two reads.
const PAUSE: Duration = Duration::from_secs(1);

/// The objects of the request.
#[derive(Debug, Clone, Copy)]
pub struct RotationTarget<'a> {
    /// The namespace of the Secret.
    pub namespace: &'a str,
    /// The name of the Secret.
    pub secret: &'a str,
    /// The name of both webhook configurations.
    pub configuration: &'a str,
}

/// Why no CA was requested.
#[derive(Debug, ThisError)]
pub enum Error {
    /// There is no such Secret.
    #[error(
        "found no Secret {secret} in the namespace {namespace}: memgate keeps its CA there, if its certificates are \
         built in; give --namespace and --ca-secret as `memgate serve` has them, or replace the certificate where it \
         is made"
    )]
    NoSecret {
        /// Its name.
        secret: String,
        /// Where it should be.
        namespace: String,
    },
    /// There is no configuration.
    #[error("found no webhook configuration named {0}; give --webhook-configuration")]
    NoConfiguration(String),
    /// Another tool makes the certificates.
    #[error(
        "cert-manager writes caBundle of the webhook configurations {0}, so the CA is not memgate's; have cert-manager \
         make a new certificate"
    )]
    CertManager(String),
    /// The apiserver did not answer well, or the user lacks a right.
    #[error("{0}")]
    Unanswered(String),
}

/// A request in the Secret, which replicas will carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedRequest {
    /// The request.
    pub request: RotationRequest,
    /// Whether the Secret had it already.
    pub joined: bool,
}

/// The progress of a request, read from the Secret and from both configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The Secret has no request any more.
    Gone,
    /// No replica has acted.
    Waiting,
    /// There is a new CA, which these entries do not trust yet.
    Spreading(Vec<String>),
    /// Every entry trusts it, and replicas begin to sign with it.
    Settling,
    /// It signs, and these entries still trust others.
    Leaving(Vec<String>),
    /// It is carried out.
    Done {
        /// The new CA.
        ca: MadeCa,
        /// How many entries trust it.
        entries: usize,
    },
}

/// Requests a new CA, unless a sufficient request is in progress: one without `revoke` is replaced if `revoke` is set. `now` is in
/// seconds since 1970.
///
/// # Errors
/// When the objects do not exist or belong to another tool, or the apiserver refuses.
pub async fn ask(
    client: &Client,
    target: RotationTarget<'_>,
    revoke: bool,
    now: i64,
) -> Result<SubmittedRequest, Error> {
    let (api, what) = (api(client, target), target.secret_in_words());
    for _ in 0..MAX_WRITES {
        let secret = target.found(fetch("get", &what, api.get_metadata(target.secret)).await)?;
        target.check(&live(client, target).await?)?;
        let rotation = Rotation::read(secret.metadata.annotations.as_ref());
        let request = match next(&rotation, revoke, now) {
            Ok(request) => return Ok(SubmittedRequest { request, joined: true }),
            Err(request) => request,
        };
        let patch = json!({"metadata": {
            "resourceVersion": secret.metadata.resource_version,
            "annotations": {REQUESTED: request.to_string()},
        }});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patched = async {
            match api.patch_metadata(target.secret, &params, &Patch::Merge(patch)).await {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
                patched => patched.map(|_| true),
            }
        };
        if target.found(fetch("patch", &what, patched).await)? {
            return Ok(SubmittedRequest { request, joined: false });
        }
    }
    Err(Error::Unanswered(format!("failed to patch {what}: other clients keep writing it; try again")))
}

/// The request in progress, if it is sufficient; otherwise, as an error, the request to write.
fn next(rotation: &Rotation, revoke: bool, now: i64) -> Result<RotationRequest, RotationRequest> {
    let current = match rotation.progress() {
        Progress::Idle | Progress::Done(_) => None,
        Progress::Requested(request) => Some(request),
        Progress::Made(made) => Some(&made.request),
    };
    if let Some(request) = current.filter(|request| request.revoke || !revoke) {
        return Ok(request.clone());
    }
    let known = [rotation.requested.as_ref(), rotation.done.as_ref()];
    // Requests are compared as texts, so the new text must differ from the last one.
    let later = (0..3).map(|seconds| RotationRequest::new(now.saturating_add(seconds), revoke));
    let new = later.into_iter().find(|request| !known.contains(&Some(request)));
    Err(new.unwrap_or_else(|| RotationRequest::new(now, revoke)))
}

/// Reads the progress of the last request until it is done or lost, or until `limit` is over; returns the last progress.
/// `notify` gets a line for each step.
pub async fn follow(
    client: &Client,
    target: RotationTarget<'_>,
    limit: Duration,
    notify: impl Fn(&str),
) -> Stage {
    let started = Instant::now();
    let (mut last, mut failed) = (Stage::Waiting, String::new());
    while started.elapsed() < limit {
        match look(client, target).await {
            Ok(stage) => {
                if std::mem::discriminant(&stage) != std::mem::discriminant(&last) {
                    notify(stage.in_words());
                }
                failed.clear();
                last = stage;
                if matches!(last, Stage::Gone | Stage::Done { .. }) {
                    break;
                }
            }
            Err(error) => {
                let text = error.to_string();
                if text != failed {
                    notify(&format!("{text}; trying again"));
                }
                failed = text;
            }
        }
        sleep(PAUSE.min(limit.saturating_sub(started.elapsed()))).await;
    }
    last
}

impl Stage {
    fn of(rotation: &Rotation, live: &LiveBundles) -> Self {
        let (made, is_done) = match rotation.progress() {
            Progress::Idle => return Self::Gone,
            Progress::Requested(_) => return Self::Waiting,
            Progress::Made(made) => (made, false),
            Progress::Done(made) => (made, true),
        };
        let (missing, others) = (live.without(&made.sha256), live.beyond(&made.sha256));
        if !missing.is_empty() {
            Self::Spreading(missing)
        } else if !is_done {
            Self::Settling
        } else if made.request.revoke && !others.is_empty() {
            Self::Leaving(others)
        } else {
            Self::Done { ca: made.clone(), entries: live.entries.len() }
        }
    }

    /// One line about the current step.
    const fn in_words(&self) -> &'static str {
        match self {
            Self::Gone => "the Secret has no request for a new CA any more",
            Self::Waiting => "waiting for a replica to make a new CA",
            Self::Spreading(_) => "there is a new CA; replicas write it into both webhook configurations",
            Self::Settling => "every entry trusts the new CA; replicas begin to sign with it",
            Self::Leaving(_) => "the new CA signs; replicas take the old one out of caBundle",
            Self::Done { .. } => "the new CA signs",
        }
    }

    /// What is missing when the time is over; `None` when the request is done.
    pub fn missing(&self) -> Option<String> {
        let unwritten = |entries: &[String], what: &str| {
            let entries = entries.join(", ");
            format!("{what}: {entries}; the log of memgate says why they cannot be written")
        };
        Some(match self {
            Self::Done { .. } => return None,
            Self::Gone => "the Secret was written anew without it; ask again".to_owned(),
            Self::Waiting => "no replica has made a new CA; one that runs with built-in certificates, and may read and \
                              update the Secret, does so within seconds: `memgate doctor` says what is wrong, and the \
                              log of memgate why. The request stays, and a replica that starts carries it out"
                .to_owned(),
            Self::Spreading(entries) => {
                unwritten(entries, "there is a new CA, but these entries do not trust it")
            }
            Self::Settling => "every entry trusts the new CA, but no replica says that it signs; memgate goes on, and \
                               the same command waits again"
                .to_owned(),
            Self::Leaving(entries) => {
                unwritten(entries, "the new CA signs, but these entries still trust another one")
            }
        })
    }
}

impl RotationTarget<'_> {
    fn secret_in_words(self) -> String {
        format!("the Secret {} in the namespace {}", self.secret, self.namespace)
    }

    /// An answer about the Secret.
    fn found<T>(self, answer: Fetched<T>) -> Result<T, Error> {
        match answer {
            Fetched::Found(found) => Ok(found),
            Fetched::Absent => {
                Err(Error::NoSecret { secret: self.secret.to_owned(), namespace: self.namespace.to_owned() })
            }
            Fetched::Unknown(why) => Err(Error::Unanswered(plain(&why).into_owned())),
        }
    }

    /// Whether the CA of these configurations is memgate's own.
    fn check(self, live: &LiveBundles) -> Result<(), Error> {
        match live {
            LiveBundles { from_cert_manager: true, .. } => {
                Err(Error::CertManager(self.configuration.to_owned()))
            }
            LiveBundles { entries, .. } if entries.is_empty() => {
                Err(Error::NoConfiguration(self.configuration.to_owned()))
            }
            LiveBundles { .. } => Ok(()),
        }
    }
}

fn api(client: &Client, target: RotationTarget<'_>) -> Api<Secret> {
    Api::namespaced(client.clone(), target.namespace)
}

async fn look(client: &Client, target: RotationTarget<'_>) -> Result<Stage, Error> {
    let read = api(client, target);
    // If the Secret is gone, a replica that remembers the request writes it again.
    let secret = fetch("get", &target.secret_in_words(), read.get_metadata(target.secret)).await;
    let rotation = Rotation::read(target.found(secret)?.metadata.annotations.as_ref());
    Ok(Stage::of(&rotation, &live(client, target).await?))
}

async fn live(client: &Client, target: RotationTarget<'_>) -> Result<LiveBundles, Error> {
    let what = format!("the webhook configurations {}", target.configuration);
    target.found(fetch("get", &what, live_bundles(client, target.configuration)).await)
}

#[cfg(test)]
mod tests;
