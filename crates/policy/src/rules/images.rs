//! `images`: which images the containers that serve memory may run.

use memgate_model::memory_view::ContainerView;
use memgate_model::typed_rule::{JudgedView, RuleOutcome, Sentence, TypedRule};
use memgate_primitives::budget::Budget;
use memgate_primitives::glob::Glob;
use memgate_primitives::pointer::Pointer;

use super::words::{MAX_CHARS, MAX_ENTRIES, denied_too, fields};
use crate::reader::{Fields, Reader};
use crate::text::Shown;

#[derive(Debug)]
struct Images {
    allow: Option<Vec<Glob>>,
    deny: Vec<Glob>,
    needs_digest: bool,
    /// Tags, with case.
    denied_tags: Vec<String>,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["allow", "deny", "digest", "tags"])?;
    let tags = fields.get("tags").and_then(|it| self::fields(&it, &["deny"]));
    let tags = tags.and_then(|tags| tags.texts("deny", MAX_ENTRIES, 128)).unwrap_or_default();
    Some(Box::new(Images {
        allow: globs(&fields, "allow"),
        deny: globs(&fields, "deny").unwrap_or_default(),
        needs_digest: fields.choice("digest", &[("require", true)]) == Some(true),
        denied_tags: tags.into_iter().map(|(tag, _)| tag.to_owned()).collect(),
    }))
}

fn globs(fields: &Fields<'_>, field: &str) -> Option<Vec<Glob>> {
    let texts = fields.texts(field, MAX_ENTRIES, MAX_CHARS)?;
    Some(texts.into_iter().map(|(text, _)| Glob::within(text, '/')).collect())
}

impl TypedRule for Images {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        for container in &judged.view.containers {
            self.judge_container(container, judged, outcome);
        }
    }

    fn paths(&self) -> Vec<&str> {
        vec!["containers"]
    }

    fn contradictions(&self, _budget: &Budget<'_>) -> Vec<(Pointer, String)> {
        let is_denied = |word: &str| self.deny.iter().any(|glob| glob.as_str().eq_ignore_ascii_case(word));
        denied_too(self.allow.iter().flatten().map(Glob::as_str), is_denied)
    }
}

impl Images {
    fn judge_container(&self, container: &ContainerView, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let fits = |glob: &Glob| glob.matches(&container.repository, judged.budget);
        let is_denied =
            self.deny.iter().any(fits) || self.allow.as_ref().is_some_and(|allow| !allow.iter().any(fits));
        let is_unpinned = self.needs_digest && container.digest.is_none();
        let tag = self.denied_tag(container).map(|tag| Shown::of(judged, tag));
        let mut add = |about, rest: Option<Shown>| {
            let (image, of) = (Shown::of(judged, &container.image), Shown::of(judged, &container.name));
            let say = move || {
                let rest = rest.as_ref().map(Shown::value).unwrap_or_default();
                format!("image {} of container {} {about}{rest}", image.value(), of.name())
            };
            let value = format!("{} {}", container.name, container.image);
            outcome.add(container.field.key("image"), Sentence::later(about, say), value);
        };
        if is_denied {
            add("is not allowed", None);
        }
        if is_unpinned {
            add("is not pinned by digest", None);
        }
        if tag.is_some() {
            add("uses tag ", tag);
        }
    }

    /// The tag that is not allowed. An image without tag and digest is `latest`.
    fn denied_tag<'c>(&self, container: &'c ContainerView) -> Option<&'c str> {
        let implied = container.digest.is_none().then_some("latest");
        let tag = container.tag.as_deref().or(implied)?;
        self.denied_tags.iter().any(|denied| denied == tag).then_some(tag)
    }
}
