//! Verifies whether the live webhook configurations trust the certificate that their server presents. Reads no Secret,
//! and writes nothing.

mod peer_chain;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use axum::http::Uri;
use kube::Client;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error as TlsError, RootCertStore};
use serde_json::Value;
use thiserror::Error as ThisError;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::kube_api::{webhook_configs, with_timeout};
use crate::library_error::{explained, of_certificate};
use crate::{ca_bundle, provider};
use memgate_primitives::review_path::{Phase, config_name};

/// The timeout of each request and connection.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why certificates cannot be verified.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The apiserver did not answer well.
    #[error("failed to read the {kind} webhook configuration {name}: {reason}")]
    Read {
        /// Which of the two.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The apiserver's message.
        reason: String,
    },
    /// A file cannot be read.
    #[error("failed to read a certificate from {path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

/// What is verified.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions<'a> {
    /// The name of both configurations.
    pub configuration: &'a str,
    /// Where to connect to instead of where an entry says: `host:port`.
    pub address: Option<&'a str>,
    /// The certificate with its chain, instead of the one that the server presents.
    pub chain: Option<&'a Path>,
    /// The time at which certificates must be valid, in seconds since 1970.
    pub now: i64,
}

/// The result for one webhook of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookReport {
    /// `mutating` or `validating`.
    pub configuration: &'static str,
    /// The name of the webhook.
    pub name: String,
    /// The name that the apiserver asks for.
    pub asks_for: String,
    /// What `caBundle` holds.
    pub bundle: Vec<CertInfo>,
    /// The chain that the server presents, its own certificate first; empty when no server was asked.
    pub chain: Vec<CertInfo>,
    /// Whether the one trusts the other.
    pub verdict: TrustVerdict,
}

/// Whether an apiserver would trust the server of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustVerdict {
    /// The apiserver would trust it.
    Trusted,
    /// The apiserver would not trust it, for this reason.
    Refused(String),
    /// The server did not answer, or the entries contradict each other.
    Unknown(String),
    /// The server cannot be reached from here, so no connection was made. `caBundle` holds a valid CA, and all webhooks of
    /// this server trust the same CAs.
    Unasked(String),
}

/// The reported fields of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertInfo {
    /// The subject as text.
    pub subject: String,
    /// The issuer as text.
    pub issuer: String,
    /// The DNS names and addresses that it is for.
    pub names: Vec<String>,
    /// From when on it is valid, in seconds since 1970.
    pub not_before: i64,
    /// Until when it is valid, in seconds since 1970.
    pub not_after: i64,
}

/// The chains that servers have presented, by their address and the requested name.
type ChainCache = BTreeMap<(String, String), Result<Vec<CertificateDer<'static>>, String>>;

/// The server of a webhook.
#[derive(Debug, Default, PartialEq, Eq)]
struct Target {
    /// The name that the apiserver asks for.
    asks_for: String,
    /// Where to connect to, if that can be known.
    address: Option<String>,
}

/// Verifies every webhook of both configurations; empty when there is no configuration.
///
/// # Errors
/// When the apiserver or a file cannot be read.
pub async fn verify(client: &Client, options: &VerifyOptions<'_>) -> Result<Vec<WebhookReport>, Error> {
    let given = options.chain.map(read_chain).transpose()?;
    let (mut entries, mut cache) = (Vec::new(), ChainCache::new());
    for kind in Phase::ALL {
        let read =
            with_timeout(TIMEOUT, webhook_configs(client.clone(), kind).get_opt(options.configuration)).await;
        let object = read.map_err(|error| Error::Read {
            kind: config_name(kind),
            name: options.configuration.to_owned(),
            reason: explained(&error),
        })?;
        let webhooks = object.as_ref().and_then(|object| object.data.get("webhooks")?.as_array());
        for webhook in webhooks.into_iter().flatten() {
            entries.push(verify_entry(kind, webhook, given.as_deref(), options, &mut cache).await);
        }
    }
    mark_contradictions(&mut entries);
    Ok(entries)
}

