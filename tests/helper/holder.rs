//! A process for tests.
fn main() {}
