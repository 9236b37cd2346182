//! The limit: memgate's listener with a service that reads each body and answers a constant.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;

use anyhow::Result;
use axum::Router;
use memgate_certs::tls::CertSource;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Options;
use memgate_server::{Server, State, runtime};

/// Serves these routes at this address until it is killed.
pub(crate) fn serve(listen: SocketAddr, certificates: &Path, routes: Router) -> Result<()> {
    let [cert, key] = ["tls.crt", "tls.key"].map(|name| certificates.join(name));
    let mut options = Options::new(CertSource::Files { cert, key });
    options.listen = listen;
    options.health = SocketAddr::from(([127, 0, 0, 1], 0));
    options.limits.handshakes = NonZeroU32::MAX;
    let server = Server::bind(options, State::Fixed(Snapshot::new(memgate_platforms::default_settings())))?;
    Ok(runtime()?.block_on(server.with_routes(routes).run(std::future::pending()))?)
}
