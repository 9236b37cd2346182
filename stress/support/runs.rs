//! Named runs with parameters: without arguments a program lists them, with `NAME [KEY=VALUE]…` it runs one.

use std::{collections::BTreeMap, env, fmt, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};

/// One run.
pub(crate) struct Run {
    pub(crate) name: &'static str,
    /// What it does, in a line.
    pub(crate) about: &'static str,
    /// Its parameters with the values that they have when none are given: `KEY=VALUE`, with blanks between.
    pub(crate) parameters: &'static str,
    pub(crate) action: fn(&Parameters) -> Result<()>,
}

/// Does what the arguments of this program ask for. `noun` is what a run is called, `width` that of the names in the list.
pub(crate) fn main(
    (noun, width): (&str, usize),
    runs: &[Run],
    start: fn(&Run, &Parameters) -> Result<()>,
) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let list = || {
        for Run { name, about, parameters, .. } in runs {
            println!("{name:<width$} {about}\n{:<width$} {parameters}", "");
        }
    };
    let Some((name, given)) = arguments.split_first() else {
        list();
        return ExitCode::SUCCESS;
    };
    let Some(run) = runs.iter().find(|run| run.name == name) else {
        eprintln!("there is no {noun} {name}; there are:");
        list();
        return ExitCode::FAILURE;
    };
    match Parameters::read(run.parameters, given).and_then(|parameters| start(run, &parameters)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// All parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Parameters(BTreeMap<&'static str, String>);

impl Parameters {
    /// Takes what was given over the usual values.
    ///
    /// # Errors
    /// When an argument is not `KEY=VALUE`, or the run has no such parameter.
    fn read(usual: &'static str, given: &[String]) -> Result<Self> {
        let usual = usual.split_whitespace().filter_map(|parameter| parameter.split_once('='));
        let mut values: BTreeMap<_, _> = usual.map(|(key, value)| (key, value.to_owned())).collect();
        for given in given {
            let (key, value) = given.split_once('=').with_context(|| format!("{given} is not KEY=VALUE"))?;
            match values.get_mut(key) {
                Some(old) => value.clone_into(old),
                None => bail!("there is no parameter {key}; there are: {}", Self(values)),
            }
        }
        Ok(Self(values))
    }

    /// The text of a parameter.
    pub(crate) fn text(&self, key: &str) -> Result<&str> {
        let value = self.0.get(key).with_context(|| format!("the scenario has no parameter {key}"))?;
        Ok(value)
    }

    /// The text of a parameter, or another text when it is empty.
    pub(crate) fn text_or<'p>(&'p self, key: &str, other: &'p str) -> Result<&'p str> {
        Ok(Some(self.text(key)?).filter(|text| !text.is_empty()).unwrap_or(other))
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, key: &str) -> Result<u32> {
        let value = self.text(key)?;
        value.parse().with_context(|| format!("{key}={value} is not a number"))
    }

    /// A parameter that is a number of seconds.
    pub(crate) fn seconds(&self, key: &str) -> Result<Duration> {
        Ok(Duration::from_secs(self.number(key)?.into()))
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&values.join(" "))
    }
}
