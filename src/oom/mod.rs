//! Out-of-memory messages: one file per family of software.
//!
//! ```text
//! bytes → decode → condense (first pass, any size, bounded memory) → Digest
//!                     Digest → events (tables of signatures) + clues
//!                            → judge (which one decided) → numbers → diagnose (the ladder)
//!                            → advice, ledger → Explanation
//! ```

mod advice;
mod by_frame;
mod clues;
mod condense;
mod decode;
mod diagnose;
mod engines;
mod events;
mod explanation;
mod facts;
mod figures;
pub mod fixes;
mod frames;
mod gather;
mod growth;
mod harmless;
mod judge;
mod ledger;
mod limits;
mod lines;
mod live;
mod numbers;
mod page;
mod pattern;
mod prefix;
mod signatures;
mod size;
mod stream;
mod tables;
mod text;

pub use advice::{Advice, Saves, TITLES, When, line_for, of_transformers};
pub use diagnose::{Confidence, Diagnosis};
pub use explanation::{Explanation, OtherProcess, Quote};
pub use ledger::{Entry, Ledger};
pub use live::{Live, LiveHolder};
pub use text::report;

/// Reads a log piece by piece and explains it at its end. Memory is bounded whatever the log's
/// size, and the work grows with it in proportion.
#[derive(Debug)]
pub struct Scanner {
    decoder: decode::Decoder,
    condenser: condense::Condenser,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// An empty scanner.
    pub fn new() -> Self {
        Self { decoder: decode::Decoder::default(), condenser: condense::Condenser::new() }
    }

    /// Takes the next bytes, in pieces of any size.
    pub fn push(&mut self, bytes: &[u8]) {
        let condenser = &mut self.condenser;
        self.decoder.push(bytes, &mut |bytes| condenser.push(bytes));
    }

    /// The end of the log.
    pub fn finish(self) -> Explanation {
        self.finish_counted().0
    }

    /// The end of the log, and the work that it took in bytes touched: a figure for tests, which
    /// must stay in proportion to the input.
    #[doc(hidden)]
    pub fn finish_counted(mut self) -> (Explanation, u64) {
        let condenser = &mut self.condenser;
        self.decoder.finish(&mut |bytes| condenser.push(bytes));
        let digest = self.condenser.finish();
        let steps = digest.steps;
        (Explanation::new(&judge::Case::new(digest)), steps)
    }
}

/// Explains a whole text.
pub fn explain(text: &[u8]) -> Explanation {
    let mut scanner = Scanner::new();
    scanner.push(text);
    scanner.finish()
}
