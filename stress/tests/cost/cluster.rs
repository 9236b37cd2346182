//! Inputs against a cluster's state: the routes of the server without a socket, on what watches would have
//! delivered. No schema is checked there, for an apiserver has done that, and what is not found is unknown.
//!
//! With a base that belongs to another one, the filled object is part of the state, and the other one's review
//! is sent: the cost of a large memory for the objects that refer to it.

use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use memgate_certs::tls::CertSource;
use memgate_model::object::{Coverage, KindState};
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Options;
use memgate_server::{State, router};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::door::{Cost, Door, cpu_at_rest, spent};
use crate::input::Input;

/// What an answer may have; far more than any bound.
const MOST: usize = 1 << 28;

/// The routes on a state.
pub(crate) struct Cluster {
    runtime: Runtime,
    objects: Vec<Value>,
    router: Router,
}

impl Cluster {
    /// Serves from these objects.
    pub(crate) fn new(objects: &[Value]) -> Result<Self> {
        let runtime = memgate_server::runtime_builder().worker_threads(1).build()?;
        let router = {
            let _inside = runtime.enter();
            routes(objects.iter())
        };
        Ok(Self { runtime, objects: objects.to_vec(), router })
    }
}

impl Door for Cluster {
    fn text(&self, input: &Input<'_>, size: usize) -> String {
        if input.base.referrer.is_some() { input.object(size, 0) } else { input.review(size) }
    }

    fn ask(&mut self, input: &Input<'_>, text: &str) -> Result<Cost> {
        let Some(referrer) = &input.base.referrer else {
            return call(&self.runtime, &self.router, input.call.path(), text);
        };
        // What an apiserver would not have stored cannot be in the state.
        let Ok(filled) = serde_json::from_str::<Value>(text) else {
            return Ok(Cost { status: 400, body: text.len(), ..Cost::default() });
        };
        let key = |object: &Value| {
            (
                object["kind"].clone(),
                object["metadata"]["namespace"].clone(),
                object["metadata"]["name"].clone(),
            )
        };
        let others = self.objects.iter().filter(|object| key(object) != key(&filled));
        let router = {
            let _inside = self.runtime.enter();
            routes(others.chain([&filled]))
        };
        let review = Input { base: referrer, ..input.clone() }.small_review();
        let cost = call(&self.runtime, &router, input.call.path(), &review)?;
        Ok(cost)
    }
}

fn routes<'o>(objects: impl Iterator<Item = &'o Value>) -> Router {
    let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
    for kind in memgate_platforms::state_kinds(&snapshot.settings.families.clone()) {
        let is_watched = snapshot.settings.families.iter().any(|family| family.kinds.watched.contains(&kind));
        if is_watched {
            snapshot.set(kind, KindState::new(Coverage::Watched));
        }
    }
    for object in objects {
        // What cannot be read is not delivered either.
        let _unreadable = memgate_core::state::add(&mut snapshot, object);
    }
    snapshot.crds = None;
    let ca = std::env::temp_dir().join("unused");
    let mut options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca });
    options.timers.request = Duration::from_secs(30);
    router(&options, State::Fixed(snapshot))
}

fn call(runtime: &Runtime, router: &Router, path: &str, body: &str) -> Result<Cost> {
    let request = Request::post(format!("{path}?timeout=30s"))
        .header("content-type", "application/json")
        .body(Body::from(body.to_owned()))?;
    let before = cpu_at_rest(std::process::id())?;
    let (status, answer) = runtime.block_on(async {
        let response = router.clone().oneshot(request).await?;
        let status = response.status().as_u16();
        anyhow::Ok((status, to_bytes(response.into_body(), MOST).await?))
    })?;
    let cpu = spent(&before, &cpu_at_rest(std::process::id())?);
    Ok(Cost { body: body.len(), cpu, ..Cost::default() }.with_answer(status, &answer))
}
