//! Requests and limits of added containers: the defaults, and on top of each other those of the settings, of the SkillPack, of
//! the pod's class, and what the namespace asks of every container.
//!
//! A quantity stays as its author wrote it, unless a LimitRange asks for another one.

use memgate_model::kind::CORE;
use memgate_model::platform_settings::{Quantities, RESOURCES, Sizes, quantity};
use memgate_model::schema::{METADATA, schema};
use memgate_primitives::plain_text::cut;
use memgate_primitives::quantity::billionths;
use serde_json::{Map, Value};

use super::Surroundings;
use crate::common::POD_RESOURCES;
use crate::inject::parts::init_containers_pointer;
use crate::prelude::*;

/// core/v1 `LimitRange`: read for the sizes that it asks of containers, from files only.
pub(crate) static LIMIT_RANGE: Kind = Kind::new(
    CORE,
    "LimitRange",
    "limitranges",
    schema! { open { "metadata": METADATA, "spec": open { "limits": [whole { "type": text, }], }, } },
);

/// core/v1 `ResourceQuota`: read for the resources that it counts, from files only.
pub(crate) static RESOURCE_QUOTA: Kind = Kind::new(
    CORE,
    "ResourceQuota",
    "resourcequotas",
    schema! { open { "metadata": METADATA, "spec": open { "hard": keys, }, } },
);

const STORAGE: &str = RESOURCES[2];

/// The storage of a container that has to name some.
const DEFAULT_STORAGE: &str = "64Mi";

/// The keys by which a ResourceQuota counts storage.
const COUNTED_STORAGE: [&str; 3] = [STORAGE, "requests.ephemeral-storage", "limits.ephemeral-storage"];

/// One, in billionths.
const ONE: i128 = 1_000_000_000;

/// An added container, with the sizes that do not depend on its pod.
pub(crate) struct AddedContainer<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// The default CPU and memory: of the requests, and of the limits.
    pub(crate) default: [[&'static str; 2]; 2],
    /// The sizes of the settings.
    pub(crate) setting: &'a Sizes,
    /// Those of the SkillPack, as requests and as limits.
    pub(crate) pack: Quantities,
}

impl AddedContainer<'_> {
    /// Its sizes in a pod of this namespace, with this container of the agent.
    ///
    /// # Errors
    /// The finding that no size is within the LimitRanges of the namespace.
    pub(crate) fn sizes(
        &self,
        around: &Surroundings<'_>,
        agent: &Container<'_>,
        namespace: &str,
        state: &mut StateReader<'_>,
    ) -> Result<Sizes, Box<Finding>> {
        let names_storage = {
            let Sizes { requests, limits } = read(agent.resources);
            requests.contains_key(STORAGE) || limits.contains_key(STORAGE)
        };
        let with_storage = names_storage || counts_storage(namespace, state);
        let mut sizes = self.wanted(with_storage, around.is_guaranteed(state.budget()));
        let ranges = limit_ranges(namespace, state);
        for (resource, bounds) in RESOURCES.into_iter().zip(&ranges) {
            bounds.fit(resource, &mut sizes).map_err(|[most, least]| {
                Finding::warn(&POD_RESOURCES, init_containers_pointer(), self.no_size(resource, most, least))
                    .elsewhere(least.range, Pointer::new("/spec/limits"), "because of this range")
            })?;
        }
        Ok(sizes)
    }

    /// The sizes without those that the namespace asks for.
    fn wanted(&self, with_storage: bool, is_guaranteed: bool) -> Sizes {
        let storage = with_storage.then_some((STORAGE, DEFAULT_STORAGE));
        let [requests, limits] = self.default.map(|default| {
            let of_resource = RESOURCES.into_iter().zip(default).chain(storage);
            of_resource.map(|(resource, size)| (resource.to_owned(), size.to_owned())).collect()
        });
        let mut sizes = Sizes { requests, limits };
        put(&mut sizes, self.setting);
        put(&mut sizes, &Sizes { requests: self.pack.clone(), limits: self.pack.clone() });
        if is_guaranteed {
            sizes.requests.extend(sizes.limits.clone());
        }
        sizes
    }

    fn no_size(&self, resource: &str, most: &Bound<'_>, least: &Bound<'_>) -> String {
        /// The longest quantity that a message has; a longer one is full of zeros.
        const MAX_QUANTITY_CHARS: usize = 32;
        let [at_most, at_least] = [most, least].map(|bound| cut(&bound.size, MAX_QUANTITY_CHARS));
        filled(
            "LimitRange {} allows at most {bare} of {bare}, LimitRange {} at least {bare}: \"{bare}\" is left out; change one \
             of them, or set sympozium.resources",
            [&most.range.name, &at_most, resource, &least.range.name, &at_least, self.name],
        )
    }
}

