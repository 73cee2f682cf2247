//! Where each setting's value comes from: default < file < environment < flag.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::cli::args::Common;
pub use crate::cli::errors::SettingsError;
use crate::cli::settings::{Kind, Origin, SETTINGS, Setting, Settings, key_words};
use crate::sample::nearest::nearest;
use crate::sample::text::clean_path;
use crate::ui::action::{ACTIONS, KeyMap, KeyMapError};
use crate::ui::columns::Columns;

/// A longer file is no configuration.
const LARGEST_BYTES: u64 = 1 << 20;

/// The settings with the origin of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The values.
    pub settings: Settings,
    /// By key: the value as text, and where it comes from.
    pub origins: BTreeMap<String, (String, Origin)>,
    /// The file that was read, or would have been.
    pub file: Option<PathBuf>,
}

impl Resolved {
    /// The defaults alone.
    fn defaults() -> Self {
        let settings = Settings::default();
        let mut resolved = Self { settings, origins: BTreeMap::new(), file: None };
        for row in SETTINGS {
            let value = row.default.trim_matches('"');
            let set = resolved.set(row, value, Origin::Default);
            debug_assert!(set.is_ok(), "the default of {} is not allowed", row.key);
        }
        for row in ACTIONS {
            let keys = toml_list(row.keys.iter().copied());
            resolved.origins.insert(format!("keys.{}", row.name), (keys, Origin::Default));
        }
        resolved
    }

    fn set(&mut self, row: &Setting, value: &str, origin: Origin) -> Result<(), SettingsError> {
        let applied = (row.apply)(&mut self.settings, value).map_err(ToOwned::to_owned);
        let checked = applied.and_then(|()| check(row.key, &self.settings));
        checked.map_err(|allowed| SettingsError::Value {
            place: origin.to_string(),
            key: row.key.to_owned(),
            value: value.chars().take(120).collect(),
            allowed,
        })?;
        self.origins.insert(row.key.to_owned(), (value.to_owned(), origin));
        Ok(())
    }

    /// Gives an action its keys.
    fn bind(&mut self, action: &str, keys: &str, origin: Origin) -> Result<(), SettingsError> {
        let place = origin.to_string();
        let keys = key_words(keys).ok_or_else(|| SettingsError::Value {
            place: place.clone(),
            key: format!("keys.{action}"),
            value: keys.chars().take(120).collect(),
            allowed: "a list of keys: [\"x\", \"ctrl-r\", \"f5\"]; [] for none".to_owned(),
        })?;
        let change = (action.to_owned(), keys);
        // Whether the whole fits together is seen when all sources have spoken.
        if let Err(error) = KeyMap::with(std::slice::from_ref(&change))
            && !matches!(error, KeyMapError::Conflict { .. } | KeyMapError::NoQuit)
        {
            return Err(SettingsError::Keys { place, reason: error.to_string() });
        }
        let text = toml_list(change.1.iter().map(String::as_str));
        self.origins.insert(format!("keys.{action}"), (text, origin));
        self.settings.keys.retain(|(other, _)| other != action);
        self.settings.keys.push(change);
        Ok(())
    }

    /// That no key does two things, with the place of the one that asks for it.
    fn check_keys(&self) -> Result<(), SettingsError> {
        let Err(error) = KeyMap::with(&self.settings.keys) else { return Ok(()) };
        let action = match &error {
            KeyMapError::Conflict { second, .. } => second,
            _ => "quit",
        };
        let place = match self.origins.get(&format!("keys.{action}")) {
            Some((_, origin)) => origin.to_string(),
            None => "keys".to_owned(),
        };
        Err(SettingsError::Keys { place, reason: error.to_string() })
    }

