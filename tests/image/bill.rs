//! The bill of materials.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::built;

/// Every library that is linked in is listed, with its version and its licence.
#[test]
#[ignore = "needs the results of tools/build-static.sh --image"]
fn the_bill_of_materials_is_complete() {
    let bill: Value = serde_json::from_slice(&fs::read(built("memgate.cdx.json")).unwrap()).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["metadata"]["component"]["name"], "memgate");
    let components = bill["components"].as_array().unwrap();
    let text = |component: &Value, key: &str| component[key].as_str().unwrap_or_default().to_owned();
    let listed: BTreeSet<_> =
        components.iter().map(|part| text(part, "name") + " " + &text(part, "version")).collect();
    for part in components {
        assert!(part["licenses"].is_array(), "{part} has no licence");
        assert!(text(part, "purl").starts_with("pkg:cargo/"), "{part}");
    }
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree", "--locked", "--package", "memgate", "--no-default-features", "--edges",
            "normal,no-proc-macro", "--prefix", "none", "--format", "{p}", "--target", &target,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let package = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.trim_start_matches('v')))
    };
    let linked: BTreeSet<_> =
        tree.lines().filter_map(package).filter(|part| !part.starts_with("memgate ")).collect();
    assert!(linked.len() > 100, "{linked:?}");
    let missing: Vec<_> = linked.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
