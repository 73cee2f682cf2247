//! A recording as a picture for a report: who held the memory of each GPU over time.
//!
//! Pure: ticks go in, the text of an SVG or the bytes of a PNG come out, and the same ticks always
//! give the same bytes. Both forms are drawn from one list of shapes.

mod axis;
mod collect;
mod layout;
mod png;
mod scene;
mod stack;
mod svg;

use std::collections::HashMap;

use crate::analyze::timeline::Marker;
use crate::ids::{Pid, Stamp};

pub use collect::{Collector, GpuPast, Held};
pub use layout::usual;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// It has less room than it needs.
    #[error(
        "{width}x{height} is too small for {}: it takes {least} at least{}",
        if *gpus == 1 { "1 GPU".to_owned() } else { format!("{gpus} GPUs") },
        if *gpus == 1 { "" } else { "; choose some of them with --gpu" }
    )]
    TooSmall {
        /// As asked for.
        width: u32,
        /// As asked for.
        height: u32,
        /// What it takes.
        least: Need,
        /// So many GPUs.
        gpus: usize,
    },
    /// Nothing was recorded.
    #[error("the recording holds nothing in this stretch of time")]
    Empty,
    /// The encoder failed.
    #[error("the picture cannot be encoded: {0}")]
    Png(String),
}

/// A size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Everything that is shown.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The machine's name. Hostile text.
    pub host: Option<String>,
    /// The driver's version. Hostile text.
    pub driver: Option<String>,
    /// Both ends of the axis of time.
    pub from: Stamp,
    /// The later one.
    pub to: Stamp,
    /// Local time, in seconds east of UTC.
    pub utc_offset_s: i32,
    /// What was held.
    pub gpus: Vec<GpuPast>,
    /// What processes are called. Hostile text.
    pub names: HashMap<Pid, String>,
    /// What happened, in the order of time.
    pub markers: Vec<Marker>,
}

impl Figure {
    /// Of what was gathered; `host` and `driver` as the recording itself says, where it does.
    ///
    /// # Errors
    /// Where nothing was gathered.
    pub fn new(mut collected: Collector, utc_offset_s: i32) -> Result<Self, PictureError> {
        collected.finish();
        let (from, mut to) = collected.span.ok_or(PictureError::Empty)?;
        if to.boot_ms == from.boot_ms {
            // One moment lasts as long as the samples of it.
            let ends = collected.gpus.iter().flat_map(|past| &past.held).map(|held| held.until_ms);
            let until_ms = ends.max().unwrap_or(0).max(from.boot_ms + 1_000);
            let more = until_ms - from.boot_ms;
            to = Stamp { boot_ms: until_ms, wall_ms: to.wall_ms + more };
        }
        let markers = collected.line.markers().into_iter().cloned().collect();
        Ok(Self {
            host: collected.host,
            driver: collected.driver,
            from,
            to,
            utc_offset_s,
            gpus: collected.gpus,
            names: collected.names,
            markers,
        })
    }

    /// Laid out for this size in pixels.
    ///
    /// # Errors
    /// Where that is too small.
    pub fn laid_out(&self, size: (u32, u32)) -> Result<LaidOut, PictureError> {
        Ok(LaidOut(layout::scene(self, size)?))
    }
}

/// A figure of one size: what both forms are written from.
#[derive(Debug, Clone, PartialEq)]
pub struct LaidOut(scene::Scene);

impl LaidOut {
    /// As SVG.
    pub fn svg(&self) -> String {
        svg::write(&self.0)
    }

    /// As PNG.
    ///
    /// # Errors
    /// Where the encoder fails.
    pub fn png(&self) -> Result<Vec<u8>, PictureError> {
        png::write(&self.0)
    }

    /// Texts in such a PNG that have letters which its font lacks: a box stands for each of them.
    pub fn unshown_in_png(&self) -> usize {
        png::unshown(&self.0)
    }
}
