//! docs/editors.md: its blocks of code, and that they name the same schemas for every editor.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

/// The first block of code in a language below a heading.
pub(crate) fn block(heading: &str, language: &str) -> String {
    blocks(heading, language).into_iter().next().expect("a block")
}

/// The blocks of code in a language below a heading.
pub(crate) fn blocks(heading: &str, language: &str) -> Vec<String> {
    let page = read("docs/editors.md");
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).expect(heading);
    let section = section.split("\n## ").next().expect("a section");
    let start = format!("```{language}\n");
    let blocks = section.split(&start).skip(1);
    blocks.map(|text| text.split("```").next().expect("an end").to_owned()).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The settings for Visual Studio Code, as it hands them to a server: below `yaml`.
pub(crate) fn settings_for_vscode() -> Map<String, Value> {
    let settings: Map<String, Value> =
        serde_json::from_str(&block("Visual Studio Code", "json")).expect("is JSON");
    let below = |(key, value): (String, Value)| {
        let key = key.strip_prefix("yaml.").expect("a setting of the extension");
        (key.to_owned(), value)
    };
    settings.into_iter().map(below).collect()
}

#[test]
fn editors_get_the_same_settings() {
    let json = settings_for_vscode();
    let zed: Value = serde_json::from_str(&block("Zed", "json")).expect("is JSON");
    assert_eq!(zed["lsp"]["yaml-language-server"]["settings"]["yaml"], Value::from(json.clone()));

    let (lua, toml) = (block("Neovim", "lua"), block("Helix", "toml"));
    let lisp = blocks("Emacs", "elisp").pop().expect("a block");
    assert_eq!(json["yamlVersion"], "1.1");
    assert!(lua.contains("yamlVersion = '1.1'"), "{lua}");
    assert!(toml.contains("yamlVersion = \"1.1\""), "{toml}");
    assert!(lisp.contains(":yamlVersion \"1.1\""), "{lisp}");
    let schemas = json["schemas"].as_object().expect("schemas");
    assert_eq!(schemas.len(), 3);
    for (schema, globs) in schemas {
        let globs: Vec<_> = globs.as_array().expect("globs").iter().map(Value::to_string).collect();
        let (listed, quoted) = (globs.join(", "), globs.join(", ").replace('"', "'"));
        let lines = [
            (&lua, format!("['{schema}'] = {{ {quoted} }},\n")),
            (&toml, format!("\"{schema}\" = [{listed}]\n")),
            (&lisp, format!(":{schema} [{}]", globs.join(" "))),
        ];
        for (text, line) in lines {
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}

#[test]
fn the_page_names_the_versions_that_are_tried() {
    let page = read("docs/editors.md").replace('\n', " ");
    let pinned = |path: &str| {
        let text = read(path);
        let (_, rest) = text.split_once("==").expect("a version");
        rest.split(' ').next().expect("a version").to_owned()
    };
    let tools: Value = serde_json::from_str(&read("tools/editors/package.json")).expect("is JSON");
    let server = tools["dependencies"]["yaml-language-server"].as_str().expect("a version");
    for (name, version) in [
        ("Neovim", &*pinned("tools/neovim/requirements.txt")),
        ("rass", &*pinned("tools/rass/requirements.txt")),
        ("yaml-language-server", server),
    ] {
        assert!(page.contains(&format!("{name} {version}")), "{name} {version}");
    }
}