    /// Sets whatever this key names; `None` where nothing has that name.
    fn named(&mut self, key: &str, value: &str, origin: Origin) -> Result<bool, SettingsError> {
        if let Some(row) = SETTINGS.iter().find(|row| row.key == key) {
            return self.set(row, value, origin).map(|()| true);
        }
        match key.strip_prefix("keys.") {
            Some(action) if ACTIONS.iter().any(|row| row.name == action) => {
                self.bind(action, value, origin).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn file(&mut self, path: &Path, text: &str) -> Result<(), SettingsError> {
        let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
            path: clean_path(path),
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        })?;
        let mut wrong = Vec::new();
        for (section, value) in table.get_ref() {
            let place = |line| Origin::File(path.to_owned(), line);
            let line = line_of(text, section.span().start);
            let DeValue::Table(rows) = value.get_ref() else {
                wrong.push((line, unknown(&place(line), section.get_ref())));
                continue;
            };
            for (name, value) in rows {
                let line = line_of(text, name.span().start);
                let key = format!("{}.{}", section.get_ref(), name.get_ref());
                let row = self.row(&key, value.get_ref(), &place(line));
                wrong.extend(row.err().map(|error| (line, error)));
            }
            if rows.is_empty() && !sections().any(|known| known == section.get_ref().as_ref()) {
                wrong.push((line, unknown(&place(line), section.get_ref())));
            }
        }
        // As they stand in the file, whose tables come in the order of their names.
        wrong.sort_by_key(|(line, _)| *line);
        SettingsError::all(wrong.into_iter().map(|(_, error)| error).collect())
    }

    fn row(
        &mut self,
        key: &str,
        value: &DeValue<'_>,
        origin: &Origin,
    ) -> Result<(), SettingsError> {
        typed(key, value, origin)?;
        let known = self.named(key, &plain(value), origin.clone())?;
        if known { Ok(()) } else { Err(unknown(origin, key)) }
    }

    fn environment(&mut self, get: impl Fn(&str) -> Option<String>) -> Result<(), SettingsError> {
        for row in SETTINGS {
            if let Some(value) = get(row.env) {
                self.set(row, &value, Origin::Environment(row.env.to_owned()))?;
            }
        }
        for row in ACTIONS {
            let name = keys_variable(row.name);
            if let Some(value) = get(&name) {
                self.bind(row.name, &value, Origin::Environment(name))?;
            }
        }
        Ok(())
    }

    fn flags(&mut self, common: &Common) -> Result<(), SettingsError> {
        for given in &common.set {
            let short = || given.chars().take(120).collect();
            let (key, value) = given.split_once('=').ok_or_else(|| SettingsError::Set(short()))?;
            if !self.named(key.trim(), value.trim(), Origin::Flag)? {
                return Err(unknown(&Origin::Flag, key.trim()));
            }
        }
        let given = [
            ("log.file", common.log.as_ref().map(|path| path.display().to_string())),
            ("view.interval", common.interval.clone()),
            ("view.color", common.color.map(|when| when.name().to_owned())),
            ("view.ascii", common.ascii.then(|| "true".to_owned())),
            ("view.theme", common.theme.clone()),
            ("view.gpus", common.gpu.clone()),
            ("driver.isolate", common.isolate.then(|| "true".to_owned())),
        ];
        for (key, value) in given {
            if let Some(value) = value {
                self.named(key, &value, Origin::Flag)?;
            }
        }
        Ok(())
    }
}

/// What the rows of the table cannot say in a fixed sentence.
fn check(key: &str, settings: &Settings) -> Result<(), String> {
    match key {
        "table.columns" => Columns::parse(settings.columns.iter().map(String::as_str)).map(drop),
        _ => Ok(()),
    }
}

/// Resolves everything.
///
/// # Errors
/// Where a file that was named cannot be read, or anything in it, in the environment or on the
/// command line is not allowed. A usual file that is missing is fine.
pub fn resolve(
    common: &Common,
    get: impl Fn(&str) -> Option<String>,
) -> Result<Resolved, SettingsError> {
    let mut resolved = Resolved::defaults();
    let named = common.config.clone().or_else(|| get("VRAMLENS_CONFIG").map(PathBuf::from));
    let usual = || folder(&get).map(|folder| folder.join("config.toml"));
    resolved.file = named.clone().or_else(usual);
    if let Some(path) = resolved.file.clone() {
        match read(&path) {
            Ok(text) => resolved.file(&path, &text)?,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let reason = error.to_string();
                return Err(SettingsError::Unreadable { path: clean_path(path), reason });
            }
        }
    }
    resolved.environment(&get)?;
    resolved.flags(common)?;
    resolved.check_keys()?;
    Ok(resolved)
}

