//! The messages on standard input and output, and what the server tells a client about itself.

use std::io::{self, BufRead, Read as _, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response, ResponseError};
use lsp_types::{CodeActionKind, InitializeParams, TextDocumentSyncKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::actions::FIX_ALL;
use crate::positions::Encoding;

/// The longest message that is read, in bytes: more than the largest file that is read, as JSON.
const MAX_MESSAGE_BYTES: u64 = 512 << 20;

/// What came from the client.
pub(crate) enum Incoming {
    /// A message.
    Message(Message),
    /// A message that is not one of the protocol; the next one can be read.
    Malformed,
    /// A header that cannot be read, so nothing behind it can.
    NoHeader,
}

/// Reads messages in a thread of their own, so that the client is never kept from writing. The channel ends with the
/// input, or at a header that cannot be read.
pub(crate) fn read(mut input: impl BufRead + Send + 'static) -> Receiver<Incoming> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        loop {
            let (incoming, is_last) = match body(&mut input) {
                Ok(Some(body)) => (message(&body).map_or(Incoming::Malformed, Incoming::Message), false),
                Ok(None) => return,
                Err(NoHeader) => (Incoming::NoHeader, true),
            };
            if sender.send(incoming).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

/// A header that cannot be read.
struct NoHeader;

/// The body of the next message; `None` at the end of the input. `lsp_server` reads messages too, but ends at one that is
/// not text, and reserves as many bytes as a header announces.
fn body(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, NoHeader> {
    let mut length = None;
    loop {
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(_) => return Err(NoHeader),
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or(NoHeader)?;
        if name.eq_ignore_ascii_case("Content-Length") {
            length = Some(value.trim().parse::<u64>().map_err(|_| NoHeader)?);
        }
    }
    let length = length.filter(|length| *length <= MAX_MESSAGE_BYTES).ok_or(NoHeader)?;
    let mut body = Vec::new();
    let read = input.take(length).read_to_end(&mut body);
    Ok(read.is_ok_and(|read| read as u64 == length).then_some(body))
}

fn message(body: &[u8]) -> Option<Message> {
    let text = str::from_utf8(body).ok()?;
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&without_halves(text))).ok()
}

/// The text of a JSON value with a replacement character for each half of a surrogate pair. A client in JavaScript sends
/// one while a character is typed; it counts as one unit in columns, as the replacement character does.
fn without_halves(json: &str) -> String {
    let unit = |at: usize| {
        let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut whole, mut at) = (String::with_capacity(json.len()), 0);
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let end = rest.find('\\').unwrap_or(rest.len());
        whole.push_str(rest.get(..end).unwrap_or_default());
        at += end;
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str("\\ufffd");
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            // Another escape: the character behind the backslash is not one itself.
            (None, _) => json.get(at..).map_or(0, |rest| rest.chars().take(2).map(char::len_utf8).sum()),
        };
        whole.push_str(json.get(at..at + length).unwrap_or_default());
        at += length;
    }
    whole
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
pub(crate) fn abilities(encoding: Encoding) -> Value {
    json!({
        "capabilities": {
            "positionEncoding": encoding.kind(),
            "textDocumentSync": {
                "openClose": true,
                "change": TextDocumentSyncKind::INCREMENTAL,
                "save": {},
            },
            "hoverProvider": true,
            "definitionProvider": true,
            "referencesProvider": true,
            "codeActionProvider": {"codeActionKinds": [CodeActionKind::QUICKFIX, FIX_ALL]},
            "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
        },
        "serverInfo": {"name": "memgate", "version": env!("CARGO_PKG_VERSION")},
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_becomes_one_that_counts_as_much() {
        for (json, expected) in [
            (r#"{"a": "\ud83e", "b": "\ud83e\udd80"}"#, r#"{"a": "\ufffd", "b": "\ud83e\udd80"}"#),
            (r#""\\ud83e \n \u00e4 \udd80x""#, r#""\\ud83e \n \u00e4 \ufffdx""#),
            (r#""\ud83e\ud83e\udd80""#, r#""\ufffd\ud83e\udd80""#),
            (r#""\ud8"#, r#""\ud8"#),
            ("\"\\\u{e4}", "\"\\\u{e4}"),
            ("\\", "\\"),
        ] {
            assert_eq!(without_halves(json), expected, "{json}");
        }
    }

    #[test]
    fn reads_messages_up_to_a_header_that_cannot_be_read() {
        let message =
            |body: &[u8]| [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat();
        let note = br#"{"jsonrpc":"2.0","method":"initialized"}"#;
        let input = [
            message(note),
            message(b"\xff\xfe"),
            message(b"{"),
            message(br#"{"method":"\ud83e"}"#),
            b"Content-Type: x\r\ncontent-length:2\r\n\r\n[]".to_vec(),
            b"Content-Length: 64000000000\r\n\r\n{}".to_vec(),
            message(note),
        ];
        let kinds = |input: Vec<u8>| -> Vec<&str> {
            let kind = |it: &Incoming| match it {
                Incoming::Message(_) => "message",
                Incoming::Malformed => "malformed",
                Incoming::NoHeader => "no header",
            };
            read(io::Cursor::new(input)).iter().map(|it| kind(&it)).collect()
        };
        let expected = ["message", "malformed", "malformed", "message", "malformed", "no header"];
        assert_eq!(kinds(input.concat()), expected);
        for header in ["hello\r\n\r\n", "Content-Length: abc\r\n\r\n", "X: 1\r\n\r\n{}"] {
            assert_eq!(kinds(header.into()), ["no header"], "{header}");
        }
    }
}
