//! The audit log, read as it grows.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// What was noted about a request: the apiserver's own keys, and `<webhook>/<key>`.
pub(crate) type Annotations = BTreeMap<String, String>;

/// A log with one `audit.k8s.io/v1` Event a line.
#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    bytes: u64,
    requests: BTreeMap<String, Annotations>,
}

impl AuditLog {
    /// The log in this file, which need not exist yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), known: Mutex::default() }
    }

    /// The annotations of the request with this id; `None` while it is not written.
    pub(crate) fn annotations(&self, audit_id: &str) -> Result<Option<Annotations>> {
        // A panic with the lock leaves whole lines behind.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(annotations) = known.requests.get(audit_id) {
            return Ok(Some(annotations.clone()));
        }
        known.read_on(&self.path).with_context(|| format!("failed to read {}", self.path.display()))?;
        Ok(known.requests.get(audit_id).cloned())
    }
}

impl Known {
    fn read_on(&mut self, path: &Path) -> Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.bytes))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| text.split_at(end + 1).0);
        for line in whole.lines() {
            let event: Value = serde_json::from_str(line).context("a line is not JSON")?;
            let id = event["auditID"].as_str().unwrap_or_default().to_owned();
            let annotations = Annotations::deserialize(&event["annotations"]).unwrap_or_default();
            self.requests.insert(id, annotations);
        }
        self.bytes += u64::try_from(whole.len())?;
        Ok(())
    }
}
