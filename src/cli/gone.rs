//! Commands that memgate does not have any more, and what to use in place of each.

use std::ffi::OsString;

/// The words of each command, and what to use instead.
const GONE: [(&[&str], &str); 8] = [
    (&["status"], "use memgate doctor"),
    (
        &["policy", "new"],
        "begin with a policy of the library: docs/policy-library.md, examples/policy/library",
    ),
    (&["policy", "export"], "entries with failurePolicy: Fail refuse configuration while no memgate runs"),
    (&["policy"], "policies are in docs/policy.md and docs/policy-library.md"),
    (&["snapshot"], "write a file with kubectl get KINDS -A -o yaml, and give it to --with"),
    (
        &["certs", "rotate"],
        "delete the Secret with the CA, and memgate makes a new one: kubectl -n memgate-system delete secret memgate-ca",
    ),
    (&["certs", "verify"], "use memgate doctor"),
    (&["pause"], "docs/emergencies.md has two commands of kubectl that switch memgate off in a namespace"),
];

/// The error about a command line that begins with one of these commands, whatever follows.
pub fn error(arguments: &[OsString]) -> Option<anyhow::Error> {
    let words: Vec<&str> = words(arguments).take(2).collect();
    let (command, instead) = GONE.iter().find(|(command, _)| words.starts_with(command))?;
    Some(anyhow::anyhow!("there is no command memgate {} any more; {instead}", command.join(" ")))
}

/// The arguments after the name of the program, without options and `help`.
fn words(arguments: &[OsString]) -> impl Iterator<Item = &str> {
    let words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    words.filter(|word| !word.starts_with('-') && *word != "help")
}
