//! The value of a case file to cases, without running them. Every error is reported, not just the first.

use memgate_core::state::text;
use memgate_manifest::document::items;
use memgate_model::kind::{MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
use memgate_model::request::{Occasion, Operation};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::nearest;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Case, CaseFileError, Expect};

/// A key, and what its value is.
type KeyForm = (&'static str, &'static str);

const TEXT: &str = "a text; put it in quotes";

const CASE_KEYS: [KeyForm; 13] = [
    ("name", TEXT),
    ("why", TEXT),
    ("operation", "CREATE, UPDATE, DELETE or CONNECT"),
    ("state", "a list of manifests"),
    ("object", "a manifest"),
    ("oldObject", "a manifest"),
    ("dryRun", "true or false"),
    ("namespace", TEXT),
    ("subresource", TEXT),
    ("at", "a time such as 2027-02-01T00:00:00Z"),
    ("point", "admission, ci or audit"),
    ("user", "a map with name and groups"),
    ("expect", "a map"),
];

const EXPECT_KEYS: [KeyForm; 10] = [
    ("allowed", "true or false"),
    ("message_contains", "a list of texts"),
    ("warnings_contain", "a list of texts"),
    ("codes", "a list of texts"),
    ("unchanged", "true or false"),
    ("after", "a map of values by JSON pointer"),
    ("absent", "a list of texts"),
    ("env", "a map of variables by container"),
    ("env_absent", "a map of lists by container"),
    ("containers_present", "a list of texts"),
];

/// Reads all cases of one YAML document: a list of them, or a single one.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read(value: &Value) -> Result<Vec<Case>, Vec<CaseFileError>> {
    read_over(value, false)
}

/// The same for cases with policies below their own state, which may hold dates.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read_over(value: &Value, are_dated: bool) -> Result<Vec<Case>, Vec<CaseFileError>> {
    let mut reader = CaseReader { are_dated, ..CaseReader::default() };
    let root = Pointer::root();
    let cases = match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| reader.case(item, &root.index(index))).collect()
        }
        Value::Object(_) => vec![reader.case(value, &root)],
        _ => {
            reader.error(&root, "expected a list of cases");
            Vec::new()
        }
    };
    if reader.errors.is_empty() { Ok(cases.into_iter().flatten().collect()) } else { Err(reader.errors) }
}

#[derive(Default)]
struct CaseReader {
    /// Whether the policies of all cases hold dates.
    are_dated: bool,
    errors: Vec<CaseFileError>,
}

impl CaseReader {
    fn error(&mut self, pointer: &Pointer, message: impl Into<String>) {
        self.errors.push(CaseFileError { pointer: pointer.clone(), message: message.into() });
    }

    fn case(&mut self, value: &Value, at: &Pointer) -> Option<Case> {
        let Value::Object(map) = value else {
            self.error(at, "a case is a map with name, object and expect");
            return None;
        };
        let mut case: Case = self.fields(map, at, &CASE_KEYS)?;
        let expect = map.get("expect").and_then(Value::as_object).cloned().unwrap_or_default();
        case.expect = self.fields(&expect, &at.key("expect"), &EXPECT_KEYS)?;
        if case.name.is_empty() {
            self.error(at, "the case has no name");
        }
        let list = Value::Array(case.state);
        let all = items(&list, &at.key("state")).into_iter().flatten().flat_map(listed);
        let (state, places): (_, Vec<_>) = all.unzip();
        let case = Case { pointer: at.clone(), state, ..case };
        self.check_objects(&case, &places, at);
        self.check_expect(&case.expect, map, at);
        Some(case)
    }

