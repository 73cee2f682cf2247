//! Several machines: the stream of each comes by `ssh`, or from this machine's own program.
//!
//! ```text
//! thread link   starts the program, reads its stream, waits and tries again when it ends
//! thread ask    writes requests to it
//! thread said   keeps the last lines of what it says on standard error
//!        └──► Inbox, one a machine: bounded, losses counted ──► Fleet, which the loop owns
//! ```
//!
//! The far end is not trusted: its lines are bounded, its texts are cleaned before they are shown,
//! what it offers to end is shown as its own word, and nothing of it is ever run here.

mod backoff;
pub mod far;
pub mod fleet;
mod host;
mod inbox;
mod link;
pub mod machine;

pub use host::{BadHost, Host, LOCAL};

/// How machines are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Which ones.
    pub hosts: Vec<Host>,
    /// The program that connects, and its first arguments.
    pub ssh: Vec<String>,
    /// What is run at the far end.
    pub command: Vec<String>,
    /// The configuration for this machine's own stream.
    pub config: Option<std::path::PathBuf>,
    /// Milliseconds between two looks.
    pub interval_ms: u64,
}
