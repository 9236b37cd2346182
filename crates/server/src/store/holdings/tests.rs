//! What the state lets go of, and that it counts right whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use memgate_model::object::{Coverage, KindState, Object};
use memgate_platforms::arkonis;

use super::*;
use crate::store::apply_event::StoreChange;
use crate::store::{Store, lock};

const KIB: usize = 1 << 10;

fn kinds() -> [&'static Kind; 2] {
    ["ArkAgent", "ArkMemory"]
        .map(|name| *arkonis::FAMILY.kinds.watched.iter().find(|it| it.kind == name).expect("is watched"))
}

/// An object as an apiserver stores it; `text` is in it as it stands.
fn object(kind: &'static Kind, namespace: &str, name: &str, text: &str) -> Object {
    let json = format!(
        r#"{{"apiVersion":"arkonis.dev/v1alpha1","kind":"{}","metadata":{{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{{"text":"{text}"}},"name":"{name}","namespace":"{namespace}","resourceVersion":"1","uid":"0c2a5b7e-6393-11e8-b7cc-000000000000"}},"spec":{{"model":"m","systemPrompt":"be kind"}}}}"#,
        kind.kind
    );
    Object::read_to_keep(kind, (namespace, name), &json).expect("JSON").expect("a name")
}

/// An agent with very many labels that say nothing.
fn dense(namespace: &str, name: &str) -> Object {
    let [agent, _] = kinds();
    let labels: Vec<_> = (0..9_900).map(|number| format!("\"{number:x}\":\"\"")).collect();
    let labels = labels.join(",");
    let json = format!(
        r#"{{"metadata":{{"labels":{{{labels}}},"name":"{name}","namespace":"{namespace}"}},"spec":{{"model":"m"}}}}"#
    );
    Object::read_to_keep(agent, (namespace, name), &json).expect("JSON").expect("a name")
}

fn store(most: usize) -> Store {
    Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true).holding(most)
}

fn in_namespace(store: &Store, namespace: &str) -> usize {
    let snapshot = store.snapshot();
    let of_kind = |kind| snapshot.kind(kind).into_iter().flat_map(KindState::objects);
    kinds().into_iter().flat_map(of_kind).filter(|object| &*object.namespace == namespace).count()
}

fn not_held(store: &Store) -> usize {
    store.holdings().1.into_values().sum()
}

/// What is kept, counted anew: each object once, in however many places it is.
fn counted(store: &Store) -> usize {
    let latest = lock(&store.latest);
    let states = latest.snapshot.kinds().chain(latest.lists.values());
    let kept: BTreeMap<_, _> =
        states.flat_map(KindState::kept).map(|it| (Arc::as_ptr(it), it.bytes())).collect();
    kept.values().sum()
}

/// Whether all objects of a kind are held.
fn holds_all(store: &Store, kind: &Kind) -> bool {
    store.holdings().1.get(kind).is_none_or(|lost| *lost == 0)
}

#[test]
fn counts_right_and_stays_within_its_limit_whatever_happens() {
    for most in [40 * KIB, 200 * KIB, usize::MAX] {
        let store = store(most);
        let mut random = 1_u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below
        };
        for step in 0..6_000 {
            let kind = kinds()[next(2) as usize];
            let (namespace, name) = (format!("team-{}", next(6)), format!("n{}", next(60)));
            let text = "x".repeat(next(3) as usize * 400);
            let object = || match next(20) {
                0 => dense(&namespace, &name),
                _ => object(kind, &namespace, &name, &text),
            };
            let change = match (step % 997, step % 13) {
                (0, _) => StoreChange::Begin,
                (900, _) => StoreChange::End,
                (950, _) => StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))),
                (_, 0) => StoreChange::Remove { namespace, name },
                (_, 1..6) => StoreChange::Listed({ object }()),
                _ => StoreChange::Insert({ object }()),
            };
            let kind = match &change {
                StoreChange::Listed(object) | StoreChange::Insert(object) => object.kind,
                _ => kind,
            };
            store.apply(kind, change);
            if step % 50 == 0 {
                let latest = lock(&store.latest);
                let bytes = latest.holdings.bytes;
                assert!(!latest.holdings.exceeded(), "{bytes}");
                assert_eq!(latest.holdings.of_namespace.values().sum::<usize>(), bytes);
                assert_eq!(latest.holdings.by_size.iter().map(|(bytes, _)| bytes).sum::<usize>(), bytes);
                for kind in kinds() {
                    let lost = latest.holdings.lost_of(kind).map_or(0, |lost| lost.names.len());
                    let state = latest.snapshot.kind(kind);
                    let (not_held, lacks_some) =
                        state.map_or((0, false), |it| (it.not_held(), it.lacks_some));
                    assert!(lost >= not_held, "step {step}");
                    assert_eq!(lacks_some, lost > not_held, "step {step}");
                }
                drop(latest);
                assert_eq!(counted(&store), bytes, "step {step}");
            }
        }
    }
}

