//! `memgate policy`: new policies, and policies in other forms.

use std::fs;
use std::io::Write as _;
use std::path::{MAIN_SEPARATOR, Path};

use anyhow::Context as _;
use jiff::Timestamp;

use crate::cli::ExitStatus;
use crate::cli::families::FamilyArgs;
use crate::cli::input::load_policies;
use crate::cli::policies::parse_time;
use crate::cli::terminal::Terminal;
use memgate_install::exported_policies::{ExportOptions, LeftOut, export};
use memgate_install::metadata::DEFAULT_NAMESPACE;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::object::Reference;
use memgate_workbench::errors::input_error;
use memgate_workbench::inputs::Inputs;
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
    Export(Export),
}

/// Runs the command.
///
/// # Errors
/// When the files cannot be read, or the objects cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    match &args.command {
        Command::New(args) => run_new(args, terminal),
        Command::Export(args) => run_export(args, terminal),
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

/// Write MemoryPolicies as ValidatingAdmissionPolicies
///
/// The apiserver evaluates them itself, even if no memgate runs. There is one policy with its binding for each
/// platform and action: deny becomes Deny, warn becomes Warn, report becomes Audit. Some rules cannot be expressed in
/// CEL: rules about other objects and about pods, addresses, exemptions, promotions, defaults. They are listed on
/// standard error with the reason; the others are written all the same.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 all rules were exported, or --partial was given, 1 a rule was left
out, 2 a policy is invalid or cannot be read, 3 no policy was found.",
    after_long_help = "\
Examples:
  memgate policy export --to vap policies/
  memgate policy export --to vap --partial policies/baseline.yaml | kubectl apply -f -"
)]
struct Export {
    /// Files, directories, globs, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    /// Form: vap, for ValidatingAdmissionPolicies (admissionregistration.k8s.io/v1)
    #[arg(long, value_name = "FORM", value_parser = ["vap"])]
    to: String,

    /// Exit with 0 even if a rule was left out
    #[arg(long)]
    partial: bool,

    /// Time for promotions, such as 2027-02-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// Namespace in which no policy applies; repeatable
    ///
    /// No policy applies in kube-system and in memgate-system either.
    #[arg(long, value_name = "NAME")]
    policy_exclude_namespace: Vec<String>,

    #[command(flatten)]
    families: FamilyArgs,
}

/// Runs the command.
///
/// # Errors
/// When there is nothing to read, or the objects cannot be written.
fn run_export(args: &Export, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let Some(inputs) = load_policies(&args.paths, memgate_platforms::default_settings(), terminal)? else {
        return Ok(ExitStatus::Failed);
    };
    let policies = &inputs.snapshot.policies;
    if policies.is_empty() {
        terminal.note("error: no policy was found");
        return Ok(ExitStatus::Nothing);
    }
    let mut excluded = vec![DEFAULT_NAMESPACE.to_owned()];
    excluded.extend(args.policy_exclude_namespace.iter().cloned());
    let options = ExportOptions {
        families: &args.families.chosen(),
        excluded_namespaces: &excluded,
        now: args.at.unwrap_or_else(Timestamp::now),
    };
    let exported = export(policies, &options);
    let text = exported.render().context("failed to write the policies")?;
    terminal.raw(text.as_bytes())?;
    for left_out in &exported.left_out {
        terminal.note(&plain(&line(left_out, &inputs)));
    }
    let lost = exported.left_out.iter().filter(|it| it.is_loss).count();
    terminal.note(&summary(policies.iter().count(), exported.policies.len(), lost));
    Ok(if lost > 0 && !args.partial { ExitStatus::Denied } else { ExitStatus::Clean })
}

fn summary(policies: usize, written: usize, lost: usize) -> String {
    let counted = |count: usize, of: &str| {
        if count == 1 { format!("1 {of}y") } else { format!("{count} {of}ies") }
    };
    let lost = if lost == 0 { "nothing".to_owned() } else { lost.to_string() };
    format!(
        "{}: {}, {lost} left out",
        counted(policies, "polic"),
        counted(written, "ValidatingAdmissionPolic")
    )
}

/// A rule that was left out, with its place in front.
fn line(left_out: &LeftOut, inputs: &Inputs) -> String {
    let object = Reference { kind: &MEMORY_POLICY, namespace: String::new(), name: left_out.policy.clone() };
    match inputs.places.describe(&object, &left_out.pointer) {
        Some(place) => format!("{place}: {left_out}"),
        None => left_out.to_string(),
    }
}
