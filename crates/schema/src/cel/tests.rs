//! Rules in CEL: what they evaluate to, where they are evaluated, and that none takes long.

use std::collections::BTreeSet;

use kube_cel::cel::Value;
use kube_cel::cel::objects::OptionalValue;
use proptest::prelude::{BoxedStrategy, Just, ProptestConfig, Strategy as _, prop, proptest};
use serde_json::{Value as Json, json};

use super::{cost, value};
use crate::program::{compile, functions};
use crate::violation::message;
use crate::{Document, Status, Violations, check, check_rules, document, read};
use memgate_primitives::budget::Budget;

/// What an object of a definition has in its violations: the messages, and whether the stored object has them.
fn found(spec: &Json, object: &Json, old: Option<&Json>) -> Vec<(String, bool)> {
    found_at_root(&json!({"type": "object", "properties": {"spec": spec}}), object, old)
}

fn found_at_root(schema: &Json, object: &Json, old: Option<&Json>) -> Vec<(String, bool)> {
    found_in_run(1, schema, object, old)
}

/// The same among so many objects.
fn found_in_run(objects: usize, schema: &Json, object: &Json, old: Option<&Json>) -> Vec<(String, bool)> {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    });
    let crd = json!({"spec": {"group": "x.dev", "names": {"kind": "Thing"}, "versions": [version]}});
    let crd = read(&crd).expect("a definition");
    let version = crd.newest().expect("served");
    let budget = Budget::default();
    let (text, old) = (object.to_string(), old.map(Json::to_string));
    let read = |text, status| document(text, Some(version), status, &budget).expect("JSON");
    let object = read(&text, Status::Dropped);
    let old: Option<Document<'_>> = old.as_deref().map(|old| read(old, Status::Judged));
    let mut found = Violations::new(&budget);
    check(version, &object, old.as_ref(), &mut found);
    check_rules(version, crate::allowance(objects), &object, old.as_ref(), &mut found);
    assert!(!budget.has_ended());
    found.iter().map(|violation| (message(violation), violation.stored)).collect()
}

fn messages(spec: &Json, object: &Json) -> Vec<String> {
    found(spec, object, None).into_iter().map(|(message, _)| message).collect()
}

/// A schema with one rule.
fn with_rule(mut schema: Json, rule: &str) -> Json {
    schema["x-kubernetes-validations"] = json!([{"rule": rule, "message": "broken"}]);
    schema
}

/// What becomes of a rule for an object with values of all types: an error is in its own words.
fn outcome(rule: &str) -> String {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "text": text, "empty": text, "absent": text,
        "whole": {"type": "integer"}, "number": {"type": "number"}, "flag": {"type": "boolean"},
        "any": {"x-kubernetes-int-or-string": true}, "bytes": {"type": "string", "format": "byte"},
        "url": text, "version": text,
        "list": {"type": "array", "items": text},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "additionalProperties": text},
        "namespace": text, "a-b": text, "a.b": text, "a_b": text,
        "port": {"type": "integer", "default": 80},
        "time": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "objects": {"type": "array", "items": {"type": "object", "properties": {"name": text, "size": {"type": "integer"}}}},
    }});
    let object = json!({"spec": {
        "text": "Añb", "empty": "", "whole": 7, "number": 1, "flag": true, "any": 5, "bytes": "YWJj",
        "url": "https://a.example/b", "version": "1.2.3",
        "list": ["a", "b"], "numbers": [3, 1, 2], "set": ["x", "y"], "map": {"a__dash__b": "1", "k": "2"},
        "namespace": "ns", "a-b": "dash", "a.b": "dot", "a_b": "low",
        "time": "2024-02-29T10:20:30Z", "day": "2024-03-01", "wait": "90m", "open": {"x": 1},
        "objects": [{"name": "a", "size": 1}, {"name": "b"}],
    }});
    let result = |rule: &str| messages(&with_rule(schema.clone(), rule), &object);
    let error = |found: &str| {
        Some(found.strip_prefix("spec: ")?.strip_suffix(" evaluating rule: broken")?.to_owned())
    };
    match (result(rule).as_slice(), result(&format!("!({rule})")).as_slice()) {
        ([], [broken]) if broken == "spec: broken" => "holds".to_owned(),
        ([broken], []) if broken == "spec: broken" => "broken".to_owned(),
        ([one], [other]) if one.contains("is not evaluated") => {
            assert!(other.contains("is not evaluated"), "{rule}: {other}");
            one.split_once("because ").expect("why").1.replace(&format!(": {rule}"), "")
        }
        ([one], [other]) if error(one).is_some() && error(one) == error(other) => {
            error(one).unwrap_or_default()
        }
        others => panic!("{rule}: {others:?}"),
    }
}

