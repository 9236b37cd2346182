//! What replicas logged about requests, in either form of their lines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::status::seconds;
use memgate_model::kind::POLICY_KINDS;

/// How many requests were refused, by code and namespace.
pub(super) type Counts = BTreeMap<(String, String), u64>;

/// When which user last changed a policy or an exemption, by kind, namespace and name.
pub(super) type Changes = BTreeMap<[String; 3], (i64, String)>;

/// What the lines say.
#[derive(Debug, Default)]
pub(super) struct Logged {
    pub(super) refused: Counts,
    pub(super) changed: Changes,
}

impl Logged {
    /// Reads logs; refusals count from a time on.
    pub(super) fn read(logs: &[String], since: i64) -> Self {
        let mut logged = Self::default();
        let lines = logs.iter().flat_map(|log| log.lines());
        lines.filter_map(decision).for_each(|(at, fields)| logged.add(at, &fields, since));
        logged
    }

    fn add(&mut self, at: i64, fields: &BTreeMap<String, String>, since: i64) {
        let field = |name: &str| fields.get(name).map_or("", String::as_str);
        if ["dry_run", "dryRun"].into_iter().any(|name| field(name) == "true") {
            return;
        }
        let namespace = field("namespace").to_owned();
        if field("verdict") == "denied" {
            if at >= since {
                let codes = || field("codes").split(',').next().filter(|code| !code.is_empty());
                let code = denied_code(field("denial")).or_else(codes).unwrap_or_else(|| field("reason"));
                let code = code.to_owned();
                *self.refused.entry((code, namespace)).or_default() += 1;
            }
        } else if POLICY_KINDS.iter().any(|kind| kind.kind == field("kind")) {
            let key = [field("kind").to_owned(), namespace, field("name").to_owned()];
            let change = (at, field("user").to_owned());
            let known = self.changed.entry(key).or_insert_with(|| change.clone());
            if known.0 <= at {
                *known = change;
            }
        }
    }
}

/// The code at the end of a denial, which is where every message for users has it.
fn denied_code(text: &str) -> Option<&str> {
    Some(text.rsplit_once("(memgate ")?.1.split_once(')')?.0)
}

/// The time and the fields of a line about a decision.
fn decision(line: &str) -> Option<(i64, BTreeMap<String, String>)> {
    if line.starts_with('{') {
        let Value::Object(fields) = serde_json::from_str(line).ok()? else { return None };
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let fields: BTreeMap<_, _> = fields.into_iter().map(|(name, value)| (name, text(value))).collect();
        let is_decision = fields.get("message").is_some_and(|message| message == "decided");
        return Some((seconds(fields.get("timestamp")?)?, fields)).filter(|_| is_decision);
    }
    // What comes before is written by the server alone: a quoted text of a caller cannot be taken for a line.
    let (head, rest) = line.split_once(": decided ").filter(|(head, _)| !head.contains('"'))?;
    Some((seconds(head.split_whitespace().next()?)?, pairs(rest)))
}

/// The pairs `name=value`, of which texts are in quotes.
fn pairs(mut rest: &str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    while let Some((name, after)) = rest.trim_start().split_once('=') {
        let mut value = String::new();
        let mut chars = after.char_indices();
        let is_quoted = after.starts_with('"') && chars.next().is_some();
        let end = loop {
            match chars.next() {
                None => break after.len(),
                Some((_, '\\')) if is_quoted => value.extend(chars.next().map(|(_, escaped)| escaped)),
                Some((at, '"')) if is_quoted => break at + 1,
                Some((at, ' ')) if !is_quoted => break at,
                Some((_, char)) => value.push(char),
            }
        };
        pairs.insert(name.to_owned(), value);
        rest = after.get(end..).unwrap_or_default();
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "2030-01-01T00:00:00";

    fn logged(lines: &[&str]) -> Logged {
        Logged::read(&[lines.join("\n")], seconds("2030-01-01T00:00:00Z").expect("a time"))
    }

    #[test]
    fn counts_what_was_refused_in_both_forms() {
        let text = |time: &str, more: &str| {
            format!(
                "{time}.5Z  INFO memgate_server::review: decided webhook=\"validate\" user=\"eve \\\"x\\\" namespace=b\" \
                 kind=\"ArkMemory\" namespace=\"team-a\" name=\"notes\" {more} micros=12"
            )
        };
        let json = format!(
            r#"{{"timestamp":"{AT}Z","level":"INFO","message":"decided","namespace":"team-a","verdict":"denied","codes":"arkonis/redis-required,arkonis/b","dry_run":false}}"#
        );
        let denied = "verdict=\"denied\" reason=\"invalid\" codes=\"arkonis/a,arkonis/redis-required\" \
                      denial=\"spec.redis is required (memgate arkonis/redis-required)\" dry_run=false";
        let logged = logged(&[
            &text(AT, denied),
            &text(AT, &denied.replace("false", "true")),
            &text(AT, &denied.replace("denied", "allowed")),
            &text("2029-12-31T23:59:59", denied),
            &text(AT, "verdict=\"denied\" reason=\"reference-pending\" codes=\"\""),
            &json,
            "a line of something else",
            &format!(
                "{AT}Z  WARN memgate: failed error=\"x: decided verdict=\\\"denied\\\" codes=\\\"a/b\\\"\""
            ),
        ]);
        let of = |code: &str| (code.to_owned(), "team-a".to_owned());
        let expected = [(of("arkonis/redis-required"), 2), (of("reference-pending"), 1)];
        assert_eq!(logged.refused.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn knows_who_changed_a_policy_last() {
        let line = |second: u8, user: &str, more: &str| {
            format!(
                "2029-01-01T00:00:0{second}Z  INFO memgate_server::review: decided user=\"{user}\" \
                 kind=\"MemoryPolicy\" name=\"durable\" verdict=\"{more}"
            )
        };
        let logged = logged(&[
            &line(2, "ann", "allowed\" dry_run=false"),
            &line(1, "bob", "allowed\" dry_run=false"),
            &line(3, "eve", "allowed\" dry_run=true"),
            &line(4, "eve", "denied\" dry_run=false"),
        ]);
        let changed: Vec<_> = logged.changed.into_values().map(|(_, user)| user).collect();
        assert_eq!(changed, ["ann"]);
    }
}
