//! The messages on standard input and output, and what the server tells a client about itself.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use lsp_server::{ErrorCode, Message, Notification, RequestId, Response, ResponseError};
use lsp_types::{CodeActionKind, TextDocumentSyncKind};
use serde::Serialize;
use serde_json::{Value, json};

/// Reads messages in a thread of their own, so that the client is never kept from writing; `None` for one that is not of the
/// protocol. The channel ends with the input.
pub(crate) fn read(mut input: impl BufRead + Send + 'static) -> Receiver<Option<Message>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        loop {
            let message = match Message::read(&mut input) {
                Ok(Some(message)) => Some(message),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
                Ok(None) | Err(_) => return,
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Writes messages to the client.
pub(crate) struct Client<W> {
    out: W,
}

impl<W: Write> Client<W> {
    /// A client that reads this.
    pub(crate) const fn new(out: W) -> Self {
        Self { out }
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
pub(crate) fn abilities() -> Value {
    json!({
        "capabilities": {
            "textDocumentSync": {
                "openClose": true,
                "change": TextDocumentSyncKind::FULL,
                "save": {},
            },
            "hoverProvider": true,
            "definitionProvider": true,
            "referencesProvider": true,
            "codeActionProvider": {"codeActionKinds": [CodeActionKind::QUICKFIX]},
            "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
        },
        "serverInfo": {"name": "memgate", "version": env!("CARGO_PKG_VERSION")},
    })
}
