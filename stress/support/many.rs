//! Many objects at once.

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use crate::request::create;
use crate::support::control_plane::ControlPlane;

/// How many objects are made or changed at a time.
pub(crate) const WRITERS: usize = 64;

/// Creates objects, each in its namespace.
pub(crate) fn create_all<'n>(
    cluster: &ControlPlane,
    objects: impl Iterator<Item = (&'n str, Value)>,
) -> Result<()> {
    let client = &cluster.client();
    let made = objects
        .map(async |(namespace, object)| create(client, namespace, &object, "").await?.object().map(drop));
    cluster.block_on(stream::iter(made).buffer_unordered(WRITERS).try_collect())
}
