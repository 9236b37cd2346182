//! Every case of `tests/cases`: the policies and memgate are asked the same, and have to agree.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use memgate_model::cel::NotInCel;
use memgate_model::family::Family;
use memgate_model::kind::NAMESPACE;
use memgate_model::request::Operation;
use memgate_workbench::casefile::Case as Asked;
use serde_json::{Value, json};

use super::variants::is_namespaced;
use super::{PolicyCluster, codes_with_rules, denials, refused_for};
use crate::{
    fixture::Fixture,
    support::{cases, wait},
};

/// How a case ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    /// A policy refused it.
    Refused,
    /// It was granted.
    Granted,
    /// The apiserver refused it by itself.
    BySchema,
}

pub(super) fn cases(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let namespace = policies.cluster.fresh_namespace("parity")?;
    let mut ends: BTreeMap<End, usize> = BTreeMap::new();
    let mut seen: BTreeMap<End, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, asked) in all()? {
        match run(policies, &namespace, &asked) {
            Ok((end, code)) => {
                *ends.entry(end).or_default() += 1;
                seen.entry(end).or_default().extend(code);
            }
            Err(error) => wrong.push(format!("{name}: {error:#}")),
        }
    }
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    let by_schema = without().filter(|(_, why)| *why == NotInCel::Schema).map(|(code, _)| code);
    for (end, codes) in [(End::Refused, codes_with_rules()), (End::BySchema, by_schema.collect())] {
        let seen = seen.remove(&end).unwrap_or_default();
        let silent: Vec<_> = codes.into_iter().filter(|code| !seen.contains(*code)).collect();
        ensure!(silent.is_empty(), "{end:?}: no case for {silent:?}");
    }
    println!("cel_rules: {ends:?}");
    let enough = |end, least| ends.get(&end).is_some_and(|count| *count >= least);
    ensure!(enough(End::Refused, 100) && enough(End::Granted, 200), "too few cases: {ends:?}");
    Ok(())
}

/// The codes that refuse something and have no rule, and why.
fn without() -> impl Iterator<Item = (&'static str, NotInCel)> {
    memgate_platforms::ALL
        .into_iter()
        .flat_map(|family| family.in_cel.missing)
        .map(|(code, why)| (code.name, *why))
}

