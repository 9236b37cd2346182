//! Which of several values the platform uses.
//!
//! An address and the value of a header are either a literal (`value`) or come from a source (`valueFrom`).
//! If an object has several of them, the platform silently uses one and ignores the others. An empty
//! literal counts as absent.
//! Messages of a Query are kept as long as the Query itself: by its own duration, or else that of the ArkConfig.

use super::prelude::*;
use memgate_model::memory_view::Remark;
use memgate_primitives::duration;

/// An address, or the value of a header.
#[derive(Debug)]
pub(crate) struct ValueOrSource<'t> {
    /// `value`, of any type, unless it is empty.
    pub(crate) literal: Option<&'t Tree>,
    /// `valueFrom`, of any type.
    pub(crate) value_from: Option<&'t Tree>,
    /// The sources in `valueFrom`; the platform uses the first.
    pub(crate) sources: Vec<ValueSource<'t>>,
    /// Whether the first source overrides the literal.
    source_overrides_literal: bool,
}

/// One source in a `valueFrom`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueSource<'t> {
    /// The name of its field.
    pub(crate) field: &'static str,
    /// Its value, of any type.
    pub(crate) tree: &'t Tree,
}

/// The value that the platform uses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EffectiveValue<'t> {
    /// The literal.
    Literal(&'t Tree),
    /// A source.
    Source(ValueSource<'t>),
    /// Neither is set.
    Nothing,
}

impl<'t> ValueOrSource<'t> {
    /// The address of a Memory.
    pub(crate) fn read_address(address: &'t Tree) -> Self {
        Self::read(address, &ADDRESS_SOURCES)
    }

    /// The value of a header.
    pub(crate) fn read_header(value: &'t Tree) -> Self {
        let value = Self::read(value, &SOURCES_OF_HEADERS);
        let source_overrides_literal =
            value.sources.first().is_some_and(|source| source.field == "queryParameterRef");
        ValueOrSource { source_overrides_literal, ..value }
    }

    fn read(tree: &'t Tree, fields: &[&'static str]) -> Self {
        let value_from = tree.get("valueFrom");
        let source = |field: &&'static str| Some(ValueSource { field, tree: value_from?.get(field)? });
        ValueOrSource {
            literal: tree.get("value").filter(|value| value.text() != Some("")),
            value_from,
            sources: fields.iter().filter_map(source).collect(),
            source_overrides_literal: false,
        }
    }

    /// The value that the platform uses.
    pub(crate) fn effective(&self) -> EffectiveValue<'t> {
        match (self.literal, self.sources.first()) {
            (_, Some(source)) if self.source_overrides_literal => EffectiveValue::Source(*source),
            (Some(literal), _) => EffectiveValue::Literal(literal),
            (None, Some(source)) => EffectiveValue::Source(*source),
            (None, None) => EffectiveValue::Nothing,
        }
    }
}

impl<'t> ValueSource<'t> {
    /// A field of the source, if it is a string that is not empty.
    pub(crate) fn text(&self, field: &str) -> Option<&'t str> {
        self.tree.filled_at(&[field])
    }

    /// Whether a field is absent or an empty string.
    pub(crate) fn lacks(&self, field: &str) -> bool {
        self.tree.is_object() && self.tree.get(field).is_none_or(|value| value.text() == Some(""))
    }
}

/// One second, in nanoseconds. The platform sends whole seconds to the memory service, and the service refuses 0.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// What counts where neither a Query nor the ArkConfig says anything: 720h.
const DEFAULT_SECONDS: i64 = 2_592_000;

const TTL_PATH: &str = "ttlSeconds";

/// Adds the TTL of a Query to its view. Without one of its own, the ArkConfig's counts.
pub(crate) fn add_ttl_of_query(view: &mut MemoryView, query: &Tree, state: &mut StateReader<'_>) {
    if let Some(ttl) = query.at(&["spec", "ttl"]) {
        view.put(TTL_PATH, "/spec/ttl", ttl_seconds(ttl));
        return;
    }
    view.at(TTL_PATH, "/spec");
    view.set_origin(TTL_PATH, &ARK_CONFIG, "/spec/queryTTL");
    match state.get_if_known(&ARK_CONFIG, "", DEFAULT) {
        Lookup::Found(config) => add_configured_ttl(view, config.tree(), Some("from ArkConfig \"default\"")),
        Lookup::Absent => add_default_ttl(view),
        Lookup::Unknown(()) => view.set_unknown(TTL_PATH, Why::Object("ArkConfig \"default\"".to_owned())),
    }
}

/// Adds the TTL that an ArkConfig gives to Queries without one.
pub(crate) fn add_ttl_of_config(view: &mut MemoryView, config: &Tree) {
    view.at(TTL_PATH, "/spec/queryTTL");
    add_configured_ttl(view, config, None);
}

fn add_configured_ttl(view: &mut MemoryView, config: &Tree, words: Option<&'static str>) {
    let Some(ttl) = config.at(&["spec", "queryTTL"]) else { return add_default_ttl(view) };
    view.set(TTL_PATH, ttl_seconds(ttl));
    if let Some(words) = words {
        view.set_remark(TTL_PATH, Remark { object: None, words });
    }
}

fn add_default_ttl(view: &mut MemoryView) {
    view.set(TTL_PATH, Some(DEFAULT_SECONDS));
    view.set_remark(TTL_PATH, Remark { object: None, words: "ARK's own default" });
}

/// The whole seconds of a TTL. `None` if it is not a duration or is below one second: then nothing is kept, and 0 would
/// mean "for ever".
fn ttl_seconds(ttl: &Tree) -> Option<i64> {
    let nanoseconds = ttl.text().and_then(duration::nanoseconds)?;
    (nanoseconds >= SECOND).then_some(nanoseconds / SECOND)
}
