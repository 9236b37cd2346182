//! What a session knows of its editor: the folders, and the texts of the open files. It answers requests from them.

use std::collections::BTreeMap;

use lsp_server::{ErrorCode, ResponseError};
use lsp_types::notification::{self, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{Diagnostic, TextDocumentPositionParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::actions::{Asked, actions};
use crate::buffers::{Buffer, Buffers};
use crate::diagnostics::{not_judged, of_files};
use crate::edits::EditSupport;
use crate::hints::hints;
use crate::lens::lenses;
use crate::navigation::{Question, definition, hover, references};
use crate::positions::{Encoding, Lines};
use crate::protocol::{error, json};
use crate::rename::{prepare, rename};
use crate::workspace::{Planner, Root, Workspace, name};
use memgate_workbench::read::without_links;
use memgate_workbench::run::{Run, judged_without_ignored};

/// The folders and open files of an editor.
pub(crate) struct EditorState<'p> {
    /// The folders.
    pub(crate) workspace: Workspace<'p>,
    /// The open files.
    pub(crate) buffers: Buffers,
    /// How the editor counts columns.
    pub(crate) encoding: Encoding,
    /// What the editor can do with edits of several files.
    pub(crate) edit_support: EditSupport,
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
            edit_support: EditSupport::default(),
        }
    }

    /// Opens a file or changes its text. Returns whether the file is judged; `None` for parameters that cannot be read.
    pub(crate) fn change_text(&mut self, method: &str, params: Value) -> Option<bool> {
        if method == notification::DidOpenTextDocument::METHOD {
            let params = read_notification::<notification::DidOpenTextDocument>(params)?;
            return Some(self.buffers.open(params.text_document));
        }
        let params = read_notification::<notification::DidChangeTextDocument>(params)?;
        Some(self.buffers.change(&params.text_document, params.content_changes, self.encoding))
    }

    /// Answers a request.
    pub(crate) fn answer(&self, method: &str, params: Value) -> Answer {
        match method {
            request::HoverRequest::METHOD => {
                let params = read_params::<request::HoverRequest>(params)?;
                let question = self.question(&params.text_document_position_params)?;
                question.map_or(Ok(Value::Null), |it| answered(hover(&it)))
            }
            request::GotoDefinition::METHOD => {
                let params = read_params::<request::GotoDefinition>(params)?;
                let question = self.question(&params.text_document_position_params)?;
                question.map_or(Ok(Value::Null), |it| answered(definition(&it)))
            }
            request::References::METHOD => {
                let params = read_params::<request::References>(params)?;
                let question = self.question(&params.text_document_position)?;
                let declares = params.context.include_declaration;
                question.map_or(Ok(Value::Null), |it| answered(references(it, declares)))
            }
            request::PrepareRenameRequest::METHOD => {
                let params = read_params::<request::PrepareRenameRequest>(params)?;
                self.question(&params)?.map_or(Ok(Value::Null), |it| answered(prepare(&it)))
            }
            request::Rename::METHOD => {
                let params = read_params::<request::Rename>(params)?;
                let Some(question) = self.question(&params.text_document_position)? else {
                    return Ok(Value::Null);
                };
                answered(rename(&question, &params.new_name).map(|edits| {
                    let form = (self.edit_support, self.encoding);
                    edits.map(|edits| edits.for_client(&question.root, &self.buffers, form))
                }))
            }
            request::CodeLensRequest::METHOD => {
                let params = read_params::<request::CodeLensRequest>(params)?;
                let Some(buffer) = self.buffers.get(&params.text_document.uri) else {
                    return Ok(Value::Null);
                };
                let (root, run, buffer) = self.run(buffer)?;
                let file = name(&root, &buffer.path);
                answered(lenses(&run, &file, &buffer.text, self.encoding))
            }
            request::CodeActionRequest::METHOD => {
                let params = read_params::<request::CodeActionRequest>(params)?;
                let Some(buffer) = self.buffers.get(&params.text_document.uri) else {
                    return Ok(Value::Null);
                };
                let (root, run, buffer) = self.run(buffer)?;
                let (uri, only) = (params.text_document.uri, params.context.only);
                let asked = Asked { uri, range: params.range, only };
                answered(actions(&run, &root, buffer, &asked, self.encoding))
            }
            request::InlayHintRequest::METHOD => {
                let params = read_params::<request::InlayHintRequest>(params)?;
                let Some(buffer) = self.buffers.get(&params.text_document.uri) else {
                    return Ok(Value::Null);
                };
                let (root, run, buffer) = self.run(buffer)?;
                let file = name(&root, &buffer.path);
                answered(hints(&run, &file, &buffer.text, params.range, self.encoding))
            }
            _ => Err(error(ErrorCode::MethodNotFound, format!("memgate does not answer {method}"))),
        }
    }

    /// What is read around an open file, and the file under the name under which it is read: it may be open under two.
    fn run<'b>(&'b self, buffer: &'b Buffer) -> Result<(Root, Run, &'b Buffer), ResponseError> {
        let root = self.workspace.root(&buffer.path);
        let all = self.workspace.by_root(&self.buffers);
        let open = all.get(&root).map(Vec::as_slice).unwrap_or_default();
        let run = self
            .workspace
            .run(&root, open, &self.buffers)
            .map_err(|why| error(ErrorCode::RequestFailed, why))?;
        let path = without_links(&buffer.path);
        let first = open.iter().copied().find(|it| without_links(&it.path) == path);
        Ok((root, run, first.filter(|it| it.text == buffer.text).unwrap_or(buffer)))
    }

    /// The question about a place; `None` for a file that is not open.
    fn question(&self, place: &TextDocumentPositionParams) -> Result<Option<Question<'_>>, ResponseError> {
        let Some(buffer) = self.buffers.get(&place.text_document.uri) else { return Ok(None) };
        let (root, run, buffer) = self.run(buffer)?;
        let at = Lines::new(&buffer.text, self.encoding).offset(place.position);
        Ok(Some(Question { run, root, buffer, at, encoding: self.encoding }))
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

fn answered<T: serde::Serialize>(result: Result<T, impl ToString>) -> Answer {
    result.map(|value| json(&value)).map_err(|why| error(ErrorCode::RequestFailed, why.to_string()))
}
