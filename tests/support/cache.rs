//! The user's cache directory, where tests keep what they fetch.

use std::env;
use std::fs;
use std::path::PathBuf;

/// A folder for one set of packages; it exists.
pub(crate) fn folder(name: &str) -> PathBuf {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    let cache = cache.expect("HOME or XDG_CACHE_HOME says where the cache directory is");
    let folder = cache.join("memgate").join(name);
    fs::create_dir_all(&folder).expect("the cache directory can be written");
    folder
}
