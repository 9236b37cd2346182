//! What trials share: the cluster, and the rule about who may disturb it.

use std::sync::{OnceLock, PoisonError, RwLock};

use anyhow::{Result, anyhow};

use crate::{
    installed::{GUARDED, Installed},
    support::control_plane::ControlPlane,
};

/// What a trial is given.
#[derive(Default)]
pub(crate) struct World {
    // Fields end in this order, and memgate is to end before what it talks to.
    memgate: OnceLock<Result<Installed, String>>,
    cluster: OnceLock<Result<ControlPlane, String>>,
    peace: RwLock<()>,
}

type Run = Box<dyn FnOnce(&World) -> Result<()> + Send>;

/// A named trial.
pub(crate) struct Case {
    /// `module::what_it_claims`.
    pub(crate) name: String,
    run: Run,
    alone: bool,
    /// Whether it runs only when it is asked for: it takes minutes.
    pub(crate) soak: bool,
}

impl Case {
    /// A trial that others do not notice.
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl FnOnce(&World) -> Result<()> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), run: Box::new(run), alone: false, soak: false }
    }

    /// A trial of minutes, which runs with `--ignored` alone.
    pub(crate) fn soak(
        name: impl Into<String>,
        run: impl FnOnce(&World) -> Result<()> + Send + 'static,
    ) -> Self {
        Self { soak: true, ..Self::new(name, run) }
    }

    /// A trial during which no other runs, since it disturbs the whole cluster.
    pub(crate) fn alone(
        name: impl Into<String>,
        run: impl FnOnce(&World) -> Result<()> + Send + 'static,
    ) -> Self {
        Self { alone: true, ..Self::new(name, run) }
    }
}

impl World {
    /// The cluster, started when nobody asked for it before.
    ///
    /// # Errors
    /// When it does not start, to everybody who asks; it is not tried twice.
    pub(crate) fn cluster(&self) -> Result<&ControlPlane> {
        let start = || ControlPlane::start().map_err(|error| format!("{error:#}"));
        let cluster = self.cluster.get_or_init(start).as_ref();
        cluster.map_err(|error| anyhow!("there is no cluster to test against: {error}"))
    }

    /// memgate in that cluster, asked about all namespaces that [`World::namespace`] makes; installed when nobody asked for it before.
    ///
    /// # Errors
    /// When it cannot be installed, to everybody who asks; it is not tried twice.
    pub(crate) fn memgate(&self) -> Result<&Installed> {
        let cluster = self.cluster()?;
        let install = || Installed::new(cluster).map_err(|error| format!("{error:#}"));
        let memgate = self.memgate.get_or_init(install).as_ref();
        memgate.map_err(|error| anyhow!("there is no memgate to test: {error}"))
    }

    /// A namespace of the trial's own about which memgate is asked, with these labels.
    pub(crate) fn namespace(&self, prefix: &str, labels: &[(&str, &str)]) -> Result<String> {
        self.memgate()?;
        self.cluster()?.labelled_namespace(prefix, &[&[GUARDED], labels].concat())
    }

    /// Runs a trial when its time has come. A trial that panicked leaves nothing half done that
    /// the lock would guard, so poison is passed over.
    pub(crate) fn run(&self, case: Case) -> Result<()> {
        if case.alone {
            let _alone = self.peace.write().unwrap_or_else(PoisonError::into_inner);
            (case.run)(self)
        } else {
            let _beside = self.peace.read().unwrap_or_else(PoisonError::into_inner);
            (case.run)(self)
        }
    }
}
