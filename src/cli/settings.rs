//! The settings: one table, from which the configuration file, the environment, the example file
//! and `vramlens config` are made.

use crate::analyze::alerts::AlertRules;
use crate::cli::args::ColorWhen;
use crate::cli::setting::BOOL;
pub use crate::cli::setting::{Kind, Origin, Setting};
use crate::cli::values::{column_words, log_size, program, threshold, time, words};
pub use crate::cli::values::{duration_ms, key_words};
use crate::runtime::alerts::Actions;
use crate::ui::time::ChartForm;
use crate::units::Bytes;

/// Every setting, resolved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Milliseconds between two looks.
    pub interval_ms: u64,
    /// When to use colour.
    pub color: ColorWhen,
    /// ASCII only.
    pub ascii: bool,
    /// The theme, by its name.
    pub theme: String,
    /// Whether a theme paints its background.
    pub background: bool,
    /// The columns of the table, each perhaps with its width.
    pub columns: Vec<String>,
    /// Other keys for some actions.
    pub keys: Vec<(String, Vec<String>)>,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// What charts are drawn with.
    pub chart: ChartForm,
    /// Without use for this long a process counts as idle, in milliseconds.
    pub idle_after_ms: u64,
    /// The request by which fragmentation is judged; zero for a tenth of what is reserved.
    pub request: Bytes,
    /// Whether a running process's allocator is read.
    pub allocator: bool,
    /// Whether a log is kept, where, and how much of it.
    pub log: crate::runtime::journal::LogSettings,
    /// Whether inference servers are asked about their memory.
    pub servers: bool,
    /// Whether `z` asks before it ends anything.
    pub kill_confirm: bool,
    /// The driver's library; empty for the usual one.
    pub nvml_library: String,
    /// Whether the driver is asked in a process of its own.
    pub isolate: bool,
    /// Whether a GPU that nobody uses is let go.
    pub let_sleep: bool,
    /// Only these GPUs; empty for all.
    pub gpus: String,
    /// What to tell of.
    pub alerts: AlertRules,
    /// How.
    pub alert_actions: Actions,
    /// What is run on other machines.
    pub remote_command: Vec<String>,
    /// The program that connects to them, and its first arguments.
    pub remote_ssh: Vec<String>,
    /// What `--host all` means.
    pub remote_hosts: Vec<String>,
}

const TIME: &str = "a time such as 500ms, 1s or 10m, from 100ms to 1h";
const WORDS: &str = "a list of words: [\"notify-send\", \"-u\", \"critical\"]";
const LOG_SIZE: &str = "a size from 4KiB to 1GiB";
const LOG_KEEP: &str = "a number from 0 to 99";
const COLOURS: &str = "auto, always, never, 16, 256 or 24bit";
const COLUMNS: &str = "a list of columns: [\"gpu\", \"pid\", \"user:12\", \"vram\", \"command\"]";

