//! Compresses the alerts, their runbooks and the dashboard, which are part of the program.

#[path = "../policy/pack_pages.rs"]
mod pack_pages;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    pack_pages::pack_pages("pages")
}
