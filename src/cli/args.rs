//! The command line, as it was typed.

mod recordings;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli::generate::GenArgs;
use crate::cli::help::KILL_USAGE;

pub use recordings::{RecordArgs, ReplayArgs};

/// Who holds the memory of an NVIDIA GPU, which of it is garbage, whether it is used or only held,
/// and what to do now.
#[derive(Debug, Parser)]
#[command(name = "vramlens", version, disable_version_flag = true)]
pub struct Cli {
    /// What to do; the live view without one.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print the version; with --verbose all that a report of a fault needs, and nothing private.
    #[arg(long, short = 'V')]
    pub version: bool,
    /// Say more: with --version.
    #[arg(long, short = 'v', requires = "version")]
    pub verbose: bool,
    /// Print one frame as text and end.
    #[arg(long, conflicts_with = "demo")]
    pub once: bool,
    /// Show a recording of a real GPU that is built in.
    #[arg(long)]
    pub demo: bool,
    /// What is to be started: the view says whether it fits, and after which of the fixes: 12GiB.
    #[arg(long, value_name = "SIZE")]
    pub need: Option<String>,
    /// The options of every command.
    // The heading holds for all that comes behind it.
    #[command(flatten, next_help_heading = "Options of every command")]
    pub common: Common,
}

/// Options that read the same everywhere.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// Read this configuration instead of the usual one.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep a log in this file: starts, faults, alerts, and what was ended.
    #[arg(long, global = true, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a
    /// card that is not here: 24GiB.
    #[arg(long, global = true, value_name = "LIST")]
    pub gpu: Option<String>,
    /// Time between two looks: 500ms, 1s, 1m.
    #[arg(long, global = true, value_name = "TIME")]
    pub interval: Option<String>,
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN")]
    pub color: Option<ColorWhen>,
    /// The theme of the live view; `vramlens config --themes` lists them.
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,
    /// Any setting: --set kill.confirm=false.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Draw with ASCII characters only.
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Ask the driver in a process of its own: one that hangs or crashes is replaced.
    #[arg(long, global = true)]
    pub isolate: bool,
    /// Show this machine, by ssh; several where it is given several times. `local` is this one,
    /// `all` the list in the configuration. For the live view, --once, --json, triage and kill.
    #[arg(long, global = true, value_name = "USER@HOST")]
    pub host: Vec<String>,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal that has it, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
    /// The terminal's own sixteen colours.
    #[value(name = "16")]
    Ansi,
    /// 256 colours.
    #[value(name = "256")]
    Indexed,
    /// 24-bit colours.
    #[value(name = "24bit")]
    True,
}

impl ColorWhen {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Auto, Self::Always, Self::Never, Self::Ansi, Self::Indexed, Self::True];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
            Self::Ansi => "16",
            Self::Indexed => "256",
            Self::True => "24bit",
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report who holds the memory, what is garbage and what to type; for scripts and SSH.
    Triage(TriageArgs),
    /// End holders safely, and say how much memory came back.
    Kill(KillArgs),
    /// Read an out-of-memory error or a log, say what happened and what to do.
    Explain(ExplainArgs),
    /// Say what of a model fits into which GPU.
    Fit(FitArgs),
    /// Print the nine fixes for CUDA out of memory.
    Fixes(FixesArgs),
    /// Run a command under watch; after an out-of-memory error say what happened and what to do.
    ///
    /// What is said goes to standard error, behind the command's own output. With --json it is one
    /// object in one line, the last.
    Run(RunArgs),
    /// Keep a session in a file, or write it to standard output with `-`.
    ///
    /// It shows nothing: to watch at the same time, run `vramlens` in another terminal.
    Record(RecordArgs),
    /// Show a recorded session.
    Replay(ReplayArgs),
    /// Export metrics for Prometheus.
    ///
    /// Of root's rights, or of capabilities, it keeps what it takes to look at processes of other
    /// users (CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH) and to write the file of --textfile, and gives up
    /// the others once it has begun.
    Serve(ServeArgs),
    /// Say what can and cannot be seen on this machine, and how to mend it.
    Doctor(DoctorArgs),
    /// Print completions for a shell, or the manual; for whoever installs this program.
    Gen(GenArgs),
    /// Show every setting, its value and where that comes from.
    Config(ConfigArgs),
    /// The process that asks the driver for `--isolate`.
    #[command(hide = true)]
    Driver(DriverArgs),
}

/// `vramlens triage`.
#[derive(Debug, Args)]
pub struct TriageArgs {
    /// Say whether this much fits now (ends with 0, else with 1), and after which of the fixes: 12GiB.
    /// With several --host it ends with 0 where it fits on one of them.
    #[arg(long, value_name = "SIZE")]
    pub need: Option<String>,
}

/// `vramlens kill`.
#[derive(Debug, Args)]
#[command(override_usage = KILL_USAGE)]
pub struct KillArgs {
    /// Whom to end.
    #[arg(value_name = "PID", required_unless_present = "zombies")]
    pub pids: Vec<u32>,
    /// Every zombie: holders that nobody wants, by the evidence.
    #[arg(long, conflicts_with = "pids")]
    pub zombies: bool,
    /// Only show what would be ended.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// End with KILL at once.
    #[arg(long)]
    pub now: bool,
    /// Also what other programs need (display servers, daemons), after a second question.
    #[arg(long)]
    pub protected: bool,
}

