//! Threads, the event loop, the terminal, signals and clocks.
