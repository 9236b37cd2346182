//! Numbers as Go's JSON has them, where a whole number is an integer however it is written; counts in messages.

/// The end of a list in a message: ` and 2 more`; empty for 0.
pub fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and {count} more") }
}

/// The integer that a number is; `None` when it has a fraction or does not fit 64 bits.
pub fn whole(number: f64) -> Option<i64> {
    /// 2^63, the first double beyond `i64`.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "used only where it is integral and within bounds")]
    let integer = number as i64;
    (number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number)).then_some(integer)
}
