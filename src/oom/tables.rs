//! What was pasted or printed around a message: rows of `nvidia-smi`, of `ps`, of a program's own
//! report of the device.

use std::collections::BTreeMap;

use super::figures::Named;
use super::lines::Line;
use super::size::{self, Size};

/// Facts from tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    /// Processes on a GPU.
    pub processes: Vec<Named>,
    /// Their names, and those of `ps`.
    pub names: BTreeMap<u32, String>,
    /// Capacity.
    pub total: Option<u64>,
    /// Free: printed, or what is left of the capacity.
    pub free: Option<u64>,
    /// The device of the row that said so.
    pub device: Option<u64>,
}

/// Programs that show a desktop: nobody closes them and goes on working.
static SCREEN: &[&str] = &[
    "xorg",
    "xwayland",
    "gnome-shell",
    "kwin",
    "plasmashell",
    "mutter",
    "sway",
    "hyprland",
    "weston",
    "explorer.exe",
    "dwm.exe",
    "compiz",
    "cinnamon",
    "xfwm4",
];

/// Programs of a desktop that can be closed.
static CLOSABLE: &[&str] = &[
    "firefox",
    "chrome",
    "chromium",
    "brave",
    "msedge",
    "opera",
    "discord",
    "slack",
    "steam",
    "code",
    "electron",
    "obs",
    "spotify",
    "teams",
    "zoom",
    "thunderbird",
    "vlc",
    "mpv",
    "wallpaper",
    "signal-desktop",
    "telegram",
];

/// Whether a program shows the desktop.
pub(super) fn is_screen(name: &str) -> bool {
    is_of(SCREEN, name)
}

/// Whether a program belongs to the desktop and can be closed.
pub(super) fn is_closable(name: &str) -> bool {
    is_of(CLOSABLE, name)
}

fn is_of(programs: &[&str], name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let base = lower.rsplit(['/', '\\']).next().unwrap_or(&lower);
    programs.iter().any(|known| base == *known || (known.len() > 4 && base.starts_with(known)))
}

/// Reads the lines from `from` on; what stands before a message was another moment.
pub(super) fn read(lines: &[Line], from: usize) -> Tables {
    let mut tables = Tables::default();
    let mut header = String::new();
    for line in lines.iter().skip(from).filter(|line| line.full.len() < 512) {
        let text = line.full.as_str();
        let lower = text.to_ascii_lowercase();
        if lower.contains("--query-")
            || lower.contains("memory.total [")
            || lower.contains("memory.free [")
        {
            header.clone_from(&lower);
            continue;
        }
        let fields = [smi_row(text), csv_row(text)];
        if let Some((process, name, device)) = fields.into_iter().flatten().next() {
            tables.names.insert(process.pid, name);
            tables.device = tables.device.or(device);
            if !tables.processes.iter().any(|known| known.pid == process.pid) {
                tables.processes.push(process);
            }
            continue;
        }
        if let Some((pid, name)) = ps_row(text) {
            tables.names.entry(pid).or_insert(name);
        }
        capacity(text, &lower, &header, &mut tables);
        if text.trim().is_empty() || text.starts_with('$') {
            header.clear();
        }
    }
    tables
}

/// `|    0   N/A  N/A      2290      G   /usr/lib/xorg/Xorg          171MiB |`.
fn smi_row(text: &str) -> Option<(Named, String, Option<u64>)> {
    let inner = text.trim().strip_prefix('|')?.strip_suffix('|')?;
    let words: Vec<&str> = inner.split_whitespace().collect();
    let kind = words.iter().position(|word| matches!(*word, "C" | "G" | "C+G" | "M+C"))?;
    let pid = words.get(kind.checked_sub(1)?)?.parse().ok()?;
    let bytes = match size::read(words.last()?.as_bytes(), false)? {
        (Size::Bytes(n), _) => n,
        (Size::NoValue, _) => return None,
    };
    let name = words.get(kind + 1..words.len() - 1)?.join(" ");
    let device = words.first().and_then(|word| word.parse().ok());
    Some((Named { pid, bytes: Some(bytes) }, name, device))
}

