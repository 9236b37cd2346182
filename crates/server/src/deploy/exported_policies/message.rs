//! The message of a check, as an expression about its first fault.

use memgate_model::cel_view::{CelFault, MessagePart};
use memgate_policy::in_cel::{literal, shown_in_cel};

/// The message: the field, the fault, and the rule. `faults` is the variable with the faults; `instead` is the message of
/// the policy's author.
pub(super) fn expression(fault: &CelFault, faults: &str, instead: Option<&str>, end: &str) -> String {
    let words = fault.words.max(2);
    let word = |index: usize| format!("{faults}[0].split(' ', {words})[{index}]");
    let mut texts = Vec::new();
    let parts = match instead {
        Some(text) => vec![MessagePart::Text(text.to_owned())],
        None => fault.message.clone(),
    };
    let mut pending = ": ".to_owned();
    texts.push(word(0));
    for part in parts {
        match part {
            MessagePart::Text(text) => pending.push_str(&text),
            MessagePart::Plain(index) => {
                // The last word is made of parts that are shown already, or is a number.
                texts.extend([literal(&std::mem::take(&mut pending)), word(index)]);
            }
            MessagePart::Quoted(index) => {
                pending.push('"');
                texts.extend([literal(&std::mem::take(&mut pending)), shown_in_cel(&word(index))]);
                pending.push('"');
            }
        }
    }
    pending.push_str(end);
    texts.push(literal(&pending));
    texts.join(" + ")
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
        let fault = CelFault { list: String::new(), words: 2, message, transition: false };
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
