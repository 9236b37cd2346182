//! The policies and memgate are asked the same, and have to agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, stream};
use memgate::{
    casefile::{Case as Asked, expect::Expect, read::read},
    family,
    manifest::{collect::collect, document::values},
    model::{kind::NAMESPACE, request::Operation, settings::Family, twin::Without},
};
use serde_json::{Value, json};

use super::{Twins, denials, refused_for, twinned};
use crate::{
    request::{Answer, create},
    support::wait,
    world::World,
};

/// How many requests are sent at a time.
const AT_ONCE: usize = 8;

/// Of how many objects of a kind variants are made.
const OBJECTS: usize = 4;

/// How many variants of an object are stored, and into how many others each is changed.
const STORED: usize = 24;
const UPDATES: usize = 6;

/// What is put in the place of each text of an object, beside what is put in that of everything.
const ODD_TEXTS: [&str; 24] = [
    " ",
    "\t",
    "a b",
    "a/b",
    "a/b/c",
    "ns / name",
    "/",
    "a:",
    ":a",
    "HTTP",
    " redis",
    "http://",
    "HTTPS://U:P@Host:443/a?b#c",
    "http://h:0",
    "http://h:65536",
    "http://[::1]:80/",
    "http://[::ffff:127.0.0.1]",
    "http://a@localhost:1",
    "http://a\u{a0}b",
    "host=db dbname=x",
    "0s",
    "+1.5h",
    "-1Gi",
    "1e3",
];

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

pub(super) fn cases(world: &World) -> Result<()> {
    let twins = world.twins()?;
    let namespace = twins.cluster.fresh_namespace("parity")?;
    let mut ends: BTreeMap<End, usize> = BTreeMap::new();
    let mut seen: BTreeMap<End, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, asked) in all()? {
        match run(twins, &namespace, &asked) {
            Ok((end, code)) => {
                *ends.entry(end).or_default() += 1;
                seen.entry(end).or_default().extend(code);
            }
            Err(error) => wrong.push(format!("{name}: {error:#}")),
        }
    }
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    let by_schema = without().filter(|(_, why)| *why == Without::Schema).map(|(code, _)| code);
    for (end, codes) in [(End::Refused, twinned()), (End::BySchema, by_schema.collect())] {
        let seen = seen.remove(&end).unwrap_or_default();
        let silent: Vec<_> = codes.into_iter().filter(|code| !seen.contains(*code)).collect();
        ensure!(silent.is_empty(), "{end:?}: no case for {silent:?}");
    }
    println!("twin: {ends:?}");
    let enough = |end, least| ends.get(&end).is_some_and(|count| *count >= least);
    ensure!(enough(End::Refused, 100) && enough(End::Granted, 200), "too few cases: {ends:?}");
    Ok(())
}

/// The codes that refuse something and have no rule, and why.
fn without() -> impl Iterator<Item = (&'static str, Without)> {
    Family::ALL.into_iter().flat_map(family::without_twin).map(|(code, why)| (code.name, *why))
}

/// Waits until each policy refuses what it should.
pub(super) fn wait_until_in_force(twins: &Twins) -> Result<()> {
    let namespace = twins.cluster.fresh_namespace("in-force")?;
    let created: Vec<Asked> = all()?
        .into_iter()
        .map(|(_, asked)| asked)
        .filter(|asked| asked.operation == Operation::Create)
        .collect();
    for table in Family::ALL.into_iter().flat_map(family::twins) {
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
                if refused_for(&twins.create(&namespace, &in_namespace(object, &namespace))?)?.is_some() {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })?;
    }
    Ok(())
}

/// Every case about an object of a judged kind that an apiserver can be asked.
fn all() -> Result<Vec<(String, Asked)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let collected = collect(&[root.display().to_string()], &mut io::empty());
    ensure!(collected.errors.is_empty(), "{:?}", collected.errors);
    let mut all = Vec::new();
    for source in collected.sources.into_iter().map(Arc::new) {
        let file = Path::new(source.name()).strip_prefix(&root)?.with_extension("").display().to_string();
        // No apiserver can be asked these.
        if file.ends_with("-offline") {
            continue;
        }
        let mut errors = Vec::new();
        for document in values(&source, &mut errors) {
            let read = read(document.value()).map_err(|faults| anyhow::anyhow!("{file}: {faults:?}"))?;
            all.extend(read.into_iter().map(|asked| (format!("{file}: {}", asked.name), asked)));
        }
        ensure!(errors.is_empty(), "{errors:?}");
    }
    all.retain(|(_, asked)| is_judged(asked));
    Ok(all)
}

