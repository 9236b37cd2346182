//! What trials share: the cluster, and a lock for trials that disturb it.

use std::sync::{OnceLock, PoisonError, RwLock};

use anyhow::{Result, anyhow};

use crate::{
    installed::{GUARDED, Installed},
    order_cluster::OrderCluster,
    support::control_plane::ControlPlane,
};

/// The clusters, for all trials.
#[derive(Default)]
pub(crate) struct Fixture {
    // Fields are dropped in this order: memgate ends before its cluster.
    memgate: OnceLock<Result<Installed, String>>,
    order: OnceLock<Result<OrderCluster, String>>,
    cluster: OnceLock<Result<ControlPlane, String>>,
    undisturbed: RwLock<()>,
}

type Run = Box<dyn FnOnce(&Fixture) -> Result<()> + Send>;

/// A named trial.
pub(crate) struct Trial {
    /// `module::what_it_claims`.
    pub(crate) name: String,
    run: Run,
    alone: bool,
    /// Whether it takes minutes, and runs with `--ignored` only.
    pub(crate) soak: bool,
    /// The oldest Kubernetes that it can run on.
    pub(crate) since: (u32, u32),
}

impl Trial {
    /// A trial that does not disturb others.
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl FnOnce(&Fixture) -> Result<()> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), run: Box::new(run), alone: false, soak: false, since: (1, 0) }
    }

    /// A trial of minutes, which runs with `--ignored` alone.
    pub(crate) fn soak(
        name: impl Into<String>,
        run: impl FnOnce(&Fixture) -> Result<()> + Send + 'static,
    ) -> Self {
        Self { soak: true, ..Self::new(name, run) }
    }

    /// The same, on this Kubernetes and newer ones only.
    pub(crate) fn since(self, since: (u32, u32)) -> Self {
        Self { since, ..self }
    }

    /// A trial that runs alone, since it disturbs the whole cluster.
    pub(crate) fn alone(
        name: impl Into<String>,
        run: impl FnOnce(&Fixture) -> Result<()> + Send + 'static,
    ) -> Self {
        Self { alone: true, ..Self::new(name, run) }
    }
}

impl Fixture {
    /// The cluster, started by the first call.
    ///
    /// # Errors
    /// When it does not start, every time; it is not tried twice.
    pub(crate) fn cluster(&self) -> Result<&ControlPlane> {
        let start = || ControlPlane::start().map_err(|error| format!("{error:#}"));
        let cluster = self.cluster.get_or_init(start).as_ref();
        cluster.map_err(|error| anyhow!("there is no cluster to test against: {error}"))
    }

    /// memgate in that cluster, called for all namespaces of [`Fixture::namespace`]; installed by the first call.
    ///
    /// # Errors
    /// When it cannot be installed, every time; it is not tried twice.
    pub(crate) fn memgate(&self) -> Result<&Installed> {
        let cluster = self.cluster()?;
        let install = || Installed::new(cluster).map_err(|error| format!("{error:#}"));
        let memgate = self.memgate.get_or_init(install).as_ref();
        memgate.map_err(|error| anyhow!("there is no memgate to test: {error}"))
    }

    /// A cluster of its own in which what refers to each other comes in any order; started by the first call.
    /// What the examples bring is for all namespaces, and controllers that try again are slower where others
    /// do so.
    ///
    /// # Errors
    /// When it does not start, every time; it is not tried twice.
    pub(crate) fn order(&self) -> Result<&OrderCluster> {
        let start = || OrderCluster::start().map_err(|error| format!("{error:#}"));
        let order = self.order.get_or_init(start).as_ref();
        order.map_err(|error| anyhow!("there is no cluster for this: {error}"))
    }

    /// A new namespace with these labels, for which memgate is called.
    pub(crate) fn namespace(&self, prefix: &str, labels: &[(&str, &str)]) -> Result<String> {
        self.memgate()?;
        self.cluster()?.labelled_namespace(prefix, &[&[GUARDED], labels].concat())
    }

    /// Runs a trial when no other one disturbs it. The lock guards no data, so a poisoned one is used.
    pub(crate) fn run(&self, trial: Trial) -> Result<()> {
        if trial.alone {
            let _alone = self.undisturbed.write().unwrap_or_else(PoisonError::into_inner);
            (trial.run)(self)
        } else {
            let _shared = self.undisturbed.read().unwrap_or_else(PoisonError::into_inner);
            (trial.run)(self)
        }
    }
}
