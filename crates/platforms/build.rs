//! Compresses the definitions of the platforms' kinds and the pages of codes, which are part of the program.

#[path = "../policy/pack_pages.rs"]
mod pack_pages;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../deploy/crds");
    let out = env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed={}", folder.display());
    for file in fs::read_dir(&folder)? {
        let file = file?;
        let packed = lz4_flex::compress_prepend_size(&fs::read(file.path())?);
        fs::write(Path::new(&out).join(file.file_name()), packed)?;
    }
    pack_pages::pack_pages("pages")
}
