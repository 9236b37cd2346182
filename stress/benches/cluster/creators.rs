//! Who creates pods: each has a connection of its own, and creates the next pod when the last one is there, or its time has
//! come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::cases::Load;
use crate::common::review;
use crate::load::histogram;
use crate::request::send;
use crate::support::control_plane::ControlPlane;
use crate::support::https::{Caller, post};

/// Where the pods are.
pub(crate) const NAMESPACE: &str = "team-a";

/// Pods are deleted in so many parts at a time, since the apiserver deletes those of one request one by one.
const PARTS: usize = 8;
const PART: &str = "bench.memgate.dev/part";

/// After which no more pods are begun.
const LONGEST: Duration = Duration::from_secs(15);

/// What the answer about a created pod has to hold, and what it must not.
#[derive(Clone, Default)]
pub(crate) struct Expected {
    pub(crate) held: Vec<String>,
    pub(crate) missing: Vec<String>,
}

/// What came of it.
pub(crate) struct Created {
    pub(crate) times: Histogram<u64>,
    pub(crate) took: Duration,
}

/// Clients that create pods and delete them.
pub(crate) struct Creators<'c> {
    cluster: &'c ControlPlane,
    caller: Caller,
    runtime: Runtime,
    requests: Vec<Arc<[u8]>>,
}

impl<'c> Creators<'c> {
    pub(crate) fn new(cluster: &'c ControlPlane) -> Result<Self> {
        let address = cluster.url().strip_prefix("https://").context("it speaks TLS")?.parse()?;
        let authority = cluster.authority();
        // Members of this group wait in no queue of the apiserver.
        let pair = authority.client("creator", &["system:masters"])?;
        let mut requests = Vec::new();
        for part in 0..PARTS {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
            requests.push(post(&path, pod(&part.to_string())?.to_string()).into());
        }
        Ok(Self {
            cluster,
            caller: Caller::known_as(address, &authority.pem(), &pair.cert, &pair.key)?,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            requests,
        })
    }

    /// Creates so many pods, each of which must be as expected.
    pub(crate) fn create(&self, load: Load, pods: usize, expected: &Expected) -> Result<Created> {
        let pause = load.per_second.map(|rate| Duration::from_secs(1) / rate);
        self.runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..load.creators {
                connections.push(self.caller.connect().await?);
            }
            let (start, begun) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
            let mut tasks = JoinSet::new();
            for (mut connection, request) in connections.into_iter().zip(self.requests.iter().cycle()) {
                let (request, begun, expected) = (Arc::clone(request), Arc::clone(&begun), expected.clone());
                tasks.spawn(async move {
                    let mut times = histogram()?;
                    loop {
                        let number = begun.fetch_add(1, Relaxed);
                        if number >= pods || start.elapsed() > LONGEST {
                            return Ok::<_, anyhow::Error>(times);
                        }
                        if let Some(pause) = pause {
                            sleep_until((start + pause * u32::try_from(number)?).into()).await;
                        }
                        let sent = Instant::now();
                        let answer = connection.exchange(&request).await?;
                        times.saturating_record(u64::try_from(sent.elapsed().as_nanos())?);
                        let text = String::from_utf8(answer.body)?;
                        ensure!(answer.status == 201, "{}: {text}", answer.status);
                        expected.check(&text)?;
                    }
                });
            }
            let mut times = histogram()?;
            while let Some(done) = tasks.join_next().await {
                times.add(done??)?;
            }
            Ok(Created { times, took: start.elapsed() })
        })
    }

    /// Deletes all of them.
    pub(crate) fn delete_all(&self) -> Result<()> {
        let client = self.cluster.client();
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let delete = |part: usize| {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={PART}%3D{part}");
            let (client, options) = (&client, &options);
            async move { send(client, Method::DELETE, &path, Some(options)).await?.object() }
        };
        self.cluster.block_on(try_join_all((0..PARTS).map(delete)))?;
        Ok(())
    }
}

impl Expected {
    /// That the answer about a pod is as it has to be.
    fn check(&self, text: &str) -> Result<()> {
        for held in &self.held {
            ensure!(text.contains(held.as_str()), "{held} is not in {text}");
        }
        for missing in &self.missing {
            ensure!(!text.contains(missing.as_str()), "{missing} is in {text}");
        }
        Ok(())
    }
}

/// The agent pod of the other benchmarks, with the label of a part.
pub(crate) fn pod(part: &str) -> Result<Value> {
    let review: Value = serde_json::from_str(&review("arkonis.dev/deployment", 20, 600, false))?;
    let mut pod = review.pointer("/request/object").context("a review has an object")?.clone();
    pod["metadata"]["namespace"] = json!(NAMESPACE);
    pod["metadata"]["labels"][PART] = json!(part);
    Ok(pod)
}
