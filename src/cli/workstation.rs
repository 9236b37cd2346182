//! What people use at their own machine, and no pod and no pipeline does: the feature `workstation`. The image is built
//! without it.

use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue};

use memgate_workbench::built;

/// The commands and flags that a build without the feature lacks.
const LEFT_OUT: [&str; 7] =
    ["completions", "lsp", "man", "map", "schema", "kustomizations and charts", "-o html"];

/// The version, and what this build lacks.
pub static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let lacks = || {
        format!(
            "{version}\nwithout {}: the archives of a release{} have these",
            LEFT_OUT.join(", "),
            built::releases()
        )
    };
    if built::HAS_WORKSTATION { version.to_owned() } else { lacks() }
});

/// The error about a command or flag that this build lacks.
pub fn missing(name: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this memgate has no {name}: it is built for servers and pipelines, without what people use at their own \
         machine, as in the image; the archives of a release{} have it, and so has a build with the feature \"workstation\"",
        built::releases()
    )
}

/// The error about an unknown command, if it is one that this build lacks.
pub fn missing_command(error: &clap::Error) -> Option<anyhow::Error> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    (!built::HAS_WORKSTATION && LEFT_OUT.contains(&name.as_str()))
        .then(|| missing(&format!("command \"{name}\"")))
}
