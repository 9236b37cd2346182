//! `memgate policy`: new policies, and policies in other forms.

use std::fs;
use std::io::Write as _;
use std::path::{MAIN_SEPARATOR, Path};

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::terminal::Terminal;
use memgate_workbench::errors::input_error;
use memgate_workbench::policy_new::{PolicyWish, Refusal, new_policy};
use memgate_workbench::render::quoted;
use memgate_workbench::report::plain;

/// Begin a policy, or convert policies into a form that other programs evaluate
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    New(New),
}

/// Runs the command.
///
/// # Errors
/// When the files cannot be read, or the objects cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    match &args.command {
        Command::New(args) => run_new(args, terminal),
    }
}

/// Write a policy with one rule and two cases to begin with
///
/// --for says what the rule is about. With a finding code, such as arkonis/hosted-without-secret, the rule denies what
/// the code reports, and the cases are about the examples of its page, or about objects in PATH. With FILE:LINE the
/// rule is about the field at that line: the object there passes, and the same object with another value is denied.
/// DIR/NAME.yaml and DIR/NAME.cases.yaml are written; existing files are never overwritten. The cases pass at once, and
/// the command that runs them is printed. Credentials of your objects are not copied.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 both files were written, 2 they were not, or wrong usage.",
    after_long_help = "\
Examples:
  memgate policy new own-backends --for memory.yaml:9 --dir policies/
  memgate policy new credentials --for arkonis/hosted-without-secret
  memgate policy new credentials --for arkonis/hosted-without-secret deploy/"
)]
struct New {
    /// Name of the policy and its files
    name: String,

    /// Finding code, or FILE:LINE
    #[arg(long = "for", value_name = "CODE|FILE:LINE")]
    about: String,

    /// Files with objects that have the finding, or that the object in FILE refers to
    #[arg(value_name = "PATH")]
    paths: Vec<String>,

    /// Directory for the files; it is made if it does not exist [default: the working directory]
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    dir: String,
}

fn run_new(args: &New, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let New { name, about, paths, dir } = args;
    let separator = if dir.is_empty() || dir.ends_with(['/', MAIN_SEPARATOR]) { "" } else { "/" };
    let [policy, cases] = ["yaml", "cases.yaml"].map(|end| format!("{dir}{separator}{name}.{end}"));
    let next = format!("memgate test --policy {} {}", quoted(&policy), quoted(&cases));
    let made = match new_policy(&PolicyWish { name, about, paths, next: &next }) {
        Ok(made) => made,
        Err(Refusal::Unread(errors)) => {
            for error in &errors {
                terminal.input_error(&input_error(error));
            }
            return Ok(ExitStatus::Failed);
        }
        Err(refusal) => return Err(refusal.into()),
    };
    if !dir.is_empty() {
        fs::create_dir_all(dir).with_context(|| format!("failed to make the directory {dir}"))?;
    }
    write_new(&policy, &made.policy)?;
    if let Err(error) = write_new(&cases, &made.cases) {
        // The command can then be repeated.
        let _removed = fs::remove_file(&policy);
        return Err(error);
    }
    terminal.note(&plain(&format!("wrote {policy} and {cases}; run the cases, then edit both:")));
    terminal.out(format!("{next}\n").as_bytes())?;
    Ok(ExitStatus::Clean)
}

/// Writes a file that must not exist yet.
fn write_new(path: &str, text: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        fs::symlink_metadata(Path::new(path)).is_err(),
        "{path} exists already; nothing was written"
    );
    let mut file = fs::File::create_new(path).with_context(|| format!("failed to write {path}"))?;
    file.write_all(text.as_bytes()).with_context(|| format!("failed to write {path}"))
}