async fn verify_entry(
    kind: Phase,
    webhook: &Value,
    given: Option<&[CertificateDer<'static>]>,
    options: &VerifyOptions<'_>,
    cache: &mut ChainCache,
) -> WebhookReport {
    let text = |pointer| webhook.pointer(pointer).and_then(Value::as_str);
    let bundle = ca_bundle::of_entry(webhook).certs;
    let bundle: Vec<_> = bundle.iter().map(ca_bundle::CaCert::certificate).collect();
    let Target { asks_for, address } = target(webhook);
    let chain = match (given, options.address.map(str::to_owned).or(address)) {
        (Some(given), _) => Some(Ok(given.to_vec())),
        (None, Some(address)) => Some(server_chain(address, &asks_for, cache).await),
        (None, None) => None,
    };
    let is_valid = |cert_info: &CertInfo| (cert_info.not_before..cert_info.not_after).contains(&options.now);
    let verdict = match &chain {
        _ if bundle.is_empty() => TrustVerdict::Refused("caBundle holds no certificate".to_owned()),
        Some(Ok(chain)) => verify_chain(&bundle, chain, &asks_for, options.now),
        Some(Err(reason)) => TrustVerdict::Unknown(reason.clone()),
        None if !bundle.iter().filter_map(cert_info).any(|cert_info| is_valid(&cert_info)) => {
            TrustVerdict::Refused("every CA in caBundle has expired, or is not valid yet".to_owned())
        }
        None => TrustVerdict::Unasked(
            "it is reached from within the cluster only; give --url or --cert".to_owned(),
        ),
    };
    let cert_info = |certificates: &[CertificateDer<'_>]| certificates.iter().filter_map(cert_info).collect();
    WebhookReport {
        configuration: config_name(kind),
        name: text("/name").unwrap_or_default().to_owned(),
        asks_for,
        bundle: cert_info(&bundle),
        chain: cert_info(&chain.and_then(Result::ok).unwrap_or_default()),
        verdict,
    }
}

/// The chain that a server presents; each server gets one connection.
async fn server_chain(
    address: String,
    name: &str,
    cache: &mut ChainCache,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let key = (address, name.to_owned());
    if let Some(known) = cache.get(&key) {
        return known.clone();
    }
    let chain = peer_chain::fetch(&key.0, name, TIMEOUT).await;
    cache.insert(key, chain.clone());
    chain
}

/// If webhooks of one server trust different CAs, at least one is wrong. Without a connection to the server it is
/// unknown which one.
fn mark_contradictions(entries: &mut [WebhookReport]) {
    let bundle = |entry: &WebhookReport| entry.bundle.iter().cloned().collect::<BTreeSet<_>>();
    let all: Vec<_> = entries.iter().map(|entry| (entry.asks_for.clone(), bundle(entry))).collect();
    for entry in entries {
        let own = bundle(entry);
        let differ = all.iter().any(|(asks_for, other)| *asks_for == entry.asks_for && *other != own);
        if differ && matches!(entry.verdict, TrustVerdict::Unasked(_)) {
            let reason = "the entries that lead there do not trust the same CAs; ask again in a moment, or \
                          give --url or --cert";
            entry.verdict = TrustVerdict::Unknown(reason.to_owned());
        }
    }
}

/// Whether a chain is trusted for a name, as an apiserver would see it.
fn verify_chain(
    bundle: &[CertificateDer<'_>],
    chain: &[CertificateDer<'_>],
    name: &str,
    now: i64,
) -> TrustVerdict {
    let Some((leaf, others)) = chain.split_first() else {
        return TrustVerdict::Refused("the server shows no certificate".to_owned());
    };
    let mut roots = RootCertStore::empty();
    let added = roots.add_parsable_certificates(bundle.iter().map(|der| der.clone().into_owned()));
    let provider = provider().into();
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build();
    let (Ok(verifier), Ok(server), true) = (verifier, ServerName::try_from(name), added.0 > 0) else {
        return TrustVerdict::Refused("caBundle holds no certificate that can be used".to_owned());
    };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).unwrap_or_default()));
    match verifier.verify_server_cert(leaf, others, &server, &[], now) {
        Ok(_) => TrustVerdict::Trusted,
        Err(error) => TrustVerdict::Refused(reason(&error, name)),
    }
}

fn reason(error: &TlsError, name: &str) -> String {
    let TlsError::InvalidCertificate(error) = error else { return explained(error) };
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no CA in caBundle has signed it".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is not for {name}")
        }
        other => of_certificate(other).to_owned(),
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |reason: String| Error::File { path: path.display().to_string(), reason };
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    chain.ok_or_else(|| failed("there is no PEM certificate in it".to_owned()))
}

fn target(webhook: &Value) -> Target {
    let config = webhook.get("clientConfig");
    let text = |pointer| config.and_then(|config| config.pointer(pointer)).and_then(Value::as_str);
    if let (Some(name), Some(namespace)) = (text("/service/name"), text("/service/namespace")) {
        return Target { asks_for: format!("{name}.{namespace}.svc"), address: None };
    }
    let url = text("/url").and_then(|url| url.parse::<Uri>().ok());
    let Some(host) = url.as_ref().and_then(Uri::host) else { return Target::default() };
    let port = url.as_ref().and_then(Uri::port_u16).unwrap_or(443);
    // The host of a URL has an IPv6 address in brackets, a name in a certificate has not.
    let asks_for = host.trim_matches(['[', ']']).to_owned();
    Target { asks_for, address: Some(format!("{host}:{port}")) }
}

/// The fields of a certificate; `None` when it cannot be parsed.
fn cert_info(certificate: &CertificateDer<'_>) -> Option<CertInfo> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes),
        _ => None,
    });
    Some(CertInfo {
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        names: names.collect(),
        not_before: certificate.validity().not_before.timestamp(),
        not_after: certificate.validity().not_after.timestamp(),
    })
}

fn address(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).map(std::net::IpAddr::from);
    let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(std::net::IpAddr::from));
    address.ok().map(|address| address.to_string())
}

#[cfg(test)]
mod tests;