#[test]
fn evaluates_as_an_apiserver_does() {
    for rule in [
        // Fields.
        "has(self.text) && !has(self.absent) && has(self.empty) && has(self.port) && self.port == 80",
        "self.__namespace__ == 'ns' && self.a__dash__b == 'dash' && self.a__dot__b == 'dot' && self.a_b == 'low'",
        "self.map['k'] == '2' && self.map.k == '2' && 'a__dash__b' in self.map && self.map.a__dash__b == '1'",
        "has(self.map.k) && !has(self.map.z)",
        // Operators.
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && -7 % 3 == -1 && 2 - 3 - 4 == -5",
        "1.5 + 1.0 == 2.5 && 0x10 == 16 && 1 < 2 && 2 >= 2 && 1 < 1.5 && -self.whole == -7",
        "-9223372036854775808 < 0 && !false",
        "self.whole == 7 && self.number == 1.0 && self.number >= 1 && self.any == 5 && self.flag",
        "'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && 'a' < 'b'",
        "true || false && false",
        "self.flag ? true : false",
        "2 in [1, 2] && !('z' in self.list) && 'a' in self.list",
        "{'a': 1, 'b': 2}['b'] == 2 && {'a': 1} == {'a': 1} && [1, 2] != [2, 1]",
        // What one part decides, an error in another does not change.
        "self.absent == 'x' || true",
        "true || self.absent == 'x'",
        "!(self.absent == 'x' && false)",
        "!self.numbers.all(x, x == 3 || 1 / 0 == 1) || true",
        // Macros.
        "self.list.all(x, x.size() == 1) && self.list.exists(x, x == 'b') && self.numbers.exists_one(x, x > 2)",
        "self.numbers.filter(x, x > 1) == [3, 2] && self.numbers.map(x, x * 2) == [6, 2, 4]",
        "self.numbers.map(x, x > 1, x + 1) == [4, 3] && self.map.all(k, k != '')",
        "self.objects.all(o, self.objects.exists_one(p, p.name == o.name))",
        "['a', 'b'].map(x, ['a', 'b'].map(y, x + y)) == [['aa', 'ab'], ['ba', 'bb']]",
        // Texts.
        "size(self.text) == 3 && self.text.startsWith('A') && self.text.endsWith('b') && self.text.contains('ñ')",
        "self.text.matches('^A.b$') && self.text.matches('(?i)^a') && !self.text.matches('^b') && matches('ab', 'b')",
        "'a.b'.matches('^a\\\\.b$') && 'a.b'.matches(r'^a\\.b$') && !'²'.matches('^\\\\d$') && !'a-b'.contains('--')",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'abc'.substring(1) == 'bc' && 'abc'.substring(1, 2) == 'b' && 'aña'.charAt(1) == 'ñ' && 'a'.charAt(1) == ''",
        "'aXa'.lowerAscii() == 'axa' && 'a'.upperAscii() == 'A' && ' a '.trim() == 'a' && 'ab'.reverse() == 'ba'",
        "'aña'.indexOf('a', 1) == 2 && 'aña'.lastIndexOf('a') == 2 && 'a'.indexOf('z') == -1",
        "'aaa'.replace('a', 'b') == 'bbb' && 'aaa'.replace('a', 'b', 1) == 'baa' && ['a', 'b'].join('-') == 'a-b'",
        // Lists.
        "[1, 2].isSorted() && self.numbers.sum() == 6 && self.numbers.min() == 1 && self.numbers.max() == 3",
        "self.numbers.indexOf(1) == 1 && [1, 1].lastIndexOf(1) == 1 && [].sum() == 0",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 1, 2], [2, 1]) && sets.intersects([1], [1, 2])",
        // Types and times.
        "int('7') == 7 && string(7) == '7' && double(1) == 1.0 && int(1.9) == 1 && uint(1) == 1u",
        "self.time < timestamp('2024-03-01T00:00:00Z') && self.time.getFullYear() == 2024 && self.time.getMonth() == 1",
        "self.day == timestamp('2024-03-01T00:00:00Z') && self.day.getDayOfYear() == 60 && self.day.getDayOfWeek() == 5",
        "self.wait == duration('1h30m') && self.wait.getMinutes() == 90 && self.day - self.time > self.wait",
        "timestamp('2024-01-01T00:00:00+01:00') + duration('1h') == timestamp('2024-01-01T00:00:00Z')",
        "quantity('1Gi').isGreaterThan(quantity('500Mi')) && isQuantity('1k') && !isQuantity('x')",
        "quantity('1k').compareTo(quantity('1000')) == 0 && quantity('1').add(quantity('1')) == quantity('2')",
        "dyn(1) == 1 && 1 != 'a' && null == null && self.open == self.open",
        "type(self.any) == int && type('a') == string && type([]) == list && type(self.number) == double",
        "size(self.bytes) == 3 && self.bytes == b'abc'",
        // Optional values.
        "self.?text.hasValue() && !self.?absent.hasValue() && self.?absent.orValue('x') == 'x'",
        "self.?open.x.orValue(0) == 1 && self.?absent.z.orValue(3) == 3 && !has(self.?absent.z)",
        "self.map[?'k'].value() == '2' && !self.list[?9].hasValue() && self.?absent.or(self.?text).hasValue()",
        "size([?self.?absent, ?self.?text]) == 1",
        // Other libraries.
        "isURL(self.url) && !isURL('a b') && isIP('::1') && !isIP('1.2.3') && isCIDR('10.0.0.0/8') && !isCIDR('::/129')",
        "'ab12'.find('[0-9]+') == '12' && 'a'.find('z') == '' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "'a1b2'.findAll('[0-9]', 1) == ['1'] && '%s is %d'.format(['a', 1]) == 'a is 1'",
        "isSemver(self.version) && semver(self.version).isLessThan(semver('1.10.0')) && semver('1.2.3').minor() == 2",
        "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()",
        // What a later element decides, an error in an earlier one does not change.
        "[1, 2].exists(x, x == 2 || self.absent == 'x')",
        "![1, 2].all(x, x != 2 && self.absent == 'x')",
    ] {
        assert_eq!(outcome(rule), "holds", "{rule}");
    }
}