/// `31877, /usr/local/bin/llama-server, 4302 MiB`.
fn csv_row(text: &str) -> Option<(Named, String, Option<u64>)> {
    let mut fields = text.split(',').map(str::trim);
    let (pid, name, memory) = (fields.next()?, fields.next()?, fields.next()?);
    let pid: u32 = pid.parse().ok()?;
    let memory: String = memory.split_whitespace().collect();
    let (Size::Bytes(bytes), _) = size::read(memory.as_bytes(), false)? else { return None };
    name.contains(|c: char| c.is_ascii_alphabetic())
        .then(|| (Named { pid, bytes: Some(bytes) }, name.to_owned(), None))
}

/// `   2217 gnome-shell`, and rows of `ps aux`.
fn ps_row(text: &str) -> Option<(u32, String)> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    if let Ok(pid) = first.parse() {
        let name = words.next()?;
        let plain = words.next().is_none()
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        return plain.then(|| (pid, name.to_owned()));
    }
    let pid = words.next()?.parse().ok()?;
    let name = words.nth(8)?;
    Some((pid, name.to_owned()))
}

/// Free and total: `40413MiB / 40960MiB`, a row under a query's header, a card's size in its name.
fn capacity(text: &str, lower: &str, header: &str, tables: &mut Tables) {
    let sizes = sizes(text);
    if lower.starts_with("* device #") {
        // `3792/3904 MB`: what may be taken, and all.
        if let (None, Some((free, total))) = (tables.total, pair(text)) {
            (tables.free, tables.total) = (Some(free << 20), Some(total << 20));
        }
        return;
    }
    let columns: Vec<&str> = match header.split_once("memory.") {
        Some(_) => {
            header.split(',').map(str::trim).filter(|column| column.contains("memory.")).collect()
        }
        None => Vec::new(),
    };
    if !columns.is_empty() && !sizes.is_empty() {
        let mut used = None;
        for (column, value) in columns.iter().zip(&sizes) {
            match () {
                () if column.contains("memory.total") => {
                    tables.total = tables.total.or(Some(*value));
                }
                () if column.contains("memory.free") => tables.free = tables.free.or(Some(*value)),
                () if column.contains("memory.used") => used = used.or(Some(*value)),
                () => {}
            }
        }
        if let (Some(total), Some(used), None) = (tables.total, used, tables.free) {
            tables.free = total.checked_sub(used);
        }
        return;
    }
    let gpu = lower.contains("gpu") || lower.trim_start().starts_with('|');
    match sizes.as_slice() {
        [used, total, ..]
            if gpu && text.contains('/') && used <= total && tables.total.is_none() =>
        {
            tables.total = Some(*total);
            tables.free = Some(total - used);
            tables.device = tables.device.or_else(|| device(lower));
        }
        [total] if lower.contains("gpu 0: ") && *total >= 1 << 31 => {
            tables.total = tables.total.or(Some(*total));
            tables.device = tables.device.or_else(|| device(lower));
        }
        _ => {}
    }
}

fn device(lower: &str) -> Option<u64> {
    let (_, rest) = lower.split_once("gpu")?;
    rest.trim_start().chars().next()?.to_digit(10).map(u64::from)
}

/// Every figure with a unit of bytes in a line.
fn sizes(text: &str) -> Vec<u64> {
    let joined = text.replace(" MiB", "MiB").replace(" GiB", "GiB");
    joined
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '/' | '|' | '(' | ')'))
        .filter_map(|word| match size::read(word.as_bytes(), false)? {
            (Size::Bytes(n), length) if length == word.len() && word.len() > 3 => Some(n),
            _ => None,
        })
        .collect()
}

/// `3792/3904 MB`.
fn pair(text: &str) -> Option<(u64, u64)> {
    text.split(&[',', ' '][..]).find_map(|word| {
        let (a, b) = word.split_once('/')?;
        Some((a.parse().ok()?, b.parse().ok()?))
    })
}
