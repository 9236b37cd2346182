//! Random pauses, so that replicas and watches do not all ask the apiserver at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The duration plus or minus a fifth.
pub fn jitter(duration: Duration) -> Duration {
    duration * (800 + random_below(400)) / 1000
}

/// Any duration up to `max`.
pub fn random_up_to(max: Duration) -> Duration {
    max * random_below(1000) / 1000
}

/// A random number below `bound`. The standard library seeds each hasher from the system's randomness, which is good
/// enough for a pause.
fn random_below(bound: u32) -> u32 {
    let random = RandomState::new().build_hasher().finish() % u64::from(bound);
    u32::try_from(random).unwrap_or_default()
}
