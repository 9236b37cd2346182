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
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::request::error_message;
use crate::report::plain;
use memgate_server::server::certs::live_bundles::{EntryBundle, LiveBundles, live_bundles};
use memgate_server::server::certs::rotation::{MadeCa, Progress, REQUESTED, Rotation, RotationRequest};

/// The field manager of the request.
const FIELD_MANAGER: &str = "memgate-rotate";

/// How often a conflicting write of the request is tried.
const MAX_WRITES: usize = 5;

/// How long one request to the apiserver may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two reads.
const PAUSE: Duration = Duration::from_secs(1);

/// After how long a missing reaction of replicas is reported: each reads the Secret every two seconds.
const PATIENCE: Duration = Duration::from_secs(20);

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
    /// The user lacks a right.
    #[error("you may not {verb} {what}: it takes that right ({reason})")]
    Forbidden {
        /// What it takes.
        verb: &'static str,
        /// On which object.
        what: String,
        /// The apiserver's message.
        reason: String,
    },
    /// The apiserver did not answer well.
    #[error("failed to {verb} {what}: {reason}")]
    Failed {
        /// What was tried.
        verb: &'static str,
        /// On which object.
        what: String,
        /// Why.
        reason: String,
    },
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
    /// Another request has taken its place.
    Replaced(RotationRequest),
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
        let read = api.get_metadata_opt(target.secret);
        let secret = answer(read).await.map_err(|error| failure("get", &what, &error))?;
        let secret = secret.ok_or_else(|| target.no_secret())?;
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
        match answer(api.patch_metadata(target.secret, &params, &Patch::Merge(patch))).await {
            Ok(_) => return Ok(SubmittedRequest { request, joined: false }),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(failure("patch", &what, &error)),
        }
    }
    let reason = "other clients keep writing it; try again".to_owned();
    Err(Error::Failed { verb: "patch", what, reason })
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

/// Reads the progress until the request is done or lost, or until `limit` is over; returns the last progress. `notify`
/// gets a line for each step.
pub async fn follow(
    client: &Client,
    target: RotationTarget<'_>,
    mut request: RotationRequest,
    limit: Duration,
    notify: impl Fn(&str),
) -> Stage {
    let started = Instant::now();
    let (mut last, mut failed, mut is_impatient) = (Stage::Waiting, String::new(), false);
    while started.elapsed() < limit {
        match look(client, target, &request).await {
            Ok(stage) => {
                if std::mem::discriminant(&stage) != std::mem::discriminant(&last) {
                    notify(&stage.in_words());
                }
                failed.clear();
                match &stage {
                    Stage::Gone | Stage::Done { .. } => return stage,
                    Stage::Replaced(other) => request = other.clone(),
                    Stage::Waiting | Stage::Spreading(_) | Stage::Settling | Stage::Leaving(_) => {}
                }
                last = stage;
            }
            Err(error) => {
                let text = error.to_string();
                if text != failed {
                    notify(&format!("{text}; trying again"));
                }
                failed = text;
            }
        }
        if last == Stage::Waiting && !is_impatient && started.elapsed() >= PATIENCE {
            notify(&format!("no replica has acted for {} s; {HINT}", PATIENCE.as_secs()));
            is_impatient = true;
        }
        sleep(PAUSE.min(limit.saturating_sub(started.elapsed()))).await;
    }
    last
}

/// Advice if no replica reacts.
const HINT: &str = "one that runs with built-in certificates, and may read and update the Secret, does so within \
                    seconds: `memgate doctor` says what is wrong, and the log of memgate why";

