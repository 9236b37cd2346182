//! Credentials where names belong: the page and the map show no text of an input without masking it. Other outputs have
//! names of objects as they are.

use std::fs;

use libtest_mimic::Failed;
use serde_json::json;

use crate::outputs::memgate;
use crate::{MARKER, expect_no_marker};

/// Texts that hold a credential.
const FORMS: [&str; 5] =
    ["api_key=MARK", "postgres://a:MARK@h", "password: 'MARK'", "a password: \"MARK\"", "--token MARK"];

const COMMANDS: [&str; 4] = [
    "check -o html . --policy policy.json --at 2027-01-01T00:00:00Z",
    "audit -o html . --policy policy.json --at 2027-01-01T00:00:00Z",
    "what-if -o html . --policy policy.json --at 2027-01-01T00:00:00Z",
    "map .",
];

/// Runs the commands over objects, files, policies and exemptions with such names.
pub(crate) fn check() -> Result<(), Failed> {
    for form in FORMS {
        let text = form.replace("MARK", MARKER);
        let directory = tempfile::tempdir()?;
        let folder = directory.path().join(text.replace('/', "_"));
        fs::create_dir(&folder)?;
        let object = |version: &str, kind: &str, spec: serde_json::Value| {
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": text, "namespace": text},
                "spec": spec})
        };
        let items = [
            object("arkonis.dev/v1alpha1", "ArkMemory", json!({"backend": "redis", text.clone(): 1})),
            object("arkonis.dev/v1alpha1", "ArkAgent", json!({"model": "m", "memoryRef": {"name": text}})),
            object("ark.mckinsey.com/v1alpha1", "Query", json!({"memory": {"name": text, "namespace": "o"}})),
        ];
        fs::write(
            folder.join("objects.json"),
            json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string(),
        )?;
        let docs = format!("https://u:{MARKER}@h/?token={MARKER}");
        let policy = json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
            "metadata": {"name": "p"}, "spec": {"exemptions": {"namespaces": ["x"], "maxAge": "90d"}, "rules": [
                {"id": "durable", "backends": {"allow": ["none"]}, "docs": docs, "hint": text, "exemptable": true}]}});
        let exemption = json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
            "metadata": {"name": "e", "namespace": "x"}, "spec": {"policy": "p", "rules": ["durable"],
                "target": {"namespaces": ["a"], "names": ["*"]}, "reason": format!("because of {text}"),
                "ticket": text, "approvedBy": text, "from": "2026-12-01T00:00:00Z",
                "expiresAt": "2027-02-01T00:00:00Z"}});
        fs::write(directory.path().join("policy.json"), format!("{policy}\n---\n{exemption}\n"))?;
        for line in COMMANDS {
            let (out, err) = memgate(line, "", &directory, None)?;
            // Neither a map nor a page has the dates of exemptions.
            let has_dates = !line.starts_with("map") && !line.contains("-o html");
            let is_whole = out.contains("ArkMemory") && (!has_dates || out.contains("2027-02-01"));
            if !is_whole {
                return Err(format!("{line}: {text}: {out}{err}").into());
            }
            expect_no_marker(line, &out)?;
        }
    }
    Ok(())
}
