//! Comments `# memgate: ignore[CODE] reason`, which turn the finding below into a note. A comment without a reason, or with
//! an unknown code, is a finding itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::build::rules::{change, nearest_code};
use crate::files::judge::Checked;
use crate::files::notices::Notice;
use crate::files::suppress::{Identity, Spot, each, identify};
use memgate_core::decide::codes;
use memgate_manifest::comments::{ADDRESS, Comment, comments};
use memgate_manifest::source::Source;
use memgate_model::finding::{Code, Finding, Severity};
use memgate_platforms::common;
use memgate_primitives::plain_text::quoted_key;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// The form of such a comment.
const FORM: &str = "# memgate: ignore[CODE] reason";

/// The most findings about comments before an unknown code gets no suggestion: it is compared with every code.
const MAX_SUGGESTIONS: usize = 100;

/// What comments ignore: for each source, line and code the first comment with it. The line is the first one below the comment
/// that is not a comment.
type Ignored = BTreeMap<(*const Source, usize, &'static str), IgnoreComment>;

/// The reason that a comment gives, and its line.
struct IgnoreComment {
    reason: String,
    line: usize,
}

/// Turns ignored findings into notes. Returns the identities of all findings before that, in the order of `each`, and
/// those that were ignored.
pub fn apply_and_identify(checked: &mut Checked, counts: Option<&BTreeSet<Spot>>) -> [Vec<Identity>; 2] {
    let mut identities = identify(checked);
    let before = identities.len();
    let ignored = apply(checked, counts);
    // The findings about comments come last.
    identities.extend(identify(checked).into_iter().skip(before));
    [identities, ignored]
}

/// Turns ignored findings into notes, and adds the findings about comments to the notices. `counts` are the places at which
/// comments count; `None` stands for all. Returns the findings that were ignored.
pub fn apply(checked: &mut Checked, counts: Option<&BTreeSet<Spot>>) -> Vec<Identity> {
    let (mut ignored, mut notices) = (Ignored::new(), Vec::new());
    let origins = &checked.inputs.origins;
    // What helm and kustomize print repeats comments of the files that it comes from.
    let is_file = |source: &&Arc<Source>| !origins.rendered.contains_key(source.name());
    for source in checked.inputs.sources.iter().filter(is_file).chain(origins.traced()) {
        read(&comments(source), source, &mut ignored, &mut notices);
    }
    let notes = if ignored.is_empty() { Vec::new() } else { mark(checked, &ignored, counts) };
    checked.add_notices(notices);
    notes
}

/// Turns each ignored finding into a note, and returns them. A comment that does not count yet is listed.
fn mark(checked: &mut Checked, ignored: &Ignored, counts: Option<&BTreeSet<Spot>>) -> Vec<Identity> {
    let sources: BTreeSet<*const Source> = ignored.keys().map(|(source, ..)| *source).collect();
    let (mut notes, mut later) = (Vec::new(), BTreeSet::new());
    each(checked, |place, finding| {
        let source = Arc::as_ptr(place.source);
        if !sources.contains(&source) {
            return;
        }
        let key = (source, place.span(finding).line, finding.code.name);
        let Some(IgnoreComment { reason, line }) = ignored.get(&key) else { return };
        let identity = place.identity(finding);
        if counts.is_none_or(|counts| counts.contains(&identity.spot())) {
            change(finding, Severity::Note, &format!("ignored here: {reason}"));
            notes.push(identity);
        } else {
            later.insert(format!("comment in {}:{line} ({})", place.source.name(), finding.code.name));
        }
    });
    checked.inputs.changes.later.extend(later);
    notes
}

/// Reads the comments of a source that ignore something.
fn read(comments: &[Comment], source: &Arc<Source>, ignored: &mut Ignored, notices: &mut Vec<Notice>) {
    let alone: BTreeSet<usize> =
        comments.iter().filter(|comment| comment.is_alone).map(|comment| comment.span.line).collect();
    let below = below(&alone);
    for comment in comments {
        let Some((codes, rest)) = list(source, comment, notices) else { continue };
        let Some(reason) = reason(rest) else {
            let message = "this comment ignores nothing, since it does not say why";
            let finding = Finding::warn(&common::IGNORE_WITHOUT_REASON, Pointer::root(), message)
                .help(format!("write the reason behind the bracket: {FORM}"));
            notices.push(Notice::new(source, comment.span, finding));
            continue;
        };
        let mut at = comment.span.end - rest.len() - 1 - codes.len();
        for part in codes.split(',') {
            let name = part.trim();
            let start = at + (part.len() - part.trim_start().len());
            at += part.len() + 1;
            // For an empty name the caret is at the bracket.
            let span = source.span(start, (start + name.len()).max(start + 1));
            match find(name, notices.len() < MAX_SUGGESTIONS) {
                Ok(code) => {
                    if let Some(below) = below.get(&comment.span.line) {
                        let (reason, line) = (reason.to_owned(), comment.span.line);
                        let comment = || IgnoreComment { reason, line };
                        ignored.entry((Arc::as_ptr(source), *below, code.name)).or_insert_with(comment);
                    }
                }
                Err(finding) => notices.push(Notice::new(source, span, *finding)),
            }
        }
    }
}

/// For each line with only a comment the first line below that is different. Runs from the last line up, so that a
/// stack of comments is walked once.
fn below(alone: &BTreeSet<usize>) -> BTreeMap<usize, usize> {
    let mut below = BTreeMap::new();
    for line in alone.iter().rev() {
        let next = line + 1;
        below.insert(*line, below.get(&next).copied().unwrap_or(next));
    }
    below
}

/// The codes that a comment lists, and the text behind them; `None` for other comments. A malformed one is a finding.
fn list<'s>(
    source: &'s Arc<Source>,
    comment: &Comment,
    notices: &mut Vec<Notice>,
) -> Option<(&'s str, &'s str)> {
    let text = source.slice(comment.span).strip_prefix('#')?.trim_start();
    let text = text.strip_prefix(ADDRESS)?.trim_start();
    let word_end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    let (word, behind) = text.split_at(word_end);
    if word != "ignore" && nearest(word, ["ignore"]).is_none() {
        return None;
    }
    let list = behind.trim_start().strip_prefix('[').and_then(|list| list.split_once(']'));
    let list = list.filter(|_| word == "ignore");
    if list.is_none() {
        let finding = Finding::warn(&common::IGNORE_UNKNOWN, Pointer::root(), "this comment ignores nothing")
            .help(format!("write {FORM}"));
        notices.push(Notice::new(source, comment.span, finding));
    }
    list
}

