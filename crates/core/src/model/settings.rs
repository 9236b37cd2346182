//! What an installation or a command chose, as far as decisions depend on it.

use crate::model::family::Family;
use crate::model::platform_settings::PlatformSettings;

/// The choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The families that are switched on, in the order in which they are asked about a pod. The default is
    /// all of them.
    pub families: Vec<&'static Family>,
    /// The namespace of requests and objects that name none, if one was given. In a cluster all
    /// of them do.
    pub namespace: Option<String>,
    /// The choices that are about one platform each.
    pub platforms: PlatformSettings,
}