#[test]
fn the_namespace_with_the_most_lets_go_and_others_stay_whole() {
    let [agent, memory] = kinds();
    for list in [false, true] {
        let store = store(400 * KIB);
        let add = |object: Object| {
            let kind = object.kind;
            store.apply(kind, if list { StoreChange::Listed(object) } else { StoreChange::Insert(object) });
        };
        let text = "x".repeat(400);
        for number in 0..20 {
            add(object(memory, "before", &format!("n{number}"), ""));
        }
        for number in 0..3_000 {
            add(object(agent, "greedy", &format!("n{number}"), &text));
        }
        for number in 0..40 {
            add(object(agent, "later", &format!("n{number}"), &text));
        }
        for kind in kinds() {
            if list {
                store.apply(kind, StoreChange::End);
            }
        }
        assert_eq!((in_namespace(&store, "before"), in_namespace(&store, "later")), (20, 40));
        let greedy = in_namespace(&store, "greedy");
        assert!((50..500).contains(&greedy), "{greedy}");
        assert_eq!(greedy + not_held(&store), 3_000, "each is counted");
        assert!(store.holdings().0 <= 400 * KIB && !holds_all(&store, agent) && holds_all(&store, memory));
        for number in 0..3_000 {
            let (namespace, name) = ("greedy".to_owned(), format!("n{number}"));
            store.apply(agent, StoreChange::Remove { namespace, name });
        }
        assert_eq!((not_held(&store), holds_all(&store, agent)), (0, true));
    }
}

