//! The errors of kube, hyper, rustls and the system in words: what happened, and what it means.
//!
//! Their own texts repeat their causes, and some of them are dumps of a value (`UnknownIssuer`, a whole `Status`).

use std::error::Error;
use std::io;

use axum::http::StatusCode;
use hyper_util::client::legacy;
use kube::core::Status;
use kube::runtime::watcher;
use rustls::{AlertDescription, CertificateError};

use memgate_primitives::causes::{Part, cause, joined, own_part};

/// An error and its causes in one line.
pub fn explained(error: &(dyn Error + 'static)) -> String {
    joined(error, part)
}

/// An HTTP status as text: `401 Unauthorized`.
pub fn status_line(code: u16) -> String {
    StatusCode::from_u16(code).map_or_else(|_| code.to_string(), |status| status.to_string())
}

fn part(error: &(dyn Error + 'static)) -> Part {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return Part::Last(of_status(status));
    }
    if let Some(watcher::Error::WatchError(status)) = error.downcast_ref() {
        return Part::Last(of_status(status));
    }
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Part::Last(of_tls(error));
    }
    if error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect) {
        return Part::Text("no connection".to_owned());
    }
    let wraps = error.is::<kube::Error>()
        || error.is::<watcher::Error>()
        || error.is::<legacy::Error>()
        || error.is::<io::Error>();
    if wraps && cause(error).is_some() { Part::Nothing } else { own_part(error) }
}

/// The apiserver's message. With a 401 it says no more than the status.
fn of_status(status: &Status) -> String {
    match status.code {
        401 => format!("{}: the credentials have expired, or were revoked", status_line(401)),
        code if status.message.is_empty() => status_line(code),
        _ => status.message.clone(),
    }
}

fn of_tls(error: &rustls::Error) -> String {
    use rustls::Error as E;
    let text = match error {
        E::InvalidCertificate(error) => {
            return format!("the peer's certificate cannot be trusted: {}", of_certificate(error));
        }
        E::NoCertificatesPresented => "the peer has no certificate",
        E::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA,
        ) => "the peer does not trust the certificate of this side",
        E::AlertReceived(_) => "the peer has ended the TLS handshake",
        E::InappropriateMessage { .. } | E::InappropriateHandshakeMessage { .. } | E::InvalidMessage(_) => {
            "the peer does not speak TLS"
        }
        E::PeerIncompatible(_) => "the peer has no version or cipher of TLS in common with this side",
        E::InconsistentKeys(_) => "the key does not belong to the certificate",
        E::General(text) => text,
        _ => "TLS has failed",
    };
    text.to_owned()
}

/// Why a certificate is not accepted.
fn of_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => "no trusted CA has signed it",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it, or the CA that signed it, has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it, or the CA that signed it, is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name"
        }
        _ => "it is damaged, or of a kind that is not supported",
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use super::*;

    fn api(code: u16, message: &str) -> kube::Error {
        let status =
            serde_json::json!({"status": "Failure", "code": code, "message": message, "reason": "Because"});
        kube::Error::Api(serde_json::from_value(status).expect("a status"))
    }

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read a")]
    struct Outer<E: Error + 'static>(#[source] E);

    #[test]
    fn says_what_the_apiserver_says() {
        let forbidden = "secrets is forbidden: User \"u\" cannot list resource \"secrets\"";
        let expired = "401 Unauthorized: the credentials have expired, or were revoked";
        assert_eq!(explained(&api(403, forbidden)), forbidden);
        assert_eq!(explained(&api(401, "Unauthorized")), expired);
        assert_eq!(explained(&api(503, "")), "503 Service Unavailable");
        assert_eq!(explained(&watcher::Error::InitialListFailed(api(401, ""))), expired);
        let kube::Error::Api(status) = api(410, "too old") else { panic!("a status") };
        assert_eq!(explained(&watcher::Error::WatchError(status)), "too old");
        assert_eq!(explained(&Outer(api(403, "no"))), "failed to read a: no");
    }

    #[test]
    fn says_what_is_wrong_with_a_certificate() {
        let untrusted = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let text = "the peer's certificate cannot be trusted: no trusted CA has signed it";
        assert_eq!(explained(&untrusted()), text);
        let wrapped = io::Error::other(io::Error::new(ErrorKind::InvalidData, untrusted()));
        assert_eq!(explained(&kube::Error::Service(wrapped.into())), text);
        for (error, text) in [
            (
                rustls::Error::AlertReceived(AlertDescription::UnknownCA),
                "does not trust the certificate of this side",
            ),
            (rustls::Error::AlertReceived(AlertDescription::InternalError), "has ended the TLS handshake"),
            (rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "does not speak TLS"),
            (
                rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch),
                "the key does not belong to",
            ),
        ] {
            let said = explained(&error);
            assert!(said.contains(text), "{said}");
        }
    }

    #[test]
    fn says_why_there_is_no_answer() {
        let late = kube::Error::Service("no answer within 5 s".into());
        assert_eq!(explained(&Outer(late)), "failed to read a: no answer within 5 s");
        let refused = io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error());
        assert_eq!(explained(&Outer(refused)), "failed to read a: connection refused");
    }

    #[tokio::test]
    async fn says_that_nothing_listens() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let client = kube::Client::try_from(nowhere).expect("a client");
        let asked = tokio::time::timeout(Duration::from_secs(10), client.apiserver_version()).await;
        let error = asked.expect("an answer").expect_err("nothing is there");
        let said = explained(&error);
        assert!(said.starts_with("no connection: ") && said.ends_with("connection refused"), "{said}");
        assert!(!said.contains("client error") && !said.contains("ServiceError"), "{said}");
    }
}
