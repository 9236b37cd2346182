//! `-o markdown` with `--base`: what is new comes first, and what the branch changes in the map of memory.

use crate::repository::{Repository, text};

const MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: NAME, namespace: team-a}\n\
                      spec: {backend: redis, redis: {secretRef: {name: s}, ttlSeconds: TTL}}\n";

const AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: NAME, namespace: team-a}\n\
                     spec: {model: m, systemPrompt: x, memoryRef: {name: notes}}\n";

fn query(namespace: &str, memory: &str) -> String {
    format!(
        "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Memory\nmetadata: {{name: shared, namespace: {memory}}}\n\
         spec: {{address: {{value: \"http://m.{memory}.svc\"}}}}\n---\n\
         apiVersion: ark.mckinsey.com/v1alpha1\nkind: Query\nmetadata: {{name: ask, namespace: {namespace}}}\n\
         spec: {{input: a, target: {{type: agent, name: x}}, memory: {{name: shared, namespace: {memory}}}}}\n"
    )
}

fn write(repository: &Repository, ttl: &str, agents: &[&str], memory: &str) {
    repository.write("deploy/memory.yaml", &MEMORY.replace("NAME", "notes").replace("TTL", ttl));
    let agents: Vec<String> = agents.iter().map(|name| AGENT.replace("NAME", name)).collect();
    repository.write("deploy/agents.yaml", &agents.join("---\n"));
    repository.write("deploy/query.yaml", &query("team-b", memory));
}

fn comment(repository: &Repository, arguments: &[&str]) -> String {
    let mut command = repository.command(env!("CARGO_BIN_EXE_memgate"));
    let output = command.args(["check", "-o", "markdown"]).args(arguments).output().expect("memgate runs");
    text(&output.stdout)
}

#[test]
fn a_comment_says_what_the_branch_changes_in_the_map() {
    let repository = Repository::new();
    write(&repository, "3600", &["a", "b", "c"], "team-c");
    repository.write("deploy/old.yaml", &crate::denied("old"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    let same = comment(&repository, &["--base", "main"]);
    assert!(same.contains("The branch changes neither"), "{same}");
    write(&repository, "7200", &["c"], "team-d");
    repository.write("deploy/zz.yaml", &crate::denied("new"));
    repository.commit();
    let new = comment(&repository, &["--base", "main"]);
    for line in [
        "#### What the branch changes in the map of memory",
        "- new line across namespaces: `Query team-b/ask` → `Memory team-d/shared`",
        "- line across namespaces removed: `Query team-b/ask` → `Memory team-c/shared`",
        "- `ArkMemory team-a/notes` loses 2 users, such as `ArkAgent team-a/a`; 1 user left",
        "- `Memory team-c/shared` loses 1 user, such as `Query team-b/ask`; 0 users left",
        "- retention of `ArkMemory team-a/notes`: `1h` → `2h`",
    ] {
        assert!(new.contains(line), "{line}\n{new}");
    }
    assert!(new.starts_with("### memgate: 1 denial, "), "{new}");
    let [new_at, known_at] = ["deploy/zz.yaml:4", "deploy/old.yaml:4"].map(|it| new.find(it).expect("a row"));
    assert!(new_at < known_at && new.contains("(already in main"), "{new}");
    assert!(!comment(&repository, &["."]).contains("branch changes"));
}

#[test]
fn a_comment_names_memory_whose_users_lose_it() {
    for (memory, namespace) in [("cache", "team-a"), ("notes", "team-z"), ("", "")] {
        let repository = Repository::new();
        write(&repository, "3600", &["a", "b"], "team-c");
        repository.commit();
        repository.git(&["checkout", "--quiet", "-b", "feature"]);
        let moved = MEMORY.replace("NAME", memory).replace("team-a", namespace).replace("TTL", "3600");
        repository.write("deploy/memory.yaml", if memory.is_empty() { "" } else { &moved });
        repository.commit();
        let new = comment(&repository, &["--base", "main"]);
        let line = "- `ArkMemory team-a/notes` loses 2 users, such as `ArkAgent team-a/a`; 0 users left";
        assert!(new.starts_with("### memgate: 2 denials, ") && new.contains(line), "{memory}: {new}");
    }
}

#[test]
fn each_kind_of_change_has_room() {
    let repository = Repository::new();
    let (all, names): (Vec<_>, Vec<String>) = (0..900).map(|number| (number, format!("a{number}"))).unzip();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let queries = |memory: &str| -> String {
        let query = |number: &u32| {
            query("team-b", memory).replace("name: ask", &format!("name: ask{number}")) + "---\n"
        };
        all.iter().map(query).collect()
    };
    write(&repository, "3600", &names, "team-c");
    repository.write("deploy/query.yaml", &queries("team-c"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    write(&repository, "7200", &["other"], "team-c");
    repository.write("deploy/query.yaml", &queries("team-d"));
    repository.commit();
    let new = comment(&repository, &["--base", "main"]);
    assert!(new.len() < 60_000, "{}", new.len());
    for words in [
        "- new line",
        "- line across namespaces removed",
        " loses 900 users",
        "- retention of",
        "more changes left out",
    ] {
        assert!(new.contains(words), "{words}\n{new}");
    }
}
