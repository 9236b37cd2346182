//! Units that complete each other and units that do not: what is said of each repository in repositories.yaml.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;

use crate::repository::{Repository, path};

const REPOSITORIES: &str = include_str!("repositories.yaml");

#[test]
#[ignore = "needs kubectl and helm"]
fn each_repository_is_told_what_it_must_be_told_and_nothing_else() {
    let all: Vec<Value> = serde_saphyr::from_str(REPOSITORIES).expect("is YAML");
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|it| it.as_str().expect("a text").to_owned()).collect()
    };
    let mut wrong = Vec::new();
    for case in &all {
        let files = case["files"].as_object().expect("files");
        let repository = Repository::with([]);
        for (name, text) in files {
            match text.as_str() {
                Some(text) => repository.write(name, text),
                None => repository.write(
                    name,
                    BASE64_STANDARD.decode(text["base64"].as_str().expect("bytes")).expect("base64"),
                ),
            }
        }
        let arguments = texts(&case["arguments"]);
        let words = ["check", "-o", "concise", "--project", "none"]
            .into_iter()
            .chain(arguments.iter().map(String::as_str));
        let (code, output) = repository.memgate(&words.collect::<Vec<_>>(), path());
        let has = texts(&case["has"]).iter().all(|text| output.contains(text.as_str()));
        let lacks = !texts(&case["lacks"]).iter().any(|text| output.contains(text.as_str()));
        if code.map(i64::from) != case["exit"].as_i64() || !has || !lacks {
            wrong.push(format!("{}: exit {code:?}\n{output}", case["name"]));
        }
    }
    assert!(wrong.is_empty() && !all.is_empty(), "{}", wrong.join("\n"));
}
