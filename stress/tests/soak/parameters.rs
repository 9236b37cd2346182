//! The parameters of one run: what was given as `KEY=VALUE`, and the scenario's own values for the
//! rest.

use std::{collections::BTreeMap, fmt, time::Duration};

use anyhow::{Context, Result, bail};

/// All parameters of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Parameters(BTreeMap<&'static str, String>);

#[allow(dead_code, reason = "each scenario uses the part of it that it needs")]
impl Parameters {
    /// Takes what was given over what the scenario has.
    ///
    /// # Errors
    /// When an argument is not `KEY=VALUE`, or the scenario has no such parameter.
    pub(crate) fn read(usual: &[(&'static str, &'static str)], given: &[String]) -> Result<Self> {
        let mut values: BTreeMap<_, _> =
            usual.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        for given in given {
            let (key, value) = given.split_once('=').with_context(|| format!("{given} is not KEY=VALUE"))?;
            match values.iter_mut().find(|(name, _)| **name == key) {
                Some((_, old)) => value.clone_into(old),
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
