//! What whoever runs memgate chose, as far as decisions depend on it.

/// A platform whose memory resources memgate knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// ArkMemory of arkonis.dev, its two older names and its successor kubeswarm.io.
    Arkonis,
    /// Memory and Query of ark.mckinsey.com.
    Ark,
    /// Memory and Agent of orloj.dev.
    Orloj,
    /// Durable memory of the Tasks of core.orka.ai.
    Orka,
    /// Persistent and shared memory of sympozium.ai.
    Sympozium,
}

impl Family {
    /// Every family, in the order in which they are asked.
    pub const ALL: [Self; 5] = [Self::Arkonis, Self::Ark, Self::Orloj, Self::Orka, Self::Sympozium];

    /// The name in codes, flags and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arkonis => "arkonis",
            Self::Ark => "ark",
            Self::Orloj => "orloj",
            Self::Orka => "orka",
            Self::Sympozium => "sympozium",
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
    /// The namespace of requests and objects that name none, if somebody gave one. In a cluster all
    /// of them do.
    pub namespace: Option<String>,
    /// The choices for orloj.
    pub orloj: Orloj,
    /// The choices for sympozium.
    pub sympozium: Sympozium,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            families: Family::ALL.to_vec(),
            namespace: None,
            orloj: Orloj::default(),
            sympozium: Sympozium::default(),
        }
    }
}

/// The choices for orloj.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orloj {
    /// The namespaces in which Orloj runs the Jobs of agents.
    pub job_namespaces: Vec<String>,
}

impl Default for Orloj {
    fn default() -> Self {
        Self { job_namespaces: vec!["orloj".to_owned()] }
    }
}

/// Where the private memory of a sympozium agent runs, when nobody else says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryMode {
    /// As the SkillPack has it.
    #[default]
    Auto,
    /// In a Deployment of its own.
    Service,
    /// In a native sidecar of the agent's pod.
    Sidecar,
}

/// The choices for sympozium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sympozium {
    /// Where the private memory runs.
    pub memory_mode: MemoryMode,
    /// The image of the init containers that wait for a memory service; a tag or a digest.
    pub wait_image: String,
    /// The image of the memory sidecar where the SkillPack names none; a tag or a digest.
    pub memory_image: String,
}

impl Default for Sympozium {
    fn default() -> Self {
        Self {
            memory_mode: MemoryMode::Auto,
            wait_image: "busybox:1.36".to_owned(),
            memory_image: "ghcr.io/sympozium-ai/sympozium/skill-memory:latest".to_owned(),
        }
    }
}
