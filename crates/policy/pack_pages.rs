//! For the build scripts of the crates that hold many texts, such as pages of documentation.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// Compresses the files below a folder of the crate, which may be links, for `memgate_model::page`: the path and the text
/// of each, with a null byte behind both.
pub(crate) fn pack_pages(folder: &str) -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    add(&Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(folder), "", &mut text)?;
    let packed = lz4_flex::compress_prepend_size(text.as_bytes());
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("pages"), packed)?)
}

fn add(folder: &Path, path: &str, text: &mut String) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name());
    }
    names.sort();
    for name in names {
        let (file, path) = (folder.join(&name), format!("{path}{}", name.display()));
        if file.is_dir() {
            add(&file, &(path + "/"), text)?;
        } else {
            text.extend([&path, "\0", &fs::read_to_string(file)?, "\0"]);
        }
    }
    Ok(())
}
