//! Hides what findings quote of a file behind a link that leads out of the repository.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use memgate_manifest::shown::without_quotes_of;
use memgate_manifest::source::Source;
use memgate_model::finding::Finding;
use memgate_primitives::pointer::Pointer;

/// Leaves out of a finding what it quotes of its source: values, and fields that are not those of a platform.
pub(crate) fn hide(finding: &mut Finding, source: &Source) {
    static WORDS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let files = memgate_platforms::ALL.iter().flat_map(|family| family.definitions.crds);
        let words = |text: Cow<'_, str>| {
            text.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect::<Vec<_>>()
        };
        files.flat_map(|file| words(file())).collect()
    });
    let mut known = Pointer::root();
    let tokens: Vec<Cow<'_, str>> = finding.pointer.tokens().collect();
    for token in tokens {
        if !WORDS.contains(&*token) && token.parse::<usize>().is_err() {
            break;
        }
        known = known.key(&token);
    }
    let more = if known == finding.pointer { "" } else { ".…" };
    let shown = known.field() + more;
    let without = |text: &str| {
        let text = text.replace(&finding.pointer.field(), shown.trim_start_matches('.'));
        without_quotes_of(&text, source.text())
    };
    let (message, help) = (without(&finding.message()), finding.help_text().map(|help| without(&help)));
    let hidden = Finding { pointer: known, ..finding.clone().with_message(message) };
    *finding = match help {
        Some(help) => hidden.help(help),
        None => hidden,
    };
}
