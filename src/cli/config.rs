//! Where each setting's value comes from: default < file < environment < flag.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::cli::args::{ColorWhen, Common};
use crate::cli::settings::{Origin, SETTINGS, Setting, Settings};

/// What is wrong with the configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A file that was named cannot be read.
    #[error("cannot read the configuration {path}: {reason}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// No TOML.
    #[error("{path}:{line}: {reason}")]
    Syntax {
        /// Which file.
        path: String,
        /// Where in it.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// No such setting.
    #[error("{place}: there is no setting {key:?}{}; `vramlens config` lists them all", nearest.map(|name| format!(", did you mean {name}?")).unwrap_or_default())]
    Unknown {
        /// File and line.
        place: String,
        /// As written.
        key: String,
        /// The one that may be meant.
        nearest: Option<&'static str>,
    },
    /// No such value.
    #[error("{place}: {key} is {value:?}, and must be {allowed}")]
    Value {
        /// File and line, or variable.
        place: String,
        /// The setting.
        key: &'static str,
        /// As written.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// The settings with the origin of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The values.
    pub settings: Settings,
    /// By key: the value as text, and where it comes from.
    pub origins: BTreeMap<&'static str, (String, Origin)>,
}

impl Resolved {
    /// The defaults alone.
    fn defaults() -> Self {
        let mut resolved = Self { settings: Settings::default(), origins: BTreeMap::new() };
        for row in SETTINGS {
            let value = row.default.trim_matches('"');
            let set = resolved.set(row, value, Origin::Default);
            debug_assert!(set.is_ok(), "the default of {} is not allowed", row.key);
        }
        resolved
    }

    fn set(&mut self, row: &Setting, value: &str, origin: Origin) -> Result<(), SettingsError> {
        (row.apply)(&mut self.settings, value).map_err(|allowed| SettingsError::Value {
            place: origin.to_string(),
            key: row.key,
            value: value.to_owned(),
            allowed,
        })?;
        self.origins.insert(row.key, (value.to_owned(), origin));
        Ok(())
    }

    fn file(&mut self, path: &Path, text: &str) -> Result<(), SettingsError> {
        let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
            path: path.display().to_string(),
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        })?;
        for (section, value) in table.get_ref() {
            let line = line_of(text, section.span().start);
            let DeValue::Table(rows) = value.get_ref() else {
                return Err(unknown(path, line, section.get_ref()));
            };
            for (name, value) in rows {
                let line = line_of(text, name.span().start);
                let key = format!("{}.{}", section.get_ref(), name.get_ref());
                let Some(row) = SETTINGS.iter().find(|row| row.key == key) else {
                    return Err(unknown(path, line, &key));
                };
                self.set(row, &plain(value.get_ref()), Origin::File(path.to_owned(), line))?;
            }
        }
        Ok(())
    }

    fn environment(&mut self, get: impl Fn(&str) -> Option<String>) -> Result<(), SettingsError> {
        for row in SETTINGS {
            if let Some(value) = get(row.env) {
                self.set(row, &value, Origin::Environment(row.env))?;
            }
        }
        Ok(())
    }

    fn flags(&mut self, common: &Common) -> Result<(), SettingsError> {
        let color = common.color.map(|when| match when {
            ColorWhen::Auto => "auto".to_owned(),
            ColorWhen::Always => "always".to_owned(),
            ColorWhen::Never => "never".to_owned(),
        });
        let given = [
            ("log.file", common.log.as_ref().map(|path| path.display().to_string())),
            ("view.interval", common.interval.clone()),
            ("view.color", color),
            ("view.ascii", common.ascii.then(|| "true".to_owned())),
            ("view.gpus", common.gpu.clone()),
            ("driver.isolate", common.isolate.then(|| "true".to_owned())),
        ];
        for (key, value) in given {
            let row = SETTINGS.iter().find(|row| row.key == key);
            if let (Some(row), Some(value)) = (row, value) {
                self.set(row, &value, Origin::Flag)?;
            }
        }
        Ok(())
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
    if let Some(path) = named.clone().or_else(|| usual_path(&get)) {
        match std::fs::read_to_string(&path) {
            Ok(text) => resolved.file(&path, &text)?,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let reason = error.to_string();
                return Err(SettingsError::Unreadable { path: path.display().to_string(), reason });
            }
        }
    }
    resolved.environment(&get)?;
    resolved.flags(common)?;
    Ok(resolved)
}

/// `$XDG_CONFIG_HOME/vramlens/config.toml`.
fn usual_path(get: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("vramlens").join("config.toml"))
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

fn unknown(path: &Path, line: usize, key: &str) -> SettingsError {
    let nearest = SETTINGS
        .iter()
        .map(|row| (distance(row.key, key), row.key))
        .min()
        .filter(|(steps, _)| *steps <= 4)
        .map(|(_, name)| name);
    let key = key.chars().take(64).collect();
    SettingsError::Unknown { place: format!("{}:{line}", path.display()), key, nearest }
}

/// Edits from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::settings::example;

    fn from(text: &str, env: &[(&str, &str)], common: &Common) -> Result<Resolved, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let common = Common { config: Some(file), ..common.clone() };
        let get = |name: &str| env.iter().find(|row| row.0 == name).map(|row| row.1.to_owned());
        resolve(&common, get)
    }

    #[test]
    fn each_source_overrides_the_one_before() {
        let file = "[view]\ninterval = \"2s\"\nascii = true\n[kill]\nconfirm = false\n";
        let env = [("VRAMLENS_INTERVAL", "3s")];
        let flag = Common { interval: Some("4s".into()), ..Common::default() };
        assert_eq!(from(file, &[], &Common::default()).unwrap().settings.interval_ms, 2000);
        assert_eq!(from(file, &env, &Common::default()).unwrap().settings.interval_ms, 3000);
        let all = from(file, &env, &flag).unwrap();
        assert_eq!(all.settings.interval_ms, 4000);
        assert!(all.settings.ascii);
        assert!(!all.settings.kill_confirm);
        assert_eq!(all.origins["view.interval"].1, Origin::Flag);
        assert_eq!(all.origins["kill.confirm"].1.to_string().rsplit(':').next(), Some("5"));
        assert_eq!(all.origins["view.mouse"].1, Origin::Default);
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let unknown = from("[view]\n\nintervall = \"2s\"\n", &[], &Common::default());
        let text = unknown.unwrap_err().to_string();
        assert!(text.contains("config.toml:3"), "{text}");
        assert!(text.contains("did you mean view.interval?"), "{text}");
        let value = from("[view]\nascii = \"perhaps\"\n", &[], &Common::default());
        let text = value.unwrap_err().to_string();
        assert!(text.ends_with("view.ascii is \"perhaps\", and must be true or false"), "{text}");
        let syntax = from("[view\n", &[], &Common::default()).unwrap_err();
        assert!(matches!(syntax, SettingsError::Syntax { line: 1, .. }), "{syntax:?}");
    }

    #[test]
    fn a_usual_file_may_be_missing_and_a_named_one_may_not() {
        let home = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
        assert!(resolve(&Common::default(), home).is_ok());
        let named = Common { config: Some("/nonexistent/x.toml".into()), ..Common::default() };
        assert!(matches!(resolve(&named, home), Err(SettingsError::Unreadable { .. })));
    }

    #[test]
    fn the_example_says_the_defaults() {
        let live: String = example()
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|l| l.contains(" = ")).unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n");
        let read = from(&live, &[], &Common::default()).unwrap();
        assert_eq!(read.settings, Resolved::defaults().settings);
        let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.toml");
        assert_eq!(std::fs::read_to_string(committed).unwrap(), example());
    }
}
