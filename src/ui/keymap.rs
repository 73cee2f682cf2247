//! Keys: how they are written, how they are shown, and what each of them does.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{ACTIONS, Action, ActionRow, Place};
use crate::sample::nearest::did_you_mean;

/// A key with its modifiers. Shift is part of the character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which.
    pub code: KeyCode,
    /// Control and Alt; Shift where the key has no character.
    pub modifiers: KeyModifiers,
}

/// Why a text names no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{written:?} is no key{hint}; write one character, f1 to f24, or one of {}, with ctrl-, alt- \
     or shift- before it",
    NAMED.map(|name| name.0).join(", ")
)]
pub struct ParseKeyError {
    written: String,
    hint: String,
}

impl Key {
    /// The one that always leaves, whatever is open.
    pub const LEAVE: Self = Self { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL };

    /// As the terminal reports it.
    pub fn of(event: KeyEvent) -> Self {
        let mut kept = KeyModifiers::CONTROL | KeyModifiers::ALT;
        if !matches!(event.code, KeyCode::Char(_) | KeyCode::BackTab) {
            kept |= KeyModifiers::SHIFT;
        }
        Self { code: event.code, modifiers: event.modifiers & kept }
    }

    fn without_shift(self) -> Self {
        Self { modifiers: self.modifiers - KeyModifiers::SHIFT, ..self }
    }
}

/// The names that keys have besides their character: in the configuration, on the screen, in ASCII.
const NAMED: [(&str, KeyCode, &str, &str); 16] = [
    ("enter", KeyCode::Enter, "⏎", "Enter"),
    ("esc", KeyCode::Esc, "esc", "esc"),
    ("tab", KeyCode::Tab, "⇥", "Tab"),
    ("backtab", KeyCode::BackTab, "⇤", "BackTab"),
    ("space", KeyCode::Char(' '), "space", "space"),
    ("backspace", KeyCode::Backspace, "⌫", "BkSp"),
    ("delete", KeyCode::Delete, "del", "del"),
    ("insert", KeyCode::Insert, "ins", "ins"),
    ("up", KeyCode::Up, "↑", "Up"),
    ("down", KeyCode::Down, "↓", "Down"),
    ("left", KeyCode::Left, "←", "Left"),
    ("right", KeyCode::Right, "→", "Right"),
    ("pageup", KeyCode::PageUp, "PgUp", "PgUp"),
    ("pagedown", KeyCode::PageDown, "PgDn", "PgDn"),
    ("home", KeyCode::Home, "Home", "Home"),
    ("end", KeyCode::End, "End", "End"),
];

/// Other names that people write.
const ALIASES: [(&str, &str); 9] = [
    ("return", "enter"),
    ("escape", "esc"),
    ("shift-tab", "backtab"),
    ("del", "delete"),
    ("ins", "insert"),
    ("pgup", "pageup"),
    ("page-up", "pageup"),
    ("pgdn", "pagedown"),
    ("page-down", "pagedown"),
];

const MODIFIERS: [(&str, KeyModifiers); 3] = [
    ("ctrl-", KeyModifiers::CONTROL),
    ("alt-", KeyModifiers::ALT),
    ("shift-", KeyModifiers::SHIFT),
];

impl std::str::FromStr for Key {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |rest: &str| {
            let names = NAMED.iter().map(|name| name.0);
            let written = text.chars().take(32).collect();
            ParseKeyError { written, hint: did_you_mean(rest, names) }
        };
        let (mut modifiers, mut rest) = (KeyModifiers::NONE, text);
        let code = loop {
            let name = ALIASES.iter().find(|alias| alias.0 == rest).map_or(rest, |alias| alias.1);
            let mut characters = name.chars();
            if let (Some(c), None) = (characters.next(), characters.next()) {
                break KeyCode::Char(c);
            }
            if let Some(named) = NAMED.iter().find(|named| named.0 == name) {
                break named.1;
            }
            let number = name.strip_prefix('f').filter(|n| !n.starts_with(['0', '+']));
            if let Some(n @ 1..=24) = number.and_then(|n| n.parse().ok()) {
                break KeyCode::F(n);
            }
            let modifier = MODIFIERS.iter().find(|modifier| rest.starts_with(modifier.0));
            let Some((prefix, modifier)) = modifier else { return Err(bad(rest)) };
            modifiers |= *modifier;
            rest = rest.strip_prefix(prefix).unwrap_or_default();
        };
        let shifted = modifiers.contains(KeyModifiers::SHIFT);
        Ok(match code {
            // Terminals send the letter itself, and know no difference with Control.
            KeyCode::Char(c) if shifted && modifiers.contains(KeyModifiers::CONTROL) => {
                return Err(bad(&c.to_string()));
            }
            KeyCode::Char(c) if shifted && !c.is_alphabetic() => return Err(bad(rest)),
            KeyCode::Char(c) if shifted => {
                let upper = c.to_uppercase().next().unwrap_or(c);
                Self { code: KeyCode::Char(upper), modifiers }.without_shift()
            }
            KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => control(c, modifiers),
            code => Self { code, modifiers },
        })
    }
}

/// What a terminal makes of Control and a letter: two of them are other keys.
fn control(c: char, modifiers: KeyModifiers) -> Key {
    let bare = modifiers - KeyModifiers::CONTROL;
    match c.to_ascii_lowercase() {
        'i' => Key { code: KeyCode::Tab, modifiers: bare },
        'm' => Key { code: KeyCode::Enter, modifiers: bare },
        '[' => Key { code: KeyCode::Esc, modifiers: bare },
        c => Key { code: KeyCode::Char(c), modifiers },
    }
}