#[test]
fn what_is_in_no_namespace_goes_last() {
    let store = store(100 * KIB);
    let namespace = |number| {
        let json = format!(r#"{{"metadata":{{"name":"n{number}","labels":{{"env":"prod"}}}}}}"#);
        let kind = &memgate_model::kind::NAMESPACE;
        (kind, Object::read_to_keep(kind, ("", &format!("n{number}")), &json).expect("JSON").expect("a name"))
    };
    for number in 0..50 {
        let (kind, object) = namespace(number);
        store.apply(kind, StoreChange::Insert(object));
    }
    for number in 0..500 {
        let object = object(kinds()[0], "team", &format!("n{number}"), "");
        store.apply(object.kind, StoreChange::Insert(object));
    }
    assert_eq!(store.snapshot().kind(namespace(0).0).map(KindState::len), Some(50));
}

#[test]
fn a_new_list_shares_what_has_not_changed() {
    let [agent, _] = kinds();
    let store = store(usize::MAX);
    let list = |text: &str, most: usize| {
        store.apply(agent, StoreChange::Begin);
        for number in 0..most {
            let text = if number < 10 { text } else { "same" };
            store.apply(agent, StoreChange::Listed(object(agent, "team", &format!("n{number}"), text)));
        }
    };
    list("a", 1_000);
    store.apply(agent, StoreChange::End);
    let before = store.holdings().0;
    let snapshot = store.snapshot();
    list("b", 1_000);
    let during = store.holdings().0;
    assert!(during > before && during < before + before / 50, "{before} {during}");
    store.apply(agent, StoreChange::End);
    let is_shared = |object: &&Arc<Object>| {
        let state = snapshot.kind(agent).expect("a state");
        state.kept_of(&object.namespace, &object.name).is_some_and(|it| Arc::ptr_eq(it, object))
    };
    let now = store.snapshot();
    assert_eq!(now.kind(agent).expect("a state").kept().filter(is_shared).count(), 990);
    assert_eq!(counted(&store), store.holdings().0);
    list("c", 500);
    list("d", 700);
    store.apply(agent, StoreChange::End);
    assert_eq!((counted(&store), in_namespace(&store, "team")), (store.holdings().0, 700));
}

#[test]
fn an_object_that_would_take_too_much_is_counted_and_kept_by_name() {
    let store = store(usize::MAX);
    let [agent, _] = kinds();
    for _ in 0..2 {
        store.apply(agent, StoreChange::Insert(dense("team", "a")));
    }
    assert_eq!((not_held(&store), in_namespace(&store, "team")), (1, 0));
    assert!(store.holdings().0 < KIB);
    store.apply(agent, StoreChange::Insert(object(agent, "team", "a", "")));
    assert_eq!((not_held(&store), in_namespace(&store, "team")), (0, 1));
    store.apply(agent, StoreChange::Insert(dense("team", "a")));
    store.apply(agent, StoreChange::Remove { namespace: "team".to_owned(), name: "a".to_owned() });
    assert_eq!((not_held(&store), store.holdings().0), (0, 0));
}

#[test]
fn very_many_small_objects_stay_within_the_limit() {
    // A million with MEMGATE_OBJECTS=1000000; the figures are in stress/FAULTS.md.
    let most = 4 << 20;
    let objects = std::env::var("MEMGATE_OBJECTS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let store = store(most);
    let [agent, _] = kinds();
    store.apply(agent, StoreChange::Begin);
    for number in 0..objects {
        let namespace = format!("team-{}", number % 1_000);
        store.apply(agent, StoreChange::Listed(object(agent, &namespace, &format!("n{number}"), "")));
    }
    store.apply(agent, StoreChange::End);
    let held = store.snapshot().kind(agent).map_or(0, KindState::len);
    assert!(store.holdings().0 <= most && held > 2_000, "{held}");
    assert!(held + not_held(&store) <= objects && not_held(&store) > most / KIB);
    let namespaces: BTreeSet<_> = {
        let snapshot = store.snapshot();
        let objects = snapshot.kind(agent).into_iter().flat_map(KindState::objects);
        objects.map(|object| object.namespace.to_string()).collect()
    };
    assert_eq!(namespaces.len(), 1_000, "each namespace has its part");
}

#[test]
fn while_a_kind_is_listed_again_it_is_known_what_is_not_held() {
    let [agent, _] = kinds();
    let text = "x".repeat(400);
    for (before, after) in [(3_000, 3_000), (3_000, 10), (10, 3_000), (3_000, 0), (10, 10)] {
        let store = store(400 * KIB);
        let list = |objects: usize, end: bool| {
            store.apply(agent, StoreChange::Begin);
            for number in 0..objects {
                store
                    .apply(agent, StoreChange::Listed(object(agent, "greedy", &format!("n{number}"), &text)));
            }
            if end {
                store.apply(agent, StoreChange::End);
            }
        };
        let lacks_some = || store.snapshot().kind(agent).is_some_and(|state| state.lacks_some);
        let is_whole = |objects: usize| objects < 3_000;
        list(before, true);
        assert_eq!((holds_all(&store, agent), lacks_some()), (is_whole(before), !is_whole(before)));
        store.apply(agent, StoreChange::Begin);
        assert_eq!(
            (holds_all(&store, agent), lacks_some()),
            (is_whole(before), !is_whole(before)),
            "it is the old state"
        );
        // One that breaks off changes nothing that is not held.
        list(5, false);
        assert_eq!((holds_all(&store, agent), lacks_some()), (is_whole(before), !is_whole(before)));
        list(after, true);
        // The new list lets go while the old one takes all the room.
        let is_whole = after == 0 || is_whole(before) && is_whole(after);
        assert_eq!((holds_all(&store, agent), lacks_some()), (is_whole, !is_whole), "{before} {after}");
        assert!(in_namespace(&store, "greedy") + not_held(&store) <= after + 1, "as far as there is room");
    }
}

#[test]
fn what_is_remembered_of_lost_objects_is_bounded_for_all_kinds_together() {
    let most = 100 * KIB;
    let store = store(most);
    let kinds: Vec<_> =
        memgate_platforms::ALL.iter().flat_map(|family| family.kinds.watched).copied().take(8).collect();
    store.apply(kinds[0], StoreChange::Insert(object(kinds[0], "small", "stays", "")));
    for kind in &kinds {
        for number in 0..600 {
            store.apply(kind, StoreChange::Insert(object(kind, "greedy", &format!("n{number}"), "")));
        }
        let holdings = lock(&store.latest);
        assert!(
            holdings.holdings.remembered() <= most / (4 * BYTES_PER_LOST) && !holdings.holdings.exceeded()
        );
    }
    assert!(store.snapshot().kind(kinds[0]).is_some_and(|state| state.object("small", "stays").is_some()));
    let held = |kind: &Kind| store.snapshot().kind(kind).map_or(0, KindState::len);
    assert!(kinds.iter().map(|kind| held(kind)).sum::<usize>() > 30, "not all of it is let go of");
    assert!(kinds.iter().all(|kind| !holds_all(&store, kind)), "those that are not remembered too");
}
