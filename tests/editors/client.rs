//! The client of a language server, as far as an editor is one for these tests: messages of JSON-RPC with a
//! Content-Length each, over the standard streams of a program that ends with its client.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::npm;

/// How long the server may be silent: far more than it ever takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server, and what came from it.
pub(crate) struct Client {
    server: Child,
    messages: Receiver<Value>,
    /// The settings of the editor.
    settings: Value,
    requests: u64,
    diagnostics: BTreeMap<String, Vec<Value>>,
}

impl Client {
    /// Starts a server for a folder that an editor with these settings has opened.
    pub(crate) fn start(folder: &Path, settings: Value) -> Self {
        let program = npm::installed("editors").join("yaml-language-server/bin/yaml-language-server");
        let mut server = Command::new("node")
            .arg(program)
            .arg("--stdio")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("node starts the server");
        let stdout = server.stdout.take().expect("is piped");
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            while let Some(message) = read(&mut stdout) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut client = Self { server, messages, settings, requests: 0, diagnostics: BTreeMap::new() };
        let root = uri(folder);
        let capabilities = json!({
            "workspace": {"configuration": true, "workspaceFolders": true},
            "textDocument": {
                "completion": {"completionItem": {"snippetSupport": true}},
                "hover": {"contentFormat": ["markdown"]},
            },
        });
        client.request(
            "initialize",
            json!({
                // The server ends when this process has ended without a request to end.
                "processId": std::process::id(),
                "rootUri": root,
                "workspaceFolders": [{"uri": root, "name": "manifests"}],
                "capabilities": capabilities,
            }),
        );
        client.notify("initialized", json!({}));
        client.notify("workspace/didChangeConfiguration", json!({"settings": client.settings}));
        client
    }

    /// Opens a file with this text and returns what is said of it first.
    pub(crate) fn open(&mut self, file: &Path, text: &str) -> Vec<Value> {
        let uri = uri(file);
        let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
        self.said_next(&uri)
    }

    /// Opens a file with this text and waits until something is wrong with it.
    pub(crate) fn open_until_marked(&mut self, file: &Path, text: &str) {
        let mut said = self.open(file, text);
        while said.is_empty() {
            said = self.said_next(&uri(file));
        }
    }

    fn said_next(&mut self, uri: &str) -> Vec<Value> {
        loop {
            if let Some(said) = self.diagnostics.remove(uri) {
                return said;
            }
            self.take_message();
        }
    }

    /// What is suggested at a line and column from 0.
    pub(crate) fn complete(&mut self, file: &Path, (line, column): (usize, usize)) -> Vec<Value> {
        let place =
            json!({"textDocument": {"uri": uri(file)}, "position": {"line": line, "character": column}});
        let answer = self.request("textDocument/completion", place);
        answer["items"].as_array().cloned().unwrap_or_default()
    }

    /// What is shown at a line and column from 0.
    pub(crate) fn hover(&mut self, file: &Path, (line, column): (usize, usize)) -> String {
        let place =
            json!({"textDocument": {"uri": uri(file)}, "position": {"line": line, "character": column}});
        let answer = self.request("textDocument/hover", place);
        // Markdown escapes what it would read otherwise.
        answer["contents"]["value"].as_str().unwrap_or_default().replace('\\', "")
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            if let Some(answer) = self.take_message().filter(|answer| answer["id"] == id) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Waits for a message: an answer is returned, anything else dealt with.
    fn take_message(&mut self) -> Option<Value> {
        let message = self.messages.recv_timeout(PATIENCE).expect("the server says something");
        match (message["method"].as_str(), &message["id"]) {
            (None, _) => return Some(message),
            (Some("textDocument/publishDiagnostics"), _) => {
                let (file, said) = (&message["params"]["uri"], &message["params"]["diagnostics"]);
                let file = file.as_str().expect("a file").to_owned();
                self.diagnostics.insert(file, said.as_array().cloned().unwrap_or_default());
            }
            (Some(_), Value::Null) => {}
            (Some(method), id) => {
                let result = self.answer(method, &message["params"]);
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
        }
        None
    }

    /// What an editor answers to a request of the server.
    fn answer(&self, method: &str, params: &Value) -> Value {
        if method != "workspace/configuration" {
            return Value::Null;
        }
        let sections = params["items"].as_array().into_iter().flatten();
        let section = |item: &Value| self.settings[item["section"].as_str().unwrap_or_default()].clone();
        sections.map(section).collect()
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let stdin = self.server.stdin.as_mut().expect("is piped");
        write!(stdin, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        stdin.flush().expect("the server reads");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Nothing can be done about a failure, and the server ends with this process anyway.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The next message; `None` when the server has ended.
fn read(stdout: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(':') {
            Some(("Content-Length", value)) => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut text = vec![0; length];
    stdout.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}
