//! Keeps the connection limit below the limit of file descriptors, so that a flood of connections leaves file descriptors
//! for probes, the apiserver and files.

use crate::metrics::max_files;
use crate::options::Limits;

/// File descriptors for everything but connections: probes and scrapers, watches, lookups, files.
const RESERVED_FDS: usize = 128;

/// The limits, lowered if this process may not have enough file descriptors.
pub(super) fn fit_to_fd_limit(limits: &Limits) -> Limits {
    let fitted = fit_to(limits, max_files().and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX));
    if fitted.connections < limits.connections {
        tracing::warn!(
            connections = fitted.connections,
            requests = fitted.requests,
            "fewer connections than asked for: this process may have too few file descriptors"
        );
    }
    fitted
}

fn fit_to(limits: &Limits, descriptors: usize) -> Limits {
    let max = descriptors.saturating_sub(RESERVED_FDS).max(descriptors / 4).max(1);
    if limits.connections <= max {
        return limits.clone();
    }
    Limits { connections: max, requests: limits.requests.min(max.div_ceil(2)), ..limits.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_descriptors_for_the_rest() {
        let limits = Limits { connections: 2048, requests: 1024, ..Limits::default() };
        for (descriptors, connections, requests) in [
            (usize::MAX, 2048, 1024),
            (2176, 2048, 1024),
            (1024, 896, 448),
            (256, 128, 64),
            (64, 16, 8),
            (0, 1, 1),
        ] {
            let fitted = fit_to(&limits, descriptors);
            assert_eq!((fitted.connections, fitted.requests), (connections, requests), "{descriptors}");
        }
    }
}