/// As the configuration writes it: `ctrl-r`, `f5`, `space`, `G`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (prefix, modifier) in MODIFIERS {
            if self.modifiers.contains(modifier) {
                f.write_str(prefix)?;
            }
        }
        match (NAMED.iter().find(|name| name.1 == self.code), self.code) {
            (Some(name), _) => f.write_str(name.0),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "f{n}"),
            (None, _) => f.write_str("?"),
        }
    }
}

/// As a person reads it: `⏎`, `ctrl-c`, `x`.
impl Key {
    /// In Unicode or ASCII.
    pub fn label(self, ascii: bool) -> String {
        let named = NAMED.iter().find(|name| name.1 == self.code);
        let name = match (named, self.code) {
            (Some(name), _) if ascii => name.3.to_owned(),
            (Some(name), _) => name.2.to_owned(),
            (None, KeyCode::Char(c)) if ascii && !c.is_ascii() => "?".to_owned(),
            (None, KeyCode::Char(c)) => c.to_string(),
            (None, KeyCode::F(n)) => format!("F{n}"),
            (None, _) => "?".to_owned(),
        };
        let prefix = MODIFIERS.iter().filter(|modifier| self.modifiers.contains(modifier.1));
        let prefix: String = prefix.map(|modifier| modifier.0).collect();
        prefix + &name
    }
}

/// Which key does what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyMap {
    keys: Vec<(Key, Action)>,
}

/// Why keys cannot be set as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    /// No such key.
    #[error(transparent)]
    Key(#[from] ParseKeyError),
    /// No such action.
    #[error("there is no action {0:?}{hint}: the help page (?) lists them", hint = did_you_mean(.0, names()))]
    Action(String),
    /// One key, two actions.
    #[error(
        "the key {key} is given to both {first} and {second}: give one of them another key, or \
         none: {first} = []"
    )]
    Conflict {
        /// The key.
        key: String,
        /// The action that has it.
        first: &'static str,
        /// The action that wants it.
        second: &'static str,
    },
    /// The way out is closed.
    #[error("quit needs a key: without one there is no way out that can be seen")]
    NoQuit,
    /// The key that always leaves.
    #[error("ctrl-c always leaves, and cannot be given to {0}")]
    Leave(&'static str),
}

/// The names of all actions.
fn names() -> impl Iterator<Item = &'static str> + Clone {
    ACTIONS.iter().map(|row| row.name)
}

/// The action of this name.
///
/// # Errors
/// Where there is none.
pub fn action_named(name: &str) -> Result<&'static ActionRow, KeyMapError> {
    ACTIONS
        .iter()
        .find(|row| row.name == name)
        .ok_or_else(|| KeyMapError::Action(name.chars().take(64).collect()))
}

impl Default for KeyMap {
    fn default() -> Self {
        let all = ACTIONS.iter().flat_map(|row| row.keys.iter().map(move |key| (key, row.action)));
        Self { keys: all.filter_map(|(key, action)| Some((key.parse().ok()?, action))).collect() }
    }
}

impl KeyMap {
    /// The defaults with other keys for some actions, by name. An action that is named loses its
    /// default keys.
    ///
    /// # Errors
    /// Where there is no such key or action, where one key would do two things in one place, and
    /// where nothing would leave.
    pub fn with(changes: &[(String, Vec<String>)]) -> Result<Self, KeyMapError> {
        let mut map = Self::default();
        let mut added: Vec<(Key, &'static ActionRow)> = Vec::new();
        for (name, keys) in changes {
            let row = action_named(name)?;
            map.keys.retain(|(_, action)| *action != row.action);
            for key in keys {
                added.push((key.parse()?, row));
            }
        }
        for (key, row) in added {
            if key == Key::LEAVE && row.action != Action::Quit {
                return Err(KeyMapError::Leave(row.name));
            }
            let place = row.action.place();
            let taken = map.keys.iter().find(|(known, action)| {
                *known == key && *action != row.action && action.place().meets(place)
            });
            if let Some((_, first)) = taken {
                let (key, first) = (key.to_string(), first.row().name);
                return Err(KeyMapError::Conflict { key, first, second: row.name });
            }
            if !map.keys.contains(&(key, row.action)) {
                map.keys.push((key, row.action));
            }
        }
        if map.keys(Action::Quit).next().is_none() {
            return Err(KeyMapError::NoQuit);
        }
        Ok(map)
    }

    /// What a key does, wherever.
    pub fn action(&self, key: Key) -> Option<Action> {
        self.action_at(key, Place::Always)
    }

    /// What a key does here. Shift counts only where somebody asked for it.
    pub fn action_at(&self, key: Key, place: Place) -> Option<Action> {
        let of = |key: Key| {
            let all = || self.keys.iter().filter(move |(known, _)| *known == key);
            let here = all().find(|(_, action)| action.place().meets(place));
            here.or_else(|| all().next()).map(|(_, action)| *action)
        };
        of(key).or_else(|| of(key.without_shift()))
    }

    /// The keys of an action, the first is the one to show.
    pub fn keys(&self, action: Action) -> impl Iterator<Item = Key> {
        self.keys.iter().filter(move |(_, other)| *other == action).map(|(key, _)| *key)
    }

    /// The first key of an action, to show; empty for an action without keys.
    pub fn label(&self, action: Action, ascii: bool) -> String {
        self.keys(action).next().map(|key| key.label(ascii)).unwrap_or_default()
    }

    /// Which of an action's keys this is: the number that it stands for.
    pub fn position(&self, action: Action, key: Key) -> Option<usize> {
        self.keys(action).position(|known| known == key)
    }
}

#[cfg(test)]
mod tests;
