//! `vramlens config`: the settings, the example file, the themes.

use std::fmt::Write;

use ratatui::style::Color;

use crate::cli::config::{Resolved, keys_variable};
use crate::cli::settings::{Origin, SETTINGS};
use crate::cli::themes::{Found, place_of_own};
use crate::cmd::json_text;
use crate::sample::text::{clean, clean_path};
use crate::ui::action::{ACTIONS, Group};
use crate::ui::theme::{Depth, SIXTEEN};

/// The settings that take effect at once when the configuration is read again. What stands in no
/// list here waits for the next start, and is said to.
pub const AT_ONCE: [&str; 21] = [
    "view.interval",
    "view.color",
    "view.ascii",
    "view.theme",
    "view.background",
    "view.mouse",
    "view.gpus",
    "table.columns",
    "verdict.idle_after",
    "allocator.request",
    "kill.confirm",
    "alert.vram_above",
    "alert.full_within",
    "alert.zombie",
    "alert.gpu_lost",
    "alert.bell",
    "alert.osc9",
    "alert.osc777",
    "alert.desktop",
    "alert.command",
    "alert.log",
];

/// Values with more characters push their origin to the right.
const LONG: usize = 24;

/// Whether a setting takes effect at once when it is read again.
pub fn is_at_once(key: &str) -> bool {
    key.starts_with("keys.") || AT_ONCE.contains(&key)
}

/// The names of all settings, in the order of the example file.
fn keys() -> impl Iterator<Item = String> {
    let actions = by_group().map(|row| format!("keys.{}", row.name));
    SETTINGS.iter().map(|row| row.key.to_owned()).chain(actions)
}

fn by_group() -> impl Iterator<Item = &'static crate::ui::action::ActionRow> {
    Group::ALL.into_iter().flat_map(|group| ACTIONS.iter().filter(move |row| row.group == group))
}

/// Every setting, its value and where that comes from.
pub fn settings(resolved: &Resolved) -> String {
    let mut text = String::new();
    if let Some(file) = &resolved.file {
        let there = if file.exists() { "" } else { " (does not exist)" };
        let _ = writeln!(text, "file  {}{there}\n", clean_path(file));
    }
    let width = keys().map(|key| key.len()).max().unwrap_or(0);
    let values = resolved.origins.values().map(|(value, _)| value.chars().count());
    let column = values.filter(|columns| *columns <= LONG).max().unwrap_or(0);
    for key in keys() {
        if let Some((value, origin)) = resolved.origins.get(&key) {
            let value = if value.is_empty() { "\"\"" } else { value };
            let origin = origin.to_string();
            let _ = writeln!(text, "{key:<width$}  {:<column$}  {}", clean(value), clean(&origin));
        }
    }
    text
}

/// The same for programs.
///
/// # Errors
/// Where it is none of JSON.
pub fn settings_json(resolved: &Resolved) -> serde_json::Result<String> {
    let rows: Vec<_> = keys()
        .filter_map(|key| {
            let (value, origin) = resolved.origins.get(&key)?;
            let default = *origin == Origin::Default;
            Some(serde_json::json!({
                "key": key, "value": value, "from": origin.to_string(), "default": default,
                "at_once": is_at_once(&key),
            }))
        })
        .collect();
    json_text(&rows)
}

/// The example file: every setting at its default, commented out.
pub fn example() -> String {
    let mut text = String::from(
        "# vramlens: every setting at its default.\n\
         # Copy to ~/.config/vramlens/config.toml and remove the # before what you change.\n\
         # A running vramlens reads it again on ctrl-r, or when it is sent HUP. What is marked\n\
         # \"with the next start\" waits for that.\n",
    );
    let mut section = "";
    for row in SETTINGS {
        let (head, name) = row.key.split_once('.').unwrap_or(("", row.key));
        if head != section {
            text += &format!("\n[{head}]\n");
            section = head;
        }
        let later = if is_at_once(row.key) { "" } else { " Takes effect with the next start." };
        let (doc, env) = (row.doc, row.env);
        text += &format!("\n# {doc}{later}\n# Also {env}.\n# {name} = {}\n", row.default);
    }
    text + &keys_example()
}

fn keys_example() -> String {
    let mut text = format!(
        "\n[keys]\n\n# One character (G is shift-g), f1 to f24, or a name: enter, esc, tab, space, up, pageup, home\n\
         # and so on; ctrl-, alt- and shift- before it. [] takes a key away. An action that is named\n\
         # here loses its usual keys, and no key may do two things in one place; ctrl-c always leaves.\n\
         # Also {} and so on, with blanks between the keys.\n",
        keys_variable("kill-zombies")
    );
    for row in by_group() {
        let keys = crate::cli::config::toml_list(row.keys.iter().copied());
        text += &format!("\n# {}.\n# {} = {keys}\n", row.doc, row.name);
    }
    text
}

/// How colours are shown in a line.
pub struct Swatch {
    /// How many there are.
    pub depth: Depth,
    /// What stands for a colour.
    pub dot: &'static str,
}

/// The themes, with what is wrong with those that cannot be read.
pub fn themes(
    found: &[Found],
    chosen: &str,
    dots: &Swatch,
    get: &impl Fn(&str) -> Option<String>,
) -> String {
    let mut text = String::new();
    let width = found.iter().map(|theme| theme.name.chars().count()).max().unwrap_or(0);
    for theme in found {
        let mark = if theme.name == chosen { '*' } else { ' ' };
        let name = format!("{:<width$}", clean(&theme.name));
        let from = theme.file.as_ref().map(|file| format!("  ({})", clean_path(file)));
        let words = match &theme.theme {
            Ok(definition) => definition.about.clone(),
            Err(error) => error.to_string(),
        };
        let swatch = theme.theme.as_ref().map_or_else(|_| String::new(), |own| swatch(own, dots));
        let from = from.filter(|_| theme.theme.is_ok()).unwrap_or_default();
        let _ = writeln!(text, "{mark} {name}  {swatch}{}{}", clean(&words), clean(&from));
    }
    let _ = writeln!(text, "\nOwn ones: {}", clean(&place_of_own(get)));
    text
}

/// The colours of a theme on its ground, where the terminal has them all.
fn swatch(definition: &crate::ui::theme::Definition, dots: &Swatch) -> String {
    if dots.depth == Depth::None {
        return String::new();
    }
    let theme = definition.theme.at(dots.depth);
    let mut text = String::new();
    let sgr = |colour: Color, base: u8| match colour {
        Color::Indexed(n) => format!("\x1b[{base};5;{n}m"),
        Color::Rgb(r, g, b) => format!("\x1b[{base};2;{r};{g};{b}m"),
        // The terminal's own.
        other => match SIXTEEN.iter().position(|known| *known == other) {
            Some(n) => format!("\x1b[{base};5;{n}m"),
            None => String::new(),
        },
    };
    if let Some(paper) = theme.paper.bg {
        text += &sgr(paper, 48);
    }
    for style in [theme.text, theme.accent, theme.good, theme.warn, theme.bad] {
        if let Some(ink) = style.fg {
            text += &sgr(ink, 38);
        }
        text += dots.dot;
    }
    text + " \x1b[0m  "
}