/// `vramlens explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The message or log; standard input without one, or with `-`.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Do not ask the driver of this machine who holds the rest.
    #[arg(long)]
    pub alone: bool,
    /// Complete the answer from this recording, which covers the time of the error.
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,
}

/// `vramlens fixes`.
#[derive(Debug, Args)]
pub struct FixesArgs {
    /// Only this one: 1 to 12, or a key of the list.
    #[arg(value_name = "N")]
    pub which: Option<String>,
}

/// `vramlens fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// A GGUF file, a folder with config.json, a size such as 70B, a pipeline such as sdxl.
    #[arg(value_name = "MODEL")]
    pub model: Option<String>,
    /// Context in tokens: 8192, 8k, 1m.
    #[arg(long, short = 'c', value_name = "TOKENS")]
    pub context: Option<String>,
    /// Type of the KV cache, or of its keys and values: q8_0, or q8_0,q4_0.
    #[arg(long, value_name = "TYPE")]
    pub cache_type: Option<String>,
    /// Sequences at once.
    #[arg(long, value_name = "N")]
    pub parallel: Option<u64>,
    /// Tokens of a micro-batch.
    #[arg(long, value_name = "N")]
    pub ubatch: Option<u64>,
    /// Layers on the GPU; all without it.
    #[arg(long, value_name = "N")]
    pub gpu_layers: Option<u64>,
    /// Layers whose experts stay on the CPU.
    #[arg(long, value_name = "N")]
    pub cpu_experts: Option<u64>,
    /// Quantisation to compute for: Q4_K_M, Q8_0, …
    #[arg(long, value_name = "TYPE")]
    pub quant: Option<String>,
    /// A vision or audio encoder to load beside it.
    #[arg(long, value_name = "FILE")]
    pub mmproj: Option<String>,
    /// What to leave free; without it what the error bands ask for.
    #[arg(long, value_name = "SIZE")]
    pub margin: Option<String>,
    /// What CUDA itself takes; without it what such a card usually shows.
    #[arg(long, value_name = "SIZE")]
    pub overhead: Option<String>,
    /// Without flash attention.
    #[arg(long)]
    pub no_flash_attention: bool,
    /// Layers with a sliding window keep the whole context.
    #[arg(long)]
    pub swa_full: bool,
    /// The KV cache stays in host memory.
    #[arg(long)]
    pub no_kv_offload: bool,
    /// Weights on the CPU are never copied to the GPU.
    #[arg(long)]
    pub no_op_offload: bool,
    /// Tokens that the model's own layers guess ahead, where it has some.
    #[arg(long, value_name = "N")]
    pub draft: Option<u64>,
    /// Each sequence has a cache of its own share of the context (`--no-kv-unified`).
    #[arg(long)]
    pub kv_per_slot: bool,
    /// Builds of llama.cpp to compute for: new, old or ik.
    #[arg(long, value_name = "ERA")]
    pub era: Option<String>,
}

/// `vramlens run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Keep the session in this file, for `vramlens replay`.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Say nothing about a command that ends well.
    #[arg(long, short = 'q')]
    pub quiet: bool,
    /// Stand between, on a terminal; the number of the socket to whoever started this.
    #[arg(long, hide = true, value_name = "NUMBER")]
    pub monitor: Option<i32>,
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// `vramlens serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; 127.0.0.1:9835 without a word, nowhere with --textfile alone.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Let other machines in, where the address does.
    #[arg(long)]
    pub allow_remote: bool,
    /// Ask readers for the bearer token in this file.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Holders of one GPU that have series of their own; the rest is summed.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub holders: usize,
    /// Also read the traffic on the bus, which takes 20 ms a counter.
    #[arg(long)]
    pub pcie: bool,
    /// Write FILE for the textfile collector of node_exporter, such as
    /// /var/lib/node_exporter/vramlens.prom.
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
}

/// `vramlens doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Ask the driver although that wakes a GPU that sleeps.
    #[arg(long)]
    pub wake: bool,
}

/// `vramlens driver`, which only this program itself starts.
#[derive(Debug, Args)]
pub struct DriverArgs {
    /// Who started it.
    #[arg(long, value_name = "PID")]
    pub parent: i32,
    /// The driver's library.
    #[arg(long, value_name = "FILE")]
    pub library: String,
    /// Let go of a GPU that nobody uses.
    #[arg(long)]
    pub let_sleep: bool,
    /// Ask GPUs that sleep too.
    #[arg(long)]
    pub wake: bool,
    /// Watch for faults that the driver reports.
    #[arg(long)]
    pub events: bool,
}

/// `vramlens config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Print the example file instead.
    #[arg(long, conflicts_with = "themes")]
    pub example: bool,
    /// List the themes instead, with what is wrong with those that cannot be read; or print the
    /// file of one, to begin an own one with.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub themes: Option<String>,
}