fn is_judged(asked: &Asked) -> bool {
    let writes = matches!(asked.operation, Operation::Create | Operation::Update);
    let (group, kind) = group_and_kind(asked.object.as_ref().unwrap_or(&Value::Null));
    let served = |family| family::judged(family).iter().any(|known| known.is(group, kind));
    let goes = |object: &Option<Value>| {
        object.as_ref().is_some_and(|object| !object["metadata"]["deletionTimestamp"].is_null())
    };
    writes
        && asked.subresource.is_empty()
        && !NAMESPACE.is(group, kind)
        && Family::ALL.into_iter().any(served)
        && !goes(&asked.object)
        && !goes(&asked.old_object)
}

fn group_and_kind(object: &Value) -> (&str, &str) {
    let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    (group.map_or("", |(group, _)| group), object["kind"].as_str().unwrap_or_default())
}

fn in_namespace(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    let (group, kind) = group_and_kind(&object);
    let known = family::state_kind(group, kind);
    if known.is_some_and(|kind| !kind.namespaced)
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        metadata.remove("namespace");
    }
    object
}

fn run(twins: &Twins, namespace: &str, asked: &Asked) -> Result<(End, Option<String>)> {
    let object = in_namespace(asked.object.as_ref().context("a case has no object")?, namespace);
    let answer = match (asked.operation, &asked.old_object) {
        (Operation::Update, Some(old)) => {
            let stored = twins.store(namespace, &in_namespace(old, namespace))?;
            if !stored.granted() {
                return Ok((End::BySchema, None));
            }
            let answer = twins.update(namespace, &stored.body, &object);
            twins.remove(namespace, &stored.body)?;
            answer?
        }
        (Operation::Update, None) => bail!("an update of nothing"),
        _ => twins.create(namespace, &object)?,
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
    let beyond = |code: &str| without().any(|(other, why)| other == code && why != Without::Schema);
    let missed: Vec<_> = denials.iter().filter(|(code, _)| !beyond(code)).collect();
    ensure!(missed.is_empty(), "the apiserver grants what memgate refuses: {missed:?}");
    Ok((End::Granted, None))
}

/// Whether memgate's message starts with the first word of a refusal, mostly a field.
fn starts_alike(refusal: &str, message: &str) -> bool {
    let said = refusal.split_once("denied request: ").map(|(_, said)| said);
    let word = said.and_then(|said| said.split([' ', ':', '[']).next());
    word.is_some_and(|word| !word.is_empty() && message.starts_with(word))
}

/// Objects with parts missing, empty, null or odd: no policy fails of them, and each does what memgate
/// does.
pub(super) fn variants(world: &World) -> Result<()> {
    let twins = world.twins()?;
    let namespace = twins.cluster.fresh_namespace("variants")?;
    let all: Vec<Value> = richest(&namespace, OBJECTS)?.iter().flat_map(odd).collect();
    let (user, stager) = (twins.cluster.client(), twins.stager.clone());
    let answers: Vec<_> = twins.cluster.block_on(async {
        let asked = stream::iter(&all).map(|object| async {
            let answer = create(&user, &namespace, object, "?dryRun=All").await?;
            // As the schema completes it; no policy saw anything else.
            anyhow::Ok((answer, create(&stager, &namespace, object, "?dryRun=All").await?))
        });
        asked.buffered(AT_ONCE).collect().await
    });
    let mut tally = Tally::default();
    for (object, answers) in all.iter().zip(answers) {
        let (answer, seen) = answers?;
        tally.add(object, &answer, seen, None);
    }
    tally.settle("variants", 300, 1000)
}

/// The same of updates: a fault that is stored stays what it is, and another one is news.
pub(super) fn updates(world: &World) -> Result<()> {
    let twins = world.twins()?;
    let namespace = twins.cluster.fresh_namespace("updates")?;
    let mut tally = Tally::default();
    for object in richest(&namespace, 1)?.iter().filter(|object| is_namespaced(object)) {
        let variants = odd(object);
        let each = (variants.len() / STORED).max(1);
        for (index, old) in variants.iter().enumerate().step_by(each) {
            let stored = twins.store(&namespace, old)?;
            if !stored.granted() {
                continue;
            }
            let mut labelled = old.clone();
            labelled["metadata"]["labels"] = json!({"tier": "gold"});
            let others = (1..=UPDATES).map(|step| &variants[(index + step * step) % variants.len()]);
            for new in others.chain([&labelled, object]) {
                let answer = twins.update(&namespace, &stored.body, new)?;
                let seen = twins.update_unseen(&namespace, &stored.body, new)?;
                tally.add(new, &answer, seen, Some(&stored.body));
            }
            twins.remove(&namespace, &stored.body)?;
        }
    }
    tally.settle("updates", 100, 500)
}

/// What was asked so far.
#[derive(Default)]
struct Tally {
    refused: usize,
    granted: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Holds an answer against memgate's, who sees an object as the policies do.
    fn add(&mut self, object: &Value, answer: &Answer, seen: Answer, old: Option<&Value>) {
        match agree(object, answer, seen, old) {
            Ok(code) => {
                self.refused += usize::from(code.is_some());
                self.granted += usize::from(answer.granted());
            }
            Err(error) => self.wrong.push(format!("{error:#}: {object}, stored {old:?}")),
        }
    }

    fn settle(self, what: &str, refused: usize, granted: usize) -> Result<()> {
        let wrong = &self.wrong;
        println!("twin: {what}: {} refused by a policy, {} granted", self.refused, self.granted);
        ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
        ensure!(self.refused >= refused && self.granted >= granted, "too few {what}");
        Ok(())
    }
}

fn agree(object: &Value, answer: &Answer, seen: Answer, old: Option<&Value>) -> Result<Option<String>> {
    let code = refused_for(answer)?;
    ensure!(seen.granted() == (answer.granted() || code.is_some()), "the schema says {}", seen.message());
    if !seen.granted() {
        return Ok(None);
    }
    let denials = denials(&asked(seen.body, old.cloned()))?;
    let denied = |code: &str| denials.iter().any(|(denied, _)| *denied == code);
    match &code {
        Some(code) => ensure!(denied(code), "memgate would not say {code}, but {denials:?}"),
        // A text of this length is judged by memgate alone.
        None if object.to_string().contains(&long()) => {}
        None => {
            let missed: Vec<_> = twinned().into_iter().filter(|code| denied(code)).collect();
            ensure!(missed.is_empty(), "granted although memgate says {missed:?}");
        }
    }
    Ok(code)
}

/// So many objects of each kind, those with the most parts.
fn richest(namespace: &str, count: usize) -> Result<Vec<Value>> {
    let mut of_kind: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (_, asked) in all()? {
        let object = asked.object.context("a case has no object")?;
        let objects = of_kind.entry(format!("{} {}", object["apiVersion"], object["kind"])).or_default();
        objects.push(in_namespace(&object, namespace));
    }
    let richest = of_kind.into_values().flat_map(|mut objects| {
        objects.sort_by_key(|object| std::cmp::Reverse(object.to_string().len()));
        objects.truncate(count);
        objects
    });
    Ok(richest.collect())
}

fn is_namespaced(object: &Value) -> bool {
    !object["metadata"]["namespace"].is_null()
}

/// The question whether an object may be created, or the stored one be changed into it.
fn asked(object: Value, old: Option<Value>) -> Asked {
    Asked {
        pointer: memgate::model::pointer::Pointer::root(),
        name: String::new(),
        why: String::new(),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        state: Vec::new(),
        object: Some(object),
        old_object: old,
        dry_run: true,
        namespace: None,
        subresource: String::new(),
        expect: Expect::default(),
    }
}

/// The object with each of its parts, one after the other, taken away or replaced.
fn odd(object: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    for part in ["spec", "metadata"] {
        walk(&object[part], &format!("/{part}"), &mut places);
    }
    let fixed = ["/metadata/name", "/metadata/namespace", "/metadata"];
    places.retain(|place| !fixed.contains(&place.as_str()));
    let mut variants = Vec::new();
    for place in &places {
        let mut without = object.clone();
        let (parent, key) = place.rsplit_once('/').unwrap_or_default();
        match without.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.remove(&key.replace("~1", "/").replace("~0", "~"))),
            Some(Value::Array(elements)) => {
                if let Ok(index) = key.parse::<usize>() {
                    elements.remove(index);
                }
            }
            _ => {}
        }
        variants.push(without);
        let is_text = object.pointer(place).is_some_and(Value::is_string);
        let texts = ODD_TEXTS.iter().filter(|_| is_text).map(|text| json!(text));
        let long = is_text.then(|| json!(long()));
        // In metadata the apiserver reads null as nothing or as an empty text.
        let null = place.starts_with("/spec").then_some(Value::Null);
        let others = [json!(""), json!({}), json!([])].into_iter().chain(null).chain(long);
        for value in others.chain(texts) {
            let mut other = object.clone();
            if let Some(there) = other.pointer_mut(place) {
                *there = value;
            }
            variants.push(other);
        }
    }
    variants
}

/// More than any policy looks at.
fn long() -> String {
    "x".repeat(5000)
}

fn walk(value: &Value, here: &str, places: &mut Vec<String>) {
    places.push(here.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                walk(value, &format!("{here}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                walk(value, &format!("{here}/{index}"), places);
            }
        }
        _ => {}
    }
}
