//! What doctor reports: checks, each with its status and what to do.

use serde::Serialize;

use memgate_platforms::message::and_more;
use memgate_primitives::plain_text::plain;

/// The status of a check, the good ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// It could not be found out, mostly because a right is missing.
    Unknown,
    /// It works, but not as well as it could, or not for every pod.
    Warn,
    /// It does not work.
    Fail,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The stable name of the check.
    pub id: &'static str,
    /// The status.
    pub status: CheckStatus,
    /// The object, as `Kind namespace/name`; empty for the cluster as a whole.
    pub subject: String,
    /// What was found, in one sentence without a full stop.
    pub message: String,
    /// What to do, when something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Check {
    /// A check of this status.
    pub fn new(
        id: &'static str,
        status: CheckStatus,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let clean = |text: String| plain(&text).into_owned();
        Self { id, status, subject: clean(subject.into()), message: clean(message.into()), help: None }
    }

    /// A check that is as it should be.
    pub fn ok(id: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, CheckStatus::Ok, subject, message)
    }

    /// A check that warns.
    pub fn warn(id: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, CheckStatus::Warn, subject, message)
    }

    /// A check that fails.
    pub fn fail(id: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, CheckStatus::Fail, subject, message)
    }

    /// A check that could not be made.
    pub fn unknown(id: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, CheckStatus::Unknown, subject, message)
    }

    /// Adds advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(plain(&help.into()).into_owned()), ..self }
    }
}

/// The first names of a list, and the number of the others.
pub fn abbreviated(names: &[String]) -> String {
    const MAX_NAMES: usize = 5;
    and_more(names, MAX_NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_first_few() {
        let names: Vec<String> = ('a'..='g').map(String::from).collect();
        assert_eq!(abbreviated(&names), "a, b, c, d, e and 2 more");
        assert_eq!(abbreviated(&names[..2]), "a, b");
    }
}
