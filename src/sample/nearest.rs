//! The word that was probably meant, for messages about a word that does not exist.

/// No word further away is offered.
const MOST_EDITS: usize = 4;

/// The known word that is nearest to what was written; `None` where nothing is near.
pub fn nearest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let short = written.chars().count();
    let near = |word: &str| {
        let edits = distance(word, written);
        // Half of a short word is another word.
        let most = MOST_EDITS.min(short.max(2) / 2);
        (edits <= most).then_some(edits)
    };
    known.into_iter().filter_map(|word| Some((near(word)?, word))).min().map(|(_, word)| word)
}

/// `, did you mean WORD?`, or nothing.
pub fn did_you_mean<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    nearest(written, known).map(|word| format!(", did you mean {word}?")).unwrap_or_default()
}

/// Letters to put in, to leave out or to change between one word and the other.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_offered_and_a_far_one_is_not() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("intervall", ["interval", "idle_after"]), Some("interval"));
        assert_eq!(nearest("gpus", ["pid", "gpu", "user"]), Some("gpu"));
        assert_eq!(nearest("x", ["pid", "gpu"]), None);
        assert_eq!(nearest("colour of the bar", ["pid", "gpu"]), None);
        assert_eq!(did_you_mean("usr", ["user", "gpu"]), ", did you mean user?");
    }
}
