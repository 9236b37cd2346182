//! The Kubernetes versions that tests run against. Each is a Go module below `tools/envtest`.

use std::env;

use anyhow::{Result, anyhow};

/// Names a series of [`Release::ALL`]; without it the newest one is meant.
pub(crate) const VARIABLE: &str = "MEMGATE_TEST_KUBERNETES";

/// One version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// Its major and minor number, `1.36`.
    pub(crate) series: &'static str,
    /// What the module's `go.mod` asks for. It is given to the linker, as modules carry no version in their
    /// sources: unset, the apiserver calls itself `v0.0.0-master`.
    pub(crate) version: &'static str,
    /// Its Go module, a directory below `tools/`.
    pub(crate) module: &'static str,
    /// The files of the module, below `tools/`.
    pub(crate) files: &'static [&'static str],
}

impl Release {
    /// The oldest one, on which `.ci/night` runs the sample.
    pub(crate) const OLDEST: Self = Self {
        series: "1.33",
        version: "v1.33.13",
        module: "envtest/kubernetes-1.33",
        files: &["envtest/kubernetes-1.33/go.mod", "envtest/kubernetes-1.33/go.sum"],
    };

    const BETWEEN: Self = Self {
        series: "1.36",
        version: "v1.36.3",
        module: "envtest/kubernetes-1.36",
        files: &["envtest/kubernetes-1.36/go.mod", "envtest/kubernetes-1.36/go.sum"],
    };

    /// The newest one, of which CI runs everything.
    pub(crate) const NEWEST: Self = Self {
        series: "1.37",
        version: "v1.37.1",
        module: "envtest/kubernetes-1.37",
        files: &["envtest/kubernetes-1.37/go.mod", "envtest/kubernetes-1.37/go.sum"],
    };

    /// All of them, oldest first.
    pub(crate) const ALL: [Self; 3] = [Self::OLDEST, Self::BETWEEN, Self::NEWEST];

    /// The one that the environment asks for.
    ///
    /// # Errors
    /// When there is no such release; the text names those that there are.
    pub(crate) fn from_environment() -> Result<Self> {
        match env::var(VARIABLE) {
            Ok(series) if !series.is_empty() => Self::named(&series),
            _ => Ok(Self::NEWEST),
        }
    }

    /// The one of a series.
    pub(crate) fn named(series: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|release| release.series == series).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|release| release.series).collect();
            anyhow!("{VARIABLE} is {series}; there are {}", known.join(", "))
        })
    }

    /// Major and minor number.
    pub(crate) fn number(self) -> (u32, u32) {
        let number = |text: &str| text.parse().unwrap_or_default();
        self.series.split_once('.').map_or((0, 0), |(major, minor)| (number(major), number(minor)))
    }
}

impl Default for Release {
    fn default() -> Self {
        Self::NEWEST
    }
}
