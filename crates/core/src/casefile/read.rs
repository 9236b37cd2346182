//! The value of a case file to cases, without running them. Every error is reported, not just the first.

use serde_json::{Map, Value};

use crate::casefile::expect::Expect;
use crate::casefile::{Case, CaseFileError};
use memgate_model::kind::{MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
use memgate_model::request::{Occasion, Operation, Point, User};
use memgate_primitives::pointer::Pointer;

const CASE_KEYS: [&str; 13] = [
    "name",
    "why",
    "operation",
    "state",
    "object",
    "oldObject",
    "dryRun",
    "namespace",
    "subresource",
    "at",
    "point",
    "user",
    "expect",
];

const EXPECT_KEYS: [&str; 10] = [
    "allowed",
    "message_contains",
    "warnings_contain",
    "codes",
    "unchanged",
    "after",
    "absent",
    "env",
    "env_absent",
    "containers_present",
];

/// Reads all cases of one YAML document: a list of them, or a single one.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read(value: &Value) -> Result<Vec<Case>, Vec<CaseFileError>> {
    let mut reader = CaseReader::default();
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
        self.known_keys(map, at, &CASE_KEYS);
        let case = Case {
            pointer: at.clone(),
            name: self.text(map, at, "name"),
            why: self.text(map, at, "why"),
            operation: self.operation(map, at),
            state: self.state(map, at),
            object: self.object(map, at, "object"),
            old_object: self.object(map, at, "oldObject"),
            dry_run: self.flag(map, at, "dryRun").unwrap_or(false),
            namespace: given(map, "namespace").map(|_| self.text(map, at, "namespace")),
            subresource: self.text(map, at, "subresource"),
            occasion: self.occasion(map, at),
            user: self.user(map, at),
            expect: self.expect(map, at),
        };
        if case.name.is_empty() {
            self.error(at, "the case has no name");
        }
        self.check_objects(&case);
        self.check_time(map, &case);
        Some(case)
    }

    /// Checks that the objects are there that the request needs. An UPDATE without the stored
    /// object and a DELETE of an object of which only the name is given are possible.
    fn check_objects(&mut self, case: &Case) {
        let (needed, there) = match case.operation {
            Operation::Create | Operation::Update | Operation::Connect => ("object", case.object.is_some()),
            Operation::Delete => ("oldObject", case.old_object.is_some() || case.object.is_some()),
        };
        if !there {
            self.error(&case.pointer, format!("operation {} needs {needed}", case.operation.name()));
        }
    }

    /// What policies say of a date depends on the time, so a case must give it.
    fn check_time(&mut self, map: &Map<String, Value>, case: &Case) {
        let is_dated = |object: &Value| {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            kind == MEMORY_POLICY_EXEMPTION.kind
                || kind == MEMORY_POLICY.kind && object.pointer("/spec/promote").is_some()
        };
        if given(map, "at").is_none() && case.state.iter().any(is_dated) {
            let message = "the state holds dates of policies: say when, such as at: 2027-02-01T00:00:00Z";
            self.error(&case.pointer, message);
        }
    }

    fn operation(&mut self, map: &Map<String, Value>, at: &Pointer) -> Operation {
        if given(map, "operation").is_none() {
            return Operation::Create;
        }
        let name = self.text(map, at, "operation");
        Operation::from_name(&name).unwrap_or_else(|| {
            self.error(&at.key("operation"), "operation is CREATE, UPDATE, DELETE or CONNECT");
            Operation::Create
        })
    }

    fn occasion(&mut self, map: &Map<String, Value>, at: &Pointer) -> Occasion<'static> {
        let mut occasion = Occasion::default();
        if given(map, "at").is_some() {
            let text = self.text(map, at, "at");
            match memgate_policy::timestamp(&text) {
                Some(now) => occasion.now = now,
                None => self.error(&at.key("at"), "at is a time such as 2027-02-01T00:00:00Z"),
            }
        }
        if given(map, "point").is_some() {
            let name = self.text(map, at, "point");
            match Point::ALL.into_iter().find(|point| point.name() == name) {
                Some(point) => occasion.point = point,
                None => self.error(&at.key("point"), "point is admission, ci or audit"),
            }
        }
        occasion
    }

    fn user(&mut self, map: &Map<String, Value>, at: &Pointer) -> Option<User> {
        let at = at.key("user");
        match given(map, "user")? {
            Value::Object(user) => {
                self.known_keys(user, &at, &["name", "groups"]);
                let groups = self.texts_at(user, &at, "groups");
                Some(User { name: self.text(user, &at, "name"), groups })
            }
            _ => {
                self.error(&at, "user is a map with name and groups");
                None
            }
        }
    }

    fn state(&mut self, map: &Map<String, Value>, at: &Pointer) -> Vec<Value> {
        let at = at.key("state");
        match given(map, "state") {
            None => Vec::new(),
            Some(Value::Array(objects)) => {
                for (index, object) in objects.iter().enumerate() {
                    self.is_object(object, &at.index(index));
                }
                objects.clone()
            }
            Some(_) => {
                self.error(&at, "state is a list of manifests");
                Vec::new()
            }
        }
    }

    fn object(&mut self, map: &Map<String, Value>, at: &Pointer, key: &str) -> Option<Value> {
        let value = given(map, key)?;
        self.is_object(value, &at.key(key));
        Some(value.clone())
    }

    fn is_object(&mut self, value: &Value, at: &Pointer) {
        let text = |key| value.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !(text("apiVersion") && text("kind")) {
            self.error(at, "this is not a manifest: it has no apiVersion and kind");
        }
    }

    fn expect(&mut self, map: &Map<String, Value>, at: &Pointer) -> Expect {
        let here = at.key("expect");
        let Some(Value::Object(expect)) = given(map, "expect") else {
            self.error(at, "the case asserts nothing: it has no expect");
            return Expect::default();
        };
        self.known_keys(expect, &here, &EXPECT_KEYS);
        let read = Expect {
            allowed: self.flag(expect, &here, "allowed"),
            message_contains: self.texts_at(expect, &here, "message_contains"),
            warnings_contain: self.texts_at(expect, &here, "warnings_contain"),
            codes: given(expect, "codes").map(|_| self.texts_at(expect, &here, "codes")),
            unchanged: self.flag(expect, &here, "unchanged"),
            after: self.entries(expect, &here, "after", Self::value),
            absent: self.texts_at(expect, &here, "absent"),
            env: self.entries(expect, &here, "env", Self::variables),
            env_absent: self.entries(expect, &here, "env_absent", Self::texts),
            containers_present: self.texts_at(expect, &here, "containers_present"),
        };
        for pointer in read.after.iter().map(|(pointer, _)| pointer).chain(&read.absent) {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                self.error(&here, format!("\"{pointer}\" is not a JSON pointer: it starts with /"));
            }
        }
        if read.is_empty() {
            self.error(&here, "the case asserts nothing");
        }
        read
    }

    fn known_keys(&mut self, map: &Map<String, Value>, at: &Pointer, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let near = known
                .iter()
                .map(|name| (strsim::damerau_levenshtein(&normalised(key), &normalised(name)), name));
            let hint = match near.min() {
                Some((distance, name)) if distance <= 3 => format!("did you mean {name}?"),
                _ => format!("known are {}", known.join(", ")),
            };
            self.error(&at.key(key), format!("unknown key \"{key}\"; {hint}"));
        }
    }

    fn text(&mut self, map: &Map<String, Value>, at: &Pointer, key: &str) -> String {
        match given(map, key) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                self.error(&at.key(key), format!("{key} is a text; put it in quotes"));
                String::new()
            }
        }
    }

    fn flag(&mut self, map: &Map<String, Value>, at: &Pointer, key: &str) -> Option<bool> {
        let value = given(map, key)?;
        if value.as_bool().is_none() {
            self.error(&at.key(key), format!("{key} is true or false"));
        }
        value.as_bool()
    }

    fn texts_at(&mut self, map: &Map<String, Value>, at: &Pointer, key: &str) -> Vec<String> {
        given(map, key).map_or_else(Vec::new, |value| self.texts(value, &at.key(key)))
    }

    /// A list of texts; a single text is a list of one.
    fn texts(&mut self, value: &Value, at: &Pointer) -> Vec<String> {
        let texts = match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(list) => list.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        texts.unwrap_or_else(|| {
            self.error(at, "expected a list of texts");
            Vec::new()
        })
    }

    fn entries<T>(
        &mut self,
        map: &Map<String, Value>,
        at: &Pointer,
        key: &str,
        read: fn(&mut Self, &Value, &Pointer) -> T,
    ) -> Vec<(String, T)> {
        let at = at.key(key);
        match given(map, key) {
            None => Vec::new(),
            Some(Value::Object(entries)) => {
                entries.iter().map(|(name, value)| (name.clone(), read(self, value, &at.key(name)))).collect()
            }
            Some(_) => {
                self.error(&at, format!("{key} is a map"));
                Vec::new()
            }
        }
    }

    fn value(&mut self, value: &Value, _: &Pointer) -> Value {
        let _ = self;
        value.clone()
    }

    fn variables(&mut self, value: &Value, at: &Pointer) -> Vec<(String, Value)> {
        let Value::Object(variables) = value else {
            self.error(at, "expected a map of environment variables");
            return Vec::new();
        };
        for (name, value) in variables.iter().filter(|(_, value)| !(value.is_string() || value.is_object())) {
            self.error(&at.key(name), format!("the value of an environment variable is a text, not {value}"));
        }
        variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// The value of a key; `null` counts as absent.
fn given<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    map.get(key).filter(|value| !value.is_null())
}

/// A key as it is compared to find the one that was meant.
fn normalised(key: &str) -> String {
    key.replace(['_', '-'], "").to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(expect.env, [("agent".to_owned(), vec![("A".to_owned(), json!("1"))])]);
    }

    #[test]
    fn refuses_cases_that_assert_nothing() {
        for expect in [json!({}), json!(null), json!({"message_contains": []})] {
            let value = json!([{"name": "a", "object": pod(), "expect": expect}]);
            assert!(errors(&value)[0].contains("asserts nothing"), "{expect}");
        }
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
    fn asks_for_the_objects_that_the_operation_needs() {
        let value = json!({"name": "a", "operation": "DELETE", "expect": {"allowed": true}});
        assert_eq!(errors(&value), [": operation DELETE needs oldObject"]);
    }
}
