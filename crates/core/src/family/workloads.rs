//! The workloads of the platforms' memory services, and what decisions read of them.

use memgate_model::kind::Kind;
use memgate_model::schema::{Field, LABELS, Schema};

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

const SOURCED: Schema = Schema::Pruned(&[
    Field::new("name", Schema::Text),
    Field::new("key", Schema::Text),
    Field::new("optional", Schema::Boolean),
]);

const SETTING: Schema = Schema::Pruned(&[
    Field::new("name", Schema::Text),
    Field::new("value", Schema::Text),
    Field::new(
        "valueFrom",
        Schema::Pruned(&[Field::new("configMapKeyRef", SOURCED), Field::new("secretKeyRef", Schema::Any)]),
    ),
]);

const CREDENTIAL: Schema = Schema::Pruned(&[
    Field::new("name", Schema::Text),
    Field::new("value", Schema::Credential),
    Field::new("valueFrom", Schema::Pruned(&[Field::new("secretKeyRef", SOURCED)])),
]);

/// A workload. Of its variables only those of [`VARIABLES`] are kept: others may hold credentials.
const fn workload(kind: &'static str, plural: &'static str) -> Kind {
    const SOURCE: Schema =
        Schema::Pruned(&[Field::new("prefix", Schema::Text), Field::new("configMapRef", SOURCED)]);
    const MOUNT: Schema =
        Schema::Pruned(&[Field::new("name", Schema::Text), Field::new("mountPath", Schema::Text)]);
    const CONTAINER: Schema = Schema::Pruned(&[
        Field::new("name", Schema::Text),
        Field::new("image", Schema::Text),
        Field::new("env", Schema::Named(&VARIABLES)),
        Field::new("envFrom", Schema::List(&SOURCE)),
        Field::new("volumeMounts", Schema::List(&MOUNT)),
    ]);
    const VOLUME: Schema = Schema::Pruned(&[
        Field::new("name", Schema::Text),
        Field::new("persistentVolumeClaim", Schema::Any),
        Field::new("nfs", Schema::Any),
        Field::new("emptyDir", Schema::Any),
        Field::new("ephemeral", Schema::Any),
        Field::new("configMap", Schema::Any),
        Field::new("secret", Schema::Any),
        Field::new("projected", Schema::Any),
        Field::new("downwardAPI", Schema::Any),
    ]);
    const CLAIM: Schema =
        Schema::Pruned(&[Field::new("metadata", Schema::Pruned(&[Field::new("name", Schema::Text)]))]);
    const OWNER: Schema = Schema::Pruned(&[Field::new("controller", Schema::Boolean)]);
    const POD: Schema = Schema::Pruned(&[
        Field::new("containers", Schema::List(&CONTAINER)),
        Field::new("volumes", Schema::List(&VOLUME)),
    ]);
    const METADATA_OF_WORKLOAD: Schema = Schema::Pruned(&[
        Field::new("name", Schema::Text),
        Field::new("namespace", Schema::Text),
        Field::new("ownerReferences", Schema::List(&OWNER)),
    ]);
    const TEMPLATE: Schema =
        Schema::Pruned(&[Field::new("metadata", Schema::Pruned(&[LABELS])), Field::new("spec", POD)]);
    const SPEC: Schema = Schema::Pruned(&[
        Field::new("template", TEMPLATE),
        Field::new("volumeClaimTemplates", Schema::List(&CLAIM)),
    ]);
    const WORKLOAD: Schema =
        Schema::Pruned(&[Field::new("metadata", METADATA_OF_WORKLOAD), Field::new("spec", SPEC)]);
    Kind { group: "apps", version: "v1", kind, plural, namespaced: true, schema: WORKLOAD }
}
