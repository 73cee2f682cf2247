//! The texts of the nine fixes, and three answers to common questions.

/// A text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixText {
    /// 1 to 9 for the fixes, 10 to 12 for the answers.
    pub number: u8,
    /// A short name, as `vramlens fixes NAME` takes it.
    pub key: &'static str,
    /// Markdown, with lines of code indented by four.
    pub text: &'static str,
}

impl FixText {
    /// Its first line without the mark of a title.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

macro_rules! texts {
    ($($number:literal $key:literal $file:literal),* $(,)?) => {
        /// Every text, in order.
        pub static TEXTS: &[FixText] = &[$(FixText {
            number: $number,
            key: $key,
            text: include_str!(concat!("../../assets/fixes/", $file)),
        }),*];
    };
}

texts! {
    1 "context" "1-context.md",
    2 "four-bit" "2-four-bit.md",
    3 "holders" "3-holders.md",
    4 "smaller-step" "4-smaller-step.md",
    5 "offload" "5-offload.md",
    6 "fragmentation" "6-fragmentation.md",
    7 "checkpointing" "7-checkpointing.md",
    8 "desktop" "8-desktop.md",
    9 "accept" "9-accept.md",
    10 "after-ten-minutes" "10-after-ten-minutes.md",
    11 "system-ram" "11-system-ram.md",
    12 "no-caching" "12-no-caching.md",
}

/// The text of a number or a key.
pub fn find(which: &str) -> Option<&'static FixText> {
    TEXTS.iter().find(|text| text.key == which || text.number.to_string() == which)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::TITLES;

    #[test]
    fn the_nine_are_there_and_say_all_five_things() {
        for (number, text) in TEXTS.iter().enumerate() {
            assert_eq!(usize::from(text.number), number + 1);
            assert!(text.text.lines().all(|line| line.chars().count() <= 80), "{}", text.key);
            assert!(text.text.starts_with("# ") && text.text.ends_with('\n'), "{}", text.key);
            if number < TITLES.len() {
                for part in [
                    "**When",
                    "**How much.**",
                    "**The line.**",
                    "**What it costs.**",
                    "**What it does not do.**",
                ] {
                    assert!(text.text.contains(part), "{}: {part}", text.key);
                }
                assert!(
                    text.title().to_lowercase().contains(&TITLES[number].to_lowercase()),
                    "{}",
                    text.title()
                );
            }
        }
        assert_eq!(find("6").map(|text| text.key), Some("fragmentation"));
        assert_eq!(find("holders").map(|text| text.number), Some(3));
        assert_eq!(find("13"), None);
    }
}
