//! Arguments, settings and generated documents.
