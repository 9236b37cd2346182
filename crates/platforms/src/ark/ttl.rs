//! How long the messages of a Query are kept: as long as the Query itself.

use memgate_model::memory_view::{MemoryView, Remark, Why};
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::duration;

use super::api::{ARK_CONFIG, DEFAULT};

/// One second, in nanoseconds. The platform sends whole seconds to the memory service, and the service refuses 0.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// What counts where neither a Query nor the ArkConfig says anything: 720h.
const DEFAULT_SECONDS: i64 = 2_592_000;

const PATH: &str = "ttlSeconds";

/// Adds the TTL of a Query to its view. Without one of its own, the ArkConfig's counts.
pub(crate) fn add_of_query(view: &mut MemoryView, query: &Tree, state: &mut StateReader<'_>) {
    if let Some(ttl) = query.at(&["spec", "ttl"]) {
        view.put(PATH, "/spec/ttl", seconds(ttl));
        return;
    }
    view.at(PATH, "/spec");
    match state.get_if_known(&ARK_CONFIG, "", DEFAULT) {
        Lookup::Found(config) => add_configured(view, config.tree(), Some("from ArkConfig \"default\"")),
        Lookup::Absent => add_default(view),
        Lookup::Unknown(()) => view.set_unknown(PATH, Why::Object("ArkConfig \"default\"".to_owned())),
    }
}

/// Adds the TTL that an ArkConfig gives to Queries without one.
pub(crate) fn add_of_config(view: &mut MemoryView, config: &Tree) {
    view.at(PATH, "/spec/queryTTL");
    add_configured(view, config, None);
}

fn add_configured(view: &mut MemoryView, config: &Tree, words: Option<&'static str>) {
    let Some(ttl) = config.at(&["spec", "queryTTL"]) else { return add_default(view) };
    view.set(PATH, seconds(ttl));
    if let Some(words) = words {
        view.set_remark(PATH, Remark { object: None, words });
    }
}

fn add_default(view: &mut MemoryView) {
    view.set(PATH, Some(DEFAULT_SECONDS));
    view.set_remark(PATH, Remark { object: None, words: "ARK's own default" });
}

/// The whole seconds of a TTL. `None` if it is not a duration or is below one second: then nothing is kept, and 0 would
/// mean "for ever".
fn seconds(ttl: &Tree) -> Option<i64> {
    let nanoseconds = ttl.text().and_then(duration::nanoseconds)?;
    (nanoseconds >= SECOND).then_some(nanoseconds / SECOND)
}
