//! Text from outside, made fit for a terminal and for a shell's `jq -r`, in the types of reports.

use crate::sample::text;

pub(super) use crate::sample::text::wrap;

/// The text with every character that a terminal would obey or hide replaced by a visible one.
pub(super) fn clean(text: &str) -> String {
    text::clean(text).into_owned()
}

/// [`clean`], and `?` for what is not ASCII where that is asked for.
pub(super) fn clean_for(text: &str, ascii: bool) -> String {
    if ascii { text::clean_ascii(text).into_owned() } else { clean(text) }
}

/// Columns of a clean text.
pub(super) fn width(clean: &str) -> usize {
    text::width(clean)
}

/// A text in no more than `columns`, with a mark where it is cut.
pub(super) fn fit(clean: &str, columns: usize, ascii: bool) -> String {
    text::fit(clean, columns, if ascii { "~" } else { "…" }, ascii).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(clean("a\u{1b}[2Jb\n\u{9b}c\u{202e}d\t"), "a␛[2Jb␊�c�d ");
        assert_eq!(clean_for("für", true), "f?r");
        assert_eq!(fit("日本語テキスト", 6, false), "日本…");
        assert_eq!(fit("python train.py", 8, true), "python ~");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }

    proptest! {
        #[test]
        fn a_fit_text_is_never_too_wide(text in any::<String>(), columns in 0_usize..40) {
            let text = fit(&clean(&text), columns, false);
            prop_assert!(width(&text) <= columns);
        }
    }
}
