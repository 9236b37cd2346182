//! Flags that take one of a few names.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Parses one of these names to its value.
pub fn choice<T: Clone + Send + Sync + 'static, const N: usize>(
    all: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|(name, _)| *name));
    let value = move |wanted: String| all.iter().find(|(name, _)| *name == wanted).map(|(_, it)| it.clone());
    names.try_map(move |wanted| value(wanted).ok_or("no such choice"))
}
