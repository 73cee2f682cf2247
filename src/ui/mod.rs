//! The live view: state, keys, panes. Pure.
