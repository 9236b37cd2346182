//! The edits of a rename, in the form that the client of the editor supports.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lsp_types::{
    AnnotatedTextEdit, ChangeAnnotation, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier,
    TextDocumentEdit, TextEdit, Uri, WorkspaceEdit, WorkspaceEditClientCapabilities,
};

use crate::buffers::Buffers;
use crate::mentions::Role;
use crate::positions::{Encoding, Lines};
use crate::uri;
use crate::workspace::{Root, path};
use memgate_manifest::rewrite::Splice;
use memgate_manifest::source::Source;
use memgate_workbench::read::without_links;

/// What a client can do with edits of several files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EditSupport {
    /// Whether it takes the versions of the texts.
    pub(crate) versions: bool,
    /// Whether it shows edits before it makes them.
    pub(crate) annotations: bool,
}

impl EditSupport {
    /// What the capabilities of a client say.
    pub(crate) fn of(capabilities: Option<&WorkspaceEditClientCapabilities>) -> Self {
        let versions = capabilities.and_then(|it| it.document_changes) == Some(true);
        let annotations = capabilities.is_some_and(|it| it.change_annotation_support.is_some());
        Self { versions, annotations: versions && annotations }
    }
}

/// The edits of a rename.
pub(crate) struct Edits {
    /// The object, as messages name it.
    pub(crate) object: String,
    /// The edits in the order of files and places.
    pub(crate) edits: Vec<RenameEdit>,
}

/// An edit of one name.
pub(crate) struct RenameEdit {
    /// The text.
    pub(crate) source: Arc<Source>,
    /// The change in it.
    pub(crate) change: Splice,
    /// What the name is for.
    pub(crate) role: Role,
}

/// The names of the annotations.
const ANNOTATIONS: [(&str, &str); 3] =
    [("own", "The name of"), ("reference", "References to"), ("kustomize", "Selectors of kustomize for")];

impl RenameEdit {
    const fn annotation(&self) -> &'static str {
        match self.role {
            Role::Own | Role::Namespace => "own",
            Role::Reference { .. } => "reference",
            Role::Selector => "kustomize",
        }
    }
}

impl Edits {
    /// The edits for a client.
    pub(crate) fn for_client<'e>(
        &'e self,
        root: &Root,
        buffers: &Buffers,
        (support, encoding): (EditSupport, Encoding),
    ) -> WorkspaceEdit {
        let open: BTreeMap<PathBuf, (&Uri, i32)> =
            buffers.iter().map(|it| (without_links(&it.path), (&it.uri, it.version))).collect();
        let of_file = |edits: &'e [RenameEdit]| {
            let source = &edits.first()?.source;
            let file = path(root, source.name());
            let (uri, version) = match open.get(&without_links(&file)) {
                Some((uri, version)) => ((*uri).clone(), Some(*version)),
                None => (uri::of_path(&file)?, None),
            };
            // Of a patch in a kustomization, only its own lines are in its source.
            let mut lines = BTreeMap::new();
            let edit = |it: &'e RenameEdit| {
                let RenameEdit { source, change, .. } = it;
                let own = lines.entry(Arc::as_ptr(source));
                let lines = own.or_insert_with(|| Lines::new(source.text(), encoding));
                let range = lines.range(change.start, change.end);
                (it.annotation(), TextEdit::new(range, change.text.clone()))
            };
            let edits = edits.iter().map(edit).collect();
            Some((OptionalVersionedTextDocumentIdentifier { uri, version }, edits))
        };
        let files = self.edits.chunk_by(|one, two| one.source.name() == two.source.name());
        let files: Vec<(_, Vec<_>)> = files.filter_map(of_file).collect();
        if !support.versions {
            let plain = |edits: Vec<(_, TextEdit)>| edits.into_iter().map(|(_, edit)| edit).collect();
            return WorkspaceEdit::new(files.into_iter().map(|(it, edits)| (it.uri, plain(edits))).collect());
        }
        let edit = |(id, text_edit): (&str, TextEdit)| {
            if support.annotations {
                OneOf::Right(AnnotatedTextEdit { text_edit, annotation_id: id.to_owned() })
            } else {
                OneOf::Left(text_edit)
            }
        };
        let changes = files.into_iter().map(|(text_document, edits)| TextDocumentEdit {
            text_document,
            edits: edits.into_iter().map(edit).collect(),
        });
        WorkspaceEdit {
            changes: None,
            document_changes: Some(DocumentChanges::Edits(changes.collect())),
            change_annotations: support.annotations.then(|| self.annotations().into()),
        }
    }

    fn annotations(&self) -> [(String, ChangeAnnotation); 3] {
        let annotation = |what: &str| ChangeAnnotation {
            label: format!("{what} {}", self.object),
            needs_confirmation: Some(true),
            description: None,
        };
        ANNOTATIONS.map(|(id, what)| (id.to_owned(), annotation(what)))
    }
}
