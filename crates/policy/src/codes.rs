//! The finding codes of the machinery of policies. Findings of a policy's own rules are named after the rule.

use memgate_model::codes::codes;
use memgate_model::finding::{Cause, Code};
use memgate_model::page::Page;

codes! { "policy";
    /// Rules of a policy that contradict each other, so that nothing passes.
    CONTRADICTION = "contradiction", Conflict;
    /// A stored object that lacks a field which policies set on new objects.
    DEFAULT_MISSING = "default-missing", Required;
    /// A default that another policy writes too, and wins.
    DEFAULT_OVERLAP = "default-overlap", Duplicate;
    /// An exemption that has ended.
    EXEMPTION_EXPIRED = "exemption-expired", Invalid;
    /// An exemption that its policy does not accept.
    EXEMPTION_REJECTED = "exemption-rejected", Invalid;
    /// An exemption that exempted nothing.
    EXEMPTION_UNUSED = "exemption-unused", NotFound;
    /// A rule that does not say what to do.
    HINT_MISSING = "hint-missing", Required;
    /// A policy or an exemption that cannot be in force.
    INVALID = "invalid", Invalid;
    /// A kind that a policy names and no rule judges, or a `when` that can never hold.
    NEVER_APPLIES = "never-applies", Invalid;
    /// A promotion whose date has passed.
    PROMOTED = "promoted", Invalid;
    /// A policy that matched no object of the inputs.
    UNUSED = "unused", NotFound;
}

/// Stands for the rules of all policies where a finding needs a static code. Never shown.
pub static RULE: Code = Code { name: "policy/rule", cause: Cause::Conflict, page: Page(|| "") };
