//! The workloads of the platforms' memory services, and what decisions read of them.

use memgate_model::kind::Kind;
use memgate_model::schema::{LABELS, Schema, schema};

pub(crate) static DAEMON_SET: Kind = workload("DaemonSet", "daemonsets");
pub(crate) static DEPLOYMENT: Kind = workload("Deployment", "deployments");
pub(crate) static REPLICA_SET: Kind = workload("ReplicaSet", "replicasets");
pub(crate) static STATEFUL_SET: Kind = workload("StatefulSet", "statefulsets");

/// The variables of ark's memory service that say where messages are kept.
pub(crate) const BROKER_VARIABLES: [&str; 2] = ["MESSAGE_BACKEND", "MEMORY_FILE_PATH"];

/// The writer token of a memory server of sympozium.
pub(crate) const WRITER_TOKEN: &str = "MEMORY_WRITER_TOKEN";

/// What is kept of variables, by name: of a token never the value, only whether it is empty.
const VARIABLES: [(&str, &Schema); 3] =
    [(BROKER_VARIABLES[0], &SETTING), (BROKER_VARIABLES[1], &SETTING), (WRITER_TOKEN, &CREDENTIAL)];

const SOURCED: Schema = schema! { pruned { "name" "key": text, "optional": boolean, } };

const SETTING: Schema = schema! { pruned {
    "name" "value": text,
    "valueFrom": pruned { "configMapKeyRef": SOURCED, "secretKeyRef": any, },
} };

const CREDENTIAL: Schema = schema! { pruned {
    "name": text,
    "value": credential,
    "valueFrom": pruned { "secretKeyRef": SOURCED, },
} };

/// A workload. Of its variables only those of [`VARIABLES`] are kept: others may hold credentials.
const fn workload(kind: &'static str, plural: &'static str) -> Kind {
    const CONTAINER: Schema = schema! { pruned {
        "name" "image": text,
        "env": (Schema::Named(&VARIABLES)),
        "envFrom": [pruned { "prefix": text, "configMapRef": SOURCED, }],
        "volumeMounts": [pruned { "name" "mountPath": text, }],
    } };
    const VOLUME: Schema = schema! { pruned {
        "name": text,
        "persistentVolumeClaim" "nfs" "emptyDir" "ephemeral" "configMap" "secret" "projected" "downwardAPI": any,
    } };
    const WORKLOAD: Schema = schema! { pruned {
        "metadata": pruned { "name" "namespace": text, "ownerReferences": [pruned { "controller": boolean, }], },
        "spec": pruned {
            "template": pruned {
                "metadata": pruned { LABELS, },
                "spec": pruned { "containers": [CONTAINER], "volumes": [VOLUME], },
            },
            "volumeClaimTemplates": [pruned { "metadata": pruned { "name": text, }, }],
        },
    } };
    Kind::new(("apps", "v1"), kind, plural, WORKLOAD)
}
