//! What `memgate lsp` answers about a file with a credential.

use std::fs;
use std::process::{Command, Stdio};

use libtest_mimic::Failed;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::expect_no_marker;

/// Asks everything about every line of a file of the directory. Only the edit of a fix may hold what the user wrote.
pub(crate) fn check(file: &str, text: &str, directory: &TempDir) -> Result<(), Failed> {
    let root = format!("file://{}", directory.path().display());
    let document = json!({"uri": format!("{root}/{file}")});
    let mut messages = vec![
        json!({"id": 0, "method": "initialize", "params": {"capabilities": {}, "rootUri": root}}),
        json!({"method": "initialized", "params": {}}),
    ];
    let item = json!({"uri": document["uri"], "languageId": "yaml", "version": 1, "text": text});
    messages.push(json!({"method": "textDocument/didOpen", "params": {"textDocument": item}}));
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}});
    let params = json!({"textDocument": document, "range": all, "context": {"diagnostics": []}});
    messages.push(json!({"id": 1, "method": "textDocument/codeAction", "params": params}));
    for (line, content) in text.lines().enumerate().take(100) {
        // Within the value, where there is one.
        let character = content.find(": ").map_or(0, |at| at + 3);
        let place = json!({"line": line, "character": character});
        for method in ["hover", "definition"] {
            let params = json!({"textDocument": document, "position": place});
            messages.push(json!({"id": 3, "method": format!("textDocument/{method}"), "params": params}));
        }
    }
    messages.push(json!({"id": 4, "method": "shutdown"}));
    messages.push(json!({"method": "exit"}));
    let input = directory.path().join("messages");
    fs::write(&input, messages.iter().map(framed).collect::<String>())?;
    let output = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .arg("lsp")
        .env_clear()
        .env("RUST_LOG", "debug")
        .current_dir(directory.path())
        .stdin(fs::File::open(&input)?)
        .stderr(Stdio::piped())
        .output()?;
    expect_no_marker("lsp", &String::from_utf8_lossy(&output.stderr))?;
    let out = String::from_utf8_lossy(&output.stdout);
    let mut answers = 0;
    for part in out.split("Content-Length: ").filter(|part| !part.is_empty()) {
        let (_, body) = part.split_once("\r\n\r\n").ok_or("a message without a body")?;
        let mut body: Value = serde_json::from_str(body)?;
        for action in body.pointer_mut("/result").and_then(Value::as_array_mut).into_iter().flatten() {
            let is_action = action.get("edit").is_some();
            if is_action {
                action["edit"] = Value::Null;
            }
        }
        answers += usize::from(body.get("result").is_some());
        expect_no_marker("lsp", &body.to_string())?;
    }
    let asked = messages.iter().filter(|message| message.get("id").is_some()).count();
    if answers == asked {
        Ok(())
    } else {
        Err(format!("{answers} of {asked} questions answered:\n{out}").into())
    }
}

fn framed(message: &Value) -> String {
    let mut message = message.clone();
    message["jsonrpc"] = "2.0".into();
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}
