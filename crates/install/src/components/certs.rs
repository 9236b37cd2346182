//! Certificates that memgate does not make: the sources of its own certificate, and the one that callers must present.

use serde_json::{Value, json};

use crate::components::annotate;
use crate::install_plan::InstallPlan;
use crate::metadata::NAME;
use crate::objects::Objects;

/// The Secret of type `kubernetes.io/tls` that holds the certificate.
const TLS_SECRET: &str = "memgate-tls";
/// The volume with the certificate.
const TLS: &str = "tls";
/// Where it is mounted.
const TLS_DIRECTORY: &str = "/etc/memgate/tls";
/// The ConfigMap with the CA of the clients that may call.
const CLIENT_CA: &str = "memgate-client-ca";
/// Where it is mounted.
const CLIENT_CA_DIRECTORY: &str = "/etc/memgate/client-ca";
/// The Issuer that signs with the CA, and the CA's Certificate.
const CA_CERTIFICATE: &str = "memgate-ca";
/// The user that the container runs as.
const RUN_AS_USER: &str = "65532";

/// The Secret `memgate-tls`, which memgate does not write.
pub(super) fn files(objects: &mut Objects) {
    serve_from_volume(objects, &json!({"name": TLS, "secret": {"secretName": TLS_SECRET}}));
}

/// A CA, an issuer and a certificate of cert-manager, which also writes the `caBundle`.
pub(super) fn cert_manager(objects: &mut Objects, plan: &InstallPlan) {
    files(objects);
    set_mode(objects, "cert-manager");
    inject_ca(objects, plan, NAME);
}

/// The same CA; the CSI driver of cert-manager gets a certificate of it for each replica.
pub(super) fn csi_driver(objects: &mut Objects, plan: &InstallPlan) {
    let service = format!("{NAME}.{}.svc", plan.namespace);
    let attributes = json!({
        "csi.cert-manager.io/issuer-name": CA_CERTIFICATE,
        "csi.cert-manager.io/dns-names": service,
        "csi.cert-manager.io/key-algorithm": "ECDSA",
        "csi.cert-manager.io/key-size": "256",
        "csi.cert-manager.io/key-usages": "digital signature,server auth",
        "csi.cert-manager.io/fs-group": RUN_AS_USER,
    });
    let source = json!({"driver": "csi.cert-manager.io", "readOnly": true, "volumeAttributes": attributes});
    serve_from_volume(objects, &json!({"name": TLS, "csi": source}));
    inject_ca(objects, plan, CA_CERTIFICATE);
}

/// Accepts only clients with a certificate of the CA in the ConfigMap `memgate-client-ca`.
pub(super) fn mtls(objects: &mut Objects) {
    objects.mount(&json!({"name": "client-ca", "configMap": {"name": CLIENT_CA}}), CLIENT_CA_DIRECTORY);
    objects.arguments.extend([
        format!("--client-ca={CLIENT_CA_DIRECTORY}/ca.crt"),
        "--client-name=kube-apiserver".to_owned(),
    ]);
}

/// Serves the certificate in a volume.
fn serve_from_volume(objects: &mut Objects, volume: &Value) {
    set_mode(objects, "files");
    objects.arguments.extend([
        format!("--tls-cert={TLS_DIRECTORY}/tls.crt"),
        format!("--tls-key={TLS_DIRECTORY}/tls.key"),
    ]);
    objects.mount(volume, TLS_DIRECTORY);
}

/// Sets the flag for the origin of the certificate.
fn set_mode(objects: &mut Objects, mode: &str) {
    for argument in objects.arguments.iter_mut().filter(|argument| argument.starts_with("--certs=")) {
        *argument = format!("--certs={mode}");
    }
}

/// Has cert-manager write the CA of a Certificate into the `caBundle`.
fn inject_ca(objects: &mut Objects, plan: &InstallPlan, certificate: &str) {
    let source = format!("{}/{certificate}", plan.namespace);
    annotate(objects, "cert-manager.io/inject-ca-from", &source);
}
