//! The messages on standard input and output, and what the server tells a client about itself.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response, ResponseError};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, HoverProviderCapability,
    InitializeParams, InitializeResult, OneOf, SaveOptions, ServerCapabilities, ServerInfo,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use serde::Serialize;
use serde_json::Value;

use crate::editor::actions::FIX_ALL;
use crate::editor::positions::Encoding;

/// What came from the client.
pub(crate) enum Incoming {
    /// A message.
    Message(Message),
    /// A message that is not one of the protocol; the next one can be read.
    Malformed,
}

/// Reads messages in a thread of their own, so that the client is never kept from writing. The channel ends with the
/// input, or at a header that cannot be read.
pub(crate) fn read(mut input: impl BufRead + Send + 'static) -> Receiver<Incoming> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        loop {
            let incoming = match Message::read(&mut input) {
                Ok(Some(message)) => Incoming::Message(message),
                // The whole message was read.
                Err(error) if is_malformed_body(&error) => Incoming::Malformed,
                Ok(None) | Err(_) => return,
            };
            if sender.send(incoming).is_err() {
                return;
            }
        }
    });
    receiver
}

fn is_malformed_body(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData && error.to_string().starts_with("malformed LSP payload")
}

/// Writes messages to the client.
pub(crate) struct Client<W> {
    out: W,
    last_request: i32,
}

impl<W: Write> Client<W> {
    /// A client that reads this.
    pub(crate) const fn new(out: W) -> Self {
        Self { out, last_request: 0 }
    }

    fn write(&mut self, message: &Message) -> io::Result<()> {
        message.write(&mut self.out)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) fn answer(&mut self, id: RequestId, result: Result<Value, ResponseError>) -> io::Result<()> {
        self.write(&Message::Response(Response { id, response_result: result }))
    }

    /// Notifies the client.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) fn notify<N: lsp_types::notification::Notification>(
        &mut self,
        params: &N::Params,
    ) -> io::Result<()> {
        let params = json(params);
        self.write(&Message::Notification(Notification { method: N::METHOD.to_owned(), params }))
    }

    /// Asks the client for something whose answer does not matter.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) fn request<R: lsp_types::request::Request>(&mut self, params: &R::Params) -> io::Result<()> {
        self.last_request += 1;
        let (id, method, params) = (self.last_request.into(), R::METHOD.to_owned(), json(params));
        self.write(&Message::Request(Request { id, method, params }))
    }
}

/// A value of the protocol as JSON. All of them can be written.
pub(crate) fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// An error in an answer.
pub(crate) fn error(code: ErrorCode, message: impl Into<String>) -> ResponseError {
    ResponseError { code: code as i32, message: message.into(), data: None }
}

/// The answer to `initialize`.
pub(crate) fn abilities(encoding: Encoding) -> InitializeResult {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions::default())),
        ..TextDocumentSyncOptions::default()
    };
    let actions = CodeActionOptions {
        code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, CodeActionKind::new(FIX_ALL)]),
        ..CodeActionOptions::default()
    };
    let folders = WorkspaceFoldersServerCapabilities {
        supported: Some(true),
        change_notifications: Some(OneOf::Left(true)),
    };
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(encoding.kind()),
            text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            code_action_provider: Some(CodeActionProviderCapability::Options(actions)),
            inlay_hint_provider: Some(OneOf::Left(true)),
            workspace: Some(WorkspaceServerCapabilities {
                workspace_folders: Some(folders),
                ..WorkspaceServerCapabilities::default()
            }),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "memgate".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
    }
}

/// The parameters of `initialize`. A client of a later protocol may send what this library cannot read; then what every
/// client has is read.
pub(crate) fn initialize_params(params: &Value) -> InitializeParams {
    serde_json::from_value(params.clone()).unwrap_or_else(|_| {
        let field = |name: &str| params.get(name).cloned().unwrap_or_default();
        InitializeParams {
            workspace_folders: serde_json::from_value(field("workspaceFolders")).unwrap_or_default(),
            ..InitializeParams::default()
        }
    })
}
