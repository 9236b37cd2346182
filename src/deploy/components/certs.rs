//! Where the certificate comes from, when it is not memgate's own, and who has to show one.

use k8s_openapi::api::core::v1::{CSIVolumeSource, ConfigMapVolumeSource, SecretVolumeSource, Volume};
use serde_json::{Value, json};

use crate::deploy::components::operations::annotate;
use crate::deploy::objects::Objects;
use crate::deploy::workload::mount;
use crate::deploy::{CA_SECRET, NAME, Part, Plan, metadata, rbac, texts};

/// The Secret of type `kubernetes.io/tls` that holds the certificate.
const TLS_SECRET: &str = "memgate-tls";
/// Where it is mounted.
const TLS_DIRECTORY: &str = "/etc/memgate/tls";
/// The ConfigMap with the CA of those who may call.
const CLIENT_CA: &str = "memgate-client-ca";
/// Where it is mounted.
const CLIENT_CA_DIRECTORY: &str = "/etc/memgate/client-ca";
/// The name of the issuer that signs nothing but the CA.
const SELF_SIGNED: &str = "memgate-self-signed";
/// The user that the container runs as.
const USER: &str = "65532";

/// The Secret `memgate-tls`, which somebody else writes.
pub(super) fn files(objects: &mut Objects) {
    let volume = Volume {
        secret: Some(SecretVolumeSource {
            secret_name: Some(TLS_SECRET.to_owned()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    };
    mounted(objects, "files", volume);
}

/// A CA, an issuer and a certificate of cert-manager, which also writes the `caBundle`.
pub(super) fn cert_manager(objects: &mut Objects, plan: &Plan) {
    files(objects);
    for argument in objects.arguments() {
        if argument == "--certs=files" {
            "--certs=cert-manager".clone_into(argument);
        }
    }
    let certificate = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": metadata(plan),
        "spec": {
            "secretName": TLS_SECRET,
            "dnsNames": [service_name(plan)],
            "duration": "2160h",
            "issuerRef": {"kind": "Issuer", "name": CA_SECRET},
            "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
            "usages": ["server auth"],
        },
    });
    authority(objects, plan);
    objects.others.push((Part::Workload, certificate));
}

/// The same CA, of which the CSI driver of cert-manager gets each replica a certificate of its own.
pub(super) fn csi_driver(objects: &mut Objects, plan: &Plan) {
    let attributes = [
        ("csi.cert-manager.io/issuer-name", CA_SECRET),
        ("csi.cert-manager.io/dns-names", &service_name(plan)),
        ("csi.cert-manager.io/key-algorithm", "ECDSA"),
        ("csi.cert-manager.io/key-size", "256"),
        ("csi.cert-manager.io/key-usages", "server auth"),
        ("csi.cert-manager.io/fs-group", USER),
    ];
    let volume = Volume {
        csi: Some(CSIVolumeSource {
            driver: "csi.cert-manager.io".to_owned(),
            read_only: Some(true),
            volume_attributes: Some(texts(&attributes)),
            ..CSIVolumeSource::default()
        }),
        ..Volume::default()
    };
    mounted(objects, "files", volume);
    authority(objects, plan);
}

/// Calls only from who shows a certificate of the CA in the ConfigMap `memgate-client-ca`.
pub(super) fn mtls(objects: &mut Objects) {
    let volume = Volume {
        name: "client-ca".to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: CLIENT_CA.to_owned(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    };
    objects.pod().volumes.get_or_insert_default().push(volume);
    objects.container.volume_mounts.get_or_insert_default().push(mount("client-ca", CLIENT_CA_DIRECTORY));
    objects.arguments().extend([
        format!("--client-ca={CLIENT_CA_DIRECTORY}/ca.crt"),
        "--client-name=kube-apiserver".to_owned(),
    ]);
}

/// Serves the certificate in a volume; what memgate needs to make one of its own goes, and with the
/// right to write its configurations the fence around that right.
fn mounted(objects: &mut Objects, mode: &str, volume: Volume) {
    let arguments = objects.arguments();
    arguments.retain(|argument| !argument.starts_with("--certs="));
    arguments.extend([
        format!("--certs={mode}"),
        format!("--tls-cert={TLS_DIRECTORY}/tls.crt"),
        format!("--tls-key={TLS_DIRECTORY}/tls.key"),
    ]);
    let volume = Volume { name: "tls".to_owned(), ..volume };
    objects.pod().volumes.get_or_insert_default().push(volume);
    objects.container.volume_mounts.get_or_insert_default().push(mount("tls", TLS_DIRECTORY));
    objects.role = None;
    objects.fence = None;
    let configurations = rbac::configurations();
    objects.cluster_role.rules.get_or_insert_default().retain(|rule| *rule != configurations);
}

/// A CA that cert-manager keeps, and the order to write it into the `caBundle`.
fn authority(objects: &mut Objects, plan: &Plan) {
    let ca = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": named(plan, CA_SECRET),
        "spec": {
            "isCA": true,
            "commonName": CA_SECRET,
            "secretName": CA_SECRET,
            "duration": "87600h",
            "issuerRef": {"kind": "Issuer", "name": SELF_SIGNED},
            "privateKey": {"algorithm": "ECDSA", "size": 256},
        },
    });
    let self_signed = issuer(plan, SELF_SIGNED, &json!({"selfSigned": {}}));
    let signer = issuer(plan, CA_SECRET, &json!({"ca": {"secretName": CA_SECRET}}));
    objects.others.extend([self_signed, ca, signer].map(|object| (Part::Workload, object)));
    let source = format!("{}/{CA_SECRET}", plan.namespace);
    annotate(objects, "cert-manager.io/inject-ca-from", &source);
}

fn issuer(plan: &Plan, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": named(plan, name),
        "spec": spec,
    })
}

fn named(plan: &Plan, name: &str) -> Value {
    let mut metadata = json!(metadata(plan));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("name".to_owned(), json!(name));
    }
    metadata
}

/// The name by which the apiserver calls.
fn service_name(plan: &Plan) -> String {
    format!("{NAME}.{}.svc", plan.namespace)
}
