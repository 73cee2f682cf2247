//! `vramlens --version`, and with `--verbose` all that a report of a fault needs. No name of a host
//! or a user is in it, no command line, no value of a setting but the theme.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::cli::args::{Cli, Common};
use crate::cli::config::resolve;
use crate::cli::dispatch::Environment;
use crate::cli::settings::Origin;
use crate::cmd::{Exit, json_text, top};
use crate::host::{Root, doctor};
use crate::sample::text::clean_path;
use crate::sample::text::fit;
use crate::sample::{MachineFacts, Reading};

/// `/proc` and `/sys` answer in milliseconds, or hang.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest value, in columns.
const WIDEST: usize = 200;

/// A line of the answer.
type Row = (&'static str, String);

/// Prints it.
///
/// # Errors
/// Where the output fails.
pub fn run(cli: &Cli, env: Environment<'_>) -> anyhow::Result<Exit> {
    let version = env!("CARGO_PKG_VERSION");
    let rows = if cli.verbose { rows(&cli.common, env) } else { Vec::new() };
    let mut text = format!("vramlens {version}\n");
    if cli.common.json {
        let mut object = serde_json::Map::new();
        object.insert("version".to_owned(), version.into());
        object.extend(rows.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
        text = json_text(&object)?;
    } else {
        for (name, value) in rows {
            text += &format!("{:<10}{value}\n", format!("{name}:"));
        }
    }
    top::print(&text)?;
    Ok(Exit::Fine)
}

fn rows(common: &Common, env: Environment<'_>) -> Vec<Row> {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut rows = vec![
        ("target", target()),
        ("profile", profile.to_owned()),
        ("system", system()),
        ("kernel", read("/proc/sys/kernel/osrelease").unwrap_or_else(unknown)),
        ("terminal", terminal(env)),
        ("locale", locale(env)),
    ];
    match machine() {
        Some(machine) => rows.extend([
            ("runs in", place(&machine)),
            ("driver", driver(&machine)),
            ("library", libraries(&machine)),
        ]),
        None => rows.push(("driver", "/proc or /sys does not answer".to_owned())),
    }
    rows.extend(configuration(common, env));
    let homeless = |text: String| match env("HOME").filter(|home| home.len() > 1) {
        Some(home) => text.replace(&home, "~"),
        None => text,
    };
    rows.into_iter()
        .map(|(name, text)| (name, fit(&homeless(text), WIDEST, "…", false).into_owned()))
        .collect()
}

/// As `doctor` reads it; `None` where that hangs.
fn machine() -> Option<MachineFacts> {
    let (to, facts) = sync_channel(1);
    let thread = std::thread::Builder::new().name("machine".to_owned());
    thread.spawn(move || drop(to.send(doctor::read(&Root::machine())))).ok()?;
    facts.recv_timeout(PATIENCE).ok()
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn target() -> String {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("{}-{}-{libc}", std::env::consts::ARCH, std::env::consts::OS)
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// `PRETTY_NAME` of `os-release(5)`.
fn system() -> String {
    let text = read("/etc/os-release").or_else(|| read("/usr/lib/os-release")).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(unknown, |name| name.trim_matches(['"', '\'']).to_owned())
}

fn terminal(env: Environment<'_>) -> String {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let mut parts = vec![format!("TERM {}", set("TERM").unwrap_or_else(unknown))];
    for name in ["COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "NO_COLOR"] {
        parts.extend(set(name).map(|value| format!("{name} {value}")));
    }
    if std::io::stdout().is_terminal()
        && let Ok((columns, rows)) = crossterm::terminal::size()
    {
        parts.push(format!("{columns}x{rows}"));
    }
    // That it is so, and no more: the values name hosts and users.
    let within = [("tmux", "TMUX"), ("screen", "STY"), ("ssh", "SSH_CONNECTION")];
    let within = within.iter().filter(|row| set(row.1).is_some()).map(|row| row.0.to_owned());
    parts.extend(within);
    parts.join(", ")
}

fn locale(env: Environment<'_>) -> String {
    let set =
        |name: &'static str| env(name).filter(|v| !v.is_empty()).map(|v| format!("{name} {v}"));
    let first = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    first.unwrap_or_else(|| "none".to_owned())
}

fn place(machine: &MachineFacts) -> String {
    let runtime = machine.host.container.as_ref().map(|container| container.runtime.clone());
    match (runtime, machine.host.wsl) {
        (Some(runtime), _) => runtime,
        (None, true) => "WSL".to_owned(),
        (None, false) => "the host".to_owned(),
    }
}

/// The kernel module, as the kernel tells it: the driver itself is not asked, since that would wake
/// a GPU that sleeps.
fn driver(machine: &MachineFacts) -> String {
    match machine.module.as_ref().map(|module| &module.version) {
        Some(Reading::Value(version)) => format!("{version} (kernel module)"),
        Some(Reading::Absent(why)) => format!("loaded, version unknown ({})", why.words()),
        None if machine.nouveau => "nouveau".to_owned(),
        None => "no kernel module is to be seen".to_owned(),
    }
}

fn libraries(machine: &MachineFacts) -> String {
    let paths: Vec<&str> = machine.libraries.iter().map(|file| file.path.as_str()).collect();
    if paths.is_empty() { "none found in the usual folders".to_owned() } else { paths.join(", ") }
}

fn configuration(common: &Common, env: Environment<'_>) -> Vec<Row> {
    let resolved = match resolve(common, env) {
        Ok(resolved) => resolved,
        Err(error) => return vec![("config", error.to_string())],
    };
    let mut files: Vec<&Path> = Vec::new();
    let mut changed = Vec::new();
    for (key, (_, origin)) in &resolved.origins {
        let from = match origin {
            Origin::Default => continue,
            Origin::File(path, _) => {
                files.push(path);
                "file"
            }
            Origin::Environment(_) => "environment",
            Origin::Flag => "command line",
        };
        changed.push(format!("{key} ({from})"));
    }
    files.dedup();
    let names: Vec<String> = files.iter().map(clean_path).collect();
    let or_none = |list: Vec<String>| if list.is_empty() { "none".into() } else { list.join(", ") };
    let mut rows = vec![("config", or_none(names)), ("changed", or_none(changed))];
    if let Some((theme, _)) = resolved.origins.get("view.theme") {
        rows.push(("theme", theme.clone()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_private_is_told() {
        let env = |name: &str| {
            let value = match name {
                "HOME" => "/home/secretive",
                "TERM" => "xterm\u{1b}[2J",
                "TMUX" => "/tmp/tmux-1000/secretive,1,0",
                "SSH_CONNECTION" => "192.0.2.7 1 192.0.2.8 22",
                "VRAMLENS_ALERT_COMMAND" => "curl https://secret.example",
                "VRAMLENS_LOG_FILE" => "/home/secretive/x.log",
                "LANG" => "C.UTF-8",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let rows = rows(&Common::default(), &env);
        let lines: Vec<String> = rows.iter().map(|row| format!("{} {}", row.0, row.1)).collect();
        let text = lines.join("\n");
        for private in ["secret", "192.0.2", "\u{1b}"] {
            assert!(!text.contains(private), "{text}");
        }
        for told in ["tmux", "ssh", "LANG C.UTF-8", "alert.command (environment)", "kernel "] {
            assert!(text.contains(told), "{told}: {text}");
        }
    }
}
