//! The tables of known messages, one file per family of software. Help, the byte scanner, the
//! reader and the tests all come from these rows.

mod apps;
mod cuda_malloc_async;
mod driver;
pub(super) mod host;
mod host_programs;
mod jax;
mod libraries;
mod llama_cpp;
mod not_memory;
mod ollama;
mod python_gpu;
mod runtimes;
pub(super) mod science;
mod sglang;
mod tensorflow;
mod text_servers;
mod torch;
mod vllm;

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Memory of a GPU ran out: an engine's own message, which names the stage.
    Engine,
    /// Memory of a GPU ran out: an allocator's message.
    Gpu,
    /// The same without a figure, in the driver's words.
    Driver,
    /// A bare mention: counts only where nothing else is found.
    Bare,
    /// A figure or a stage that belongs to a message near it.
    Detail,
    /// Memory of the host ran out.
    Host,
    /// A kill that the host's memory is the likely reason of.
    Killed,
    /// Another resource, or another fault.
    Other,
    /// What comes after it was caused by this and is no shortage of memory.
    Cause,
    /// The program went on in another way.
    Recovered,
    /// Only says that something else failed.
    Wrapper,
}

impl Class {
    /// Whether the surroundings are worth keeping.
    pub(super) const fn is_error(self) -> bool {
        !matches!(self, Self::Detail)
    }

    /// Whether it says that a GPU's memory ran out.
    pub(super) const fn is_gpu(self) -> bool {
        matches!(self, Self::Engine | Self::Gpu | Self::Driver | Self::Bare)
    }
}

/// Where a program was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    /// Nothing says it.
    Unknown,
    /// Before anything was loaded: the free memory was too little.
    Startup,
    /// Loading weights.
    Weights,
    /// Making or growing the cache of keys and values.
    Kv,
    /// The token pool of a server is full.
    TokenPool,
    /// Buffers of a compute graph.
    Compute,
    /// Recording CUDA graphs.
    Capture,
    /// A trial run at the largest sizes.
    Warmup,
    /// Creating the optimizer's state.
    Optimizer,
    /// Computing gradients.
    Backward,
    /// A loss, or its logits.
    Loss,
    /// Scores of attention.
    Attention,
    /// Decoding latents into pictures or frames.
    Decode,
    /// A forward pass.
    Forward,
    /// Making a handle or a context.
    Handle,
    /// A collective operation's own buffers.
    Collective,
    /// An arena that never shrinks is at its limit.
    Arena,
}

/// A known message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature {
    /// Stable key.
    pub id: &'static str,
    /// Whose message it is; `any` where several write it.
    pub software: &'static str,
    pub class: Class,
    pub stage: Stage,
    /// Short texts that the byte scanner looks for; a wrapped message still has one of them whole.
    /// The first one stands once in each occurrence.
    pub anchors: &'static [&'static str],
    /// The message, in the language of [`super::pattern`].
    pub pattern: &'static str,
    /// What it means, for a person.
    pub meaning: &'static str,
}

/// Every row.
pub(super) fn all() -> impl Iterator<Item = &'static Signature> {
    [
        torch::TABLE,
        cuda_malloc_async::TABLE,
        vllm::TABLE,
        sglang::TABLE,
        text_servers::TABLE,
        ollama::TABLE,
        llama_cpp::TABLE,
        tensorflow::TABLE,
        jax::TABLE,
        python_gpu::TABLE,
        runtimes::TABLE,
        apps::TABLE,
        libraries::TABLE,
        driver::TABLE,
        science::TABLE,
        host::TABLE,
        host_programs::TABLE,
        not_memory::TABLE,
    ]
    .into_iter()
    .flatten()
}

/// A row of a table.
macro_rules! row {
    ($id:literal, $software:literal, $class:ident, $stage:ident, [$($anchor:literal),*],
     $pattern:expr, $meaning:literal) => {
        crate::oom::signatures::Signature {
            id: $id,
            software: $software,
            class: crate::oom::signatures::Class::$class,
            stage: crate::oom::signatures::Stage::$stage,
            anchors: &[$($anchor),*],
            pattern: $pattern,
            meaning: $meaning,
        }
    };
}
use row;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::oom::pattern::Pattern;

    #[test]
    fn every_row_can_be_found() {
        let mut ids = BTreeSet::new();
        let mut untold = Vec::new();
        for row in all() {
            assert!(ids.insert(row.id), "{} twice", row.id);
            assert!(Pattern::new(row.pattern).head().len() >= 6, "{}: too short a head", row.id);
            assert!(!row.anchors.is_empty() && !row.meaning.is_empty(), "{}", row.id);
            let text = row.pattern.replace(['⟦', '⟧'], " ").to_lowercase();
            let anchor = row.anchors[0].to_lowercase();
            let told = anchor.split_whitespace().all(|word| text.contains(word));
            if !told {
                untold.push(row.id);
            }
        }
        assert!(untold.is_empty(), "the first anchor is not in the text of {untold:?}");
    }
}
