//! Marks in private values: status, labels, annotations, headers, literal variables, and the parts of URLs with
//! credentials.

use serde_json::{Value, json};

/// What every mark begins with.
pub(crate) const MARK: &str = "zq7mark";

/// What is marked of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlPart {
    Password,
    User,
    Query,
    TokenQuery,
}

impl UrlPart {
    pub(crate) const ALL: [Self; 4] = [Self::Password, Self::User, Self::Query, Self::TokenQuery];
}

/// Marks an object wherever its schema takes more text, and this part of each URL.
pub(crate) fn mark(object: &mut Value, part: UrlPart) {
    mark_urls(object, part);
    if object["kind"] == "Namespace" {
        mark_metadata(object);
        return;
    }
    mark_metadata(object);
    mark_status(object, part);
    mark_literals(object);
}

fn mark_metadata(object: &mut Value) {
    for map in ["labels", "annotations"] {
        let map = &mut object["metadata"][map];
        if map.is_null() || map.is_object() {
            map["example.com/marked"] = json!(format!("{MARK}metadata"));
        }
    }
}

/// Marks the values of a status, except its words and addresses, and adds messages.
fn mark_status(object: &mut Value, part: UrlPart) {
    let status = &mut object["status"];
    if status.is_null() {
        *status = json!({});
        if part == UrlPart::Query {
            status["lastResolvedAddress"] = json!("http://status.example.com");
            mark_urls(status, part);
        }
    }
    let Some(status) = status.as_object_mut() else { return };
    for (key, value) in status.iter_mut() {
        let known = ["phase", "type", "lastResolvedAddress"].contains(&key.as_str());
        if value.is_string() && !known {
            *value = json!(format!("{MARK}status"));
        }
    }
    for key in ["message", "lastError", "syncError"] {
        status.insert(key.to_owned(), json!(format!("{MARK}status")));
    }
}

/// Marks literal headers and variables, and adds some that are named like credentials.
fn mark_literals(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mark_literals),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("headers", Value::Array(headers)) => mark_headers(headers),
                    ("env", Value::Array(variables)) => mark_variables(variables),
                    ("command" | "args", Value::Array(words)) => {
                        words.push(json!(format!("--token={MARK}argument")));
                    }
                    _ => mark_literals(value),
                }
            }
        }
        _ => {}
    }
}

fn mark_headers(headers: &mut Vec<Value>) {
    for header in headers.iter_mut().filter(|header| header["value"]["value"].is_string()) {
        header["value"]["value"] = json!(format!("{MARK}header"));
    }
    headers.push(json!({"name": "X-Marked", "value": {"value": format!("{MARK}header")}}));
}

fn mark_variables(variables: &mut Vec<Value>) {
    variables.push(json!({"name": "API_TOKEN", "value": format!("{MARK}variable")}));
    let address = format!("https://bot:{MARK}variable@data.example.com");
    variables.push(json!({"name": "DATA_ADDRESS", "value": address}));
}

fn mark_urls(value: &mut Value, part: UrlPart) {
    match value {
        Value::String(text) => {
            if let Some(marked) = marked_url(text, part) {
                *text = marked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mark_urls(item, part)),
        Value::Object(map) => map.values_mut().for_each(|value| mark_urls(value, part)),
        _ => {}
    }
}

/// The URL with its part marked; `None` for other texts.
pub(crate) fn marked_url(text: &str, part: UrlPart) -> Option<String> {
    let (scheme, rest) =
        text.split_once("://").filter(|(scheme, _)| !scheme.contains(char::is_whitespace))?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (path, fragment) = path.split_at(path.find('#').unwrap_or(path.len()));
    let sign = if path.contains('?') { '&' } else { '?' };
    Some(match part {
        UrlPart::Password => format!("{scheme}://bot:{MARK}password@{host}{path}{fragment}"),
        UrlPart::User => format!("{scheme}://{MARK}user@{host}{path}{fragment}"),
        UrlPart::Query => format!("{scheme}://{authority}{path}{sign}x={MARK}query{fragment}"),
        UrlPart::TokenQuery => format!("{scheme}://{authority}{path}{sign}token={MARK}query{fragment}"),
    })
}

/// Every text of a value, with its place.
pub(crate) fn leaves(value: &Value) -> Vec<String> {
    fn collect(value: &Value, place: &mut String, found: &mut Vec<String>) {
        let length = place.len();
        let mut into = |key: &str, value: &Value, found: &mut Vec<String>| {
            place.push('/');
            place.push_str(&key.replace('~', "~0").replace('/', "~1"));
            collect(value, place, found);
            place.truncate(length);
        };
        match value {
            Value::String(_) => found.push(place.clone()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| into(&index.to_string(), item, found));
            }
            Value::Object(map) => map.iter().for_each(|(key, value)| into(key, value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(value, &mut String::new(), &mut found);
    found
}

/// A place with `*` for each index.
pub(crate) fn pattern(place: &str) -> String {
    let general = |part: &str| {
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_index { "*".to_owned() } else { part.to_owned() }
    };
    place.split('/').map(general).collect::<Vec<_>>().join("/")
}