/// Puts sizes on top of others. Where only a request or a limit is put, the other one gives way to it.
fn put(sizes: &mut Sizes, over: &Sizes) {
    sizes.requests.extend(over.requests.clone());
    sizes.limits.extend(over.limits.clone());
    for resource in RESOURCES {
        let Some((request, limit)) = sizes.requests.get_mut(resource).zip(sizes.limits.get_mut(resource))
        else {
            continue;
        };
        if amount(request) > amount(limit) {
            if over.requests.contains_key(resource) {
                limit.clone_from(request);
            } else {
                request.clone_from(limit);
            }
        }
    }
}

impl Surroundings<'_> {
    /// Whether the pod is of the class Guaranteed by its containers: all have limits of CPU and memory, and requests that
    /// are equal or absent.
    /// Source: kubernetes/kubernetes, `ComputePodQOS`.
    fn is_guaranteed(&self, work: &Budget<'_>) -> bool {
        let containers = self.pod.containers();
        let mut all = containers.iter().chain(self.parts.init_containers());
        !containers.is_empty()
            && all.all(|container| {
                let counted = |raw: &RawValue| work.bytes(raw.get().len());
                container.resources.is_some_and(counted) && is_guaranteed(&read(container.resources))
            })
    }
}

fn is_guaranteed(Sizes { requests, limits }: &Sizes) -> bool {
    ["cpu", "memory"].iter().all(|resource| {
        let limit = limits.get(*resource).and_then(|limit| billionths(limit)).filter(|limit| *limit > 0);
        let request = requests.get(*resource).map(|request| billionths(request));
        limit.is_some() && request.is_none_or(|request| request == limit)
    })
}

/// The sizes of a container; none where they cannot be read. As in Go, the last of several equal keys counts, which a derived
/// reader refuses.
fn read(raw: Option<&RawValue>) -> Sizes {
    serde_json::from_value(super::json(raw)).unwrap_or_default()
}

/// The amount of a quantity, in billionths.
fn amount(size: &str) -> i128 {
    billionths(size).unwrap_or_default()
}

/// How many ResourceQuotas, and how many entries of LimitRanges, of a namespace are read.
const MAX_READ: usize = 1_000;

/// The objects of a kind that files hold in a namespace. In a cluster there are none, and none is looked up.
fn listed<'s>(
    kind: &'static Kind,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> impl Iterator<Item = &'s Object> + use<'s> {
    let holds = state.holds_one_in(kind, namespace);
    holds.then(|| state.quietly(|state| state.list(kind, namespace))).into_iter().flatten().take(MAX_READ)
}

/// Whether a ResourceQuota of a namespace counts storage, so that each container has to name some.
fn counts_storage(namespace: &str, state: &mut StateReader<'_>) -> bool {
    let mut quotas = listed(&RESOURCE_QUOTA, namespace, state);
    quotas.any(|quota| {
        let hard = quota.tree().at(&["spec", "hard"]);
        hard.is_some_and(|hard| COUNTED_STORAGE.iter().any(|key| hard.has_key(key)))
    })
}

/// What the LimitRanges of a namespace ask of one resource of each container.
#[derive(Debug, Default)]
struct Bounds<'s> {
    least: Option<Bound<'s>>,
    most: Option<Bound<'s>>,
    /// How many times the request the limit may be, in billionths.
    ratio: Option<i128>,
}

