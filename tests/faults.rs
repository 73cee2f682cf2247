//! Things that fail one at a time, and in pairs: the driver, the disk, `/proc`, the kernel's calls.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "faults/disk.rs"]
mod disk;
#[path = "faults/driver.rs"]
mod driver;
#[path = "support/fake.rs"]
mod fake;
#[path = "faults/files.rs"]
mod files;
#[path = "support/procs.rs"]
mod procs;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;
#[path = "support/real.rs"]
mod real;
#[path = "faults/sandbox.rs"]
mod sandbox;
#[path = "allocator/torch.rs"]
mod torch;
#[path = "faults/vanish.rs"]
mod vanish;
