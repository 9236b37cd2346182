//! What the language server says of the files of a repository.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::repository::Repository;

/// A memory that is refused.
pub(crate) const WRONG_MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\nspec: {backend: redis}\n";

/// Larger files are not opened in an editor.
const MAX_OPENED_BYTES: usize = 1 << 20;

/// Opens each file that an editor can show, and returns the diagnostics. All open files are judged at once, so nothing
/// more comes once a wrong memory elsewhere has its diagnostics.
pub(crate) fn words(repository: &Repository, folder: &Path) -> io::Result<Vec<String>> {
    let elsewhere = tempfile::tempdir()?;
    let control = elsewhere.path().join("memory.yaml");
    fs::write(&control, WRONG_MEMORY)?;
    let mut server = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .arg("lsp")
        .env_clear()
        .env("PATH", folder.join("no-programs"))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(mut input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(io::Error::other("the streams are piped"));
    };
    let mut output = BufReader::new(output);
    let root = uri(folder);
    send(
        &mut input,
        json!({"id": 0, "method": "initialize", "params": {"capabilities": {}, "rootUri": root}}),
    )?;
    send(&mut input, json!({"method": "initialized", "params": {}}))?;
    for (path, bytes) in &repository.files {
        let is_opened = bytes.len() <= MAX_OPENED_BYTES;
        if let Some(text) = str::from_utf8(bytes).ok().filter(|_| is_opened) {
            open(&mut input, &folder.join(path), text)?;
        }
    }
    open(&mut input, &control, WRONG_MEMORY)?;
    let control = uri(&control);
    let mut words = Vec::new();
    let mut is_over = false;
    while let Some(message) = receive(&mut output)? {
        let diagnostics = message.pointer("/params/diagnostics").and_then(Value::as_array);
        let Some(diagnostics) = diagnostics.filter(|it| !it.is_empty()) else { continue };
        if message["params"]["uri"] != control {
            words.push(format!("lsp: {}: {}", message["params"]["uri"], diagnostics[0]["message"]));
        } else if !std::mem::replace(&mut is_over, true) {
            send(&mut input, json!({"id": 1, "method": "shutdown"}))?;
            send(&mut input, json!({"method": "exit"}))?;
        }
    }
    let ended = server.wait()?.success();
    if !(is_over && ended) {
        words.push("lsp: the session did not end as it should".to_owned());
    }
    Ok(words)
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn open(input: &mut ChildStdin, path: &Path, text: &str) -> io::Result<()> {
    let language = if path.extension().is_some_and(|it| it == "json") { "json" } else { "yaml" };
    let item = json!({"uri": uri(path), "languageId": language, "version": 1, "text": text});
    send(input, json!({"method": "textDocument/didOpen", "params": {"textDocument": item}}))
}

fn send(input: &mut ChildStdin, mut message: Value) -> io::Result<()> {
    message["jsonrpc"] = "2.0".into();
    let body = message.to_string();
    write!(input, "Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The next message; `None` at the end.
fn receive(output: &mut BufReader<ChildStdout>) -> io::Result<Option<Value>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().strip_prefix("Content-Length: ") {
            Some(number) => length = number.parse().ok(),
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length.unwrap_or_default()];
    output.read_exact(&mut body)?;
    serde_json::from_slice(&body).map(Some).map_err(io::Error::other)
}
