//! One session with an editor, from `initialize` to `exit`: messages in, answers and diagnostics out.
//!
//! All work is done in one thread, message after message. Diagnostics are made once the author pauses.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use lsp_server::{ErrorCode, Message, Notification, Request};
use lsp_types::notification::{self, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{Diagnostic, InitializeParams, LogMessageParams, MessageType, PublishDiagnosticsParams, Uri};
use serde_json::Value;

use crate::diagnostics::not_judged;
use crate::protocol::{Client, abilities, error, read};
use crate::state::{EditorState, read_notification};
use crate::uri;
use crate::workspace::{Planner, name};

/// The pause of the author after which files are judged. Shorter than most pauses between words, and longer than those
/// between keys.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves an editor. Returns whether it ended the session as the protocol wants, with `shutdown` before `exit`.
///
/// # Errors
/// When nothing can be written to the editor.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    planner: &Planner<'_>,
) -> io::Result<bool> {
    let mut session = Session {
        client: Client::new(output),
        state: EditorState::new(planner),
        phase: Phase::New,
        due: None,
        published: BTreeMap::new(),
    };
    session.run(&read(input))
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    ShutDown,
}

struct Session<'p, W> {
    client: Client<W>,
    state: EditorState<'p>,
    phase: Phase,
    /// When what has changed is judged.
    due: Option<Instant>,
    /// The diagnostics that the client shows, with the version of their file.
    published: BTreeMap<String, (Uri, i32, Vec<Diagnostic>)>,
}

