//! The bundled definitions, which the build script compresses.

/// The text of a file of `deploy/crds`.
macro_rules! packed {
    ($file:literal) => {
        memgate_model::page::unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/", $file))).into()
    };
}

pub(super) use packed;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use memgate_manifest::document::values;
    use memgate_manifest::source::Source;
    use memgate_schema::crd::SchemaNode;

    /// The rules in CEL at a node and below.
    fn rules(node: &SchemaNode, seen: &mut Vec<(String, Option<String>)>) {
        seen.extend(node.rules.iter().map(|rule| (rule.text.clone(), rule.fault().map(str::to_owned))));
        node.below().for_each(|below| rules(below, seen));
    }

    #[test]
    fn all_their_rules_can_be_evaluated() {
        let mut seen = Vec::new();
        for file in crate::ALL.into_iter().flat_map(|family| family.definitions.crds) {
            for document in values(&Arc::new(Source::new("crds", file())), &mut Vec::new()) {
                let crd = memgate_schema::read(document.value()).expect("a definition");
                rules(&crd.newest().expect("a version").schema, &mut seen);
            }
        }
        let wrong: Vec<_> = seen.iter().filter(|(_, fault)| fault.is_some()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(seen.len() > 150, "{} rules", seen.len());
    }

    #[test]
    fn holds_the_files_as_they_are() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
        let mut files = Vec::new();
        for file in std::fs::read_dir(folder).expect("the definitions") {
            let path = file.expect("a file").path();
            if path.file_name().is_some_and(|name| name != "policy.yaml") {
                files.push(std::fs::read_to_string(path).expect("a file"));
            }
        }
        let packed = crate::ALL.into_iter().flat_map(|family| family.definitions.crds);
        let mut texts: Vec<String> = packed.map(|file| file().into_owned()).collect();
        files.sort();
        texts.sort();
        assert_eq!(texts, files);
    }
}
