//! The message of a check, as an expression about its first fault.

use memgate_model::cel_view::{CelFault, MessagePart};
use memgate_policy::in_cel::message;

/// The message: the field, the fault, and the rule. `faults` is the variable with the faults; `instead` is the message of
/// the policy's author.
pub(super) fn expression(fault: &CelFault, faults: &str, instead: Option<&str>, end: &str) -> String {
    let words = fault.words.max(2);
    let word = |index: usize| format!("{faults}[0].split(' ', {words})[{index}]");
    let parts = match instead {
        Some(text) => vec![MessagePart::Text(text.to_owned())],
        None => fault.message.clone(),
    };
    format!("{} + {}", word(0), message(&parts, (": ", end), word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_first_fault() {
        let message = vec![
            MessagePart::Text("TTL of ".to_owned()),
            MessagePart::Plain(1),
            MessagePart::Text("s is above 1d".to_owned()),
        ];
        let fault = CelFault {
            list: String::new(),
            words: 2,
            message,
            stored: memgate_model::cel_view::StoredFault::Equal,
        };
        assert_eq!(
            expression(&fault, "variables.x", None, " (memgate policy p/r)"),
            "variables.x[0].split(' ', 2)[0] + ': TTL of ' + variables.x[0].split(' ', 2)[1] + 's is above 1d (memgate policy p/r)'"
        );
        assert_eq!(
            expression(&fault, "variables.x", Some("it's long"), " (memgate policy p/r)"),
            r"variables.x[0].split(' ', 2)[0] + ': it\'s long (memgate policy p/r)'"
        );
    }
}
