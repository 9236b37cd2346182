//! Objects that a finalizer keeps after their deletion: pods still use them, so a new spec is judged as ever by
//! memgate, and by nothing only where the entry fails open. What leaves the spec alone, above all the removal of a
//! finalizer, never depends on memgate.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    deploy::absent::Absent,
    fixture::{Fixture, Trial},
    going::{Going, policy, rows},
    installed::exempt_client,
    request::create,
    samples::memory_of,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("deletion::a_new_spec_of_an_object_that_goes_is_judged", judged),
        Trial::alone("deletion::objects_go_while_memgate_is_away", away),
    ]
}

fn judged(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = (fixture.cluster()?, fixture.namespace("going", &[])?);
    let client = cluster.client();
    let evil = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "evil"},
        "spec": {"address": {"value": "http://evil.example.com"}},
    });
    for memory in [memory_of("scratch", &json!({"backend": "in-context"})), evil] {
        cluster.block_on(create(&client, &namespace, &memory, ""))?.object()?;
    }
    let rows = rows(&namespace);
    let going = rows.iter().map(|row| Going::store(cluster, &client, &namespace, &row.object));
    let going = going.collect::<Result<Vec<_>>>()?;
    cluster.admin().apply(&policy(&namespace).to_string())?;
    for object in &going {
        object.delete()?;
    }
    for (row, object) in rows.iter().zip(&going) {
        for change in &row.changes {
            object.until_refused(&namespace, change)?;
        }
        object.let_go()?;
    }
    cluster.kubectl(&["delete", "memorypolicy", &namespace])?.ok()?;
    Ok(())
}

/// Requests of the exempt user do not meet the memgate that other trials use.
fn away(fixture: &Fixture) -> Result<()> {
    fixture.memgate()?;
    let cluster = fixture.cluster()?;
    let (namespace, client) = (cluster.fresh_namespace("going")?, exempt_client(cluster)?);
    let rows = rows(&namespace);
    let going = rows.iter().map(|row| Going::store(cluster, &client, &namespace, &row.object));
    let going = going.collect::<Result<Vec<_>>>()?;
    let _absent = Absent::new(cluster, &[])?;
    for (row, object) in rows.iter().zip(&going) {
        object.delete()?;
        for change in &row.changes {
            let answer = object.with_spec(&change.spec)?;
            let called = answer.message().contains("failed calling webhook");
            ensure!(called != row.open && answer.granted() == row.open, "{}: {:?}", object.what, answer.body);
        }
        object.let_go()?;
    }
    Ok(())
}
