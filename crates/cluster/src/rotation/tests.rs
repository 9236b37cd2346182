use std::collections::{BTreeMap, BTreeSet};

use super::*;
use memgate_certs::live_bundles::EntryBundle;

const NOW: i64 = 1_800_000_000;

fn rotation(requested: &str, made: &str, done: &str) -> Rotation {
    let keys = ["memgate.dev/rotate-requested", "memgate.dev/rotate-made", "memgate.dev/rotate-done"];
    let entries = keys.into_iter().zip([requested, made, done]).filter(|(_, text)| !text.is_empty());
    let annotations: BTreeMap<_, _> = entries.map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
    Rotation::read(Some(&annotations))
}

fn live(bundles: &[&[&str]]) -> LiveBundles {
    let entry = |(index, cas): (usize, &&[&str])| EntryBundle {
        configuration: if index == 0 { "mutating" } else { "validating" },
        name: format!("{index}.memgate.dev"),
        cas: cas.iter().map(|ca| (*ca).to_owned()).collect::<BTreeSet<_>>(),
    };
    LiveBundles { entries: bundles.iter().enumerate().map(entry).collect(), from_cert_manager: false }
}

const PLAIN: &str = "2027-01-15T07:00:00Z";
const REVOKE: &str = "2027-01-15T07:00:00Z revoke";

#[test]
fn a_request_that_is_under_way_is_joined_unless_it_asks_for_less() {
    let new = |revoke| RotationRequest::new(NOW, revoke).to_string();
    let rows: [(Rotation, bool, Result<&str, String>); 8] = [
        (rotation("", "", ""), false, Err(new(false))),
        (rotation("", "", ""), true, Err(new(true))),
        (rotation(PLAIN, "", ""), false, Ok(PLAIN)),
        (rotation(PLAIN, "", ""), true, Err(new(true))),
        (rotation(REVOKE, "", ""), false, Ok(REVOKE)),
        (rotation(REVOKE, &format!("ab {REVOKE}"), ""), true, Ok(REVOKE)),
        (rotation(REVOKE, &format!("ab {REVOKE}"), REVOKE), true, Err(new(true))),
        (rotation("soon", "", ""), false, Err(new(false))),
    ];
    for (rotation, revoke, expected) in rows {
        let next = next(&rotation, revoke, NOW).map(|request| request.to_string());
        let expected = expected.map(str::to_owned);
        assert_eq!(next.map_err(|request| request.to_string()), expected, "{rotation:?} {revoke}");
    }
}

#[test]
fn a_second_request_within_one_second_is_another_one() {
    let first = RotationRequest::new(NOW, true).to_string();
    let done = rotation(&first, &format!("ab {first}"), &first);
    let second = next(&done, true, NOW).expect_err("a new one");
    assert_eq!(second, RotationRequest::new(NOW + 1, true));
}

/// The annotations, what each entry trusts, and how far the request is then.
type Row<'a> = (Rotation, &'a [&'a [&'a str]], Stage);

#[test]
fn reports_how_far_it_is_by_what_both_configurations_trust() {
    let made = |request: &str| format!("new {request}");
    let both: &[&str] = &["new", "old"];
    let name = |index: usize, kind: &str| vec![format!("{index}.memgate.dev ({kind})")];
    let done = |request: &str| Stage::Done {
        ca: MadeCa { sha256: "new".to_owned(), request: RotationRequest::parse(request).expect("a request") },
        entries: 2,
    };
    let rows: [Row<'_>; 9] = [
        (rotation("", "", ""), &[both], Stage::Gone),
        (rotation(PLAIN, "", ""), &[both], Stage::Waiting),
        (rotation(PLAIN, &made(PLAIN), ""), &[both, &["old"]], Stage::Spreading(name(1, "validating"))),
        (rotation(PLAIN, &made(PLAIN), ""), &[both, both], Stage::Settling),
        (rotation(PLAIN, &made(PLAIN), PLAIN), &[both, both], done(PLAIN)),
        (rotation(REVOKE, &made(REVOKE), ""), &[both, both], Stage::Settling),
        (rotation(REVOKE, &made(REVOKE), REVOKE), &[both, &["new"]], Stage::Leaving(name(0, "mutating"))),
        (rotation(REVOKE, &made(REVOKE), REVOKE), &[&["new"], &["new"]], done(REVOKE)),
        // A tool that put an old configuration back.
        (
            rotation(REVOKE, &made(REVOKE), REVOKE),
            &[&["old"], &["new"]],
            Stage::Spreading(name(0, "mutating")),
        ),
    ];
    for (rotation, bundles, expected) in rows {
        let stage = Stage::of(&rotation, &live(bundles));
        assert_eq!(stage, expected, "{rotation:?}");
        assert_eq!(stage.missing().is_none(), matches!(stage, Stage::Done { .. }));
    }
}

#[test]
fn says_what_is_missing_and_where() {
    let entries = vec!["a.memgate.dev (mutating)".to_owned(), "b.memgate.dev (validating)".to_owned()];
    for (stage, words) in [
        (Stage::Waiting, &["no replica has made a new CA", "The request stays", "memgate doctor"][..]),
        (Stage::Gone, &["ask again"]),
        (Stage::Spreading(entries.clone()), &["do not trust it", "a.memgate.dev (mutating), b.memgate.dev"]),
        (Stage::Leaving(entries), &["still trust another one", "b.memgate.dev (validating)"]),
        (Stage::Settling, &["the same command waits again"]),
    ] {
        let text = stage.missing().expect("it is not done");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}

#[test]
fn says_why_it_cannot_be_asked_for() {
    let target = RotationTarget { namespace: "home", secret: "memgate-ca", configuration: "memgate" };
    let absent = target.found(Fetched::<()>::Absent).expect_err("not found").to_string();
    assert!(absent.starts_with("found no Secret memgate-ca in the namespace home"), "{absent}");
    assert!(target.check(&live(&[&["old"]])).is_ok());
    let refused = |live: &LiveBundles| target.check(live).expect_err("refused").to_string();
    assert!(refused(&live(&[])).contains("give --webhook-configuration"));
    let theirs = LiveBundles { from_cert_manager: true, ..live(&[&["old"]]) };
    assert!(refused(&theirs).contains("cert-manager writes caBundle"));
}
