//! Reads the Secret of the CA, and writes it only if it has not changed since.
//!
//! It is the only Secret that memgate reads; flags name it. Other keys in it are kept.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::Builtin;
use crate::kube_api::with_timeout;
use crate::manager::secret_plan::{CaState, Data};

/// The field manager of the writes.
const FIELD_MANAGER: &str = "memgate-ca";

/// The timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The Secret of the CA.
pub(super) struct CaSecret {
    api: Api<Secret>,
    name: String,
}

impl CaSecret {
    /// The Secret that these options name.
    pub(super) fn new(client: Client, builtin: &Builtin) -> Self {
        Self { api: Api::namespaced(client, &builtin.namespace), name: builtin.secret.clone() }
    }

    /// Reads the Secret; `None` when it does not exist.
    pub(super) async fn get(&self) -> Result<Option<Secret>, kube::Error> {
        with_timeout(REQUEST_TIMEOUT, self.api.get_opt(&self.name)).await
    }

    /// Writes the state into the Secret. Returns `false` when the Secret has changed since it was read.
    pub(super) async fn write(&self, read: Option<Secret>, state: &CaState) -> Result<bool, kube::Error> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let exists = read.is_some();
        let mut secret = read.unwrap_or_else(|| self.empty());
        state.write(secret.data.get_or_insert_with(Data::new));
        // The apiserver compares the resourceVersion of a replacement, and refuses to create an existing object.
        let written = if exists {
            with_timeout(REQUEST_TIMEOUT, self.api.replace(&self.name, &params, &secret)).await
        } else {
            with_timeout(REQUEST_TIMEOUT, self.api.create(&params, &secret)).await
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            // It was deleted in between. On a create, a 404 means that the namespace does not exist.
            Err(kube::Error::Api(status)) if exists && status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn empty(&self) -> Secret {
        let labels = [("app.kubernetes.io/name".to_owned(), "memgate".to_owned())];
        Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        }
    }
}
