//! Rings of ticks: tiers, explicit gaps, growth, bounded memory.
