//! Of an object what a snapshot holds: the fields that decisions read, of others and about it, and no credential.
//!
//! A credential is masked so that decisions about it stay the same: a URL keeps the colon before a password, and a
//! `$(NAME)` does not count as a literal.

use std::collections::BTreeSet;
use std::ops::Range;

use memgate_manifest::mask::shown_value;
use memgate_model::kind::{Kind, POLICY_KINDS};
use memgate_model::plain_value::pruned;
use memgate_model::schema::Schema;
use memgate_policy::written::LAST_APPLIED;
use memgate_primitives::credential::{masked_value, value_spans};
use serde_json::{Value, json};

/// Of an object what decisions read, credentials masked.
pub fn kept(kind: &Kind, object: &Value) -> Value {
    let mut read = pruned(object, &kind.schema);
    if let Some(subject) = subject(kind) {
        merge(&mut read, pruned(object, &subject.schema));
        let labels = object.pointer("/metadata/labels").filter(|labels| labels.is_object());
        if let (Some(labels), Some(Value::Object(metadata))) = (labels, read.get_mut("metadata")) {
            metadata.insert("labels".to_owned(), pruned(labels, &Schema::Texts));
        }
        if let Some(annotations) = annotations(object) {
            merge(&mut read, json!({"metadata": {"annotations": annotations}}));
        }
    }
    if let Value::Object(fields) = &mut read {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    // Fields of a policy are named after what it is about, such as `secrets`.
    let mut kept = if POLICY_KINDS.contains(&kind) { read.clone() } else { shown_value(&read) };
    mask_texts(&read, &mut kept);
    restore_labels(&read, &mut kept);
    if kind.is("", "ConfigMap") {
        keep_addresses(&read, &mut kept);
    }
    if let Some(owner) = controller(object)
        && let Some(Value::Object(metadata)) = kept.get_mut("metadata")
    {
        metadata.insert("ownerReferences".to_owned(), owner);
    }
    kept
}

/// The kind as it is read when its objects are judged themselves; `None` where only others are judged by them. What
/// runs once and ends is judged when it is made.
fn subject(kind: &Kind) -> Option<&'static Kind> {
    let (family, subject) = memgate_platforms::validated(&memgate_platforms::ALL, kind.group, kind.kind)?;
    let is_judged = family.views.kinds.iter().any(|(viewed, _)| *viewed == kind)
        && !family.views.transient.contains(&kind);
    is_judged.then_some(subject)
}

/// The annotations that policies may ask for. Of a long one, in which a tool may keep an object, only its key.
fn annotations(object: &Value) -> Option<Value> {
    const MAX_BYTES: usize = 253;
    let all = object.pointer("/metadata/annotations")?.as_object()?.iter();
    let texts = all.filter(|(key, _)| *key != LAST_APPLIED);
    let texts = texts.filter_map(|(key, value)| Some((key, value.as_str()?)));
    let short = |text: &str| if text.len() > MAX_BYTES { "…".into() } else { text.into() };
    Some(Value::Object(texts.map(|(key, text)| (key.clone(), short(text))).collect()))
}

/// Adds what another reading of the same object has. The recursion goes no deeper than the schemas.
fn merge(one: &mut Value, other: Value) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in other {
                match one.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => {
                        one.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter_mut().zip(other).for_each(|(one, other)| merge(one, other));
        }
        (one, other @ (Value::Array(_) | Value::Object(_))) => *one = other,
        _ => {}
    }
}

/// The owner that controls an object: `what-if` groups by it.
fn controller(object: &Value) -> Option<Value> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    Some(json!([{"kind": text("kind"), "name": text("name"), "controller": true}]))
}

