//! How often the allocator is called for one review, on the thread that reads, decides and answers it. The client of
//! served.rs does not allocate. tools/instructions.sh runs it.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(clippy::print_stdout, reason = "the result")]

#[path = "../../benches/common/mod.rs"]
mod common;
#[path = "../served.rs"]
mod served;

use allocation_counter::measure;

use crate::served::{changed, constant, memory, pod};

fn main() {
    let query = |policies| changed("ark", "default", "adds-the-default-memory-of-the-namespace", policies);
    let sidecar = |policies| changed("sympozium", "inject-sidecar", "injects-a-native-sidecar", policies);
    for (name, mut connection) in [
        ("constant_4_kb", constant(20, 600)),
        ("pod_4_kb", pod("arkonis.dev/deployment", 20, 600, false)),
        ("pod_64_kb", pod("arkonis.dev/deployment", 500, 36_000, false)),
        ("other_pod", pod("example.dev/other", 20, 600, false)),
        ("memory", memory(false)),
        ("query", query(false)),
        ("sidecar", sidecar(false)),
        ("pod_4_kb_policies", pod("arkonis.dev/deployment", 20, 600, true)),
        ("memory_policies", memory(true)),
        ("sidecar_policies", sidecar(true)),
    ] {
        let counted = measure(|| {
            connection.exchange();
        });
        println!("allocations.{name} {}", counted.count_total);
    }
}
