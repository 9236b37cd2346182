//! Keys that were pasted in the place of a name: of an object, of what a field of the tables of edges refers to, of a key, a
//! variable, a label. No output has one of them whole, whatever its form.

use std::fs;

use libtest_mimic::Failed;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::known_keys;
use crate::outputs::{admission_review, memgate};
use crate::policy::policy;
use crate::styles::objects;

/// Keys as their services give them out. None could be a name, or it has a form that is known.
const KEYS: [(&str, &str); 26] = [
    ("OpenAI, of a project", "sk-proj-x1Yt8Qm0aBcD3eFgH4iJkL5mNoP6qRsT7uVwX8yZa9Bc0De1Fg2"),
    ("OpenAI", "sk-7Hq2mV9xT4bK8nR1cW5zL3pD6fJ0sGyA2eUoIiQvBtNhMxCk"),
    ("OpenAI, in lower case", "sk-a1b2c3d4e5f6a7b8c9d0e1f2"),
    ("Anthropic", "sk-ant-api03-Zk8Qw3Er5Ty7Ui9Op1As2Df4Gh6Jk8Lz0Xc-V3bN5mQ7wE9rT1yU3iO5pAAA"),
    ("Pinecone", "pcsk_5N3uK_9bQ7wErTyU1iOpAsDfGhJkLzXcVbNm2"),
    ("GitHub", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("GitHub, fine-grained", "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789"),
    ("GitLab", "glpat-Zx9Kq2Lm8Pw4Rt6Yb1Nc"),
    ("AWS, id", "AKIAIOSFODNN7EXAMPLE"),
    ("AWS, secret", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("Google", "AIzaSyD3f4G5h6J7k8L9z0X1c2V3b4N5m6Q7w8E"),
    ("Hugging Face", "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"),
    ("Slack", "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx"),
    ("JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    ("Redis", "redis://default:hunter2Q9x@redis.example.com:6379/0"),
    ("Qdrant", "9XkT2mQ7wE4rY8uI1oP5aS3dF6gH0jKlZxCvBnM-qW2eR4tY6uI8oP"),
    ("Weaviate", "dGhpc0lzQVNlY3JldEtleTEyMzQ1Njc4OTA+Lz0xMjM0NQ=="),
    ("Voyage", "pa-Xk3Jt9Wq2Zr7Lm4Nb8Vc1Hd6Gf5Sy0Ta-E2uI4oP6xRk"),
    ("Cohere", "Qx7Lm2Vb9Kt4Rw8Zn1Hc6Jd3Fg5Sy0PaTeUiOoXk"),
    ("Azure", "4fKq8Zx1Wv7Lm3Nb9Rt2Yc6Hd5Gj0SpAeUiOxTrQwBn8Mk2Lz7Vf4Dc1Js6Hg3PyXt9Ra5EoUiQACYeBjFXJ3"),
    ("Neon", "npg_KmmQvTfQaBU8"),
    ("a password for an app", "abcd efgh ijkl mnop"),
    ("Databricks", "dapi0a1b2c3d4e5f60718293a4b5c6d7e8f9"),
    ("Databricks, of a region", "dapi0a1b2c3d4e5f60718293a4b5c6d7e8f9-2"),
    ("Stripe", "sk_live_51HqLyjWDarjtT1zdp7dcA9bC"),
    ("base64", "c2VjcmV0LXBhc3N3b3JkLTQyLWZvci1hLWRhdGFiYXNl"),
];

/// Those that print texts about the files.
const COMMANDS: [&str; 9] = [
    "check -o text -o json=o.json -o sarif=o.sarif -o junit=o.xml -o gitlab=o.gl -o html=o.html in",
    "check -o concise in",
    "check -o github in",
    "check -o text --policy policy.json in",
    "view in",
    "map in",
    "audit -o json --policy policy.json in",
    "what-if --policy policy.json in",
    "check -o text --with in in/0.yaml",
];

/// Runs everything over one key.
pub(crate) fn check(key: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let folder = directory.path().join("in");
    fs::create_dir(&folder)?;
    let texts = known_keys::pasted(key).into_iter().chain([edges(key)?, labels(key)]);
    let texts: Vec<String> = texts.collect();
    for (number, text) in texts.iter().enumerate() {
        fs::write(folder.join(format!("{number}.yaml")), text)?;
    }
    fs::write(directory.path().join("policy.json"), policy().to_string())?;
    for line in COMMANDS {
        let (out, err) = memgate(line, "", &directory, None)?;
        expect_none(line, key, &out)?;
        expect_none(line, key, &err)?;
    }
    for file in ["o.json", "o.sarif", "o.xml", "o.gl", "o.html"] {
        let written = fs::read_to_string(directory.path().join(file)).unwrap_or_default();
        expect_none(file, key, &written)?;
    }
    texts.iter().try_for_each(|text| reviews(key, text, &directory))
}

/// The answers about the objects of a text, of which an apiserver would have refused some.
fn reviews(key: &str, text: &str, directory: &TempDir) -> Result<(), Failed> {
    for object in objects(text).iter().take(3) {
        let review = admission_review(object).to_string();
        let (out, err) = memgate("review --with in", "", directory, Some(&review))?;
        expect_none("review", key, &err)?;
        let mut answer: Value = serde_json::from_str(&out).unwrap_or_default();
        // It is the request's, and base64 of what the author wrote.
        if let Some(response) = answer.get_mut("response").and_then(Value::as_object_mut) {
            response.remove("patch");
        }
        expect_none("review", key, &answer.to_string())?;
    }
    Ok(())
}

/// An object for each field of the tables of edges, with the key in it.
pub(crate) fn edges(key: &str) -> Result<String, Failed> {
    let mut text = String::new();
    for (number, edge) in memgate_platforms::ALL.iter().flat_map(|family| family.edges).enumerate() {
        for kind in edge.from {
            let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind,
                "metadata": {"name": format!("edge-{number}"), "namespace": "team-a"}});
            let path: Vec<&str> = edge.path.split('/').skip(1).collect();
            put(&mut object, &path, key);
            text.extend(["---\n", &serde_json::to_string_pretty(&object)?, "\n"]);
        }
    }
    Ok(text)
}

/// Puts the key at a path, in lists and mappings of one element.
fn put(place: &mut Value, path: &[&str], key: &str) {
    let Some((first, rest)) = path.split_first() else {
        *place = key.into();
        return;
    };
    if *first == "*" {
        *place = json!([null]);
        return put(&mut place[0], rest, key);
    }
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    put(&mut place[first.replace("~1", "/").replace("~0", "~")], rest, key);
}

/// Labels that refer to an object, and other names of pods.
fn labels(key: &str) -> String {
    let pod = |label: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": key, "namespace": "team-a",
            "labels": {label: key, key: key, "memgate.dev/inject": "required"}},
            "spec": {"serviceAccountName": key, "nodeName": key, "containers": [{"name": "agent", "image": "x",
                "env": [{"name": key, "valueFrom": {"secretKeyRef": {"name": key, "key": key}}}],
                "envFrom": [{"configMapRef": {"name": key}}]}]}})
    };
    let labels = [
        "arkonis.dev/deployment", "orloj.dev/agent", "orka.ai/task", "sympozium.ai/instance",
        "sympozium.ai/ensemble", "kagent.dev/agent",
    ];
    labels.map(|label| format!("---\n{}\n", pod(label))).concat()
}

fn expect_none(what: &str, key: &str, output: &str) -> Result<(), Failed> {
    let escaped = key.replace('/', "~1");
    let is_it = |line: &&str| line.contains(key) || line.contains(&escaped);
    let lines: Vec<&str> = output.lines().filter(is_it).take(5).collect();
    if lines.is_empty() {
        Ok(())
    } else {
        Err(format!("{what} has the key whole:\n{}", lines.join("\n")).into())
    }
}

/// The keys with the names of their services.
pub(crate) fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.into_iter()
}