/// Masks what texts show by themselves, and gives masked ones their form back. Both are the same object but for
/// that; neither is deeper than the limit of what was parsed.
fn mask_texts(read: &Value, kept: &mut Value) {
    match (read, kept) {
        (Value::Object(read), Value::Object(kept)) => {
            for (name, value) in kept {
                if let Some(read) = read.get(name) {
                    mask_texts(read, value);
                }
            }
        }
        (Value::Array(read), Value::Array(kept)) => {
            read.iter().zip(kept).for_each(|(read, value)| mask_texts(read, value));
        }
        (Value::String(read), Value::String(kept)) => {
            let masked = if kept == read { masked_value(read).into_owned() } else { kept.clone() };
            *kept = with_form(read, &masked);
        }
        _ => {}
    }
}

/// Whether a text shows that a credential in it was masked.
pub fn is_masked(text: &str) -> bool {
    let is_all = !text.is_empty() && text.chars().all(|c| c == '*');
    is_all || text.contains("*@") || text.contains("**")
}

/// Puts labels back, whatever their names are: selectors and rules ask for their values, which everybody sees who may
/// list the objects.
fn restore_labels(read: &Value, kept: &mut Value) {
    let labels = read.pointer("/metadata/labels");
    if let (Some(labels), Some(kept)) = (labels, kept.pointer_mut("/metadata/labels")) {
        kept.clone_from(labels);
    }
}

/// Of a ConfigMap all keys, and the values that may be addresses, paths of files or switches: nothing else decides. An
/// address is masked by what it says itself, whatever its key is called.
fn keep_addresses(read: &Value, kept: &mut Value) {
    let Some(Value::Object(entries)) = kept.get_mut("data") else { return };
    for (key, value) in entries {
        let text = read.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
        let address = text.filter(|text| is_address(text) || is_path(text) || WORDS.contains(text));
        *value = address.map(|text| with_form(text, &masked_value(text))).unwrap_or_default().into();
    }
}

/// The words for where the service of a memory keeps it, which are not addresses, and for what is off or on.
const WORDS: [&str; 14] =
    ["memory", "postgres", "0", "1", "f", "t", "F", "T", "false", "true", "False", "True", "FALSE", "TRUE"];

/// Whether a text is the plain absolute path of a file. Credentials are longer than its names.
fn is_path(text: &str) -> bool {
    const MAX_BYTES: usize = 256;
    let is_name =
        |it: &str| it.len() <= 32 && it.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    text.len() <= MAX_BYTES && text.strip_prefix('/').is_some_and(|path| path.split('/').all(is_name))
}

/// Whether a text may be an address: a URL in one line, or a host with a port.
fn is_address(text: &str) -> bool {
    /// Longer than any address that works.
    const MAX_BYTES: usize = 2048;
    let text = text.trim();
    let is_plain = text.len() <= MAX_BYTES && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let is_scheme =
        |it: &str| !it.is_empty() && it.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let port = text.split('/').next().and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    let is_port = |it: &str| it.parse::<u16>().is_ok();
    is_plain && (scheme.is_some_and(is_scheme) || (scheme.is_none() && port.is_some_and(is_port)))
}

/// A masked text with the colon between a user and a password, and with each `$(NAME)` as it is.
fn with_form(read: &str, masked: &str) -> String {
    if read == masked {
        return read.to_owned();
    }
    let is_userinfo = |end: usize| read.get(end..).is_some_and(|rest| rest.starts_with('@'));
    let spans = value_spans(read).into_iter().filter(|span| is_userinfo(span.end));
    let colons: BTreeSet<usize> =
        spans.filter_map(|span| Some(span.start + read.get(span.clone())?.find(':')?)).collect();
    let names = references(read);
    let mut restored = String::with_capacity(masked.len());
    for ((at, original), mask) in read.char_indices().zip(masked.chars()) {
        let is_name = names.iter().any(|name| name.contains(&at));
        restored.push(if is_name || colons.contains(&at) { original } else { mask });
    }
    restored
}

