//! An error message that was pasted into the view.

use crate::analyze::View;

/// Title and lines of what it means.
pub fn lines(text: &str, _view: &View) -> (String, Vec<String>) {
    ("explain".to_owned(), text.lines().map(ToOwned::to_owned).collect())
}