/// The text of a file, which is no configuration where it is too long for one.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LARGEST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_BYTES {
        let reason = format!("longer than {LARGEST_BYTES} bytes: this is no configuration");
        return Err(std::io::Error::other(reason));
    }
    Ok(text)
}

/// `$XDG_CONFIG_HOME/vramlens`, or `~/.config/vramlens`.
pub fn folder(get: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The standard has a path that is not absolute ignored.
    let base = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("vramlens"))
}

/// `VRAMLENS_KEYS_KILL_ZOMBIES`.
pub fn keys_variable(action: &str) -> String {
    format!("VRAMLENS_KEYS_{}", action.to_ascii_uppercase().replace('-', "_"))
}

/// `["x", "ctrl-r"]`.
pub fn toml_list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted = words.into_iter().map(|word| toml::Value::String(word.to_owned()).to_string());
    format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
}

/// That a value has the type of its setting.
fn typed(key: &str, value: &DeValue<'_>, origin: &Origin) -> Result<(), SettingsError> {
    let row = SETTINGS.iter().find(|row| row.key == key);
    let kind = row.map_or(Kind::List, Setting::kind);
    let (fits, found) = match value {
        DeValue::String(_) => (kind != Kind::Bool, "a text"),
        DeValue::Boolean(_) => (kind == Kind::Bool, "true or false"),
        DeValue::Integer(_) | DeValue::Float(_) => (kind == Kind::Text, "a number"),
        DeValue::Array(_) => (kind == Kind::List, "a list"),
        DeValue::Datetime(_) => (false, "a date"),
        DeValue::Table(_) => (false, "a table"),
    };
    if fits || (row.is_none() && !key.starts_with("keys.")) {
        return Ok(());
    }
    let scratch = &mut Settings::default();
    // Its own words for what is allowed, where it has some for this value.
    let own = row.and_then(|row| (row.apply)(scratch, &plain(value)).err());
    let allowed = own.unwrap_or(kind.words()).to_owned();
    Err(SettingsError::Type { place: origin.to_string(), key: key.to_owned(), found, allowed })
}

fn plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        // As it would be written: a row that takes a list reads it again.
        DeValue::Array(list) => {
            let word = |word: &toml::Spanned<DeValue<'_>>| match word.get_ref() {
                DeValue::String(text) => toml::Value::String(text.to_string()).to_string(),
                other => plain(other),
            };
            format!("[{}]", list.iter().map(word).collect::<Vec<_>>().join(", "))
        }
        _ => "a table".to_owned(),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The tables that a file may have.
fn sections() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter_map(|row| Some(row.key.split_once('.')?.0)).chain(["keys"])
}

fn unknown(origin: &Origin, key: &str) -> SettingsError {
    let keys: Vec<String> = ACTIONS.iter().map(|row| format!("keys.{}", row.name)).collect();
    let all = SETTINGS.iter().map(|row| row.key).chain(keys.iter().map(String::as_str));
    let last = |key: &'_ str| key.rsplit('.').next().map(ToOwned::to_owned);
    // Under another table, or under none: the name itself tells.
    let same = all.clone().find(|known| last(known) == last(key)).map(ToOwned::to_owned);
    let near =
        nearest(key, all).or_else(|| nearest(key, sections()).filter(|_| !key.contains('.')));
    let key = key.chars().take(64).collect();
    SettingsError::Unknown {
        place: origin.to_string(),
        key,
        nearest: same.or_else(|| near.map(ToOwned::to_owned)),
    }
}

#[cfg(test)]
mod tests;
