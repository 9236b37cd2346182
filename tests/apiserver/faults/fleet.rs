//! Replicas of memgate behind a balancer, as a Deployment and its Service have them.

use std::{
    mem,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    installed::{MEMGATE, register, wait_until_asked},
    support::{
        balancer::Balancer,
        control_plane::ControlPlane,
        wait,
        webhook::{Endpoint, Identity, Serve, Webhook},
    },
};

/// How long a replica that is to end may take: 100 s until it leaves the callers that stay, and some.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(110);

/// Replicas that answer for one namespace.
pub(crate) struct Fleet {
    /// The namespace.
    pub(crate) namespace: String,
    /// Those that are to stay, the oldest first.
    pub(crate) replicas: Vec<Webhook>,
    /// What is started, in turns: one program, or two versions of it.
    programs: Vec<Serve>,
    started: usize,
    leaving: Vec<(Instant, Webhook)>,
    left: Vec<Duration>,
    balancer: Balancer,
}

impl Fleet {
    /// Starts `count` replicas of the binary under test with this identity in the cluster, and has
    /// the apiserver ask them about a new namespace, which it does when this returns.
    pub(crate) fn start(cluster: &ControlPlane, kubeconfig: &Path, count: usize) -> Result<Self> {
        Self::of(&[MEMGATE.into()], cluster, kubeconfig, count)
    }

    /// The same of several binaries in turns.
    pub(crate) fn of(
        programs: &[PathBuf],
        cluster: &ControlPlane,
        kubeconfig: &Path,
        count: usize,
    ) -> Result<Self> {
        let identity = Identity::new()?;
        let serve = |program: &PathBuf| Serve::new(program).kubeconfig(kubeconfig).identity(&identity);
        let mut fleet = Self {
            namespace: cluster.fresh_namespace("fleet")?,
            replicas: Vec::new(),
            programs: programs.iter().map(serve).collect(),
            started: 0,
            leaving: Vec::new(),
            left: Vec::new(),
            balancer: Balancer::start(cluster.runtime())?,
        };
        for _ in 0..count {
            fleet.add()?;
        }
        let only =
            json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [fleet.namespace]});
        let endpoint = Endpoint::new(fleet.balancer.address(), identity.ca());
        register(cluster, &endpoint, &fleet.namespace, &only)?;
        wait_until_asked(cluster, &fleet.namespace)?;
        Ok(fleet)
    }

    /// One replica more; it is ready and gets connections when this returns.
    pub(crate) fn add(&mut self) -> Result<()> {
        let turn = self.started.checked_rem(self.programs.len()).context("there is nothing to start")?;
        let replica = self.programs[turn].ready()?;
        self.started += 1;
        let at = replica.addresses();
        self.balancer.add(at);
        self.replicas.push(replica);
        wait::until("the balancer to use a new replica", || Ok(self.balancer.uses(at).then_some(())))
    }

    /// One step of a rolling update: a new replica comes, and the oldest is asked to end.
    pub(crate) fn roll(&mut self) -> Result<()> {
        self.add()?;
        let mut oldest = self.replicas.remove(0);
        oldest.process().signal("TERM")?;
        self.leaving.push((Instant::now(), oldest));
        self.see_off()
    }

    /// Kills the oldest replica, and waits until no connection is sent there any more.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let mut oldest = self.replicas.remove(0);
        let at = oldest.addresses();
        oldest.process().kill()?;
        wait::until("the balancer to pass over a dead replica", || {
            Ok((!self.balancer.uses(at)).then_some(()))
        })?;
        self.balancer.forget(at);
        Ok(())
    }

    /// How many connections have led nowhere.
    pub(crate) fn unanswered(&self) -> u64 {
        self.balancer.unanswered()
    }

    /// Waits until all that were asked to end have; how long each took.
    pub(crate) fn all_left(&mut self) -> Result<Vec<Duration>> {
        let start = Instant::now();
        while !self.leaving.is_empty() {
            ensure!(start.elapsed() < DRAIN_TIMEOUT, "{} replicas do not end", self.leaving.len());
            self.see_off()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(mem::take(&mut self.left))
    }

    /// How many have been asked to end and have not yet.
    pub(crate) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Takes down those that have ended, which they have to do well.
    fn see_off(&mut self) -> Result<()> {
        for (since, mut replica) in mem::take(&mut self.leaving) {
            let Some(status) = replica.process().exited()? else {
                self.leaving.push((since, replica));
                continue;
            };
            self.balancer.forget(replica.addresses());
            ensure!(status.success(), "a replica ended with {status}:\n{}", replica.log());
            let log = replica.log();
            let end = log.lines().next_back().context("a replica said nothing")?;
            ensure!(end.contains("stopped") && end.contains("drained=true"), "a call was cut off: {end}");
            self.left.push(since.elapsed());
        }
        Ok(())
    }
}
