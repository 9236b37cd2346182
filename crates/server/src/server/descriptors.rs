//! File descriptors: fewer connections than there are of them, so that a flood of connections leaves
//! some for probes, for the apiserver and for files.

use std::fs;

use crate::server::options::Limits;

/// What is left for everything but connections: probes and scrapers, watches, lookups, files.
const RESERVE: usize = 128;

/// The limits, lowered where this process may not have so many file descriptors.
pub(super) fn fitted(limits: &Limits) -> Limits {
    let fitted = fitted_to(limits, allowed().unwrap_or(usize::MAX));
    if fitted.connections < limits.connections {
        tracing::warn!(
            connections = fitted.connections,
            requests = fitted.requests,
            "fewer connections than asked for: this process may have too few file descriptors"
        );
    }
    fitted
}

fn fitted_to(limits: &Limits, descriptors: usize) -> Limits {
    let most = descriptors.saturating_sub(RESERVE).max(descriptors / 4).max(1);
    if limits.connections <= most {
        return limits.clone();
    }
    Limits { connections: most, requests: limits.requests.min(most.div_ceil(2)), ..limits.clone() }
}

/// How many file descriptors this process may have; `None` where the system does not say.
fn allowed() -> Option<usize> {
    soft(&fs::read_to_string("/proc/self/limits").ok()?)
}

/// The soft limit in the text of `/proc/self/limits`.
fn soft(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
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
            let fitted = fitted_to(&limits, descriptors);
            assert_eq!((fitted.connections, fitted.requests), (connections, requests), "{descriptors}");
        }
    }

    #[test]
    fn reads_what_linux_says() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             95000                95000                processes\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(soft(text), Some(1024));
        assert_eq!(soft("Max open files            unlimited            unlimited            files"), None);
        assert_eq!(soft(""), None);
    }
}
