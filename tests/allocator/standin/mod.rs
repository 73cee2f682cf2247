//! A stand-in for a PyTorch process: the same structures, without PyTorch and without a GPU.

pub mod memory;
mod publish;
pub mod shape;
pub mod world;