/// Waits until each policy refuses what it should.
pub(super) fn wait_until_in_force(policies: &PolicyCluster) -> Result<()> {
    let namespace = policies.cluster.fresh_namespace("in-force")?;
    let created: Vec<Asked> = all()?
        .into_iter()
        .map(|(_, asked)| asked)
        .filter(|asked| asked.operation == Operation::Create)
        .collect();
    for table in memgate_platforms::ALL.into_iter().flat_map(|family| family.in_cel.tables) {
        let codes: BTreeSet<&str> = table.rules.iter().map(|rule| rule.code.name).collect();
        let refused = |asked: &&Asked| {
            let object = asked.object.as_ref().unwrap_or(&Value::Null);
            let (group, kind) = group_and_kind(object);
            let denials = denials(asked).unwrap_or_default();
            // One that nothing else refuses.
            table.kinds.iter().any(|known| known.is(group, kind))
                && !denials.is_empty()
                && denials.iter().all(|(code, _)| codes.contains(code))
        };
        let candidates: Vec<&Asked> = created.iter().filter(refused).collect();
        ensure!(!candidates.is_empty(), "no case is refused by {} alone", table.name);
        wait::until(&format!("the policy {} to be in force", table.name), || {
            for asked in &candidates {
                let object = asked.object.as_ref().context("a case has no object")?;
                if refused_for(&policies.create(&namespace, &in_namespace(object, &namespace))?)?.is_some() {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })?;
    }
    Ok(())
}

/// Every case about an object of a validated kind that can be sent to an apiserver.
pub(super) fn all() -> Result<Vec<(String, Asked)>> {
    let mut all = Vec::new();
    for (file, asked) in cases::cases()? {
        let file = file.trim_end_matches(".yaml");
        // No apiserver can be asked these, and none knows the policies of an organisation by itself.
        if !file.ends_with("-offline") && !file.starts_with("policy/") {
            all.push((format!("{file}: {}", asked.name), asked));
        }
    }
    all.retain(|(_, asked)| is_validated(asked));
    Ok(all)
}

fn is_validated(asked: &Asked) -> bool {
    let writes = matches!(asked.operation, Operation::Create | Operation::Update);
    let (group, kind) = group_and_kind(asked.object.as_ref().unwrap_or(&Value::Null));
    let served = |family: &'static Family| family.kinds.validated.iter().any(|known| known.is(group, kind));
    let goes = |object: &Option<Value>| {
        object.as_ref().is_some_and(|object| !object["metadata"]["deletionTimestamp"].is_null())
    };
    writes
        && asked.subresource.is_empty()
        && !NAMESPACE.is(group, kind)
        && memgate_platforms::ALL.into_iter().any(served)
        && !goes(&asked.object)
        && !goes(&asked.old_object)
}

fn group_and_kind(object: &Value) -> (&str, &str) {
    let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    (group.map_or("", |(group, _)| group), object["kind"].as_str().unwrap_or_default())
}

pub(super) fn in_namespace(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    let (group, kind) = group_and_kind(&object);
    let known = memgate_platforms::state_kind(&memgate_platforms::ALL, group, kind);
    if known.is_some_and(|kind| !kind.namespaced)
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        metadata.remove("namespace");
    }
    object
}

fn run(policies: &PolicyCluster, namespace: &str, asked: &Asked) -> Result<(End, Option<String>)> {
    let object = in_namespace(asked.object.as_ref().context("a case has no object")?, namespace);
    let _alone = (!is_namespaced(&object)).then(|| policies.cluster_wide.lock());
    let answer = match (asked.operation, &asked.old_object) {
        (Operation::Update, Some(old)) => {
            let stored = policies.store(namespace, &in_namespace(old, namespace))?;
            if !stored.granted() {
                return Ok((End::BySchema, None));
            }
            let answer = policies.update(namespace, &stored.body, &object);
            policies.remove(namespace, &stored.body)?;
            answer?
        }
        (Operation::Update, None) => bail!("an update of nothing"),
        _ => policies.create(namespace, &object)?,
    };
    let denials = denials(asked)?;
    if let Some(code) = refused_for(&answer)? {
        let same: Vec<_> = denials.iter().filter(|(denied, _)| *denied == code).collect();
        ensure!(!same.is_empty(), "memgate would not say {code}: {denials:?}");
        let alike = same.iter().any(|(_, message)| starts_alike(answer.message(), message));
        ensure!(alike, "{} / {same:?}", answer.message());
        return Ok((End::Refused, Some(code)));
    }
    if !answer.granted() {
        let first = denials.into_iter().next().map(|(code, _)| code.to_owned());
        return Ok((End::BySchema, first));
    }
    let beyond = |code: &str| without().any(|(other, why)| other == code && why != NotInCel::Schema);
    let missed: Vec<_> = denials.iter().filter(|(code, _)| !beyond(code)).collect();
    ensure!(missed.is_empty(), "the apiserver grants what memgate refuses: {missed:?}");
    Ok((End::Granted, None))
}

/// Whether memgate's message, or what follows its field, starts with the first word of a refusal, mostly a field.
fn starts_alike(refusal: &str, message: &str) -> bool {
    let reason = refusal.split_once("denied request: ").map(|(_, reason)| reason);
    let word = reason.and_then(|reason| reason.split([' ', ':', '[']).next());
    let rest = message.split_once(": ").map_or(message, |(_, rest)| rest);
    word.is_some_and(|word| !word.is_empty() && [message, rest].iter().any(|it| it.starts_with(word)))
}
