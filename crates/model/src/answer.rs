//! The answer to whether something exists: found, absent or **unknown**.

/// An answer, with the thing if it was found, and with the reason if it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer<T, W = ()> {
    /// It exists.
    Found(T),
    /// It does not exist.
    #[default]
    Absent,
    /// It is not known whether it exists, and why.
    Unknown(W),
}

impl<T, W> Answer<T, W> {
    /// What was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// The same answer, borrowed.
    pub const fn as_ref(&self) -> Answer<&T, &W> {
        match self {
            Self::Found(found) => Answer::Found(found),
            Self::Absent => Answer::Absent,
            Self::Unknown(why) => Answer::Unknown(why),
        }
    }

    /// Converts what was found.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Answer<U, W> {
        self.and_then(|found| Answer::Found(convert(found)))
    }

    /// The answer to what was found.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Answer<U, W>) -> Answer<U, W> {
        match self {
            Self::Found(found) => next(found),
            Self::Absent => Answer::Absent,
            Self::Unknown(why) => Answer::Unknown(why),
        }
    }
}

impl<T, W> Answer<Vec<T>, W> {
    /// The elements of a list; none if it was not found.
    pub fn items(&self) -> &[T] {
        self.as_ref().found().map(Vec::as_slice).unwrap_or_default()
    }
}
