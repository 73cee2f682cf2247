//! Out-of-memory messages: one file per family of software.
