//! A wire that can be cut without a sign: what was connected is never closed, and never
//! hears anything again. So it is when a firewall forgets a connection, or a route is gone.

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
    state: watch::Sender<State>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// How often it was disturbed.
    disturbed: u32,
    /// What became of what was connected when it was disturbed last.
    before: Mode,
    /// What becomes of new connections.
    mode: Mode,
}

/// What becomes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// New ones are well.
    Well,
    /// All of them are open, and nothing comes through, nor ever will.
    Silent,
    /// All of them are closed.
    Closed,
}

impl Wire {
    /// Listens on a free port; what connects there is connected to `to`.
    pub(crate) fn start(runtime: &Handle, to: SocketAddr) -> Result<Self> {
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let (state, seen) = watch::channel(State { disturbed: 0, before: Mode::Well, mode: Mode::Well });
        Ok(Self { address, state, task: runtime.spawn(accept(listener, to, seen)) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on, and for what is connected, nothing comes through, without a sign.
    pub(crate) fn cut(&self) {
        self.set(Mode::Silent);
    }

    /// From now on, and for what is connected, connections are closed.
    pub(crate) fn hang_up(&self) {
        self.set(Mode::Closed);
    }

    /// New connections are well again; those of before stay as they are.
    pub(crate) fn mend(&self) {
        self.state.send_modify(|state| state.mode = Mode::Well);
    }

    fn set(&self, mode: Mode) {
        self.state.send_modify(|state| *state = State { disturbed: state.disturbed + 1, before: mode, mode });
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, state: watch::Receiver<State>) {
    while let Ok((caller, _)) = listener.accept().await {
        tokio::spawn(forward(caller, to, state.clone()));
    }
}

async fn forward(mut caller: TcpStream, to: SocketAddr, mut state: watch::Receiver<State>) {
    let State { disturbed, mode, .. } = *state.borrow_and_update();
    let mut there = None;
    let mut end = mode;
    if mode == Mode::Well {
        let Ok(connected) = TcpStream::connect(to).await else { return };
        let there = there.insert(connected);
        let _ = (caller.set_nodelay(true), there.set_nodelay(true));
        tokio::select! {
            _ = copy_bidirectional(&mut caller, there) => return,
            state = state.wait_for(|state| state.disturbed != disturbed) => {
                end = state.map_or(Mode::Closed, |state| state.before);
            }
        }
    }
    // Both ends stay open until the wire itself is gone.
    while end == Mode::Silent && state.changed().await.is_ok() {}
    drop((caller, there));
}