    /// Reads the fields of a map by their keys. Each that is unknown or has another form is noted and left out; `null`
    /// counts as absent.
    fn fields<T: DeserializeOwned>(
        &mut self,
        map: &Map<String, Value>,
        at: &Pointer,
        known: &[KeyForm],
    ) -> Option<T> {
        let mut good = Map::new();
        for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            let field = Map::from_iter([(key.clone(), value.clone())]);
            match known.iter().find(|(name, _)| name == key) {
                None => self.error(&at.key(key), unknown_key(key, known)),
                Some(_) if T::deserialize(Value::Object(field.clone())).is_ok() => good.extend(field),
                Some((_, form)) => self.error(&at.key(key), format!("{key} is {form}")),
            }
        }
        T::deserialize(Value::Object(good)).ok()
    }

    /// Checks that the objects are there that the request needs; an UPDATE may lack the stored one. What policies say
    /// of a date depends on the time, so a case must give it.
    fn check_objects(&mut self, case: &Case, places: &[Pointer], at: &Pointer) {
        let of_state = case.state.iter().zip(places.iter().cloned());
        let object = case.object.iter().map(|object| (object, at.key("object")));
        let old = case.old_object.iter().map(|object| (object, at.key("oldObject")));
        for (object, place) in of_state.chain(object).chain(old) {
            if text(object, "/apiVersion").is_empty() || text(object, "/kind").is_empty() {
                self.error(&place, "this is not a manifest: it has no apiVersion and kind");
            } else if text(object, "/kind") == "List" {
                self.error(&place, "this is a List without a list of items");
            }
        }
        match case.operation {
            Operation::Create | Operation::Update | Operation::Connect => {
                if case.object.is_none() {
                    self.error(at, format!("operation {} needs object", case.operation.name()));
                }
            }
            Operation::Delete if case.old_object.is_some() => {}
            Operation::Delete if case.object.is_some() => {
                self.error(&at.key("object"), "operation DELETE needs oldObject in place of object");
            }
            Operation::Delete => self.error(at, "operation DELETE needs oldObject"),
        }
        let is_dated = |object: &Value| {
            let kind = text(object, "/kind");
            let rules = object.pointer("/spec/rules").and_then(Value::as_array);
            let has_dated_rule = || rules.into_iter().flatten().any(|rule| rule.get("during").is_some());
            let has_date = || object.pointer("/spec/promote").is_some() || has_dated_rule();
            kind == MEMORY_POLICY_EXEMPTION.kind || kind == MEMORY_POLICY.kind && has_date()
        };
        if case.occasion.now == Occasion::default().now && (self.are_dated || case.state.iter().any(is_dated))
        {
            let message = "the state holds dates of policies: say when, such as at: 2027-02-01T00:00:00Z";
            self.error(at, message);
        }
    }

    fn check_expect(&mut self, expect: &Expect, map: &Map<String, Value>, at: &Pointer) {
        if map.get("expect").is_none_or(Value::is_null) {
            return self.error(at, "the case asserts nothing: it has no expect");
        }
        let here = at.key("expect");
        for pointer in expect.after.keys().chain(&expect.absent) {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                self.error(&here, format!("\"{pointer}\" is not a JSON pointer: it starts with /"));
            }
        }
        for (container, variables) in &expect.env {
            let odd = variables.iter().filter(|(_, value)| !(value.is_string() || value.is_object()));
            for (name, value) in odd {
                let place = here.key("env").key(container).key(name);
                self.error(&place, format!("the value of an environment variable is a text, not {value}"));
            }
        }
        if expect.is_empty() {
            self.error(&here, "the case asserts nothing");
        }
    }
}

/// A manifest with its place; of a List each of its items.
fn listed((value, at): (Value, Pointer)) -> Vec<(Value, Pointer)> {
    let items = items(&value, &at).filter(|_| value.is_object());
    let all = items.map(|items| items.flat_map(listed).collect());
    all.unwrap_or_else(|| vec![(value, at)])
}