#[test]
fn a_rule_that_meets_an_error_denies() {
    for (rule, error) in [
        ("self.absent == 'x'", "no such key: absent"),
        ("self.objects.all(o, o.size == 1)", "no such key: size"),
        // The key is a value of the object.
        ("self.map[self.text] == 'x'", "no such key"),
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("self.list[9] == 'a'", "index out of bounds: 9"),
        ("self.any > 'a'", "no such overload"),
        ("self.any.startsWith('a')", "no such overload"),
        ("'a'.charAt(9) == ''", "charAt() has no result for this value"),
        ("int('x') == 1", "int() has no result for this value"),
        ("duration('x') == duration('1s')", "duration() has no result for this value"),
        ("self.?absent.value() == 'a'", "value() has no result for this value"),
        ("false || self.absent == 'x'", "no such key: absent"),
        ("[1].exists(x, self.absent == 'x')", "no such key: absent"),
        ("[1, 2].all(x, x == 2 || self.absent == 'x')", "no such key: absent"),
    ] {
        assert_eq!(outcome(rule), error, "{rule}");
    }
}

#[test]
fn what_only_memgate_does_not_know_is_a_note() {
    for (rule, why) in [
        ("string(true) == 'true'", "it calls a function in a way that memgate does not know"),
        ("timestamp(0) < self.time", "it calls a function in a way that memgate does not know"),
        ("self.?text == self.?text", "it compares optional values"),
    ] {
        assert_eq!(outcome(rule), why, "{rule}");
    }
    let found = messages(&with_rule(json!({"type": "string"}), "self"), &json!({"spec": "a"}));
    assert_eq!(
        found,
        ["spec: a rule of the definition is not evaluated, because it is neither true nor false: self"]
    );
}

#[test]
fn an_error_below_a_fault_of_the_schema_is_silent() {
    let day = json!({"type": "string", "format": "date"});
    let schema = with_rule(json!({"type": "object", "properties": {"day": day}}), "self.day.getMonth() == 1");
    let found = messages(&schema, &json!({"spec": {"day": "tomorrow"}}));
    assert!(matches!(found.as_slice(), [one] if one.starts_with("spec.day: ")), "{found:?}");
}

#[test]
fn an_expression_makes_the_message() {
    let schema = |expression: &str| {
        let rule = json!({"rule": "false", "message": "plain", "messageExpression": expression});
        let text = json!({"type": "string"});
        json!({"type": "object", "properties": {"a": text, "apiToken": text, "env": {"type": "array", "items":
            {"type": "object", "properties": {"name": text, "value": text}}}}, "x-kubernetes-validations": [rule]})
    };
    let object =
        json!({"spec": {"a": "b", "apiToken": "hunter2", "env": [{"name": "N", "value": "hunter3"}]}});
    for (expression, message) in [
        ("'a is ' + self.a", "a is b"),
        ("self.apiToken + ' ' + self.env[0].name + ' ' + self.env[0].value", "*** N ***"),
        // An apiserver takes the message then.
        ("' '", "plain"),
        ("self.absent", "plain"),
        ("self.", "plain"),
        ("'a\\nb'", "plain"),
        ("size(self.a)", "plain"),
    ] {
        assert_eq!(messages(&schema(expression), &object), [format!("spec: {message}")], "{expression}");
    }
    let token = json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "false", "message": "plain", "messageExpression": "self"}]});
    let schema = json!({"type": "object", "properties": {"apiToken": token}});
    assert_eq!(messages(&schema, &json!({"spec": {"apiToken": "hunter2"}})), ["spec.apiToken: plain"]);
}

#[test]
fn a_definition_has_so_many_rules() {
    let rules = |count: usize| {
        json!((0..count).map(|index| json!({"rule": format!("self != '{index}'")})).collect::<Vec<_>>())
    };
    let of = |count: usize, value: &str| {
        let schema = json!({"type": "string", "x-kubernetes-validations": rules(count)});
        messages(&schema, &json!({"spec": value}))
    };
    assert_eq!(of(1_000, "999"), ["spec: failed rule: self != '999'"]);
    let found = of(100_000, "1001");
    assert!(matches!(found.as_slice(), [note] if note.contains(super::TOO_MANY)), "{found:?}");
}

#[test]
fn all_objects_of_a_run_share_what_rules_may_cost() {
    assert_eq!(super::allowance(1), super::MAX_COST);
    assert_eq!(super::allowance(100) * 100, super::MAX_COST_OF_RUN);
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let schema = with_rule(schema, "self.all(x, self.all(y, x != y + 'z'))");
    let schema = json!({"type": "object", "properties": {"spec": schema}});
    let object = json!({"spec": vec!["a"; 80]});
    assert_eq!(found_in_run(1, &schema, &object, None), []);
    assert!(found_in_run(1_000, &schema, &object, None)[0].0.contains("because it may take too long"));
}

