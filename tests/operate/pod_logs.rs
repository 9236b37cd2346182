//! What a kubelet does for `kubectl logs`: the apiserver asks the machine of a pod for the output of its container.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::certs::Authority;

const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The file with the output of each pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodLogs(Arc<Mutex<BTreeMap<String, PathBuf>>>);

impl PodLogs {
    /// Adds a pod.
    pub(crate) fn add(&self, pod: &str, file: PathBuf) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pod.to_owned(), file);
    }

    /// Answers the apiserver until the test ends. Returns the port.
    pub(crate) fn serve(&self, authority: &Authority) -> Result<u16> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let (logs, config) = (self.clone(), Arc::new(tls(authority)?));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Err(error) = logs.answer(stream, &config) {
                    eprintln!("the stand-in for a kubelet: {error:#}");
                }
            }
        });
        Ok(port)
    }

    /// `GET /containerLogs/NAMESPACE/POD/CONTAINER?…`
    fn answer(&self, stream: TcpStream, config: &Arc<ServerConfig>) -> Result<()> {
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let connection = ServerConnection::new(Arc::clone(config))?;
        let mut stream = BufReader::new(StreamOwned::new(connection, stream));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = stream.read_line(&mut head)?;
            (read > 0).then_some(()).context("the request ends within its head")?;
        }
        let pod = head.split('/').nth(3).unwrap_or_default();
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(pod).cloned();
        let log = fs::read(file.with_context(|| format!("there is no pod {pod}"))?)?;
        let mut tls = stream.into_inner();
        write!(
            tls,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            log.len()
        )?;
        tls.write_all(&log)?;
        tls.conn.send_close_notify();
        tls.flush()?;
        Ok(())
    }
}

fn tls(authority: &Authority) -> Result<ServerConfig> {
    let pair = authority.server("kubelet")?;
    let cert = CertificateDer::from_pem_slice(pair.cert.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    Ok(ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)?)
}
