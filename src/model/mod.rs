//! Model files and their memory arithmetic.
