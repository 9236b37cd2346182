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
