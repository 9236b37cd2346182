//! Compresses the pages of codes and rules, which are part of the program.

mod pack_pages;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    pack_pages::pack_pages("pages")
}
