//! The recording: format, writer, damage-tolerant reader.