impl<W: Write> Session<'_, W> {
    fn run(&mut self, incoming: &Receiver<Option<Message>>) -> io::Result<bool> {
        loop {
            match self.wait(incoming) {
                Ok(Some(Message::Request(request))) => self.request(request)?,
                Ok(Some(Message::Notification(it))) if it.method == notification::Exit::METHOD => {
                    return Ok(self.phase == Phase::ShutDown);
                }
                Ok(Some(Message::Notification(it))) => self.notification(it)?,
                // Nothing depends on answers of the client.
                Ok(Some(Message::Response(_))) => {}
                Ok(None) => self.log("a message is not JSON-RPC, and was passed over")?,
                Err(RecvTimeoutError::Timeout) => self.publish()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            }
        }
    }

    /// The next message, or the time to judge what has changed.
    fn wait(&self, incoming: &Receiver<Option<Message>>) -> Result<Option<Message>, RecvTimeoutError> {
        match self.due {
            Some(due) => incoming.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Logs a fault of a message. The message is not shown: it may hold a whole file.
    fn log(&mut self, message: &str) -> io::Result<()> {
        let params = LogMessageParams { typ: MessageType::WARNING, message: message.to_owned() };
        self.client.notify::<notification::LogMessage>(&params)
    }

    fn request(&mut self, request: Request) -> io::Result<()> {
        let Request { id, method, params } = request;
        let answer = match (self.phase, method.as_str()) {
            (Phase::New, request::Initialize::METHOD) => Ok(self.initialize(&params)),
            (Phase::New, _) => Err(error(ErrorCode::ServerNotInitialized, "initialize comes first")),
            (Phase::ShutDown, _) => Err(error(ErrorCode::InvalidRequest, "the server was shut down")),
            (Phase::Running, request::Initialize::METHOD) => {
                Err(error(ErrorCode::InvalidRequest, "the server was initialized before"))
            }
            (Phase::Running, request::Shutdown::METHOD) => {
                self.phase = Phase::ShutDown;
                Ok(Value::Null)
            }
            (Phase::Running, _) => {
                let answer = catch_unwind(AssertUnwindSafe(|| self.state.answer(&method, params)));
                answer.unwrap_or_else(|_| Err(error(ErrorCode::InternalError, "memgate failed; see its log")))
            }
        };
        self.client.answer(id, answer)
    }

    fn initialize(&mut self, params: &Value) -> Value {
        let params = serde_json::from_value(params.clone()).unwrap_or_default();
        #[expect(deprecated, reason = "older clients send nothing else")]
        let InitializeParams { workspace_folders, root_uri, .. } = params;
        let folders = workspace_folders.unwrap_or_default().into_iter().map(|folder| folder.uri);
        let folders: Vec<PathBuf> = folders.filter_map(|uri| uri::path(&uri)).collect();
        let root = root_uri.filter(|_| folders.is_empty()).and_then(|uri| uri::path(&uri));
        self.state.workspace.change(folders.into_iter().chain(root), &[]);
        self.phase = Phase::Running;
        abilities()
    }

    fn notification(&mut self, notification: Notification) -> io::Result<()> {
        let Notification { method, params } = notification;
        if self.phase != Phase::Running {
            return Ok(());
        }
        let has_changed = match method.as_str() {
            notification::DidOpenTextDocument::METHOD | notification::DidChangeTextDocument::METHOD => {
                let address = params.pointer("/textDocument/uri").and_then(Value::as_str).map(str::to_owned);
                let text = self.state.change_text(&method, params);
                if text.is_none() {
                    // Its text is not known any more, so its marks would be wrong.
                    if let Some(address) = address {
                        self.state.buffers.close(&address);
                    }
                    self.log("a text cannot be read; open its file again to have it judged")?;
                }
                text.unwrap_or(true)
            }
            notification::DidCloseTextDocument::METHOD => {
                let params = read_notification::<notification::DidCloseTextDocument>(params);
                params.is_some_and(|it| self.state.buffers.close(it.text_document.uri.as_str()))
            }
            notification::DidChangeWorkspaceFolders::METHOD => {
                let params = read_notification::<notification::DidChangeWorkspaceFolders>(params);
                params.is_some_and(|it| {
                    let paths = |folders: &[lsp_types::WorkspaceFolder]| -> Vec<PathBuf> {
                        folders.iter().filter_map(|folder| uri::path(&folder.uri)).collect()
                    };
                    self.state.workspace.change(paths(&it.event.added), &paths(&it.event.removed));
                    true
                })
            }
            notification::DidSaveTextDocument::METHOD | notification::DidChangeWatchedFiles::METHOD => true,
            _ => false,
        };
        if has_changed {
            self.due = Some(Instant::now() + PAUSE);
        }
        Ok(())
    }

    /// Judges the open files, and publishes what has changed. Files that were closed lose their diagnostics.
    fn publish(&mut self) -> io::Result<()> {
        self.due = None;
        let mut now = BTreeMap::new();
        let roots = self.state.workspace.by_root(&self.state.buffers);
        for (root, open) in &roots {
            let judged = catch_unwind(AssertUnwindSafe(|| self.state.diagnostics(root, open)));
            let files = judged.unwrap_or_else(|_| not_judged("memgate failed; see its log", root, open));
            for buffer in open {
                let diagnostics = files.get(&name(root, &buffer.path)).cloned().unwrap_or_default();
                let address = buffer.uri.as_str().to_owned();
                now.insert(address, (buffer.uri.clone(), buffer.version, diagnostics));
            }
        }
        let before = std::mem::take(&mut self.published);
        for (_, (uri, ..)) in before.iter().filter(|(address, _)| !now.contains_key(*address)) {
            let params = PublishDiagnosticsParams::new(uri.clone(), Vec::new(), None);
            self.client.notify::<notification::PublishDiagnostics>(&params)?;
        }
        for (_, (uri, version, diagnostics)) in
            now.iter().filter(|(address, it)| before.get(*address) != Some(it))
        {
            let params = PublishDiagnosticsParams::new(uri.clone(), diagnostics.clone(), Some(*version));
            self.client.notify::<notification::PublishDiagnostics>(&params)?;
        }
        self.published = now;
        Ok(())
    }
}
