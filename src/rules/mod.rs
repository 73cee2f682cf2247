//! The nine fixes as pure functions of the view.