/// All settings, in the order of the example file.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "view.interval",
        env: "VRAMLENS_INTERVAL",
        default: "\"1s\"",
        doc: "Time between two looks at the driver, from 100ms to 1h.",
        apply: |s, v| time(v).map(|ms| s.interval_ms = ms).ok_or(TIME),
    },
    Setting {
        key: "view.color",
        env: "VRAMLENS_COLOR",
        default: "\"auto\"",
        doc: "When to use colour: auto, always or never; or how many: 16, 256 or 24bit. NO_COLOR in the environment turns auto off.",
        apply: |s, v| {
            let all = ColorWhen::ALL.into_iter();
            s.color = all.clone().find(|when| when.name() == v).ok_or(COLOURS)?;
            Ok(())
        },
    },
    Setting {
        key: "view.theme",
        env: "VRAMLENS_THEME",
        default: "\"terminal\"",
        doc: "The theme: terminal takes the terminal's own colours; `vramlens config --themes` lists all. Own ones are files: ~/.config/vramlens/themes/NAME.toml.",
        apply: |s, v| {
            v.clone_into(&mut s.theme);
            Ok(())
        },
    },
    Setting {
        key: "view.background",
        env: "VRAMLENS_BACKGROUND",
        default: "true",
        doc: "Whether a theme paints its background. With false the terminal's shows through.",
        apply: |s, v| v.parse().map(|on| s.background = on).or(Err(BOOL)),
    },
    Setting {
        key: "view.ascii",
        env: "VRAMLENS_ASCII",
        default: "false",
        doc: "Draw with ASCII characters only.",
        apply: |s, v| v.parse().map(|on| s.ascii = on).or(Err(BOOL)),
    },
    Setting {
        key: "view.mouse",
        env: "VRAMLENS_MOUSE",
        default: "true",
        doc: "Whether the mouse selects, scrolls and sorts. Hold shift to mark text all the same.",
        apply: |s, v| v.parse().map(|on| s.mouse = on).or(Err(BOOL)),
    },
    Setting {
        key: "view.chart",
        env: "VRAMLENS_CHART",
        default: "\"braille\"",
        doc: "What charts are drawn with: braille, or block for fonts without it. ASCII has its own.",
        apply: |s, v| {
            s.chart = match v {
                "braille" => ChartForm::Braille,
                "block" => ChartForm::Block,
                _ => return Err("braille or block"),
            };
            Ok(())
        },
    },
    Setting {
        key: "view.gpus",
        env: "VRAMLENS_GPUS",
        default: "\"\"",
        doc: "Only these GPUs: indexes or the beginnings of UUIDs, separated by commas.",
        apply: |s, v| {
            v.clone_into(&mut s.gpus);
            Ok(())
        },
    },
    Setting {
        key: "table.columns",
        env: "VRAMLENS_COLUMNS",
        default: r#"["gpu", "pid", "user", "state", "vram", "delta", "frag", "sm", "age", "cpu", "rss", "peak", "unit", "command"]"#,
        doc: "The columns of the table in their order, each with a width where that is not its own: user:12. Where the screen is narrow the least telling go first. The help page says what each one is.",
        apply: |s, v| column_words(v).map(|words| s.columns = words).ok_or(COLUMNS),
    },
    Setting {
        key: "verdict.idle_after",
        env: "VRAMLENS_IDLE_AFTER",
        default: "\"10m\"",
        doc: "Without use of the GPU for this long a process counts as idle.",
        apply: |s, v| time(v).map(|ms| s.idle_after_ms = ms).ok_or(TIME),
    },
    Setting {
        key: "allocator.read",
        env: "VRAMLENS_ALLOCATOR_READ",
        default: "true",
        doc: "Read the caching allocator of running PyTorch processes (reads only, never stops them).",
        apply: |s, v| v.parse().map(|on| s.allocator = on).or(Err(BOOL)),
    },
    Setting {
        key: "allocator.request",
        env: "VRAMLENS_ALLOCATOR_REQUEST",
        default: "\"0\"",
        doc: "The size of the request by which fragmentation is judged; 0 for a tenth of what is reserved.",
        apply: |s, v| v.parse().map(|size| s.request = size).or(Err("a size such as 512M or 2GiB")),
    },
    Setting {
        key: "servers.ask",
        env: "VRAMLENS_SERVERS_ASK",
        default: "true",
        doc: "Ask vLLM, SGLang, llama.cpp, Ollama and ComfyUI on this machine about their memory, by one GET.",
        apply: |s, v| v.parse().map(|on| s.servers = on).or(Err(BOOL)),
    },
    Setting {
        key: "kill.confirm",
        env: "VRAMLENS_KILL_CONFIRM",
        default: "true",
        doc: "Ask before anything is ended. With false, z is truly one key.",
        apply: |s, v| v.parse().map(|on| s.kill_confirm = on).or(Err(BOOL)),
    },
    Setting {
        key: "log.file",
        env: "VRAMLENS_LOG_FILE",
        default: "\"\"",
        doc: "Keep a log of starts, faults, alerts and kills in this file; \"on\" for ~/.local/state/vramlens/vramlens.log, empty for none.",
        apply: |s, v| {
            v.clone_into(&mut s.log.file);
            Ok(())
        },
    },
    Setting {
        key: "log.level",
        env: "VRAMLENS_LOG_LEVEL",
        default: "\"info\"",
        doc: "What is worth a line: error, warn, info or debug, each with those before it.",
        apply: |s, v| v.parse().map(|level| s.log.level = level),
    },
    Setting {
        key: "log.max_bytes",
        env: "VRAMLENS_LOG_MAX_BYTES",
        default: "\"1MiB\"",
        doc: "A log that would grow larger becomes FILE.1, and a new one begins. From 4KiB to 1GiB.",
        apply: |s, v| log_size(v).map(|bytes| s.log.max_bytes = bytes).ok_or(LOG_SIZE),
    },
    Setting {
        key: "log.keep",
        env: "VRAMLENS_LOG_KEEP",
        default: "3",
        doc: "So many older logs are kept, from 0 to 99: FILE.1 is the newest of them.",
        apply: |s, v| v.parse().ok().filter(|n| *n <= 99).map(|n| s.log.keep = n).ok_or(LOG_KEEP),
    },
    Setting {
        key: "driver.library",
        env: "VRAMLENS_NVML_LIB",
        default: "\"\"",
        doc: "The driver's library; empty for libnvidia-ml.so.1 as the system finds it.",
        apply: |s, v| {
            v.clone_into(&mut s.nvml_library);
            Ok(())
        },
    },
    Setting {
        key: "driver.isolate",
        env: "VRAMLENS_ISOLATE",
        default: "false",
        doc: "Ask the driver in a process of its own, which is left behind when it hangs in the kernel and replaced when it crashes.",
        apply: |s, v| v.parse().map(|on| s.isolate = on).or(Err(BOOL)),
    },
    Setting {
        key: "power.let_sleep",
        env: "VRAMLENS_LET_SLEEP",
        default: "true",
        doc: "Let go of a GPU that may sleep (power/control is auto) after a minute without use. One that sleeps is never woken by watching.",
        apply: |s, v| v.parse().map(|on| s.let_sleep = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.vram_above",
        env: "VRAMLENS_ALERT_VRAM_ABOVE",
        default: "\"off\"",
        doc: "Tell when a GPU's used memory is above this: 95% or a size. off for never.",
        apply: |s, v| {
            s.alerts.vram_above = match v {
                "off" => None,
                _ => Some(threshold(v).ok_or("off, a share such as 95% or a size such as 20GiB")?),
            };
            Ok(())
        },
    },
    Setting {
        key: "alert.full_within",
        env: "VRAMLENS_ALERT_FULL_WITHIN",
        default: "\"off\"",
        doc: "Tell when a GPU that fills steadily will be full within this time. off for never.",
        apply: |s, v| {
            s.alerts.full_within_ms = match v {
                "off" => None,
                _ => Some(duration_ms(v).ok_or("off, or a time such as 10m or 2h")?),
            };
            Ok(())
        },
    },
    Setting {
        key: "alert.zombie",
        env: "VRAMLENS_ALERT_ZOMBIE",
        default: "false",
        doc: "Tell when a zombie has appeared: a holder that nobody wants, by the evidence.",
        apply: |s, v| v.parse().map(|on| s.alerts.zombie = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.gpu_lost",
        env: "VRAMLENS_ALERT_GPU_LOST",
        default: "false",
        doc: "Tell when a GPU has fallen off the bus, or is no longer there.",
        apply: |s, v| v.parse().map(|on| s.alerts.gpu_lost = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.xid",
        env: "VRAMLENS_ALERT_XID",
        default: "false",
        doc: "Tell when the driver has reported a fault (XID): a bad memory access, an ECC error.",
        apply: |s, v| v.parse().map(|on| s.alerts.xid = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.bell",
        env: "VRAMLENS_ALERT_BELL",
        default: "true",
        doc: "Ring the terminal's bell for an alert.",
        apply: |s, v| v.parse().map(|on| s.alert_actions.bell = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.osc9",
        env: "VRAMLENS_ALERT_OSC9",
        default: "false",
        doc: "Have the terminal show an alert as a notification of the desktop (OSC 9).",
        apply: |s, v| v.parse().map(|on| s.alert_actions.osc9 = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.osc777",
        env: "VRAMLENS_ALERT_OSC777",
        default: "false",
        doc: "The same in the form that urxvt, foot, WezTerm and Ghostty know (OSC 777).",
        apply: |s, v| v.parse().map(|on| s.alert_actions.osc777 = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.desktop",
        env: "VRAMLENS_ALERT_DESKTOP",
        default: "false",
        doc: "Show an alert on the desktop of this machine by notify-send.",
        apply: |s, v| v.parse().map(|on| s.alert_actions.desktop = on).or(Err(BOOL)),
    },
    Setting {
        key: "alert.command",
        env: "VRAMLENS_ALERT_COMMAND",
        default: "[]",
        doc: "Run this for an alert: a program and its arguments, which get the text as one more. No shell is asked; VRAMLENS_ALERT, _TEXT, _GPU, _GPU_UUID and _PID are in its environment.",
        apply: |s, v| words(v).map(|words| s.alert_actions.command = words).ok_or(WORDS),
    },
    Setting {
        key: "alert.log",
        env: "VRAMLENS_ALERT_LOG",
        default: "\"\"",
        doc: "Append a line to this file for every alert.",
        apply: |s, v| {
            s.alert_actions.log = (!v.is_empty()).then(|| v.into());
            Ok(())
        },
    },
    Setting {
        key: "remote.hosts",
        env: "VRAMLENS_REMOTE_HOSTS",
        default: "[]",
        doc: "What `--host all` means: names as ssh takes them, and local for this machine.",
        apply: |s, v| words(v).map(|words| s.remote_hosts = words).ok_or(WORDS),
    },
    Setting {
        key: "remote.command",
        env: "VRAMLENS_REMOTE_COMMAND",
        default: "[\"vramlens\"]",
        doc: "What is run on the other machines, as [\"~/bin/vramlens\"] or [\"sudo\", \"-n\", \"vramlens\"].",
        apply: |s, v| program(v).map(|words| s.remote_command = words).ok_or(WORDS),
    },
    Setting {
        key: "remote.ssh",
        env: "VRAMLENS_REMOTE_SSH",
        default: "[\"ssh\"]",
        doc: "The program that connects to them and its first arguments, as [\"ssh\", \"-F\", \"FILE\"]; it takes OpenSSH's options.",
        apply: |s, v| program(v).map(|words| s.remote_ssh = words).ok_or(WORDS),
    },
];
