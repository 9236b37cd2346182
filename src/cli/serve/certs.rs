//! The flags and keys of `memgate serve` about certificates.

use std::path::PathBuf;

use crate::cli::duration;
use crate::cli::server_keys::ServerKeys;
use memgate_certs::tls::{CertSource, ClientAuth};
use memgate_certs::{Builtin, CertPolicy};
use memgate_cluster::client::own_namespace;
use memgate_primitives::review_path::service_names;

/// Where `memgate manifests` mounts the certificate.
const MOUNTED_CERT: &str = "/etc/memgate/tls/tls.crt";
/// Where it mounts the key.
const MOUNTED_KEY: &str = "/etc/memgate/tls/tls.key";

/// The certificate of the webhook.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
pub(super) struct CertArgs {
    /// Where the certificate comes from; without it files with --tls-cert, self-signed with --state,
    /// else builtin
    #[arg(long, value_name = "MODE", value_enum)]
    certs: Option<CertMode>,

    /// The certificate with its chain, PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Where to write the CA of a self-signed certificate
    #[arg(long, value_name = "FILE", default_value = "memgate-ca.crt", conflicts_with = "tls_cert")]
    tls_ca_out: PathBuf,

    /// A further name or address in the certificates that memgate makes; can be repeated
    #[arg(long = "tls-name", value_name = "NAME", conflicts_with = "tls_cert")]
    tls_names: Vec<String>,

    /// The namespace of memgate's Service and of the CA Secret, where policies do not judge; without it the service account's,
    /// else memgate-system
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// The Service that the apiserver calls
    #[arg(long, value_name = "NAME", default_value = "memgate")]
    service: String,

    /// The name of both webhook configurations, whose caBundle is kept
    #[arg(long, value_name = "NAME", default_value = "memgate")]
    webhook_configuration: String,

    /// The Secret that holds the CA
    #[arg(long, value_name = "NAME", default_value = "memgate-ca")]
    ca_secret: String,

    /// Answer only callers with a certificate of this CA, PEM; read again when it changes
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// A name that the certificate of callers must have: common name, DNS name or URI; can be repeated
    #[arg(long = "client-name", value_name = "NAME", requires = "client_ca")]
    client_names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CertMode {
    /// memgate's own CA, kept in a Secret, and caBundle with it
    Builtin,
    /// The files of --tls-cert and --tls-key, else those below /etc/memgate/tls
    Files,
    /// Such files from cert-manager, which keeps caBundle too
    CertManager,
    /// A CA and a certificate made at the start
    SelfSigned,
}

impl CertArgs {
    /// Where the certificate comes from: the default depends on whether the state is from files.
    ///
    /// # Errors
    /// When the arguments contradict each other, or a value of the settings file cannot be used.
    pub(super) fn source(&self, keys: &ServerKeys, state_from_files: bool) -> anyhow::Result<CertSource> {
        let mode = self.certs.unwrap_or(match (&self.tls_cert, state_from_files) {
            (Some(_), _) => CertMode::Files,
            (None, true) => CertMode::SelfSigned,
            (None, false) => CertMode::Builtin,
        });
        let files = matches!(mode, CertMode::Files | CertMode::CertManager);
        anyhow::ensure!(
            files || self.tls_cert.is_none(),
            "this certificate is made, not read; leave out --tls-cert and --tls-key, or give --certs files"
        );
        // Wrong values are wrong in every mode.
        let policy = policy(keys)?;
        Ok(match mode {
            CertMode::Files | CertMode::CertManager => CertSource::Files {
                cert: self.tls_cert.clone().unwrap_or_else(|| MOUNTED_CERT.into()),
                key: self.tls_key.clone().unwrap_or_else(|| MOUNTED_KEY.into()),
            },
            CertMode::SelfSigned => {
                CertSource::SelfSigned { names: self.tls_names.clone(), ca: self.tls_ca_out.clone() }
            }
            CertMode::Builtin => CertSource::Builtin(self.builtin(policy)),
        })
    }

    /// The client certificates that are required; `None` for none.
    pub(super) fn client_auth(&self) -> Option<ClientAuth> {
        let ca = self.client_ca.clone()?;
        Some(ClientAuth { ca, names: self.client_names.clone() })
    }

    /// The namespace that memgate runs in.
    pub(super) fn namespace(&self) -> String {
        self.namespace.clone().unwrap_or_else(own_namespace)
    }

    /// The name of both webhook configurations.
    pub(super) fn configuration(&self) -> &str {
        &self.webhook_configuration
    }

    fn builtin(&self, policy: CertPolicy) -> Builtin {
        let namespace = self.namespace();
        let mut names = service_names(&self.service, &namespace);
        names.extend(self.tls_names.iter().cloned());
        let (secret, configuration) = (self.ca_secret.clone(), self.webhook_configuration.clone());
        Builtin { namespace, secret, configuration, names, policy }
    }
}

/// The lives and keys of certificates that the settings file sets.
///
/// # Errors
/// When a value cannot be used.
pub(super) fn policy(keys: &ServerKeys) -> anyhow::Result<CertPolicy> {
    let mut policy = CertPolicy::default();
    keys.set("caValidity", duration::parse_validity, &mut policy.ca)?;
    keys.set("leafValidity", duration::parse_validity, &mut policy.leaf)?;
    let message = "no certificate outlives its CA; give a longer caValidity".to_owned();
    keys.ensure(policy.leaf <= policy.ca, "leafValidity", &message)?;
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{Args as _, FromArgMatches as _};

    use super::*;
    use crate::cli::server_keys::tests::of as keys;

    #[test]
    fn has_the_defaults_of_the_server_and_sets_every_option() {
        assert_eq!(policy(&keys("")).expect("good"), CertPolicy::default());
        let (ca, leaf) = (Duration::from_hours(2), Duration::from_hours(1));
        let wanted = CertPolicy { ca, leaf, ..CertPolicy::default() };
        assert_eq!(policy(&keys("{caValidity: 2h, leafValidity: 1h}")).expect("good"), wanted);
    }

    #[test]
    fn refuses_wrong_values_in_every_mode() {
        let args =
            CertArgs::augment_args(clap::Command::new("serve").arg(clap::Arg::new("state").long("state")));
        for mode in ["files", "cert-manager", "self-signed", "builtin"] {
            let flags = ["serve".to_owned(), format!("--certs={mode}")];
            let args = args.clone().try_get_matches_from(flags).expect("good");
            let args = CertArgs::from_arg_matches(&args).expect("good");
            let error = args.source(&keys("{caValidity: nonsense}"), false).expect_err("wrong").to_string();
            assert!(error.contains("caValidity"), "{error}");
        }
    }
}
