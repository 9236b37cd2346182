//! What whoever runs memgate chose, as far as decisions depend on it.

/// A platform whose memory resources memgate knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// ArkMemory of arkonis.dev, its two older names and its successor kubeswarm.io.
    Arkonis,
}

impl Family {
    /// Every family, in the order in which they are asked.
    pub const ALL: [Self; 1] = [Self::Arkonis];

    /// The name in codes, flags and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arkonis => "arkonis",
        }
    }

    /// The family of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// The choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The families that are switched on.
    pub families: Vec<Family>,
    /// The namespace of requests and objects that name none; empty in a cluster, where all do.
    pub namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { families: Family::ALL.to_vec(), namespace: String::new() }
    }
}