impl Stage {
    fn of(rotation: &Rotation, live: &LiveBundles, request: &RotationRequest) -> Self {
        let names = |entries: &mut dyn Iterator<Item = &EntryBundle>| -> Vec<String> {
            entries.map(|entry| format!("{} ({})", plain(&entry.name), entry.configuration)).collect()
        };
        let (made, is_done) = match rotation.progress() {
            Progress::Idle => return Self::Gone,
            Progress::Requested(other) if other == request => return Self::Waiting,
            Progress::Requested(other) => return Self::Replaced(other.clone()),
            Progress::Made(made) => (made, false),
            Progress::Done(made) => (made, true),
        };
        if made.request != *request {
            return Self::Replaced(made.request.clone());
        }
        let missing = names(&mut live.without(&made.sha256));
        let others = names(&mut live.beyond(&made.sha256));
        if !missing.is_empty() {
            Self::Spreading(missing)
        } else if !is_done {
            Self::Settling
        } else if request.revoke && !others.is_empty() {
            Self::Leaving(others)
        } else {
            Self::Done { ca: made.clone(), entries: live.entries.len() }
        }
    }

    /// One line about the current step.
    fn in_words(&self) -> String {
        match self {
            Self::Gone => "the Secret has no request for a new CA any more".to_owned(),
            Self::Replaced(other) => format!("another request has taken its place: {other}"),
            Self::Waiting => "waiting for a replica to make a new CA".to_owned(),
            Self::Spreading(_) => {
                "there is a new CA; replicas write it into both webhook configurations".to_owned()
            }
            Self::Settling => "every entry trusts the new CA; replicas begin to sign with it".to_owned(),
            Self::Leaving(_) => "the new CA signs; replicas take the old one out of caBundle".to_owned(),
            Self::Done { .. } => "the new CA signs".to_owned(),
        }
    }

    /// What is missing when the time is over; `None` when the request is done.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        Some(match self {
            Self::Done { .. } => return None,
            Self::Gone => "the Secret was written anew without it; ask again".to_owned(),
            Self::Replaced(_) | Self::Waiting => format!(
                "no replica has made a new CA; {HINT}. The request stays, and a replica that starts carries it out"
            ),
            Self::Spreading(entries) => format!(
                "there is a new CA, but these entries do not trust it: {}; the log of memgate says why they cannot be \
                 written",
                entries.join(", ")
            ),
            Self::Settling => {
                "every entry trusts the new CA, but no replica says that it signs; memgate goes on, and \
                               the same command waits again"
                    .to_owned()
            }
            Self::Leaving(entries) => format!(
                "the new CA signs, but these entries still trust another one: {}; the log of memgate says why they \
                 cannot be written",
                entries.join(", ")
            ),
        })
    }
}

impl RotationTarget<'_> {
    fn secret_in_words(self) -> String {
        format!("the Secret {} in the namespace {}", self.secret, self.namespace)
    }

    fn no_secret(self) -> Error {
        Error::NoSecret { secret: self.secret.to_owned(), namespace: self.namespace.to_owned() }
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

async fn look(
    client: &Client,
    target: RotationTarget<'_>,
    request: &RotationRequest,
) -> Result<Stage, Error> {
    let api = api(client, target);
    let secret = answer(api.get_metadata_opt(target.secret)).await;
    let secret = secret.map_err(|error| failure("get", &target.secret_in_words(), &error))?;
    // A replica that remembers the request writes it again.
    let Some(secret) = secret else { return Err(target.no_secret()) };
    let rotation = Rotation::read(secret.metadata.annotations.as_ref());
    Ok(Stage::of(&rotation, &live(client, target).await?, request))
}

async fn live(client: &Client, target: RotationTarget<'_>) -> Result<LiveBundles, Error> {
    let what = || format!("the webhook configurations {}", target.configuration);
    let read = live_bundles(client, target.configuration).await;
    read.map_err(|error| failure("get", &what(), &error))
}

async fn answer<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let late = |_| kube::Error::Service(format!("no answer within {REQUEST_TIMEOUT:?}").into());
    timeout(REQUEST_TIMEOUT, request).await.map_err(late)?
}

fn failure(verb: &'static str, what: &str, error: &kube::Error) -> Error {
    let (what, reason) = (what.to_owned(), plain(&error_message(error)).into_owned());
    match error {
        kube::Error::Api(status) if status.code == 403 => Error::Forbidden { verb, what, reason },
        _ => Error::Failed { verb, what, reason },
    }
}

#[cfg(test)]
mod tests;