#[test]
fn rules_stand_at_their_nodes() {
    let text = json!({"type": "string"});
    let item = with_rule(
        json!({"type": "object", "properties": {"a": text, "b": text}}),
        "has(self.a) != has(self.b)",
    );
    let value = with_rule(text.clone(), "self != 'no'");
    let schema = json!({"type": "object", "properties": {
        "items": {"type": "array", "items": item}, "map": {"type": "object", "additionalProperties": value},
        "none": with_rule(json!({"type": "object", "nullable": true}), "false"),
    }});
    let object = json!({"spec": {
        "items": [{"a": "1"}, {"a": "1", "b": "2"}, {}], "map": {"x": "no", "y": "yes"}, "none": null,
    }});
    assert_eq!(
        messages(&schema, &object),
        ["spec.items[1]: broken", "spec.items[2]: broken", "spec.map.x: broken",]
    );
}

#[test]
fn messages_and_places() {
    let rules = json!([
        {"rule": "has(self.a)", "message": " say\nit ", "fieldPath": ".a"},
        {"rule": "self.b != 'x'", "fieldPath": "['b.c'].d", "reason": "FieldValueForbidden"},
        {"rule": "frobnicate(self)", "message": "never"},
        {"rule": format!("self.b == '{}'", "x".repeat(600))},
    ]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "x-kubernetes-validations": rules});
    let found = messages(&schema, &json!({"spec": {"b": "x"}}));
    assert_eq!(found[..3], [
        "spec.a: say it".to_owned(),
        "spec[b.c].d: failed rule: self.b != 'x'".to_owned(),
        "spec: a rule of the definition is not evaluated, because the function frobnicate() is not known to memgate: \
         frobnicate(self)".to_owned(),
    ]);
    assert!(
        found[3].starts_with("spec: failed rule: self.b == 'xxx") && found[3].ends_with('…'),
        "{}",
        found[3]
    );
}

#[test]
fn a_rule_that_is_not_evaluated_has_one_note() {
    let item = with_rule(json!({"type": "string"}), "self.");
    let schema = json!({"type": "array", "items": item});
    assert_eq!(
        messages(&schema, &json!({"spec": ["a", "b", "c"]})),
        ["spec[0]: a rule of the definition is not evaluated, because it cannot be read: self.",]
    );
}

#[test]
fn a_fault_of_the_schema_silences_the_rules_above_it() {
    let text = json!({"type": "string", "maxLength": 3, "pattern": "^a"});
    let inner = with_rule(json!({"type": "object", "properties": {"t": text}}), "false");
    let schema = with_rule(
        json!({"type": "object", "properties": {"one": inner, "two": inner, "n": {"type": "integer", "minimum": 1}}}),
        "false",
    );
    let of = |spec: Json| messages(&schema, &json!({"spec": spec}));
    assert_eq!(
        of(json!({"one": {"t": 1}, "two": {}})),
        ["spec.one.t: must be of type string, not integer 1", "spec.two: broken",]
    );
    assert_eq!(of(json!({"one": {"t": "aaaa"}})).len(), 1);
    // A pattern and a bound do not.
    assert_eq!(of(json!({"one": {"t": "b"}, "n": 0})).len(), 4);
}

