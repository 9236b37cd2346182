//! The definitions that come with memgate, each read when an object of its kind is first checked.

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::family::Family;
use memgate_schema::crd::Crd;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// A row, a group and a kind.
type Key = (&'static str, String, String);

/// A definition once it is read; `None` where the kind has none.
type Definition = Arc<OnceLock<Option<Arc<Crd>>>>;

/// What was read in this process: definitions never change, and one takes longer to read than an object.
static READ: LazyLock<Mutex<BTreeMap<Key, Definition>>> = LazyLock::new(Mutex::default);

/// The definition of a kind of a family.
pub(super) fn find(family: &Family, group: &str, kind: &str) -> Option<Arc<Crd>> {
    let key = (family.name, group.to_owned(), kind.to_owned());
    // Read without the lock: who asks for another kind does not wait.
    let definition = Arc::clone(READ.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    definition.get_or_init(|| search(family, group, kind).map(Arc::new)).clone()
}

fn search(family: &Family, group: &str, kind: &str) -> Option<Crd> {
    let name = format!("kind: {kind}");
    let documents = family.definitions.crds.iter().flat_map(|file| documents(&file()));
    // A look at the text saves reading the definitions of other kinds.
    let likely = documents.filter(|text| text.contains(&name));
    let mut definitions = likely.filter_map(|text| parse(&text));
    definitions.find(|crd| crd.group == group && crd.kind == kind)
}

/// The YAML documents of a file.
fn documents(file: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in file.lines() {
        match documents.last_mut() {
            Some(document) if line.trim_end() != "---" => {
                document.push_str(line);
                document.push('\n');
            }
            _ => documents.push(String::new()),
        }
    }
    documents
}

fn parse(text: &str) -> Option<Crd> {
    let documents = values(&Arc::new(Source::new("bundled", text)), &mut Vec::new());
    documents.iter().find_map(|document| memgate_schema::read(document.value()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_every_kind_of_a_family() {
        for family in memgate_platforms::ALL {
            for kind in family.kinds.validated.iter().filter(|kind| !kind.group.is_empty()) {
                let crd = find(family, kind.group, kind.kind);
                let crd = crd.unwrap_or_else(|| panic!("{} has no definition", kind.kind));
                assert!(crd.served(kind.version).is_some(), "{}", kind.kind);
            }
        }
    }
}
