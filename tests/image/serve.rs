//! A review for a program that serves.

use std::path::Path;

use serde_json::{Value, json};

use crate::https::{Caller, post};
use crate::review::review;
use crate::serving::Serving;

/// Sends the review of a pod of the example's agent over TLS to whom the CA in this file names, and expects a patch.
pub(crate) async fn answers_a_review(serving: &Serving, ca: &Path) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "labels": {"arkonis.dev/deployment": "scout"}},
        "spec": {"containers": [{"name": "agent"}]},
    });
    let caller = Caller::new(serving.address("webhook"), &std::fs::read_to_string(ca).unwrap()).unwrap();
    let request = post("/mutate", review("team-a", &pod).to_string());
    let answer = caller.connect().await.unwrap().call(&request).await.unwrap().expect("a review");
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert!(answer["response"]["patch"].is_string(), "{answer}");
}
