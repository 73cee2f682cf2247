//! Parses, calls the library, maps to an exit code.

fn main() {}
