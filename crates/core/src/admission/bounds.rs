//! How long the texts of a response may be.

/// Takes so many bytes if they are left, and returns whether it did. If not, it takes all that is left, so that later
/// texts do not fit either.
pub(super) fn takes(left: &mut usize, bytes: usize) -> bool {
    let room = left.checked_sub(bytes);
    *left = room.unwrap_or_default();
    room.is_some()
}

/// How many bytes a text without control characters has in JSON.
pub(super) fn json_bytes(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind_what_does_not_fit() {
        let mut left = 5;
        assert!(takes(&mut left, 3) && !takes(&mut left, 3) && !takes(&mut left, 1));
        assert_eq!(json_bytes("a\"\\"), 5);
    }
}
