//! What the page of `-o html` shows of the inputs themselves. It is made before the decisions, which do not keep the state.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::built;
use crate::inputs::Inputs;
use crate::map::map_of;
use crate::report::html_data::{ExemptionState, Gone, ShownExemption, ShownPromotion};
use crate::report::map::MemoryMap;
use crate::view::shown_text;
use memgate_model::policy::{Action, Exemption, Policy, Promotion, Target};
use memgate_model::request::Occasion;
use memgate_policy::judge::promotion;
use memgate_primitives::glob::Glob;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::shown_name;

/// The most texts of a list that are shown.
const MOST: usize = 10;

/// How long before its end an exemption counts as one that ends soon.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The map and the exemptions of the inputs.
#[derive(Debug, Default)]
pub struct PageInputs {
    /// The map of each set.
    pub map: MemoryMap,
    /// The exemptions, by namespace and name.
    pub exemptions: Vec<ShownExemption>,
    /// The promotions that are to come, by policy.
    pub promotions: Vec<ShownPromotion>,
    /// What is no longer found, if a branch is compared with a commit.
    pub gone: Option<Vec<Gone>>,
    /// The commit that a branch is compared with as the user named it, and the one at which the branch began.
    pub base: Option<[String; 2]>,
}

impl PageInputs {
    /// Those of a set, if there will be a page. Objects without a view are errors of the decisions, and not reported here.
    pub fn if_wanted(is_wanted: bool, inputs: &Inputs, occasion: Occasion<'static>) -> Option<Self> {
        // A build without pages does not need the code of the map.
        (is_wanted && built::HAS_WORKSTATION).then(|| {
            let map = map_of(inputs, occasion);
            let exemptions = inputs.snapshot.policies.exemptions().map(|it| shown(it, occasion.now));
            let promotions = inputs.snapshot.policies.iter().flat_map(|it| promotions(it, occasion.now));
            Self {
                map: MemoryMap { sets: vec![map], ..MemoryMap::default() },
                exemptions: exemptions.collect(),
                promotions: promotions.collect(),
                gone: None,
                base: None,
            }
        })
    }

    /// Adds those of another set. Sets may share exemptions and policies.
    pub fn add(&mut self, other: Self) {
        self.map.sets.extend(other.map.sets);
        self.exemptions.extend(other.exemptions);
        self.exemptions.sort();
        self.exemptions.dedup();
        self.promotions.extend(other.promotions);
        self.promotions.sort();
        self.promotions.dedup();
    }
}

/// The promotions of a policy that are to come: rules with dates of their own may have another one.
fn promotions(policy: &Policy, now: Timestamp) -> impl Iterator<Item = ShownPromotion> {
    let mut rules = BTreeMap::<_, Vec<&str>>::new();
    for rule in &policy.rules {
        if let Some(Promotion { at, to }) = promotion(policy, rule, now) {
            rules.entry((at, to)).or_default().push(&rule.about.id);
        }
    }
    let shown = move |((at, to), rules): ((Timestamp, Action), Vec<&str>)| ShownPromotion {
        at: at.to_string(),
        days: days(now, at),
        policy: shown_name(&policy.name).into_owned(),
        rules: list(rules),
        to: to.name(),
    };
    rules.into_iter().map(shown).collect::<Vec<_>>().into_iter()
}

/// The days until a time, the last one begun. An exemption with at most 30 of them ends soon.
fn days(now: Timestamp, until: Timestamp) -> i64 {
    const DAY: i128 = 86_400_000_000_000;
    let left = until.as_nanosecond() - now.as_nanosecond();
    i64::try_from(left.div_euclid(DAY) + i128::from(left.rem_euclid(DAY) > 0)).unwrap_or_default()
}

fn shown(exemption: &Exemption, now: Timestamp) -> ShownExemption {
    let Exemption { policy, rules, target, from, expires_at, reason, ticket, approved_by, .. } = exemption;
    let state = if *expires_at <= now {
        ExemptionState::Ended
    } else if *from > now {
        ExemptionState::Later
    } else if expires_at.duration_since(now) <= SOON {
        ExemptionState::EndsSoon
    } else {
        ExemptionState::InForce
    };
    let mut words = vec![reason.clone()];
    words.extend(ticket.iter().map(|ticket| format!("ticket {ticket}")));
    words.extend(approved_by.iter().map(|name| format!("approved by {name}")));
    ShownExemption {
        name: shown_name(&exemption.key()).into_owned(),
        policy: shown_name(policy).into_owned(),
        rules: list(rules.iter().map(String::as_str)),
        target: of_target(target),
        from: from.to_string(),
        expires_at: expires_at.to_string(),
        days: days(now, *expires_at),
        namespaces: target.namespaces.iter().map(|it| shown_name(it).into_owned()).collect(),
        platforms: target.families.iter().flatten().cloned().collect(),
        state,
        reason: list(words.iter().map(String::as_str)),
    }
}

fn of_target(target: &Target) -> String {
    let Target { namespaces, families, kinds, names, selector } = target;
    let part =
        |label: &str, texts: Vec<&str>| (!texts.is_empty()).then(|| format!("{label} {}", list(texts)));
    let texts = |list: &Option<Vec<String>>| -> Vec<String> { list.clone().unwrap_or_default() };
    let (families, kinds) = (texts(families), texts(kinds));
    let parts = [
        part("kinds", kinds.iter().map(String::as_str).collect()),
        part("names", names.iter().flatten().map(Glob::as_str).collect()),
        part("platforms", families.iter().map(String::as_str).collect()),
        part("namespaces", namespaces.iter().map(String::as_str).collect()),
        selector.as_ref().map(|_| "with the labels of its selector".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The first texts of a list.
fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut texts = texts.into_iter();
    let first: Vec<String> = texts.by_ref().take(MOST).map(shown_text).collect();
    first.join(", ") + &more(texts.count())
}
