//! A real control plane for tests: etcd, kube-apiserver and kube-controller-manager, with kubectl.
//!
//! ```text
//! control_plane   one running cluster: components, connection, kubeconfig, kubectl
//!   ├─ assets     which programs, of which release; build makes a missing one
//!   └─ audit      what the apiserver wrote down about a request
//! webhook         one running `memgate serve`, and its registration
//! process, certs  what both stand on: children that cannot outlive us, and TLS
//! cgroup          the memory that a container has
//! tools           other Go programs, built the same way
//! needs           how a test is listed that needs a program
//! cases           the project's own case files
//! load            many calls at a pace of their own, and what came of them
//! balancer, wire  what stands between callers and replicas, and can fail
//! shown           output as documents show it
//! scratch, wait   directories that go away, and deadlines
//! ```
//!
//! Nothing here knows memgate's rules: it starts programs, and says what went wrong when one
//! does not start. There is no kubelet and no scheduler, so pods are objects that never run.
//!
//! From nothing running to a ready cluster takes 2 to 3 seconds on two cores, and to build all
//! four programs 4 to 5 minutes, once. To measure the first again, look at the time that this
//! prints when the programs are built:
//!
//! ```text
//! cargo test --test apiserver -- control_plane::reports_its_version
//! ```
//!
//! Environment: `KUBEBUILDER_ASSETS` names a directory of programs ([`assets`]);
//! `MEMGATE_TEST_KUBERNETES=1.33` asks for another version of Kubernetes ([`release`]);
//! `MEMGATE_TEST_KEEP=1` keeps the directory with logs and data and prints its name ([`scratch`]).
#![allow(dead_code, reason = "each test program uses the part of it that it needs")]
#![allow(
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests index JSON, where a missing key reads as null, and talk on stderr"
)]

pub(crate) mod assets;
pub(crate) mod audit;
pub(crate) mod balancer;
pub(crate) mod build;
pub(crate) mod cases;
pub(crate) mod certs;
pub(crate) mod cgroup;
pub(crate) mod components;
pub(crate) mod connection;
pub(crate) mod control_plane;
pub(crate) mod kubeconfig;
pub(crate) mod kubectl;
pub(crate) mod load;
pub(crate) mod needs;
pub(crate) mod process;
pub(crate) mod release;
pub(crate) mod scratch;
pub(crate) mod shown;
pub(crate) mod tools;
pub(crate) mod wait;
pub(crate) mod webhook;
pub(crate) mod wire;