/// The reason, without a colon or a dash before it.
fn reason(text: &str) -> Option<&str> {
    let reason = text.trim_start_matches([':', '-', '–', '—', ' ', '\t']).trim_end();
    reason.chars().any(char::is_alphanumeric).then_some(reason)
}

/// The code of this name; the error of a wrong name has the nearest code if it `suggests` one.
fn find(name: &str, suggests: bool) -> Result<&'static Code, Box<Finding>> {
    if let Some(code) = codes::all(&memgate_platforms::ALL).find(|code| code.name == name) {
        return Ok(code);
    }
    let warn = |message: String| Finding::warn(&common::IGNORE_UNKNOWN, Pointer::root(), message);
    if name.is_empty() {
        return Err(Box::new(warn("a code is missing here".to_owned()).help(format!("write {FORM}"))));
    }
    let meant = if suggests { nearest_code(name) } else { None };
    Err(Box::new(warn(format!("there is no code {}{}", quoted_key(name), did_you_mean(meant)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::plan::Plan;
    use crate::files::judge::{Decided, check};
    use crate::files::load::load;
    use memgate_model::finding::Severity;
    use memgate_model::request::Occasion;

    /// So many that a search from each comment through all others would take minutes.
    const VERY_MANY: usize = 40_000;

    fn applied(text: &str) -> Checked {
        let inputs = load(&Plan::of_text(text)).expect("loads");
        let mut checked = check(inputs, Occasion::default());
        apply(&mut checked, None);
        checked
    }

    #[test]
    fn reads_very_many_comments_above_one_finding() {
        let comment = "# memgate: ignore[arkonis/redis-required] known\n";
        let text = format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: a}}\n{}spec: {{backend: redis}}\n",
            comment.repeat(VERY_MANY)
        );
        let checked = applied(&text);
        let findings: Vec<&Finding> = checked.decided.iter().flat_map(Decided::findings).collect();
        assert_eq!(findings.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Note]);
        assert_eq!(checked.inputs.notices.len(), 0);
    }

    #[test]
    fn reads_very_many_codes_that_are_nearly_one() {
        let comment = |number| format!("# memgate: ignore[arkonis/redis-requird{number:x}] known\n");
        let notices = applied(&(0..VERY_MANY).map(comment).collect::<String>()).inputs.notices;
        assert_eq!(notices.len(), VERY_MANY);
        let suggested = |notice: &&Notice| notice.finding.message().contains("did you mean");
        let suggested = notices.iter().filter(suggested).count();
        assert!(suggested > 0 && suggested <= MAX_SUGGESTIONS, "{suggested}");
    }

    #[test]
    fn points_at_the_wrong_one_of_very_many_names() {
        let names: Vec<String> = (0..VERY_MANY).map(|number| format!("arkonis/x{number}")).collect();
        let notices = applied(&format!("# memgate: ignore[{}] known\n", names.join(", "))).inputs.notices;
        assert_eq!(notices.len(), VERY_MANY);
        for (notice, name) in notices.iter().zip(names) {
            assert_eq!(notice.source.slice(notice.span), name);
        }
    }
}
