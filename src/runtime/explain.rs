//! An error message that was pasted into the view.

use crate::analyze::View;
use crate::oom::{Scanner, report};

/// Title and lines of what it means, with what the machine shows.
pub fn lines(text: &str, view: &View) -> (String, Vec<String>) {
    let mut scanner = Scanner::new();
    scanner.push(text.as_bytes());
    let mut answer = scanner.finish();
    answer.join(view);
    ("what the error says".to_owned(), report(&answer).lines().map(ToOwned::to_owned).collect())
}
