//! What a session knows of its editor: the folders, and the texts of the open files. It answers requests from them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;

use lsp_server::{ErrorCode, ResponseError};
use lsp_types::notification::{self, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{Diagnostic, Range, TextDocumentPositionParams, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::actions::{Asked, actions};
use crate::broken::Closed;
use crate::buffers::{Buffer, Buffers};
use crate::diagnostics::{not_judged, of_files};
use crate::edits::EditSupport;
use crate::hints::hints;
use crate::hover::hover;
use crate::lens::lenses;
use crate::navigation::{Question, definition, references};
use crate::page;
use crate::positions::{Encoding, Lines};
use crate::protocol::{error, json};
use crate::rename::{prepare, rename};
use crate::symbols::symbols;
use crate::uri;
use crate::workspace::{Planner, Root, Workspace, name};
use memgate_workbench::read::without_links;
use memgate_workbench::repository::PROJECT_FILE;
use memgate_workbench::run::judged_without_ignored;

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
    /// The marks of the closed files of each root.
    closed: RefCell<BTreeMap<Root, Closed>>,
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
            closed: RefCell::default(),
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

    /// Notes that files may have changed on disk.
    pub(crate) fn may_have_changed(&self) {
        self.closed.borrow_mut().values_mut().for_each(Closed::forget);
    }

    /// Notes files that changed on disk.
    pub(crate) fn changed_on_disk(&self, params: Value) {
        let params = read_notification::<notification::DidChangeWatchedFiles>(params);
        let files = params.map(|it| it.changes.iter().map(|change| uri::path(&change.uri)).collect());
        self.workspace.changed_on_disk(files.unwrap_or_else(|| vec![None]), &self.buffers);
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
            request::PrepareRenameRequest::METHOD => {
                self.ask_at(&read_params::<request::PrepareRenameRequest>(params)?, |it| prepare(&it))
            }
            request::Rename::METHOD => {
                let params = read_params::<request::Rename>(params)?;
                let form = (self.edit_support, self.encoding);
                self.ask_at(&params.text_document_position, |it| {
                    let edits = rename(&it, &params.new_name)?;
                    Ok::<_, String>(edits.map(|edits| edits.for_client(&it.root, &self.buffers, form)))
                })
            }
            request::CodeLensRequest::METHOD => {
                let params = read_params::<request::CodeLensRequest>(params)?;
                self.ask(&params.text_document.uri, Range::default(), |it| lenses(&it))
            }
            request::DocumentSymbolRequest::METHOD => {
                let params = read_params::<request::DocumentSymbolRequest>(params)?;
                let buffer = self.buffers.get(&params.text_document.uri);
                Ok(json(&buffer.map(|buffer| symbols(&buffer.text, self.encoding))))
            }
            request::ExecuteCommand::METHOD => {
                let params = read_params::<request::ExecuteCommand>(params)?;
                let folder = params.arguments.first().and_then(Value::as_str);
                let folder = folder.and_then(|uri| uri::path(&Uri::from_str(uri).ok()?));
                let wrong = |why: &str| error(ErrorCode::InvalidParams, why);
                if params.command != page::COMMAND {
                    return Err(wrong("memgate does not have this command"));
                }
                self.page(&folder.ok_or_else(|| wrong("the command takes the address of a folder"))?)
            }
            request::CodeActionRequest::METHOD => {
                let params = read_params::<request::CodeActionRequest>(params)?;
                let asked = Asked { uri: params.text_document.uri, only: params.context.only };
                self.ask(&asked.uri, params.range, |it| actions(&it, &asked))
            }
            request::InlayHintRequest::METHOD => {
                let params = read_params::<request::InlayHintRequest>(params)?;
                self.ask(&params.text_document.uri, params.range, |it| hints(&it))
            }
            _ => Err(error(ErrorCode::MethodNotFound, format!("memgate does not answer {method}"))),
        }
    }

    /// Answers with the page about a folder.
    fn page(&self, folder: &Path) -> Answer {
        let root = self.workspace.root(&folder.join(PROJECT_FILE));
        let all = self.workspace.by_root(&self.buffers);
        let open = all.get(&root).map(Vec::as_slice).unwrap_or_default();
        let page = self.workspace.run(&root, open, &self.buffers).and_then(page::page);
        page.map(Value::from).map_err(|why| error(ErrorCode::RequestFailed, why))
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

    /// The diagnostics of the open files of a root, and of closed ones that edits broke, by the names of the files.
    pub(crate) fn diagnostics(&self, root: &Root, open: &[&Buffer]) -> BTreeMap<String, Vec<Diagnostic>> {
        let run = match self.workspace.run(root, open, &self.buffers) {
            Ok(run) => run,
            Err(why) => return not_judged(&why, root, open),
        };
        match judged_without_ignored(&run) {
            Ok(checked) => {
                let mut files = of_files(&checked, root, open, self.encoding);
                copy_to_second_names(&mut files, root, open);
                let mut closed = self.closed.borrow_mut();
                let closed = closed.entry(root.clone()).or_default();
                files.extend(closed.update((root, open), &run, self.encoding).unwrap_or_default());
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
