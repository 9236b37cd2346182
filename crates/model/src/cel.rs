//! Rules that the apiserver can check by itself, in CEL, while memgate does not answer.
//!
//! A family writes its tables, and `install` turns them into admission policies. This module does not evaluate CEL:
//! tests on a real apiserver check that a rule agrees with the family's own code.
//!
//! In an expression `self` is the object and `$name` is a [`CelVariable`] of the same table. Each
//! expression is used twice, for the new object and for the stored one.

use crate::finding::Code;
use crate::kind::Kind;

/// The rules on the objects of some kinds.
#[derive(Debug, Clone, Copy)]
pub struct CelTable {
    /// The name, which starts with that of the family.
    pub name: &'static str,
    /// The kinds; all of them have the fields that the rules read.
    pub kinds: &'static [&'static Kind],
    /// Named parts that several rules use.
    pub lets: &'static [CelVariable],
    /// The rules; of several that an object breaks, the apiserver reports the first.
    pub rules: &'static [CelRule],
}

/// A named part of expressions.
#[derive(Debug, Clone, Copy)]
pub struct CelVariable {
    /// The name.
    pub name: &'static str,
    /// The value, in CEL.
    pub value: &'static str,
}

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct CelRule {
    /// The code under which memgate refuses the same.
    pub code: &'static Code,
    /// A list in CEL: the cause of each fault; empty for a valid object. A fault is not refused if the stored object
    /// has it too, with the same cause.
    pub faults: &'static str,
    /// The message; starts as memgate's own message does.
    pub message: &'static str,
}

/// Why a code that denies has no rule in a [`CelTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotInCel {
    /// The schema of the platform's CRDs refuses it before the apiserver evaluates any policy.
    Schema,
    /// CEL cannot express it, for this reason.
    NotExpressible(&'static str),
}

/// A default that the apiserver can write by itself.
#[derive(Debug, Clone, Copy)]
pub struct CelDefault {
    /// The name, which starts with that of the family.
    pub name: &'static str,
    /// The kind whose objects get it, when they are made.
    pub kind: &'static Kind,
    /// The kind of the object that has to exist in the same namespace.
    pub param: &'static Kind,
    /// Its name.
    pub param_name: &'static str,
    /// The name and the expression of each condition, in CEL, where `params` is that object.
    pub conditions: &'static [(&'static str, &'static str)],
    /// The JSON patch, in CEL.
    pub patch: &'static str,
}

impl CelVariable {
    /// A part of this name and value.
    pub const fn new(name: &'static str, value: &'static str) -> Self {
        Self { name, value }
    }
}
