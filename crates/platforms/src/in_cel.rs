//! Reads the rules, defaults and views of a platform that an apiserver can evaluate, from the platform's `cel.yaml`.

use std::sync::Arc;

use serde_json::Value;

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::cel::{CelDefault, CelRule, CelTable, CelVariable, NotInCel};
use memgate_model::cel_view::{CelPath, CelView};
use memgate_model::family::{CelRules, Family};
use memgate_model::finding::Code;
use memgate_model::kind::Kind;
use memgate_model::memory_view::Role;

/// Reads this text, which is compiled into the program. It is read once and stays in memory. An incomplete entry is
/// skipped; a test detects it.
pub fn read(family: &Family, text: &str) -> CelRules {
    let documents = values(&Arc::new(Source::new("cel.yaml", text)), &mut Vec::new());
    let root = documents.first().map(|document| document.value().clone()).unwrap_or_default();
    let root: &'static Value = Box::leak(Box::new(root));
    let in_schema = list(&root["inSchema"], |name| Some((code(family, name)?, NotInCel::Schema)));
    let not_expressible = pairs(&root["notExpressible"], |name, reason| {
        Some((code(family, &name.into())?, NotInCel::NotExpressible(reason)))
    });
    CelRules {
        tables: list(&root["tables"], |entry| table(family, entry)),
        missing: [in_schema, not_expressible].concat().leak(),
        defaults: list(&root["defaults"], |entry| default(family, entry)),
        about_defaults: root["aboutDefaults"].as_str().unwrap_or_default(),
        views: list(&root["views"], |entry| view(family, entry)),
    }
}

fn table(family: &Family, table: &'static Value) -> Option<CelTable> {
    Some(CelTable {
        name: table["name"].as_str()?,
        kinds: list(&table["kinds"], |name| kind(family, name)),
        lets: pairs(&table["lets"], |name, value| Some(CelVariable::new(name, value))),
        rules: list(&table["rules"], |rule| {
            let (faults, message) = (rule["faults"].as_str()?, rule["message"].as_str()?);
            Some(CelRule { code: code(family, &rule["code"])?, faults, message })
        }),
    })
}

fn default(family: &Family, default: &'static Value) -> Option<CelDefault> {
    Some(CelDefault {
        name: default["name"].as_str()?,
        kind: kind(family, &default["kind"])?,
        param: kind(family, &default["param"])?,
        param_name: default["paramName"].as_str()?,
        conditions: pairs(&default["conditions"], |name, condition| Some((name, condition))),
        patch: default["patch"].as_str()?,
    })
}

fn view(family: &Family, view: &'static Value) -> Option<CelView> {
    let kinds = list(&view["kinds"], |name| kind(family, name));
    let mut roles = roles(family, kinds);
    let role = roles.find(|role| view["role"].is_null() || view["role"] == role.name())?;
    Some(CelView {
        name: view["name"].as_str()?,
        kinds,
        role,
        viewed: view["viewed"].as_str()?,
        lets: pairs(&view["lets"], |name, value| Some(CelVariable::new(name, value))),
        paths: pairs(&view["paths"], |path, entries| Some(CelPath::new(path, entries))),
        unsaid: pairs(&view["unsaid"], |path, reason| Some((path, reason))),
        backends: entries(&view["backends"], |path, names| Some((path, list(names, Value::as_str)))),
        unknown: pairs(&view["unknown"], |path, cases| Some((path, cases))),
        values: entries(&view["values"], |path, words| Some((path, list(words, Value::as_str)))),
        sure: list(&view["sure"], Value::as_str),
        derived: list(&view["derived"], Value::as_str),
        unused: view["unused"] == true,
    })
}

/// The roles of the objects of these kinds. The file has the role of a view unless it is the first one.
fn roles(family: &Family, kinds: &[&Kind]) -> impl Iterator<Item = Role> {
    let kind = kinds.first();
    family.views.kinds.iter().filter(move |(known, _)| kind == Some(known)).map(|(_, role)| *role)
}

/// The elements of a list.
fn list<T: 'static>(list: &'static Value, read: impl Fn(&'static Value) -> Option<T>) -> &'static [T] {
    list.as_array().into_iter().flatten().filter_map(read).collect::<Vec<T>>().leak()
}

/// The entries of a map of strings, in their order.
fn pairs<T: 'static>(
    map: &'static Value,
    read: impl Fn(&'static str, &'static str) -> Option<T>,
) -> &'static [T] {
    entries(map, |name, text| read(name, text.as_str()?))
}

/// The entries of a map, in their order.
fn entries<T: 'static>(
    map: &'static Value,
    read: impl Fn(&'static str, &'static Value) -> Option<T>,
) -> &'static [T] {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| read(name, value)).collect::<Vec<T>>().leak()
}

