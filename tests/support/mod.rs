//! A real control plane for tests: etcd, kube-apiserver and kube-controller-manager, with kubectl.
//!
//! ```text
//! control_plane   one running cluster: components, connection, kubeconfig, kubectl
//!   ├─ assets     the paths of its programs, by release; build makes a missing one
//!   └─ audit      the apiserver's audit events
//! webhook         one running `memgate serve`, and its registration
//! process, certs  the base of both: children that end with this process, and TLS
//! cgroup          the memory that a container has
//! tools           other Go programs, built the same way
//! needs           how a test is listed that needs a program
//! outage          the table of what passes while memgate is away
//! cases, share    the project's own case files, and which of them are run
//! layouts         repositories with kustomizations and charts
//! https           calls over TLS, byte by byte
//! load            many calls at a fixed rate, and their results
//! balancer, wire  connections between callers and replicas, which can fail
//! shown           compares output with a document
//! scratch, wait   temporary directories, and deadlines
//! ```
//!
//! These modules do not know memgate's rules. They start programs, and explain why one does not
//! start. There is no kubelet and no scheduler, so pods are objects that never run.
//!
//! A cluster is ready after 2 to 3 seconds on two cores. Building its four programs takes 4 to 5
//! minutes, once. This prints the time of a start:
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
pub(crate) mod https;
pub(crate) mod kubeconfig;
pub(crate) mod kubectl;
pub(crate) mod layouts;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod needs;
pub(crate) mod outage;
pub(crate) mod process;
pub(crate) mod release;
pub(crate) mod review;
pub(crate) mod scratch;
pub(crate) mod share;
pub(crate) mod shown;
pub(crate) mod tools;
pub(crate) mod wait;
pub(crate) mod webhook;
pub(crate) mod wire;
