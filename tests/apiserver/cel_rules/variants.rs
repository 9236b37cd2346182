//! Objects with parts missing, empty, null or unusual: the policies and memgate have to agree on them, too.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use memgate_model::request::{Occasion, Operation};
use memgate_primitives::pointer::Pointer;
use memgate_workbench::casefile::Case as Asked;
use memgate_workbench::casefile::Expect;
use serde_json::{Value, json};

use super::{
    codes_with_rules, denials,
    parity::{all, in_namespace},
    refused_for,
};
use crate::{
    fixture::Fixture,
    request::{Answer, create},
};

/// How many requests are sent at a time.
const CONCURRENT_REQUESTS: usize = 8;

/// Of how many objects of a kind variants are made.
const OBJECTS_PER_KIND: usize = 4;

/// How many variants of an object are stored, and into how many others each is changed.
const STORED_VARIANTS: usize = 24;
const UPDATES_PER_VARIANT: usize = 6;

/// What replaces each text of an object, in addition to what replaces every value.
const UNUSUAL_TEXTS: [&str; 24] = [
    " ", "\t", "a b", "a/b", "a/b/c", "ns / name", "/", "a:", ":a", "HTTP", " redis", "http://",
    "HTTPS://U:P@Host:443/a?b#c", "http://h:0", "http://h:65536", "http://[::1]:80/",
    "http://[::ffff:127.0.0.1]", "http://a@localhost:1", "http://a\u{a0}b", "host=db dbname=x", "0s",
    "+1.5h", "-1Gi", "1e3",
];

/// No policy fails of them, and each does what memgate does.
pub(super) fn variants(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let namespace = policies.cluster.fresh_namespace("variants")?;
    let all: Vec<Value> = richest(&namespace, OBJECTS_PER_KIND)?.iter().flat_map(variants_of).collect();
    let (user, exempt) = (policies.cluster.client(), policies.exempt.clone());
    let alone = policies.cluster_wide.lock();
    let answers: Vec<_> = policies.cluster.block_on(async {
        let asked = stream::iter(&all).map(|object| async {
            let answer = create(&user, &namespace, object, "?dryRun=All").await?;
            // As the schema completes it; no policy saw anything else.
            anyhow::Ok((answer, create(&exempt, &namespace, object, "?dryRun=All").await?))
        });
        asked.buffered(CONCURRENT_REQUESTS).collect().await
    });
    drop(alone);
    let mut tally = Tally::default();
    for (object, answers) in all.iter().zip(answers) {
        let (answer, seen) = answers?;
        tally.add(object, &answer, seen, None);
    }
    tally.finish("variants", 300, 1000)
}

/// The same of updates: a fault that is stored stays what it is, and another one is news.
pub(super) fn updates(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let namespace = policies.cluster.fresh_namespace("updates")?;
    let mut tally = Tally::default();
    for object in richest(&namespace, 1)?.iter().filter(|object| is_namespaced(object)) {
        let variants = variants_of(object);
        let each = (variants.len() / STORED_VARIANTS).max(1);
        for (index, old) in variants.iter().enumerate().step_by(each) {
            let stored = policies.store(&namespace, old)?;
            if !stored.granted() {
                continue;
            }
            let mut labelled = old.clone();
            labelled["metadata"]["labels"] = json!({"tier": "gold"});
            let others =
                (1..=UPDATES_PER_VARIANT).map(|step| &variants[(index + step * step) % variants.len()]);
            for new in others.chain([&labelled, object]) {
                let answer = policies.update(&namespace, &stored.body, new)?;
                let seen = policies.update_unseen(&namespace, &stored.body, new)?;
                tally.add(new, &answer, seen, Some(&stored.body));
            }
            policies.remove(&namespace, &stored.body)?;
        }
    }
    tally.finish("updates", 100, 500)
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

    fn finish(self, what: &str, refused: usize, granted: usize) -> Result<()> {
        let wrong = &self.wrong;
        println!("cel_rules: {what}: {} refused by a policy, {} granted", self.refused, self.granted);
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
        // Only memgate checks a text of this length.
        None if object.to_string().contains(&long()) => {}
        None => {
            let missed: Vec<_> = codes_with_rules().into_iter().filter(|code| denied(code)).collect();
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

pub(super) fn is_namespaced(object: &Value) -> bool {
    !object["metadata"]["namespace"].is_null()
}

/// The question whether an object may be created, or the stored one be changed into it.
fn asked(object: Value, old: Option<Value>) -> Asked {
    Asked {
        pointer: Pointer::root(),
        name: String::new(),
        why: String::new(),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        state: Vec::new(),
        object: Some(object),
        old_object: old,
        dry_run: true,
        namespace: None,
        occasion: Occasion::default(),
        user: None,
        subresource: String::new(),
        expect: Expect::default(),
    }
}

/// The object with each of its parts, one after the other, taken away or replaced.
fn variants_of(object: &Value) -> Vec<Value> {
    let mut pointers = Vec::new();
    for part in ["spec", "metadata"] {
        walk(&object[part], &format!("/{part}"), &mut pointers);
    }
    let fixed = ["/metadata/name", "/metadata/namespace", "/metadata"];
    pointers.retain(|pointer| !fixed.contains(&pointer.as_str()));
    let mut variants = Vec::new();
    for pointer in &pointers {
        let mut without = object.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
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
        let is_text = object.pointer(pointer).is_some_and(Value::is_string);
        let texts = UNUSUAL_TEXTS.iter().filter(|_| is_text).map(|text| json!(text));
        let long = is_text.then(|| json!(long()));
        // In metadata the apiserver reads null as nothing or as an empty text.
        let null = pointer.starts_with("/spec").then_some(Value::Null);
        let others = [json!(""), json!({}), json!([])].into_iter().chain(null).chain(long);
        for value in others.chain(texts) {
            let mut other = object.clone();
            if let Some(there) = other.pointer_mut(pointer) {
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

fn walk(value: &Value, here: &str, pointers: &mut Vec<String>) {
    pointers.push(here.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                walk(value, &format!("{here}/{}", key.replace('~', "~0").replace('/', "~1")), pointers);
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                walk(value, &format!("{here}/{index}"), pointers);
            }
        }
        _ => {}
    }
}
