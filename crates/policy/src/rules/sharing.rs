//! `sharing`: who may see and write shared memory.

use memgate_model::cel_view::{CelSide, InCel, MessagePart};
use memgate_model::memory_view::SharingConfigView;
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::super::in_cel::{VALUE, text};
use super::super::reader::Reader;
use super::super::text::{use_one_of, value};
use super::words::{Words, fields};

#[derive(Debug)]
struct Sharing {
    visibility: Option<Words>,
    max_writers: Option<i64>,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["visibility", "maxWriters"])?;
    let max_writers = fields.get("maxWriters").and_then(|it| it.integer(0, i64::from(u32::MAX)));
    Some(Box::new(Sharing { visibility: Words::read(&fields, "visibility"), max_writers }))
}

impl TypedRule for Sharing {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let Some(sharing) = &judged.view.sharing else { return };
        judged.note_unknown("sharing", outcome);
        if let Some(allowed) = &self.visibility {
            for config in &sharing.configs {
                let Some(visibility) = &config.visibility else { continue };
                if !allowed.contains(visibility) {
                    let (shown, instead) = (value(judged, visibility), use_one_of(Some(&allowed.texts)));
                    let message = format!("visibility {shown} is not allowed{instead}");
                    outcome.add(config.field.clone(), message, format!("{} {visibility}", config.name));
                }
            }
        }
        let is_writer = |config: &&SharingConfigView| config.access.as_deref() != Some("read-only");
        let writers = sharing.configs.iter().filter(is_writer).count();
        let max = self.max_writers.and_then(|max| usize::try_from(max).ok());
        if let Some(max) = max.filter(|max| writers > *max) {
            let message = format!("{writers} configs may write; the limit is {max}");
            outcome.add(sharing.field.clone(), message, writers.to_string());
        }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        if self.visibility.is_some() {
            let _no_table_has_it = said.entries(side, "sharing.visibility", "sharing.visibility");
        }
        if let Some(max) = self.max_writers
            && let Some(writers) = said.entries(side, "sharing.writers", "sharing.maxWriters")
        {
            let end = format!(" configs may write; the limit is {max}");
            said.add(
                format!("{writers}.filter(it, int({VALUE}) > {max})"),
                vec![MessagePart::Plain(1), text(end)],
            );
        }
    }
}
