//! What a session knows of its editor: the folders, and the texts of the open files. It answers requests from them.

use std::collections::BTreeMap;

use lsp_server::{ErrorCode, ResponseError};
use lsp_types::notification::{self, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{CodeActionKind, Diagnostic, Range, TextDocumentPositionParams, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::actions::actions;
use crate::buffers::{Buffer, Buffers};
use crate::diagnostics::{not_judged, of_files};
use crate::hover::hover;
use crate::navigation::{Question, definition, references};
use crate::positions::Lines;
use crate::protocol::{error, json};
use crate::workspace::{Planner, Root, Workspace};
use memgate_workbench::files::run::judged_without_ignored;

/// The folders and open files of an editor.
pub(crate) struct EditorState<'p> {
    /// The folders.
    pub(crate) workspace: Workspace<'p>,
    /// The open files.
    pub(crate) buffers: Buffers,
}

/// The outcome of a request.
type Answer = Result<Value, ResponseError>;

impl<'p> EditorState<'p> {
    /// An editor without folders and files.
    pub(crate) fn new(planner: &'p Planner<'p>) -> Self {
        Self { workspace: Workspace::new(planner), buffers: Buffers::default() }
    }

    /// Opens a file or changes its text. Returns whether the file is judged; `None` for parameters that cannot be read.
    pub(crate) fn change_text(&mut self, method: &str, params: Value) -> Option<bool> {
        if method == notification::DidOpenTextDocument::METHOD {
            let params = read_notification::<notification::DidOpenTextDocument>(params)?;
            return Some(self.buffers.open(params.text_document));
        }
        let params = read_notification::<notification::DidChangeTextDocument>(params)?;
        Some(self.buffers.change(&params.text_document, params.content_changes))
    }

    /// Answers a request.
    pub(crate) fn answer(&self, method: &str, params: Value) -> Answer {
        match method {
            request::HoverRequest::METHOD => {
                let params = read_params::<request::HoverRequest>(params)?;
                self.ask_at(&params.text_document_position_params, |it| hover(&it))
            }
            request::GotoDefinition::METHOD => {
                let params = read_params::<request::GotoDefinition>(params)?;
                self.ask_at(&params.text_document_position_params, |it| definition(&it))
            }
            request::References::METHOD => {
                let params = read_params::<request::References>(params)?;
                let declares = params.context.include_declaration;
                self.ask_at(&params.text_document_position, |it| references(it, declares))
            }
            request::CodeActionRequest::METHOD => {
                let params = read_params::<request::CodeActionRequest>(params)?;
                // Editors ask for other kinds too.
                let is_wanted = |kind: &CodeActionKind| ["", "quickfix"].contains(&kind.as_str());
                if params.context.only.is_some_and(|only| !only.iter().any(is_wanted)) {
                    return Ok(Value::Array(Vec::new()));
                }
                let uri = params.text_document.uri;
                self.ask(&uri, params.range, |it| actions(&it, &uri))
            }
            _ => Err(error(ErrorCode::MethodNotFound, format!("memgate does not answer {method}"))),
        }
    }

    /// Answers a question about a place; with nothing for a file that is not open.
    fn ask_at<T: Serialize, E: ToString>(
        &self,
        place: &TextDocumentPositionParams,
        answer: impl FnOnce(Question<'_>) -> Result<T, E>,
    ) -> Answer {
        self.ask(&place.text_document.uri, Range::new(place.position, place.position), answer)
    }

    /// The same about a range.
    fn ask<T: Serialize, E: ToString>(
        &self,
        uri: &Uri,
        range: Range,
        answer: impl FnOnce(Question<'_>) -> Result<T, E>,
    ) -> Answer {
        let failed = |why: String| error(ErrorCode::RequestFailed, why);
        let Some(buffer) = self.buffers.get(uri) else { return Ok(Value::Null) };
        let question = self.question(buffer, range).map_err(failed)?;
        answer(question).map(|value| json(&value)).map_err(|why| failed(why.to_string()))
    }

    /// A question about an open file.
    fn question<'b>(&'b self, buffer: &'b Buffer, range: Range) -> Result<Question<'b>, String> {
        let root = self.workspace.root(&buffer.path);
        let all = self.workspace.by_root(&self.buffers);
        let open = all.get(&root).map(Vec::as_slice).unwrap_or_default();
        let run = self.workspace.run(&root, open, &self.buffers)?;
        let lines = Lines::new(&buffer.text);
        let (start, end) = (lines.offset(range.start), lines.offset(range.end));
        Ok(Question { run, root, buffer, start, end })
    }

    /// The diagnostics of the open files of a root, by the names of the files.
    pub(crate) fn diagnostics(&self, root: &Root, open: &[&Buffer]) -> BTreeMap<String, Vec<Diagnostic>> {
        let run = match self.workspace.run(root, open, &self.buffers) {
            Ok(run) => run,
            Err(why) => return not_judged(&why, root, open),
        };
        match judged_without_ignored(&run) {
            Ok(checked) => of_files(&checked, root, open),
            Err(why) => not_judged(&why.to_string(), root, open),
        }
    }
}

fn read_params<R: request::Request>(params: Value) -> Result<R::Params, ResponseError>
where
    R::Params: DeserializeOwned,
{
    serde_json::from_value(params).map_err(|why| error(ErrorCode::InvalidParams, why.to_string()))
}

/// The parameters of a notification; `None` for some that cannot be read, since a notification has no answer.
pub(crate) fn read_notification<N: notification::Notification>(params: Value) -> Option<N::Params> {
    serde_json::from_value(params).ok()
}