fn unknown_key(key: &str, known: &[KeyForm]) -> String {
    let names = known.iter().map(|(name, _)| *name);
    let hint = match nearest(key, names.clone()) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("known are {}", names.collect::<Vec<_>>().join(", ")),
    };
    format!("unknown key \"{key}\"; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn errors(value: &Value) -> Vec<String> {
        let errors = read(value).expect_err("is faulty");
        errors.into_iter().map(|error| format!("{}: {}", error.pointer, error.message)).collect()
    }

    fn pod() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod"})
    }

    #[test]
    fn reads_a_case() {
        let value = json!([{
            "name": "a", "state": null, "object": pod(),
            "expect": {"codes": [], "env": {"agent": {"A": "1"}}, "warnings_contain": "one"}
        }]);
        let cases = read(&value).expect("is good");
        let expect = &cases[0].expect;
        assert_eq!(cases[0].operation, Operation::Create);
        assert_eq!(expect.codes, Some(Vec::new()));
        assert_eq!(expect.warnings_contain, ["one"]);
        assert_eq!(expect.env["agent"]["A"], "1");
    }

    #[test]
    fn refuses_cases_that_assert_nothing() {
        for expect in [json!({}), json!(null), json!({"message_contains": []})] {
            let value = json!([{"name": "a", "object": pod(), "expect": expect}]);
            assert!(errors(&value)[0].contains("asserts nothing"), "{expect}");
        }
    }

    #[test]
    fn takes_a_list_of_the_state_for_its_items() {
        let pods = json!({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]});
        let list = |items: Value| json!({"apiVersion": "v1", "kind": "List", "items": items});
        let case =
            |state: Value| json!({"name": "a", "object": pod(), "state": state, "expect": {"codes": []}});
        let cases =
            read(&case(json!([pod(), list(json!([pods, list(json!([])), pod()]))]))).expect("is good");
        let kinds: Vec<_> = cases[0].state.iter().map(|object| &object["kind"]).collect();
        assert_eq!(kinds, ["Pod"; 3]);
        assert_eq!(
            errors(&case(json!(["a", list(json!([pod(), 5])), list(json!("x"))]))),
            [
                "/state/0: this is not a manifest: it has no apiVersion and kind",
                "/state/1/items/1: this is not a manifest: it has no apiVersion and kind",
                "/state/2: this is a List without a list of items",
            ]
        );
    }

    #[test]
    fn suggests_the_key_that_was_meant() {
        let value = json!([{"name": "a", "object": pod(), "oldobject": pod(), "expect": {"warningsContain": ["x"], "allowed": true}}]);
        assert_eq!(
            errors(&value),
            [
                "/0/oldobject: unknown key \"oldobject\"; did you mean oldObject?",
                "/0/expect/warningsContain: unknown key \"warningsContain\"; did you mean warnings_contain?",
            ]
        );
    }

    #[test]
    fn says_which_key_has_another_form() {
        let value =
            json!([{"name": 5, "object": pod(), "at": "soon", "expect": {"allowed": "yes", "env": []}}]);
        assert_eq!(
            errors(&value),
            [
                "/0/name: name is a text; put it in quotes",
                "/0/at: at is a time such as 2027-02-01T00:00:00Z",
                "/0/expect/allowed: allowed is true or false",
                "/0/expect/env: env is a map of variables by container",
                "/0: the case has no name",
                "/0/expect: the case asserts nothing",
            ]
        );
    }

    #[test]
    fn asks_for_a_time_where_a_rule_has_dates() {
        let rule =
            json!({"id": "a", "during": {"until": "2027-01-07T00:00:00Z"}, "labels": {"required": ["a"]}});
        let policy = json!({
            "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": "p"},
            "spec": {"rules": [rule]},
        });
        let mut value = json!({"name": "a", "state": [policy], "object": pod(), "expect": {"allowed": true}});
        let [error] = errors(&value).try_into().expect("an error");
        assert!(error.contains("say when, such as at: 2027-02-01T00:00:00Z"), "{error}");
        value["at"] = json!("2027-02-01T00:00:00Z");
        assert!(read(&value).is_ok());
    }

    #[test]
    fn asks_for_the_objects_that_the_operation_needs() {
        let value = json!({"name": "a", "operation": "DELETE", "expect": {"allowed": true}});
        assert_eq!(errors(&value), [": operation DELETE needs oldObject"]);
    }

    #[test]
    fn asks_for_the_old_object_of_a_deletion() {
        for operation in ["CREATE", "UPDATE", "DELETE", "CONNECT"] {
            for (object, old) in [(false, false), (true, false), (false, true), (true, true)] {
                let [object_given, old_given] =
                    [object, old].map(|given| if given { pod() } else { Value::Null });
                let value = json!({
                    "name": "a", "operation": operation, "object": object_given, "oldObject": old_given,
                    "expect": {"allowed": true}
                });
                let refused = match (operation, object, old) {
                    ("DELETE", _, true) | ("CREATE" | "UPDATE" | "CONNECT", true, _) => None,
                    ("DELETE", true, false) => {
                        Some("/object: operation DELETE needs oldObject in place of object".to_owned())
                    }
                    ("DELETE", false, false) => Some(": operation DELETE needs oldObject".to_owned()),
                    _ => Some(format!(": operation {operation} needs object")),
                };
                match refused {
                    None => assert!(read(&value).is_ok(), "{value}"),
                    Some(error) => assert_eq!(errors(&value), [error]),
                }
            }
        }
    }
}
