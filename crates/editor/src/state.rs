//! What a session knows of its editor: the folders, and the texts of the open files. It answers requests from them.

use std::collections::BTreeMap;

use lsp_server::{ErrorCode, ResponseError};
use lsp_types::notification::{self, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{Diagnostic, Range, TextDocumentPositionParams, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::actions::{Asked, actions};
use crate::buffers::{Buffer, Buffers};
use crate::diagnostics::{not_judged, of_files};
use crate::hover::hover;
use crate::navigation::{Question, definition, references};
use crate::positions::{Encoding, Lines};
use crate::protocol::{error, json};
use crate::workspace::{Planner, Root, Workspace, name};
use memgate_workbench::read::without_links;
use memgate_workbench::run::judged_without_ignored;

/// The folders and open files of an editor.
pub(crate) struct EditorState<'p> {
    /// The folders.
    pub(crate) workspace: Workspace<'p>,
    /// The open files.
    pub(crate) buffers: Buffers,
    /// How the editor counts columns.
    pub(crate) encoding: Encoding,
}

/// The outcome of a request.
type Answer = Result<Value, ResponseError>;

impl<'p> EditorState<'p> {
    /// An editor without folders and files.
    pub(crate) fn new(planner: &'p Planner<'p>) -> Self {
        Self {
            workspace: Workspace::new(planner),
            buffers: Buffers::default(),
            encoding: Encoding::default(),
        }
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
                let asked = Asked { uri: params.text_document.uri, only: params.context.only };
                self.ask(&asked.uri, params.range, |it| actions(&it, &asked))
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

    /// A question about an open file, under the name under which it is read: it may be open under two.
    fn question<'b>(&'b self, buffer: &'b Buffer, range: Range) -> Result<Question<'b>, String> {
        let root = self.workspace.root(&buffer.path);
        let all = self.workspace.by_root(&self.buffers);
        let open = all.get(&root).map(Vec::as_slice).unwrap_or_default();
        let run = self.workspace.run(&root, open, &self.buffers)?;
        let path = without_links(&buffer.path);
        let first = open.iter().copied().find(|it| without_links(&it.path) == path);
        let buffer = first.filter(|it| it.text == buffer.text).unwrap_or(buffer);
        let lines = Lines::new(&buffer.text, self.encoding);
        let (start, end) = (lines.offset(range.start), lines.offset(range.end));
        Ok(Question { run, root, buffer, start, end, encoding: self.encoding })
    }

    /// The diagnostics of the open files of a root, by the names of the files.
    pub(crate) fn diagnostics(&self, root: &Root, open: &[&Buffer]) -> BTreeMap<String, Vec<Diagnostic>> {
        let run = match self.workspace.run(root, open, &self.buffers) {
            Ok(run) => run,
            Err(why) => return not_judged(&why, root, open),
        };
        match judged_without_ignored(&run) {
            Ok(checked) => {
                let mut files = of_files(&checked, root, open, self.encoding);
                copy_to_second_names(&mut files, root, open);
                files
            }
            Err(why) => not_judged(&why.to_string(), root, open),
        }
    }
}

/// Gives a file that is open under two names the same diagnostics under both.
fn copy_to_second_names(files: &mut BTreeMap<String, Vec<Diagnostic>>, root: &Root, open: &[&Buffer]) {
    let mut first_names = BTreeMap::new();
    for buffer in open {
        let own = name(root, &buffer.path);
        let first = first_names.entry(without_links(&buffer.path)).or_insert_with(|| own.clone());
        if let Some(diagnostics) = files.get(first).cloned() {
            files.insert(own, diagnostics);
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