#[test]
fn rules_about_a_change() {
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items":
        {"type": "object", "properties": {"k": {"type": "string"}, "v": with_rule(json!({"type": "string"}), "self == oldSelf")}}});
    let plain = json!({"type": "array", "items": with_rule(json!({"type": "string"}), "self == oldSelf")});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {
        "name": with_rule(json!({"type": "string"}), "self == oldSelf"),
        "keyed": keyed, "plain": plain,
        "both": with_rule(json!({"type": "object", "properties": {"set": set, "keyed": keyed}}), "self == oldSelf"),
    }});
    let of = |old: Json, new: Json| {
        let found = found(&schema, &json!({"spec": new}), Some(&json!({"spec": old})));
        found
            .into_iter()
            .map(|(message, stored)| {
                assert!(!stored);
                message
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(messages(&schema, &json!({"spec": {"name": "a", "plain": ["a"]}})), [""; 0]);
    assert_eq!(of(json!({}), json!({"name": "a"})), [""; 0]);
    assert_eq!(of(json!({"name": "a"}), json!({})), [""; 0]);
    assert_eq!(of(json!({"name": "a"}), json!({"name": "b"})), ["spec.name: broken"]);
    assert_eq!(of(json!({"plain": ["a"]}), json!({"plain": ["b"]})), [""; 0]);
    let (one, two) = (json!({"k": "1", "v": "a"}), json!({"k": "2", "v": "b"}));
    let changed = json!({"keyed": [two, {"k": "1", "v": "c"}]});
    assert_eq!(of(json!({"keyed": [one, two]}), changed), ["spec.keyed[1].v: broken"]);
    // Their order does not count.
    let both = |set: [&str; 2], keyed: [&Json; 2]| json!({"both": {"set": set, "keyed": keyed}});
    assert_eq!(of(both(["a", "b"], [&one, &two]), both(["b", "a"], [&two, &one])), [""; 0]);
    assert_eq!(of(both(["a", "b"], [&one, &two]), both(["a", "c"], [&one, &two])), ["spec.both: broken"]);
}

#[test]
fn a_rule_with_an_optional_old_value_holds_for_new_ones() {
    let rule = json!([{"rule": "self != 'x' || oldSelf.hasValue() && oldSelf.value() == 'x'",
        "optionalOldSelf": true, "message": "broken"}]);
    let schema = json!({"type": "string", "x-kubernetes-validations": rule});
    let of = |old: Option<&str>, new: &str| {
        found(&schema, &json!({"spec": new}), old.map(|old| json!({"spec": old})).as_ref()).len()
    };
    assert_eq!((of(None, "x"), of(None, "a"), of(Some("a"), "x"), of(Some("x"), "x")), (1, 0, 1, 0));
}

#[test]
fn what_is_stored_and_unchanged_only_warns() {
    let inner =
        with_rule(json!({"type": "object", "properties": {"a": {"type": "string"}}}), "self.a != 'x'");
    let schema = json!({"type": "object", "properties": {"one": inner, "n": {"type": "integer"}}});
    let of = |old: Json, new: Json| found(&schema, &json!({"spec": new}), Some(&json!({"spec": old})));
    let bad = json!({"a": "x"});
    assert_eq!(
        of(json!({"one": bad, "n": 1}), json!({"one": bad, "n": 2})),
        [("spec.one: broken".to_owned(), true)]
    );
    assert_eq!(of(json!({"one": {"a": "y"}}), json!({"one": bad})), [("spec.one: broken".to_owned(), false)]);
}

#[test]
fn the_stored_status_can_be_read() {
    let status = with_rule(json!({"type": "object", "properties": {"done": {"type": "boolean"}}}), "false");
    let schema = with_rule(
        json!({"type": "object", "properties": {"spec": {"type": "string"}, "status": status}}),
        "!has(oldSelf.status) || !has(oldSelf.status.done) || self.spec == oldSelf.spec",
    );
    let of = |new: Json, old: Json| found_at_root(&schema, &new, Some(&old)).len();
    assert_eq!(of(json!({"spec": "b"}), json!({"spec": "a", "status": {}})), 0);
    assert_eq!(of(json!({"spec": "b"}), json!({"spec": "a", "status": {"done": true}})), 1);
    assert_eq!(
        of(json!({"spec": "a", "status": {"done": false}}), json!({"spec": "a", "status": {"done": true}})),
        0
    );
}

#[test]
fn no_rule_takes_long() {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let many: Vec<_> = (0..10_000).map(|index| index.to_string()).collect();
    let six = format!("{}true{}", "self.all(x,".repeat(6), ")".repeat(6));
    for rule in [
        "self.all(x, self.all(y, x != y + 'z'))",
        six.as_str(),
        "self.exists(x, self.map(y, x + y).join('').replace('1', self.join('')) == '')",
        "self.all(x, self == self)",
        "self.all(x, self.size() > 0)",
        "self.map(x, x).size() == 1",
        "self.distinct().size() == 1",
        "self.all(x, sets.equivalent(self, self))",
        "[self].map(a, a + a + a + a).map(b, b + b + b + b).map(c, c + c + c + c).map(d, d + d + d + d).size() == 1",
        "[self.join('')].map(a, a.replace('', a)).map(a, a.replace('', a)).size() == 1",
        "self.all(x, x.split(',').all(y, self.all(z, y != z)))",
    ] {
        let found = messages(&with_rule(texts.clone(), rule), &json!({"spec": many}));
        let place = "spec: a rule of the definition is not evaluated, because it may take too long: ";
        assert_eq!(found, [format!("{place}{rule}")]);
    }
    // As much as is evaluated.
    for (rule, elements) in [
        (
            "self.all(x, x.size() > 0 && x != 'a' && x.matches('^[0-9]+$') && x in ['1', '2', '3'] || true)",
            1_000,
        ),
        ("self.all(x, self.exists_one(y, x == y))", 250),
        ("self.exists_one(x, x == '1')", 10_000),
        ("size(self) > 0", 10_000),
    ] {
        let found = messages(&with_rule(texts.clone(), rule), &json!({"spec": many[..elements]}));
        assert_eq!(found, [""; 0], "{rule}");
    }
}

/// How many values a result has, as estimates count them.
fn measured(value: &Value) -> u64 {
    let text = |length: usize| 1 + (length / value::BYTES_PER_VALUE) as u64;
    match value {
        Value::String(it) => text(it.len()),
        Value::Bytes(it) => text(it.len()),
        Value::List(list) => 1 + list.iter().map(measured).sum::<u64>(),
        Value::Map(map) => {
            1 + map.map.iter().map(|(key, value)| text(key.to_string().len()) + measured(value)).sum::<u64>()
        }
        Value::Opaque(opaque) => {
            let optional = opaque.downcast_ref::<OptionalValue>();
            1 + optional.and_then(OptionalValue::value).map_or(0, measured)
        }
        _ => 1,
    }
}

/// Compares what an expression makes of values with its estimate; `None` where it makes nothing.
fn compared(text: &str, own: &Value) -> Option<(u64, u64)> {
    let program = compile(text).ok()?;
    let estimate = cost::of_result(&program.expression, measured(own));
    let bounds = cost::of(&program.expression, measured(own));
    assert!(bounds.cost.saturating_mul(cost::COPIES) >= estimate && bounds.peak >= estimate, "{text}");
    let mut context = functions::CONTEXT.new_inner_scope();
    context.add_variable_from_value("self", own.clone());
    context.add_variable_from_value("oldSelf", own.clone());
    let result = context.resolve(&program.expression).ok()?;
    Some((measured(&result), estimate))
}

/// What is large in one way each.
fn large() -> Value {
    let strange = "\u{1}\u{7f}\"\\\u{202e}".repeat(40);
    let dots = ".".repeat(500);
    let capitals = "A.".repeat(300);
    let many: Vec<_> = (0..40).map(|index| format!("{index:030}")).collect();
    let nested = vec![vec![vec![strange.as_str(); 3]; 3]; 3];
    let numbers = [5e-324, f64::MAX, 1.0 / 3.0];
    kube_cel::cel::to_value(json!({
        "one": "x".repeat(3_000), "strange": strange, "dots": dots, "capitals": capitals, "many": many,
        "nested": nested, "numbers": numbers, "map": {"k".repeat(900): strange, "": {"a": many}}, "empty": "",
    }))
    .expect("a value")
}

/// For each function calls of which it makes much, with values of [`large`].
const LARGEST: &[(&str, &[&str])] = &[
    ("add", &["quantity('1').add(quantity('1'))"]),
    ("asApproximateFloat", &["quantity('1').asApproximateFloat()"]),
    ("asInteger", &["quantity('1').asInteger()"]),
    ("bytes", &["bytes(self.one)"]),
    ("charAt", &["self.one.charAt(1)"]),
    ("compareTo", &["quantity('1').compareTo(quantity('2'))"]),
    ("contains", &["self.one.contains('a')", "sets.contains(self.many, self.many)"]),
    ("distinct", &["self.many.distinct()"]),
    ("double", &["double('1')"]),
    ("duration", &["duration('1h')"]),
    ("dyn", &["dyn(self)"]),
    ("endsWith", &["self.one.endsWith('x')"]),
    ("find", &["self.one.find('x*')"]),
    ("findAll", &["self.one.findAll('x')", "self.one.findAll('')", "self.many[0].findAll('0*?')"]),
    ("first", &["[self].first()"]),
    ("flatten", &["self.nested.flatten()", "self.nested.flatten(9)"]),
    (
        "format",
        &[
            "'%s'.format([self.numbers])",
            "'%s%s%s'.format(self.numbers)",
            "'%f%e'.format([self.numbers[0], self.numbers[1]])",
            "'%f%.9000f%%'.format([self.numbers[1], self.numbers[1]])",
            "'%.60000e'.format([self.numbers[0]])",
            "'%b%b%o'.format([-1, 9223372036854775807, -1])",
            "'%x'.format([self.one])",
            "'%X%s'.format([b'\\xff', self])",
            "'%s%s'.format([quantity('170141183460469231731687303715884105727'), [semver('1.2.3-aaaaaaaaaa')]])",
            "'%s'.format([[self.?strange, self.?nested, timestamp('2024-01-01T00:00:00Z'), duration('1ns'), b'a']])",
            "'%s'.format([{'a': self.strange, 'b': null, 'c': true}])",
        ],
    ),
    ("byte", &["format.byte()"]),
    ("date", &["format.date()"]),
    ("datetime", &["format.datetime()"]),
    ("dns1035Label", &["format.dns1035Label()"]),
    ("dns1035LabelPrefix", &["format.dns1035LabelPrefix()"]),
    ("dns1123Label", &["format.dns1123Label()"]),
    ("dns1123LabelPrefix", &["format.dns1123LabelPrefix()"]),
    ("dns1123Subdomain", &["format.dns1123Subdomain()"]),
    ("dns1123SubdomainPrefix", &["format.dns1123SubdomainPrefix()"]),
    ("labelValue", &["format.labelValue()"]),
    ("named", &["format.named('uri')"]),
    ("qualifiedName", &["format.qualifiedName()"]),
    ("uri", &["format.uri()"]),
    ("uuid", &["format.uuid()"]),
    ("getDate", &["timestamp('2024-01-01T00:00:00Z').getDate()"]),
    ("getDayOfMonth", &["timestamp('2024-01-01T00:00:00Z').getDayOfMonth()"]),
    ("getDayOfWeek", &["timestamp('2024-01-01T00:00:00Z').getDayOfWeek()"]),
    ("getDayOfYear", &["timestamp('2024-01-01T00:00:00Z').getDayOfYear()"]),
    ("getFullYear", &["timestamp('2024-01-01T00:00:00Z').getFullYear()"]),
    ("getHours", &["duration('1h').getHours()"]),
    ("getMilliseconds", &["duration('1h').getMilliseconds()"]),
    ("getMinutes", &["duration('1h').getMinutes()"]),
    ("getMonth", &["timestamp('2024-01-01T00:00:00Z').getMonth()"]),
    ("getSeconds", &["duration('1h').getSeconds()"]),
    ("hasValue", &["self.?one.hasValue()"]),
    ("indexOf", &["self.one.indexOf('x')", "self.many.indexOf('x')"]),
    ("int", &["int('1')"]),
    ("isCIDR", &["isCIDR(self.one)"]),
    ("isGreaterThan", &["quantity('1').isGreaterThan(quantity('2'))"]),
    ("isIP", &["isIP(self.one)"]),
    ("isInteger", &["quantity('1').isInteger()"]),
    ("isLessThan", &["quantity('1').isLessThan(quantity('2'))"]),
    ("isQuantity", &["isQuantity(self.one)"]),
    ("isSemver", &["isSemver(self.one)"]),
    ("isSorted", &["self.many.isSorted()"]),
    ("isURL", &["isURL(self.one)"]),
    (
        "join",
        &[
            "self.many.join()",
            "self.many.join(self.one)",
            "self.nested.join()",
            "[[self.strange], [self.numbers]].join('')",
            "[quantity('170141183460469231731687303715884105727'), quantity('1e-2147483640')].join()",
            "[[self.?strange], {}, {'': timestamp('2024-01-01T00:00:00Z')}].join(', ')",
        ],
    ),
    ("last", &["[self].last()"]),
    ("lastIndexOf", &["self.one.lastIndexOf('x')", "self.many.lastIndexOf('x')"]),
    ("lowerAscii", &["self.one.lowerAscii()"]),
    ("major", &["semver('1.2.3').major()"]),
    ("matches", &["self.one.matches('x')"]),
    ("max", &["self.many.max()", "max('a', self.one)"]),
    ("min", &["self.many.min()", "min('y', self.one)"]),
    ("minor", &["semver('1.2.3').minor()"]),
    ("or", &["self.?one.or(self.?many)", "self.?absent.or(self.?many)"]),
    ("orValue", &["self.?one.orValue(self.many)", "self.?absent.orValue(self.many)"]),
    ("patch", &["semver('1.2.3').patch()"]),
    ("quantity", &["quantity('1')"]),
    (
        "replace",
        &[
            "self.one.replace('', self.one)",
            "self.one.replace('x', self.one)",
            "self.one.replace('', self.one, 1000)",
            "self.empty.replace('', self.one)",
            "'ab'.replace('', 'cdefghijklmnopqrstu')",
        ],
    ),
    ("reverse", &["self.one.reverse()", "self.many.reverse()"]),
    ("semver", &["semver('1.2.3-' + self.one)"]),
    ("equivalent", &["sets.equivalent(self.many, self.many)"]),
    ("intersects", &["sets.intersects(self.many, self.many)"]),
    ("sign", &["quantity('1').sign()"]),
    ("size", &["self.size()", "size(self.one)"]),
    ("slice", &["self.many.slice(0, 40)"]),
    ("sort", &["self.many.sort()"]),
    ("split", &["self.one.split('x')", "self.one.split(self.empty)", "'abcdefghijklmno'.split(self.empty)"]),
    ("startsWith", &["self.one.startsWith('x')"]),
    (
        "string",
        &[
            "string(self.numbers[0])", "string(self.numbers[1])", "string(self.one)",
            "string(duration('1ns'))",
        ],
    ),
    ("quote", &["strings.quote(self.strange)"]),
    ("sub", &["quantity('1').sub(quantity('1'))"]),
    ("substring", &["self.one.substring(0)"]),
    ("sum", &["self.numbers.sum()"]),
    ("timestamp", &["timestamp('2024-01-01T00:00:00Z')"]),
    ("trim", &["self.one.trim()"]),
    ("type", &["type(self)"]),
    ("uint", &["uint('1')"]),
    ("upperAscii", &["self.one.upperAscii()"]),
    (
        "validate",
        &[
            "format.dns1123Subdomain().validate(self.dots)",
            "format.dns1123Subdomain().validate(self.capitals)",
            "format.dns1123SubdomainPrefix().validate(self.capitals)",
            "format.qualifiedName().validate('A/' + self.capitals)",
            "format.labelValue().validate(self.one)",
            "format.uri().validate(self.strange)",
        ],
    ),
    ("value", &["self.?one.value()"]),
];

#[test]
fn what_each_function_makes_is_no_larger_than_its_estimate() {
    let known: BTreeSet<_> = functions::FUNCTIONS.iter().flat_map(|(_, names)| *names).collect();
    let tried: BTreeSet<_> = LARGEST.iter().map(|(name, _)| name).collect();
    assert_eq!(known, tried, "each function has a row here");
    let (own, mut wrong) = (large(), Vec::new());
    for text in LARGEST.iter().flat_map(|(_, calls)| *calls) {
        let found = compared(text, &own);
        if found.is_none_or(|(measured, estimate)| measured > estimate) {
            wrong.push((text, found));
        }
    }
    assert!(wrong.is_empty(), "values, and as many as expected: {wrong:#?}");
}

#[test]
fn what_macros_and_operators_make_is_no_larger_than_its_estimate() {
    let (own, mut wrong) = (large(), Vec::new());
    for text in [
        "self.many.map(x, x + x)",
        "self.many.map(x, self.one)",
        "self.many.map(x, self.many)",
        "self.many.map(x, [x, x]).map(x, [x, x]).map(x, [x, x])",
        "self.many.map(x, [x, x].map(y, y + y))",
        "self.nested.map(x, x.map(y, y.map(z, z + z)))",
        "[self.many].map(x, x + x + x + x).map(x, x + x + x + x)",
        "[self.one].map(x, x.replace('', x))",
        "self.many.map(x, x.split('0'))",
        "self.many.map(x, x != '', x.replace('0', x))",
        "self.many.filter(x, x != '')",
        "self.map.map(k, k)",
        "self.map.map(k, k + k).map(k, k.split('k'))",
        "self.map.filter(k, self.map.exists(l, l == k))",
        "b'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
        "string(b'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff')",
        "{self.one: self.one, 'a': self}",
        "[?self.?one, ?self.?absent, self.one]",
        "true ? self : self.one",
        "self.many + self.many + [self.many]",
        "self.many[0] + self['one'] + self.map['']['a'][1]",
        "self.?map.orValue(self)",
        "self.many.map(x, self.many.filter(y, y > x))",
        "self.many.map(x, self.many.map(y, x == y))",
        "[self.many, self.many].map(x, x.join(self.one))",
        "'abcdef'.findAll('.').map(x, self.one.findAll('xxxx'))",
    ] {
        let found = compared(text, &own);
        if found.is_none_or(|(measured, estimate)| measured > estimate) {
            wrong.push((text, found));
        }
    }
    assert!(wrong.is_empty(), "values, and as many as expected: {wrong:#?}");
}

/// Expressions that make texts or lists, nested so deep.
fn expressions(depth: u32) -> BoxedStrategy<String> {
    let leaves =
        ["self.one", "self.many", "self.nested", "self.numbers", "self.map", "'ab'", "['a', 'b']", "x"];
    prop::sample::select(leaves.to_vec())
        .prop_map(str::to_owned)
        .prop_recursive(depth, 12, 2, |inner| {
            let two = [
                "A + B", "[A, B]", "A.map(x, B)", "A.map(x, x + x)", "A.filter(x, x != B)",
                "A.replace('', B)", "A.replace('a', B)", "A.join(B)", "A.split(B)", "'%s.%s'.format([A, B])",
                "[A].map(x, [B, x])", "{'k': A, 'l': B}", "A.map(x, A.map(y, B))", "A == B ? A : B", "A[0]",
                "A.flatten()", "A.reverse()", "A.findAll('a|x')", "A.distinct()", "strings.quote(A)",
                "string(A)", "A.sort()", "A.first().or(B)",
            ];
            (prop::sample::select(two.to_vec()), inner.clone(), inner, Just(())).prop_map(
                |(form, a, b, ())| form.replace('A', &format!("({a})")).replace('B', &format!("({b})")),
            )
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nothing_is_larger_than_its_estimate(text in expressions(4)) {
        let own = kube_cel::cel::to_value(json!({
            "one": "ab".repeat(20), "many": ["a", "b", "abababababababababababab"], "nested": [["a"], ["b", "c"]],
            "numbers": [1.5, 5e-324], "map": {"a".repeat(40): 1},
        }));
        // A free `x` is an error.
        let text = format!("[self.one].map(x, {text})");
        let own = own.expect("a value");
        let is_judged = compile(&text).is_ok_and(|program| {
            let bounds = cost::of(&program.expression, measured(&own));
            bounds.peak <= super::MAX_PEAK && bounds.cost <= super::MAX_COST
        });
        if let Some((measured, estimate)) = is_judged.then(|| compared(&text, &own)).flatten() {
            assert!(measured <= estimate, "{text}: {measured} values, {estimate} expected");
        }
    }
}

#[test]
fn what_may_be_too_large_is_not_evaluated() {
    let literal = "x".repeat(7_000);
    for (rule, why) in [
        (
            "'%.65535f'.format([0.0]).replace('0', '%.65535f'.format([0.0])).size() > 0".to_owned(),
            super::TOO_MUCH,
        ),
        (format!("string(b'{literal}').replace('', string(b'{literal}')) != ''"), super::TOO_MUCH),
        ("self[0].format([1]) != ''".to_owned(), "its format is not written in it"),
        ("('%' + '.9f').format([1.0]) != ''".to_owned(), "its format is not written in it"),
        ("'%s'.replace('s', '.9f').format([1.0]) != ''".to_owned(), "its format is not written in it"),
    ] {
        let schema = with_rule(json!({"type": "array", "items": {"type": "string"}}), &rule);
        let found = messages(&schema, &json!({"spec": ["%.9999f"]}));
        let start = format!("spec: a rule of the definition is not evaluated, because {why}: ");
        assert!(matches!(found.as_slice(), [one] if one.starts_with(&start)), "{rule}: {found:?}");
    }
    let found = messages(
        &with_rule(
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "self.all(k, k.replace('', k) != '')",
        ),
        &json!({"spec": {"k".repeat(30_000): ""}}),
    );
    assert!(matches!(found.as_slice(), [one] if one.contains(super::TOO_MUCH)), "{found:?}");
}

#[test]
fn many_rules_of_many_values_end() {
    let rules: Vec<_> = (0..1_000).map(|index| json!({"rule": format!("self != '{index}'")})).collect();
    let items = json!({"type": "string", "x-kubernetes-validations": rules});
    let many: Vec<_> = (0..10_000).map(|index| format!("a{index}")).collect();
    let found = messages(&json!({"type": "array", "items": items}), &json!({"spec": many}));
    let last = found.last().expect("a note");
    assert!(found.len() < 100 && last.contains("it and all rules behind it may take"), "{found:?}");
}

/// The parts of rules.
const TOKENS: [&str; 46] = [
    "self", "oldSelf", "x", "a", "in", "has(", "size(", "self.all(x,", "self.map(x,", ".filter(x,",
    ".exists(x,", ".matches('a+')", "duration('1h')", "timestamp(", ".getHours()", "quantity('1')",
    "sets.contains(", ".", ",", "(", ")", "[", "]", "{", "}", ":", "?", "+", "-", "*", "/", "%", "!", "==",
    "<=", "&&", "||", "'a'", "\"", "r'", "1", "9223372036854775807", "1.5", "null", "\\", " // \n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_rule_stops_the_process(tokens in prop::collection::vec(prop::sample::select(&TOKENS[..]), 1..60)) {
        let rule = tokens.concat();
        let found = messages(&with_rule(json!({"type": "string"}), &rule), &json!({"spec": "a"}));
        assert!(found.len() <= 1, "{rule}: {found:?}");
    }
}
