//! Model files and their memory arithmetic.
//!
//! ```text
//!   GGUF ─┐
//!   safetensors + config.json ─┼─► Shape (layers, heads, widths) + Weights (bytes by place)
//!   "70B" ─┘                          │
//!                         kv · compute · plan · torch · vllm · training · diffusion
//!                                     │
//!                              best (what fits) · savings (what a fix frees)
//! ```
//!
//! Only headers are read, and no length in them is trusted. What follows from them is pure
//! integer arithmetic.

pub mod best;
pub mod compute;
pub mod diffusion;
mod error;
mod facts;
mod from_config;
mod from_gguf;
pub mod ggml;
pub mod gguf;
pub mod kv;
mod load;
pub mod need;
pub mod overhead;
mod parts;
pub mod plan;
mod prefill;
pub mod quant;
mod read;
pub mod safetensors;
pub mod savings;
pub mod segments;
pub mod shape;
pub mod template;
pub mod torch;
pub mod training;
pub mod weights;

pub use error::ModelError;
pub use facts::{ModelFacts, facts};
pub use from_config::{quantisation, shape as shape_of_config};
pub use from_gguf::shape as shape_of_gguf;
pub use load::{Format, Kind, Model};
