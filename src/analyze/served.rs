//! Which server a process works for, and what that server says of itself.

use super::scene::Scene;
use crate::sample::{ProcSample, Reading, ServerSample};

/// Generations between a worker that holds memory and the server that listens: vLLM has two.
const GENERATIONS: usize = 4;

/// What the process says of itself as a server, or the one above it that listens for it.
pub(super) fn said(scene: &Scene<'_>, process: &ProcSample) -> Option<Reading<ServerSample>> {
    let own = process.server.as_ref();
    let above = || {
        let ancestors = scene.ancestors(process);
        ancestors.iter().take(GENERATIONS).find_map(|above| above.server.as_ref())
    };
    own.or_else(above).cloned()
}
