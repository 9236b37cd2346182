//! Logs at the start which platforms have an API server of their own: for its objects the apiserver does not call
//! webhooks.

use std::time::Duration;

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{Api, Client};

use memgate_certs::kube_api::with_timeout;
use memgate_certs::library_error::explained;
use memgate_model::family::{AggregatedServer, Family};

/// The timeout of one request; it takes milliseconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Logs a line for each platform with such a server. A failed read is ignored: memgate works without this knowledge.
pub(super) async fn report(client: Client, families: Vec<&'static Family>) {
    for family in families {
        let Some(server) = family.definitions.aggregated_server else { continue };
        let AggregatedServer { api_service, help } = server;
        let found = Api::<APIService>::all(client.clone());
        match with_timeout(REQUEST_TIMEOUT, found.get_opt(api_service)).await {
            Ok(Some(found)) if is_aggregated(&found) => tracing::info!(
                family = family.name,
                api_service,
                help,
                "the platform's own API server serves its kinds, so memgate may not be called for them"
            ),
            Ok(_) => {}
            Err(error) => {
                let error = explained(&error);
                tracing::debug!(error, api_service, "the APIService could not be read");
            }
        }
    }
}

/// Whether another server than the apiserver itself serves the group: the APIService names its Service.
fn is_aggregated(found: &APIService) -> bool {
    found.spec.as_ref().is_some_and(|spec| spec.service.is_some())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::FutureExt;
    use serde_json::{Value, json};
    use tracing::subscriber;
    use tracing_subscriber::fmt;

    use super::*;
    use crate::test_support::client;

    /// What is logged at the start, and which paths were asked for, when the apiserver answers so.
    async fn logged(families: &[&'static Family], status: u16, answer: Value) -> (String, Vec<String>) {
        let (client, asked) = client(move |_| {
            let answer = answer.to_string();
            async move { (status, answer) }.boxed()
        });
        let lines: Arc<Mutex<Vec<u8>>> = Arc::default();
        let writer = Arc::clone(&lines);
        let log = fmt().with_ansi(false).with_writer(move || Shared(Arc::clone(&writer))).finish();
        let guard = subscriber::set_default(log);
        report(client, families.to_vec()).await;
        drop(guard);
        let lines = String::from_utf8(lines.lock().expect("no panic").clone()).expect("UTF-8");
        (lines, asked.all())
    }

    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn api_service(service: &Value) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1alpha1.ark.mckinsey.com"},
            "spec": {
                "group": "ark.mckinsey.com", "version": "v1alpha1", "service": service,
                "groupPriorityMinimum": 1000, "versionPriority": 15,
            },
        })
    }

    fn failure(code: u16) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": code,
               "reason": if code == 404 { "NotFound" } else { "Forbidden" }})
    }

    #[tokio::test]
    async fn says_that_a_server_of_the_platform_serves_its_kinds() {
        let service = json!({"name": "ark-apiserver", "namespace": "ark-system"});
        let (lines, paths) = logged(&memgate_platforms::ALL, 200, api_service(&service)).await;
        assert_eq!(paths, ["/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.ark.mckinsey.com"]);
        assert_eq!(lines.lines().count(), 1, "{lines}");
        for words in ["INFO", "family=\"ark\"", "policy.thirdPartyWebhooks.enabled"] {
            assert!(lines.contains(words), "{lines}");
        }
    }

    #[tokio::test]
    async fn logs_nothing_where_definitions_serve_the_kinds_or_reads_are_forbidden() {
        let ark = &memgate_platforms::ark::FAMILY;
        for (status, answer) in [(200, api_service(&Value::Null)), (404, failure(404)), (403, failure(403))] {
            let (lines, paths) = logged(&[ark], status, answer).await;
            assert!(lines.is_empty() && paths.len() == 1, "{status}: {lines}");
        }
        let (lines, paths) = logged(&[&memgate_platforms::orloj::FAMILY], 500, failure(500)).await;
        assert!(lines.is_empty() && paths.is_empty(), "{lines}");
    }
}