/// The kind of this name.
fn kind(family: &Family, name: &Value) -> Option<&'static Kind> {
    family.kinds.validated.iter().copied().find(|kind| *name == name_of(family, kind))
}

/// The name of a kind in the file: `Agent`, or `Agent.GROUP` if an earlier kind of the family has the same one.
fn name_of(family: &Family, kind: &Kind) -> String {
    let first = family.kinds.validated.iter().find(|known| known.kind == kind.kind);
    let is_first = first.is_none_or(|first| *first == kind);
    if is_first { kind.kind.to_owned() } else { format!("{}.{}", kind.kind, kind.group) }
}

/// The code of this name, given without the family.
fn code(family: &Family, name: &Value) -> Option<&'static Code> {
    let is_meant = |code: &&Code| code.name.split_once('/').is_some_and(|(_, code)| name == code);
    family.codes.iter().copied().find(is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;

    #[test]
    fn reads_every_entry() {
        for family in ALL {
            let path = format!("{}/src/{}/cel.yaml", env!("CARGO_MANIFEST_DIR"), family.name);
            let text = std::fs::read_to_string(path).expect("a file");
            let documents = values(&Arc::new(Source::new("cel.yaml", text.as_str())), &mut Vec::new());
            assert_eq!(without_empty(written(family)), *documents[0].value(), "{}", family.name);
        }
    }

    /// Removes empty lists and maps, which the file leaves out.
    fn without_empty(value: Value) -> Value {
        let is_empty = |value: &Value| *value == serde_json::json!([]) || *value == serde_json::json!({});
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, without_empty(value)));
                fields.filter(|(_, value)| !is_empty(value)).collect()
            }
            Value::Array(elements) => elements.into_iter().map(without_empty).collect(),
            other => other,
        }
    }

    /// The content of the file, rebuilt from the parsed rules.
    fn written(family: &'static Family) -> Value {
        let name = |code: &Code| code.name.split_once('/').expect("family/name").1.to_owned();
        let kinds = |kinds: &[&Kind]| kinds.iter().map(|kind| name_of(family, kind)).collect::<Value>();
        let lets = |lets: &[CelVariable]| lets.iter().map(|part| (part.name, part.value)).collect::<Value>();
        let pairs = |pairs: &[(&'static str, &'static str)]| pairs.iter().copied().collect::<Value>();
        let rule = |rule: &CelRule| serde_json::json!({"code": name(rule.code), "faults": rule.faults, "message": rule.message});
        let table = |table: &CelTable| {
            let rules: Value = table.rules.iter().map(rule).collect();
            let kinds = kinds(table.kinds);
            serde_json::json!({"name": table.name, "kinds": kinds, "lets": lets(table.lets), "rules": rules})
        };
        let default = |default: &CelDefault| {
            serde_json::json!({
                "name": default.name, "kind": default.kind.kind, "param": default.param.kind,
                "paramName": default.param_name, "conditions": pairs(default.conditions), "patch": default.patch,
            })
        };
        let view = |view: &CelView| {
            let paths: Value = view.paths.iter().map(|path| (path.path, path.entries)).collect();
            let words = |rows: &[(&str, &[&str])]| {
                let row = |(path, words): &(&str, &[&str])| ((*path).to_owned(), serde_json::json!(words));
                rows.iter().map(row).collect::<Value>()
            };
            let is_first = roles(family, view.kinds).next() == Some(view.role);
            let named_role = if is_first { serde_json::json!([]) } else { view.role.name().into() };
            let mut view = serde_json::json!({
                "name": view.name, "role": named_role, "kinds": kinds(view.kinds), "viewed": view.viewed, "lets": lets(view.lets),
                "paths": paths, "unsaid": pairs(view.unsaid), "backends": words(view.backends),
                "unknown": pairs(view.unknown), "values": words(view.values), "sure": view.sure,
                "derived": view.derived,
                "unused": view.unused,
            });
            if view["unused"] == false {
                view["unused"] = serde_json::json!([]);
            }
            view
        };
        let rules = &family.in_cel;
        let mut in_schema = Vec::new();
        let mut not_expressible = serde_json::Map::new();
        for (code, why) in rules.missing {
            match why {
                NotInCel::Schema => in_schema.push(name(code)),
                NotInCel::NotExpressible(reason) => {
                    not_expressible.insert(name(code), (*reason).into());
                }
            }
        }
        serde_json::json!({
            "tables": rules.tables.iter().map(table).collect::<Value>(),
            "inSchema": in_schema,
            "notExpressible": not_expressible,
            "defaults": rules.defaults.iter().map(default).collect::<Value>(),
            "aboutDefaults": rules.about_defaults,
            "views": rules.views.iter().map(view).collect::<Value>(),
        })
    }
}
