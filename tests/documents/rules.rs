//! That each page of a typed rule keeps its promise: under its policy the failing example is reported, and the
//! passing one is not.

use memgate_policy::rules::{RuleType, TYPES};

use super::codes::{block, reported};

/// The finding of the policies of these pages.
const CODE: &str = "policy/org/it";

#[test]
fn failing_examples_are_reported_and_passing_ones_are_not() {
    let mut wrong = Vec::new();
    for kind in &TYPES {
        let failing = under_policy(kind, "## Failing example");
        if !failing.iter().any(|code| code == CODE) {
            wrong.push(format!("the failing example of {} reports {failing:?}", kind.name));
        }
        let passing = under_policy(kind, "## Passing example");
        if !passing.is_empty() {
            wrong.push(format!("the passing example of {} reports {passing:?}", kind.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_has_its_parts() {
    for kind in &TYPES {
        assert!(kind.page.starts_with(&format!("# {}\n", kind.name)), "the title of {}", kind.name);
        for heading in ["## Fields", "## What it says", "## What cannot be judged", "## Platforms"] {
            assert!(kind.page.contains(heading), "{} has no {heading}", kind.name);
        }
    }
}

/// The codes that an example reports under the policy of its page; a case brings the policy itself.
fn under_policy(kind: &'static RuleType, heading: &str) -> Vec<String> {
    let (_, policy) = block(kind.page.text(), kind.name, "## Example policy");
    let (language, example) = block(kind.page.text(), kind.name, heading);
    if language != "yaml" {
        return reported((language, example)).into_iter().collect();
    }
    reported((language, &format!("{policy}---\n{example}"))).into_iter().collect()
}