/// Where `$(NAME)` stands in a text; the first few, since no address has more.
fn references(text: &str) -> Vec<Range<usize>> {
    const MAX: usize = 16;
    let found = text.match_indices("$(").take(MAX).filter_map(|(start, _)| {
        let name = text.get(start + 2..)?;
        let end = name.find(')')?;
        let is_name = name.get(..end)?.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        is_name.then_some(start..start + 2 + end + 1)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::kind::{MEMORY_POLICY, NAMESPACE};
    use memgate_model::schema::Field;

    /// Any kind of which the spec is read whole.
    static KIND: Kind = Kind { schema: Schema::Open(&[Field::new("spec", Schema::Whole(&[]))]), ..NAMESPACE };

    static CONFIG_MAP: Kind =
        Kind { kind: "ConfigMap", schema: Schema::Open(&[Field::new("data", Schema::Texts)]), ..NAMESPACE };

    #[test]
    fn masks_credentials_and_keeps_what_decides() {
        let spec = json!({
            "endpoint": "postgres://user:pa:ss@pg/notes?sslmode=require", "dsn": "user:secret@tcp(db)/x",
            "open": "redis://cache:6379", "password": "x", "token": "$(TOKEN)", "url": "https://token@host",
            "env": [{"name": "API_KEY", "value": "abc"}, {"name": "LOG", "value": "debug"}],
        });
        let expected = json!({
            "endpoint": "postgres://****:*****@pg/notes?sslmode=require", "dsn": "****:******@tcp(db)/x",
            "open": "redis://cache:6379", "password": "*", "token": "$(TOKEN)", "url": "https://*****@host",
            "env": [{"name": "API_KEY", "value": "***"}, {"name": "LOG", "value": "debug"}],
        });
        assert_eq!(kept(&KIND, &json!({"spec": spec}))["spec"], expected);
    }

    #[test]
    fn keeps_labels_references_and_addresses() {
        let labels = json!({"secret-access": "restricted", "token": "a"});
        let namespace = kept(&NAMESPACE, &json!({"metadata": {"name": "a", "labels": labels}}));
        assert_eq!(namespace["metadata"]["labels"], labels);
        let spec = json!({"url": "https://q.example/?token=$(TOK)", "dsn": "pg://u:$(PASS)@h"});
        let expected = json!({"url": "https://q.example/?token=$(TOK)", "dsn": "pg://*:$(PASS)@h"});
        assert_eq!(kept(&KIND, &json!({"spec": spec}))["spec"], expected);
        let data = json!({"api-token-url": "http://u:p@m2.example:81", "broker": "ark-broker:8080",
            "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "netrc": "machine a password b", "t": "sk-abc"});
        let expected = json!({"api-token-url": "http://*:*@m2.example:81", "broker": "ark-broker:8080",
            "key": "", "netrc": "", "t": ""});
        assert_eq!(kept(&CONFIG_MAP, &json!({"data": data}))["data"], expected);
    }

    #[test]
    fn keeps_plain_absolute_paths() {
        for path in ["/data/memory.json", "/m", "/", "/var//lib/ark_broker-1/m.json", "/data/"] {
            let kept = kept(&CONFIG_MAP, &json!({"data": {"path": path}}));
            assert_eq!(kept["data"]["path"], path);
        }
        let key = format!("/{}", "aB3".repeat(13));
        let long = "/abc".repeat(65);
        for other in ["data/memory.json", "/a b", "/a\nb", "/a+b=", "/$(X)", "/a:b", " /a", &key, &long] {
            let kept = kept(&CONFIG_MAP, &json!({"data": {"path": other}}));
            assert_eq!(kept["data"]["path"], "", "{other}");
        }
    }

    #[test]
    fn leaves_the_fields_of_policies_as_they_are() {
        let rules = json!([{"id": "a", "secrets": {"names": ["agent-*"]}, "host": "https://u:p@h"}]);
        let policy = kept(&MEMORY_POLICY, &json!({"metadata": {"name": "org"}, "spec": {"rules": rules}}));
        let expected = json!([{"id": "a", "secrets": {"names": ["agent-*"]}, "host": "https://*:*@h"}]);
        assert_eq!(policy["spec"]["rules"], expected);
        assert_eq!(policy["kind"], "MemoryPolicy");
    }
}
