//! Texts to outlines, and the outline of a source that was asked for last.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::manifest::error::SyntaxError;
use crate::manifest::outline::{NodeId, Outline, Syntax};
use crate::manifest::parts::{Part, parts};
use crate::manifest::source::Source;
use crate::manifest::{json, yaml};

/// The outlines of the parts of a source, of which only the last is kept: it takes ten times its text. Whoever asks for
/// places asks for all those of one part before those of another, so few are made again.
#[derive(Debug)]
pub(super) struct Outlines {
    source: Arc<Source>,
    /// Whether it looks like JSON, which is found out by reading all blanks before it.
    is_json: bool,
    last: Mutex<Option<(Part, Arc<Outline>)>>,
}

impl Outlines {
    /// Those of a source, none of them made yet.
    pub(super) fn new(source: &Arc<Source>) -> Self {
        let is_json = json::looks_like(source);
        Self { source: Arc::clone(source), is_json, last: Mutex::default() }
    }

    /// The parts of the source, which together are the whole of it. JSON is one part, since no line of it begins
    /// with `---`.
    pub(super) fn parts(&self) -> Vec<Part> {
        parts(&self.source)
    }

    /// The source.
    pub(super) const fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Reads a part: its outline, and the root of each document or what is wrong with it. `errors` is how many were in
    /// the parts before.
    pub(super) fn read(&self, part: Part, errors: usize) -> (Arc<Outline>, Vec<Result<NodeId, SyntaxError>>) {
        let Syntax { outline, roots } = self.syntax(part, errors);
        let outline = Arc::new(outline);
        *self.last() = Some((part, Arc::clone(&outline)));
        (outline, roots)
    }

    /// The outline of a part, which is read again if another one was since.
    pub(super) fn outline(&self, part: Part) -> Arc<Outline> {
        let kept =
            self.last().as_ref().filter(|(last, _)| *last == part).map(|(_, outline)| Arc::clone(outline));
        kept.unwrap_or_else(|| self.read(part, 0).0)
    }

    /// Keeps none.
    pub(super) fn forget(&self) {
        *self.last() = None;
    }

    /// The outline of a part, before values are read; `errors` as for [`Outlines::read`].
    pub(super) fn syntax(&self, part: Part, errors: usize) -> Syntax {
        let mut syntax = self.take_apart(part, errors);
        syntax.outline.roots = syntax.roots.iter().map(|root| root.as_ref().ok().copied()).collect();
        syntax
    }

    fn take_apart(&self, part: Part, errors: usize) -> Syntax {
        let source = &self.source;
        if let Some(error) = control_character(source, part) {
            return Syntax { outline: Outline::default(), roots: vec![Err(error)] };
        }
        if self.is_json
            && part == Part::whole(source)
            && let Ok(syntax) = json::read(source)
        {
            return syntax;
        }
        let mut syntax = yaml::read(source, part);
        // Neither JSON nor YAML: the error of the reader that came further helps more.
        if self.is_json
            && errors == 0
            && let Some(Err(yaml_error)) = syntax.roots.iter_mut().find(|root| root.is_err())
            && let Err(json_error) = json::read(source)
            && (json_error.span.start >= yaml_error.span.start
                || Path::new(source.name()).extension().is_some_and(|it| it == "json"))
        {
            *yaml_error = *json_error;
        }
        syntax
    }

    fn last(&self) -> MutexGuard<'_, Option<(Part, Arc<Outline>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Neither YAML nor JSON allows control characters; YAML parsers take NUL for the end of the text.
fn control_character(source: &Arc<Source>, part: Part) -> Option<SyntaxError> {
    let control = |byte: u8| byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t');
    let bytes = source.text().as_bytes().get(part.bytes())?;
    let at = part.start + bytes.iter().copied().position(control)?;
    let code = source.text().as_bytes().get(at).copied().unwrap_or_default();
    let message = format!("a control character (U+{code:04X}) cannot stand here");
    Some(
        SyntaxError::new(source, source.span(at, at + 1), message)
            .help("remove it, or write it as an escape"),
    )
}
