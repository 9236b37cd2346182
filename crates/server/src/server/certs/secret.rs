//! The Secret of the CA: read, and written only as it was read.
//!
//! The one Secret that memgate ever asks for is named by whoever runs it. What else somebody keeps
//! in it stays.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::server::certs::plan::{Authorities, Data};
use crate::server::certs::{Builtin, within};

/// Who wrote it, in the words of the apiserver.
const MANAGER: &str = "memgate-ca";

/// The longest that a request may take.
const LONGEST: Duration = Duration::from_secs(5);

/// The way to the Secret.
pub(super) struct CaSecret {
    api: Api<Secret>,
    name: String,
}

/// How a write ended.
#[derive(Debug)]
pub(super) enum Written {
    /// It says so now.
    Done,
    /// Somebody else wrote it first.
    Lost,
}

impl CaSecret {
    /// The Secret that these options name.
    pub(super) fn new(client: Client, builtin: &Builtin) -> Self {
        Self { api: Api::namespaced(client, &builtin.namespace), name: builtin.secret.clone() }
    }

    /// The Secret as it is; `None` when there is none.
    pub(super) async fn get(&self) -> Result<Option<Secret>, kube::Error> {
        within(LONGEST, self.api.get_opt(&self.name)).await
    }

    /// Writes the authorities into the Secret if it is still what was read.
    pub(super) async fn put(
        &self,
        read: Option<Secret>,
        authorities: &Authorities,
    ) -> Result<Written, kube::Error> {
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let exists = read.is_some();
        let mut secret = read.unwrap_or_else(|| self.empty());
        authorities.write(secret.data.get_or_insert_with(Data::new));
        // The apiserver compares the resourceVersion of a replacement, and refuses to create what
        // is there already.
        let written = if exists {
            within(LONGEST, self.api.replace(&self.name, &params, &secret)).await
        } else {
            within(LONGEST, self.api.create(&params, &secret)).await
        };
        match written {
            Ok(_) => Ok(Written::Done),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Written::Lost),
            // Somebody has deleted it; where one is made, it is the namespace that is not there.
            Err(kube::Error::Api(status)) if exists && status.code == 404 => Ok(Written::Lost),
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
