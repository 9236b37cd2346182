//! From an older build to this one and back, as people do it: what each of them prints is applied while the
//! apiserver asks through the Service, with certificates of memgate's own making.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::{
    faults::calls::through_apiserver,
    installed::{MEMGATE, install_crds, wait_until_asked},
    kubelet::{self, Kubelet, Machine, NAMESPACE},
    network::Network,
    replicas::pace,
    runs::Parameters,
    support::{
        control_plane::ControlPlane,
        load::{Load, Tally},
        wait,
    },
};

/// What a Deployment of memgate allows its pods, and a replica needs for the callers that stay.
const TERMINATION_DELAY: Duration = Duration::from_mins(2);

/// How long a rollout may take: each of two replicas comes, and then one leaves.
const ROLLOUT_TIMEOUT: &str = "--timeout=600s";

/// A build of memgate, and what it is called as an image.
struct Build {
    name: &'static str,
    program: PathBuf,
}

/// R18 of stress/FAULTS.md: forth and back, and forth again, without a lost call or a pod without its memory.
pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let old = PathBuf::from(parameters.text("old")?);
    ensure!(old.is_file(), "there is no program {}; `just upgrade BASE` makes one", old.display());
    let builds = [Build { name: "old", program: old }, Build { name: "new", program: MEMGATE.into() }];
    let images = builds.iter().map(|build| (build.image(), build.program.clone())).collect();

    let network = Network::start()?;
    let cluster = Arc::new(ControlPlane::start_behind(network.address)?);
    let machine = Machine { images, termination_delay: TERMINATION_DELAY, ..Machine::default() };
    kubelet::join(&cluster, machine.logs.serve(cluster.authority())?)?;
    let _kubelet = Kubelet::start(Arc::clone(&cluster), network.endpoints.clone(), machine);
    install_crds(&cluster)?;

    let [old, new] = &builds;
    old.install(&cluster)?;
    let namespace = cluster.fresh_namespace("upgraded")?;
    wait_until_asked(&cluster, &namespace)?;
    let load = Load::start(cluster.runtime(), pace(parameters)?, through_apiserver(&cluster, &namespace)?);
    let pause = parameters.seconds("pause")?;
    sleep(pause);
    let mut sum = told("before", &load);
    for (step, build) in [("forth", new), ("back", old), ("forth again", new)] {
        let since = Instant::now();
        build.install(&cluster)?;
        println!("{step}: {} runs alone after {:.0?}", build.name, since.elapsed());
        if parameters.text("twice")? == "yes" {
            // Once no replica of the other build can write into the configurations any more.
            sum.add(told(step, &load));
            build.apply(&cluster)?;
        }
        sleep(pause);
        sum.add(told(step, &load));
    }
    sum.add(load.stop()?);
    println!("in all: {sum}");
    sum.all_good()
}

fn told(step: &str, load: &Load) -> Tally {
    let tally = load.take();
    println!("{step}: {tally}");
    tally
}

impl Build {
    fn image(&self) -> String {
        format!("memgate.invalid/{}:1", self.name)
    }

    fn apply(&self, cluster: &ControlPlane) -> Result<()> {
        let printed = printed(&self.program, &["manifests", "--image", &self.image()])?;
        cluster.admin().apply(&printed)?;
        Ok(())
    }

    /// Applies what it prints, and waits until no pod of another build is left.
    fn install(&self, cluster: &ControlPlane) -> Result<()> {
        self.apply(cluster)?;
        let rollout = ["rollout", "status", "deployment/memgate", "-n", NAMESPACE, ROLLOUT_TIMEOUT];
        cluster.kubectl(&rollout)?.ok()?;
        let gone = wait::until_within(TERMINATION_DELAY * 2, "pods of the other build to go", || {
            let pods =
                ["get", "pods", "-n", NAMESPACE, "-o", "jsonpath={.items[*].spec.containers[0].image}"];
            let images = cluster.kubectl(&pods)?.ok()?.stdout;
            Ok(images.split_whitespace().all(|image| image == self.image()).then_some(()))
        });
        gone.with_context(|| format!("{} does not take over", self.name))
    }
}

fn printed(program: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).env_clear().output().context("memgate does not start")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("memgate prints no text")
}
