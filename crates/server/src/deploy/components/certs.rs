//! Certificates that memgate does not make: where its own comes from, and which callers must show one.

use k8s_openapi::api::core::v1::{CSIVolumeSource, ConfigMapVolumeSource, SecretVolumeSource, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::deploy::components::operations::annotate;
use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::metadata::{NAME, metadata, string_map};
use crate::deploy::objects::Objects;
use crate::deploy::rbac;
use crate::deploy::workload::mount;

/// The Secret of type `kubernetes.io/tls` that holds the certificate.
const TLS_SECRET: &str = "memgate-tls";
/// Where it is mounted.
const TLS_DIRECTORY: &str = "/etc/memgate/tls";
/// The ConfigMap with the CA of the clients that may call.
const CLIENT_CA: &str = "memgate-client-ca";
/// Where it is mounted.
const CLIENT_CA_DIRECTORY: &str = "/etc/memgate/client-ca";
/// The Issuer that signs the CA only.
const SELF_SIGNED_ISSUER: &str = "memgate-bootstrap";
/// The CA, and the Issuer that signs with it.
const CA_CERTIFICATE: &str = "memgate-ca";
const ISSUER: &str = "memgate-ca";
/// The Secret of that CA: not memgate's own one, so that one can change between the two.
const CA_SECRET: &str = "memgate-ca-cert-manager";
/// The user that the container runs as.
const RUN_AS_USER: &str = "65532";

/// The Secret `memgate-tls`, which memgate does not write.
pub(super) fn files(objects: &mut Objects, plan: &InstallPlan) {
    let volume = Volume {
        secret: Some(SecretVolumeSource {
            secret_name: Some(TLS_SECRET.to_owned()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    };
    serve_from_volume(objects, plan, volume);
}

/// A CA, an issuer and a certificate of cert-manager, which also writes the `caBundle`.
pub(super) fn cert_manager(objects: &mut Objects, plan: &InstallPlan) {
    files(objects, plan);
    for argument in objects.arguments() {
        if argument == "--certs=files" {
            "--certs=cert-manager".clone_into(argument);
        }
    }
    add_certificate_authority(objects, plan);
    let service = format!("{NAME}.{}", plan.namespace);
    let certificate = json!({
        "secretName": TLS_SECRET,
        "duration": "168h",
        "renewBefore": "56h",
        "usages": ["digital signature", "server auth"],
        "dnsNames": [service, format!("{service}.svc"), format!("{service}.svc.cluster.local")],
        "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
        "issuerRef": issuer_ref(ISSUER),
    });
    objects
        .others
        .push((InstallPart::Workload, cert_manager_object(plan, "Certificate", NAME, &certificate)));
    inject_ca(objects, plan, NAME);
}

/// The same CA, of which the CSI driver of cert-manager gets each replica a certificate of its own.
pub(super) fn csi_driver(objects: &mut Objects, plan: &InstallPlan) {
    let service = format!("{NAME}.{}.svc", plan.namespace);
    let attributes = [
        ("csi.cert-manager.io/issuer-name", ISSUER),
        ("csi.cert-manager.io/dns-names", service.as_str()),
        ("csi.cert-manager.io/key-algorithm", "ECDSA"),
        ("csi.cert-manager.io/key-size", "256"),
        ("csi.cert-manager.io/key-usages", "digital signature,server auth"),
        ("csi.cert-manager.io/fs-group", RUN_AS_USER),
    ];
    let volume = Volume {
        csi: Some(CSIVolumeSource {
            driver: "csi.cert-manager.io".to_owned(),
            read_only: Some(true),
            volume_attributes: Some(string_map(&attributes)),
            ..CSIVolumeSource::default()
        }),
        ..Volume::default()
    };
    serve_from_volume(objects, plan, volume);
    add_certificate_authority(objects, plan);
    inject_ca(objects, plan, CA_CERTIFICATE);
}

/// Accepts only clients with a certificate of the CA in the ConfigMap `memgate-client-ca`.
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

/// Serves the certificate in a volume. What memgate needs to make one of its own goes: the role for its
/// Secret, the right to write its configurations, and the policy that guards this right.
fn serve_from_volume(objects: &mut Objects, plan: &InstallPlan, volume: Volume) {
    let arguments = objects.arguments();
    arguments.retain(|argument| !argument.starts_with("--certs="));
    arguments.extend([
        "--certs=files".to_owned(),
        format!("--tls-cert={TLS_DIRECTORY}/tls.crt"),
        format!("--tls-key={TLS_DIRECTORY}/tls.key"),
    ]);
    let volume = Volume { name: "tls".to_owned(), ..volume };
    objects.pod().volumes.get_or_insert_default().push(volume);
    objects.container.volume_mounts.get_or_insert_default().push(mount("tls", TLS_DIRECTORY));
    objects.role = None;
    objects.self_guard = None;
    let configurations = rbac::configurations(plan);
    objects.cluster_role.rules.get_or_insert_default().retain(|rule| *rule != configurations);
}

/// A CA that cert-manager keeps, and an issuer that signs with it. Its key stays: a new one would
/// replace the CA in one step, and callers that learn of it late would lose their calls.
fn add_certificate_authority(objects: &mut Objects, plan: &InstallPlan) {
    let ca = json!({
        "isCA": true,
        "commonName": "memgate CA",
        "secretName": CA_SECRET,
        "duration": "8760h",
        "renewBefore": "2920h",
        "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Never"},
        "issuerRef": issuer_ref(SELF_SIGNED_ISSUER),
    });
    let added = [
        cert_manager_object(plan, "Issuer", SELF_SIGNED_ISSUER, &json!({"selfSigned": {}})),
        cert_manager_object(plan, "Certificate", CA_CERTIFICATE, &ca),
        cert_manager_object(plan, "Issuer", ISSUER, &json!({"ca": {"secretName": CA_SECRET}})),
    ];
    objects.others.extend(added.map(|object| (InstallPart::Workload, object)));
}

/// Has cert-manager write the CA of a Certificate into the `caBundle`.
fn inject_ca(objects: &mut Objects, plan: &InstallPlan, certificate: &str) {
    let source = format!("{}/{certificate}", plan.namespace);
    annotate(objects, "cert-manager.io/inject-ca-from", &source);
}

fn issuer_ref(name: &str) -> Value {
    json!({"name": name, "kind": "Issuer", "group": "cert-manager.io"})
}

/// An object of cert-manager's.
fn cert_manager_object(plan: &InstallPlan, kind: &str, name: &str, spec: &Value) -> Value {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..metadata(plan) };
    json!({"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
}
