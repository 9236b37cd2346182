//! The objects that a tool printed, each with the files that it says it made them from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::build::builder::{Made, id_of, origins};
use crate::build::tools::Tools;
use crate::build::unit::Unit;
use crate::paths::{Home, normal};
use memgate_manifest::document::parse_parts;
use memgate_manifest::source::Source;

/// Before the template from which a document comes, in what helm and memgate print.
pub(crate) const SOURCE_COMMENT: &str = "# Source: ";

/// What a tool printed for a unit.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// The unit.
    pub(crate) unit: Arc<Unit>,
    pub(crate) source: Arc<Source>,
    /// By their first bytes.
    objects: BTreeMap<usize, RenderedObject>,
    /// What says where its objects come from, and what it said.
    asks: Option<Asks>,
    origins: OnceLock<BTreeMap<[String; 3], Made>>,
}

/// The programs by which to ask kustomize where objects come from, and its arguments and bound.
pub(crate) type Asks = (Arc<Tools>, Vec<String>, usize);

/// An object that a tool printed.
#[derive(Debug)]
pub(crate) struct RenderedObject {
    pub(crate) value: Value,
    /// Where it comes from, as a comment says.
    pub(crate) made: Made,
}

impl Rendered {
    /// What a tool printed; of kustomize, whom to ask where objects come from.
    pub(crate) fn of(unit: &Arc<Unit>, source: &Arc<Source>, asks: Option<Asks>) -> Self {
        let (mut objects, mut last) = (BTreeMap::new(), 0);
        let home = Home::of(&unit.directory);
        for document in parse_parts(source).flat_map(|parsed| parsed.documents) {
            let start = document.place().start();
            let before = source.text().get(last..start).unwrap_or_default();
            let named = before.lines().rev().find_map(|line| line.strip_prefix(SOURCE_COMMENT));
            let file = named.filter(|_| asks.is_none()).and_then(|named| template_of(unit, named.trim()));
            let made = Made { file: file.filter(|file| home.has_file(file)), ..Made::default() };
            last = start;
            objects.insert(start, RenderedObject { value: document.value().clone(), made });
        }
        let origins = OnceLock::new();
        Self { unit: Arc::clone(unit), source: Arc::clone(source), objects, asks, origins }
    }

    /// Where kustomize says that an object comes from.
    pub(crate) fn asked(&self, object: &RenderedObject) -> Option<&Made> {
        let (tools, arguments, max_bytes) = self.asks.as_ref()?;
        let origins = self.origins.get_or_init(|| origins(&self.unit, (tools, arguments), *max_bytes));
        origins.get(&id_of(&object.value))
    }

    /// The object at a byte.
    pub(crate) fn at(&self, byte: usize) -> Option<&RenderedObject> {
        self.objects.range(..=byte).next_back().map(|(_, object)| object)
    }

    /// The template that a comment names before a line, counted from 1.
    pub(crate) fn file_at_line(&self, line: usize) -> Option<PathBuf> {
        let before: Vec<&str> = self.source.text().lines().take(line).collect();
        let named = before.into_iter().rev().find_map(|line| line.strip_prefix(SOURCE_COMMENT))?;
        template_of(&self.unit, named.trim()).filter(|file| file.is_file())
    }

    /// All objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().map(|object| &object.value)
    }
}

/// The file that helm names, which begins with the name of the chart: that need not be the name of its directory. Any text of
/// an object may look like such a name.
fn template_of(unit: &Unit, named: &str) -> Option<PathBuf> {
    let path = normal(&unit.directory.join(Path::new(named.split_once('/')?.1)));
    // A chart with an alias has another directory than helm says.
    let below = named.split_once("/templates/").map(|(_, below)| Path::new("templates").join(below));
    let by_alias = || {
        let mut fitting =
            unit.files.iter().filter(|file| below.as_ref().is_some_and(|below| file.ends_with(below)));
        fitting.next().filter(|_| fitting.next().is_none())
    };
    let path = if path.is_file() || unit.files.is_empty() { path } else { by_alias()?.clone() };
    path.starts_with(&unit.directory).then_some(path)
}
