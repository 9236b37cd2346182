//! A wire that can be cut without anybody being told: what was connected is never closed, and never
//! hears anything again. So it is when a firewall forgets a connection or a route is gone.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::watch,
    task::JoinHandle,
};

/// A running wire, ended on drop.
pub(crate) struct Wire {
    address: SocketAddr,
    cut: watch::Sender<Cut>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    /// How often it was cut; connections of before such a cut are dead.
    times: u32,
    /// Whether new connections are dead from the start.
    down: bool,
}

impl Wire {
    /// Listens on a free port; what connects there is connected to `to`.
    pub(crate) fn start(runtime: &Handle, to: SocketAddr) -> Result<Self> {
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let (cut, state) = watch::channel(Cut::default());
        Ok(Self { address, cut, task: runtime.spawn(accept(listener, to, state)) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Deadens what is connected; new connections are well.
    pub(crate) fn cut_once(&self) {
        self.cut.send_modify(|cut| cut.times += 1);
    }

    /// Deadens what is connected, and whatever connects until [`Wire::mend`].
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cut| *cut = Cut { times: cut.times + 1, down: true });
    }

    /// New connections are well again.
    pub(crate) fn mend(&self) {
        self.cut.send_modify(|cut| cut.down = false);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, state: watch::Receiver<Cut>) {
    while let Ok((caller, _)) = listener.accept().await {
        tokio::spawn(carry(caller, to, state.clone()));
    }
}

async fn carry(mut caller: TcpStream, to: SocketAddr, mut state: watch::Receiver<Cut>) {
    let Cut { times, down } = *state.borrow_and_update();
    let mut there = None;
    if !down {
        let Ok(connected) = TcpStream::connect(to).await else { return };
        let there = there.insert(connected);
        let _ = (caller.set_nodelay(true), there.set_nodelay(true));
        tokio::select! {
            _ = copy_bidirectional(&mut caller, there) => return,
            _ = state.wait_for(|cut| cut.times != times) => {}
        }
    }
    // Both ends stay open and silent until the wire itself is gone.
    while state.changed().await.is_ok() {}
    drop((caller, there));
}
