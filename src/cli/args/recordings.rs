//! What is typed of recordings.

use std::path::PathBuf;

use clap::Args;

/// `vramlens record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Where to; `-` for plain lines on standard output.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// End after this time: 30s, 10m, 2h.
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<String>,
    /// End when the file has this size.
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,
    /// Leave out arguments and names of users, host, units, jobs and models; no verdict changes by it.
    #[arg(long, conflicts_with = "answer")]
    pub redact: bool,
    /// Answer the requests that come as lines on standard input, and end with it: the far end of
    /// `vramlens --host`. Only with `-`.
    #[arg(long)]
    pub answer: bool,
}

/// `vramlens replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording; `-` for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How many times as fast; 1 where it is not given.
    #[arg(long, value_name = "N")]
    pub speed: Option<f64>,
    /// Print the last frame as text, or with --to that of a moment, and end.
    #[arg(long)]
    pub once: bool,
    /// Write a chart of the recording as SVG, and end; `-` for standard output.
    #[arg(long, value_name = "OUT", conflicts_with = "once")]
    pub svg: Option<PathBuf>,
    /// Write a chart of the recording as PNG, and end; `-` for standard output.
    #[arg(long, value_name = "OUT", conflicts_with = "once")]
    pub png: Option<PathBuf>,
    /// The chart begins here: 03:58, 2026-11-30 03:58, -10m (before the end), +5m (after the start).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// The chart ends here; with --once and --json the moment to print.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Size of the chart in pixels: 1200x600.
    #[arg(long, value_name = "WxH")]
    pub size: Option<String>,
}