/// A quantity of a LimitRange.
#[derive(Debug)]
struct Bound<'s> {
    size: String,
    range: &'s Object,
}

/// What the LimitRanges of a namespace ask of [`RESOURCES`].
fn limit_ranges<'s>(namespace: &str, state: &mut StateReader<'s>) -> [Bounds<'s>; 3] {
    let mut all = <[Bounds<'_>; 3]>::default();
    let limits = listed(&LIMIT_RANGE, namespace, state).flat_map(|range| {
        let limits = range.tree().list_at(&["spec", "limits"]).iter();
        limits.filter(|limits| limits.text_at(&["type"]) == Some("Container")).map(move |it| (range, it))
    });
    for (range, limits) in limits.take(MAX_READ) {
        let Some(limits) = limits.whole() else { continue };
        for (resource, bounds) in RESOURCES.into_iter().zip(&mut all) {
            bounds.add(resource, &limits, range);
        }
    }
    all
}

impl<'s> Bounds<'s> {
    /// Adds what an entry of a LimitRange asks of a resource. What an apiserver would not store counts as absent.
    fn add(&mut self, resource: &str, limits: &Map<String, Value>, range: &'s Object) {
        let size = |field: &str| {
            let size = quantity(limits.get(field)?.get(resource)?)?;
            billionths(&size).is_some_and(|amount| amount >= 0).then_some(size)
        };
        if let Some(size) = size("min")
            && self.least.as_ref().is_none_or(|least| amount(&size) > amount(&least.size))
        {
            self.least = Some(Bound { size, range });
        }
        if let Some(size) = size("max")
            && self.most.as_ref().is_none_or(|most| amount(&size) < amount(&most.size))
        {
            self.most = Some(Bound { size, range });
        }
        let ratio = size("maxLimitRequestRatio").map(|ratio| amount(&ratio)).filter(|ratio| *ratio >= ONE);
        self.ratio = self.ratio.into_iter().chain(ratio).min();
    }

    /// Fits the sizes of a resource.
    ///
    /// # Errors
    /// The two bounds between which there is no size.
    fn fit(&self, resource: &str, sizes: &mut Sizes) -> Result<(), [&Bound<'s>; 2]> {
        let request = sizes.requests.get(resource).cloned();
        let limit = sizes.limits.get(resource).cloned();
        if request.is_none() && limit.is_none() {
            return Ok(());
        }
        if let Some((most, least)) = self.most.as_ref().zip(self.least.as_ref())
            && amount(&least.size) > amount(&most.size)
        {
            return Err([most, least]);
        }
        let bound = |bound: &Option<Bound<'_>>| bound.as_ref().map(|bound| bound.size.clone());
        let (least, most) = (bound(&self.least), bound(&self.most));
        // With a maximum or a ratio, a container without a limit is refused.
        let limit =
            limit.or_else(|| most.clone()).or_else(|| request.clone().filter(|_| self.ratio.is_some()));
        let limit = limit.map(|limit| at_most(at_least(limit, least.clone()), most));
        let by_ratio = self.ratio.zip(limit.as_deref());
        let by_ratio = by_ratio.map(|(ratio, limit)| least_request(resource, limit, ratio));
        let request =
            request.map(|request| at_most(at_least(at_least(request, least), by_ratio), limit.clone()));
        sizes.requests.extend(request.map(|request| (resource.to_owned(), request)));
        sizes.limits.extend(limit.map(|limit| (resource.to_owned(), limit)));
        Ok(())
    }
}

fn at_least(size: String, least: Option<String>) -> String {
    least.filter(|least| amount(least) > amount(&size)).unwrap_or(size)
}

fn at_most(size: String, most: Option<String>) -> String {
    most.filter(|most| amount(most) <= amount(&size)).unwrap_or(size)
}

/// The least request at which this limit is at most `ratio` billionths of it, in whole units.
fn least_request(resource: &str, limit: &str, ratio: i128) -> String {
    let (unit, suffix) = if resource == "cpu" { (ONE / 1000, "m") } else { (ONE << 10, "Ki") };
    let rounded_up = |number: i128, by: i128| number / by + i128::from(number % by != 0);
    let limit = amount(limit);
    // A limit that is too large for this fits as a request of its own size.
    let request = limit.checked_mul(ONE).map_or(limit, |limit| rounded_up(limit, ratio));
    format!("{}{suffix}", rounded_up(request, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(cpu: [&str; 2]) -> Sizes {
        let of = |size: &str| Quantities::from([("cpu".to_owned(), size.to_owned())]);
        Sizes { requests: of(cpu[0]), limits: of(cpu[1]) }
    }

    fn range() -> Object {
        let range = Object::read(&LIMIT_RANGE, serde_json::json!({"metadata": {"name": "x"}}));
        range.expect("a LimitRange").expect("a name")
    }

    fn json(text: &str) -> Sizes {
        serde_json::from_str(text).expect("sizes")
    }

    #[test]
    fn settings_go_field_by_field_over_the_defaults() {
        let wanted = |setting: &str, pack: Quantities, with_storage, is_guaranteed| {
            let (default, setting) = ([["50m", "64Mi"], ["200m", "128Mi"]], &json(setting));
            let added = AddedContainer { name: "memory-server", default, setting, pack };
            let Sizes { requests, limits } = added.wanted(with_storage, is_guaranteed);
            let text = |sizes: Quantities| sizes.into_values().collect::<Vec<_>>().join(" ");
            format!("{} | {}", text(requests), text(limits))
        };
        let pack = || Quantities::from([("memory".to_owned(), "1Gi".to_owned())]);
        let none = Quantities::new;
        for (setting, pack, with_storage, is_guaranteed, expected) in [
            ("{}", none(), false, false, "50m 64Mi | 200m 128Mi"),
            (r#"{"limits": {"memory": "1Gi"}}"#, none(), false, false, "50m 64Mi | 200m 1Gi"),
            (r#"{"requests": {"cpu": 0.1}}"#, none(), false, false, "0.1 64Mi | 200m 128Mi"),
            // The default gives way.
            (r#"{"requests": {"cpu": 1}}"#, none(), false, false, "1 64Mi | 1 128Mi"),
            (r#"{"limits": {"cpu": "10m"}}"#, none(), false, false, "10m 64Mi | 10m 128Mi"),
            (r#"{"limits": {"memory": "2Gi"}}"#, pack(), false, false, "50m 1Gi | 200m 1Gi"),
            ("{}", none(), false, true, "200m 128Mi | 200m 128Mi"),
            (r#"{"requests": {"cpu": 1}}"#, pack(), false, true, "1 1Gi | 1 1Gi"),
            ("{}", none(), true, false, "50m 64Mi 64Mi | 200m 64Mi 128Mi"),
            (
                r#"{"limits": {"ephemeral-storage": "1Gi"}}"#,
                none(),
                false,
                false,
                "50m 64Mi | 200m 1Gi 128Mi",
            ),
            (
                r#"{"limits": {"ephemeral-storage": "1Gi"}}"#,
                none(),
                true,
                false,
                "50m 64Mi 64Mi | 200m 1Gi 128Mi",
            ),
            (
                r#"{"requests": {"ephemeral-storage": "1Gi"}}"#,
                none(),
                true,
                false,
                "50m 1Gi 64Mi | 200m 1Gi 128Mi",
            ),
        ] {
            assert_eq!(wanted(setting, pack, with_storage, is_guaranteed), expected, "{setting}");
        }
    }

    #[test]
    fn knows_containers_of_guaranteed_pods() {
        for (resources, expected) in [
            (r#"{"limits": {"cpu": 1, "memory": "1Gi"}}"#, true),
            (r#"{"limits": {"cpu": 1, "memory": "1Gi"}, "requests": null}"#, true),
            (r#"{"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m"}}"#, true),
            (r#"{"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "999m"}}"#, false),
            (r#"{"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "x"}}"#, false),
            (r#"{"limits": {"cpu": 0, "memory": "1Gi"}}"#, false),
            (r#"{"limits": {"cpu": -1, "memory": "1Gi"}, "requests": {"cpu": -1}}"#, false),
            (r#"{"limits": {"cpu": 1}}"#, false),
            (r#"{"requests": {"cpu": 1, "memory": "1Gi"}}"#, false),
            (r#"{"limits": 1}"#, false),
            ("{}", false),
            ("[]", false),
        ] {
            let raw = serde_json::from_str(resources).expect("JSON");
            assert_eq!(is_guaranteed(&read(Some(raw))), expected, "{resources}");
        }
    }

    #[test]
    fn fits_what_a_limit_range_asks_for() {
        let range = range();
        let large = "1e300";
        for (limits, cpu, expected) in [
            ("{}", ["50m", "200m"], Some("50m 200m")),
            (r#"{"max": {"cpu": "100m"}}"#, ["50m", "200m"], Some("50m 100m")),
            (r#"{"max": {"cpu": 0.01}}"#, ["50m", "200m"], Some("0.01 0.01")),
            (r#"{"max": {"cpu": 0}}"#, ["50m", "200m"], Some("0 0")),
            (r#"{"min": {"cpu": "100m"}}"#, ["50m", "200m"], Some("100m 200m")),
            (r#"{"min": {"cpu": "300m"}}"#, ["50m", "200m"], Some("300m 300m")),
            (r#"{"min": {"cpu": "70m"}, "max": {"cpu": "70m"}}"#, ["50m", "200m"], Some("70m 70m")),
            (r#"{"min": {"cpu": "70m"}, "max": {"cpu": "69m"}}"#, ["50m", "200m"], None),
            (r#"{"min": {"memory": 9}, "max": {"memory": 1}}"#, ["50m", "200m"], Some("50m 200m")),
            (r#"{"maxLimitRequestRatio": {"cpu": 4}}"#, ["50m", "200m"], Some("50m 200m")),
            (r#"{"maxLimitRequestRatio": {"cpu": 3}}"#, ["50m", "200m"], Some("67m 200m")),
            (r#"{"maxLimitRequestRatio": {"cpu": 1}}"#, ["50m", "200m"], Some("200m 200m")),
            (r#"{"maxLimitRequestRatio": {"cpu": 1}}"#, ["50m", large], Some("1e300 1e300")),
            (r#"{"maxLimitRequestRatio": {"cpu": "1e300"}}"#, ["50m", "200m"], Some("50m 200m")),
            // What no apiserver stores.
            (r#"{"maxLimitRequestRatio": {"cpu": 0.5}}"#, ["50m", "200m"], Some("50m 200m")),
            (r#"{"max": {"cpu": -1}, "min": {"cpu": "x"}}"#, ["50m", "200m"], Some("50m 200m")),
            (r#"{"max": 1, "min": {"cpu": {}}}"#, ["50m", "200m"], Some("50m 200m")),
        ] {
            let mut bounds = Bounds::default();
            bounds.add("cpu", &serde_json::from_str(limits).expect("JSON"), &range);
            let mut sizes = sizes(cpu);
            let fits = bounds.fit("cpu", &mut sizes).is_ok();
            let text = fits.then(|| format!("{} {}", sizes.requests["cpu"], sizes.limits["cpu"]));
            assert_eq!(text.as_deref(), expected, "{limits} {cpu:?}");
        }
    }

    #[test]
    fn a_limit_range_completes_sizes_with_only_a_request() {
        for (most, ratio, expected) in
            [(None, None, None), (Some("2Gi"), None, Some("2Gi")), (None, Some(2 * ONE), Some("1Gi"))]
        {
            let range = range();
            let most = most.map(|size: &str| Bound { size: size.to_owned(), range: &range });
            let mut sizes = json(r#"{"requests": {"ephemeral-storage": "1Gi"}}"#);
            Bounds { most, ratio, least: None }.fit(STORAGE, &mut sizes).expect("they fit");
            assert_eq!(sizes.limits.get(STORAGE).map(String::as_str), expected);
            assert_eq!(sizes.requests[STORAGE], "1Gi");
        }
    }
}
