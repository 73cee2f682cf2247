//! Text, JSON and metrics made from a view.
