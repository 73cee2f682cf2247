//! The themes that can be chosen: those that are built in, and the user's own files.

use std::path::{Path, PathBuf};

use crate::cli::config::{Resolved, SettingsError, folder};
use crate::cli::settings::Origin;
use crate::sample::nearest::did_you_mean;
use crate::sample::text::{clean, clean_path};
use crate::ui::Themes;
use crate::ui::theme::{BUILT_IN, Definition, Depth, TERMINAL, ThemeError, built_in, help, parse};

/// More files than this are not looked at.
const MOST: usize = 64;
/// Larger ones are no themes.
const LARGEST_BYTES: u64 = 65_536;

/// A theme that can be chosen, or cannot.
#[derive(Debug)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its file; `None` where it is built in.
    pub file: Option<PathBuf>,
    /// What it says, or what is wrong with it.
    pub theme: Result<Definition, ThemeError>,
}

/// All themes: the terminal's own, those that are built in, and those in the user's folder, which
/// may take the place of one that is built in.
pub fn all(get: &impl Fn(&str) -> Option<String>) -> Vec<Found> {
    let names = std::iter::once(TERMINAL).chain(BUILT_IN.iter().map(|row| row.0));
    let mut found: Vec<Found> = names
        .filter_map(|name| {
            let theme = built_in(name)?;
            Some(Found { name: name.to_owned(), file: None, theme: Ok(theme) })
        })
        .collect();
    for path in folder(get).map(|folder| files(&folder.join("themes"))).unwrap_or_default() {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|name| name != TERMINAL) else { continue };
        let own = Found { name, theme: read(&path), file: Some(path) };
        match found.iter_mut().find(|other| other.name == own.name) {
            Some(other) => *other = own,
            None => found.push(own),
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    paths.sort();
    paths.truncate(MOST);
    paths
}

fn read(path: &Path) -> Result<Definition, ThemeError> {
    let place = clean_path(path);
    let wrong = |reason: String| ThemeError { place: place.clone(), line: 1, reason };
    let meta = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !meta.is_file() || meta.len() > LARGEST_BYTES {
        return Err(wrong(format!("a theme is a file of at most {LARGEST_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    parse(&place, &text)
}

/// The themes to choose from while the view runs, with the chosen one.
///
/// # Errors
/// Where the chosen one does not exist, or its file cannot be read. What is wrong with others does
/// not matter here.
pub fn choose(
    resolved: &Resolved,
    depth: Depth,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<Themes, SettingsError> {
    let wanted = &resolved.settings.theme;
    let found = all(get);
    let Some(chosen) = found.iter().find(|theme| theme.name == *wanted) else {
        let names = || found.iter().map(|theme| theme.name.as_str());
        let place = resolved.origins.get("view.theme");
        return Err(SettingsError::Value {
            place: place.map_or_else(String::new, |(_, origin)| origin.to_string()),
            key: "view.theme".to_owned(),
            value: wanted.chars().take(64).collect(),
            allowed: format!(
                "one of {}{}; own ones are files: {}",
                names().collect::<Vec<_>>().join(", "),
                meant(wanted, names()),
                place_of_own(get)
            ),
        });
    };
    if let Err(error) = &chosen.theme {
        return Err(error.clone().into());
    }
    let mut all: Vec<Definition> = found.into_iter().filter_map(|found| found.theme.ok()).collect();
    for definition in &mut all {
        if !resolved.settings.background {
            definition.theme.paper.bg = None;
        }
    }
    Ok(Themes { all, name: wanted.clone(), depth })
}

/// What may be meant. To go without colours is no theme.
fn meant<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    const COLOURLESS: [&str; 6] = ["mono", "monochrome", "none", "nocolor", "no-color", "plain"];
    if COLOURLESS.contains(&wanted.to_ascii_lowercase().as_str()) {
        return " (without colours: --color never)".to_owned();
    }
    did_you_mean(wanted, names)
}

/// That the theme of the command line exists, for commands that show none: who has mistyped a name
/// learns it there, too. A file's or the environment's is the view's business.
///
/// # Errors
/// As [`choose`].
pub fn check_typed(
    resolved: &Resolved,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<(), SettingsError> {
    let origin = resolved.origins.get("view.theme").map(|(_, origin)| origin);
    if origin != Some(&Origin::Flag) {
        return Ok(());
    }
    choose(resolved, Depth::None, get).map(drop)
}

/// The file of a theme, to begin an own one with.
///
/// # Errors
/// Where there is none of this name, or no file of it.
pub fn file(name: &str, get: &impl Fn(&str) -> Option<String>) -> Result<String, SettingsError> {
    let none = || SettingsError::Value {
        place: "command line".to_owned(),
        key: "--themes".to_owned(),
        value: name.chars().take(64).collect(),
        allowed: {
            let names = || BUILT_IN.iter().map(|row| row.0);
            let meant = did_you_mean(name, names());
            format!("a theme with a file: {}{meant}", names().collect::<Vec<_>>().join(", "))
        },
    };
    let found = all(get).into_iter().find(|theme| theme.name == name).ok_or_else(none)?;
    let own = found.file.filter(|_| found.theme.is_ok());
    let text = own
        .and_then(|path| std::fs::read_to_string(path).ok())
        // TOML allows characters that some terminals obey.
        .map(|text| text.lines().map(clean).collect::<Vec<_>>().join("\n") + "\n")
        .or_else(|| BUILT_IN.iter().find(|row| row.0 == name).map(|row| row.1.to_owned()));
    text.map(|text| format!("{}\n{text}", help())).ok_or_else(none)
}

/// Where own themes are looked for.
pub fn place_of_own(get: &impl Fn(&str) -> Option<String>) -> String {
    let folder = folder(get).unwrap_or_else(|| "~/.config/vramlens".into());
    clean_path(folder.join("themes").join("NAME.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Common;
    use crate::cli::config::resolve;

    fn with(files: &[(&str, &str)], theme: &str) -> (Vec<Found>, Result<Themes, SettingsError>) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("vramlens/themes");
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let home = home.path().display().to_string();
        let get = |name: &str| (name == "XDG_CONFIG_HOME").then(|| home.clone());
        let common = Common { theme: Some(theme.to_owned()), ..Common::default() };
        let resolved = resolve(&common, get).unwrap();
        (all(&get), choose(&resolved, Depth::True, &get))
    }

    #[test]
    fn own_themes_stand_beside_the_built_in_ones_and_may_replace_them() {
        let own = "about = 'mine'\n[roles]\ntext = 'green'\n";
        let (found, chosen) =
            with(&[("mine.toml", own), ("moss.toml", own), ("x.txt", "")], "mine");
        let names: Vec<_> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names.first(), Some(&"terminal"));
        assert_eq!(names.last(), Some(&"mine"));
        assert_eq!(names.iter().filter(|name| **name == "moss").count(), 1);
        let chosen = chosen.unwrap();
        assert_eq!(chosen.name, "mine");
        assert!(chosen.all.iter().any(|theme| theme.name == "moss" && theme.about == "mine"));
    }

    #[test]
    fn a_theme_that_does_not_exist_or_cannot_be_read_is_said_to_be() {
        let unknown = with(&[], "harbour").1.unwrap_err().to_string();
        assert!(unknown.starts_with("command line: view.theme is \"harbour\""), "{unknown}");
        assert!(unknown.contains("did you mean harbor?"), "{unknown}");
        assert!(unknown.contains("/vramlens/themes/NAME.toml"), "{unknown}");
        let broken = [("mine.toml", "[roles]\n\nacent = 'red'\n")];
        let error = with(&broken, "mine").1.unwrap_err().to_string();
        assert!(
            error.contains("mine.toml:3: ") && error.contains("did you mean accent?"),
            "{error}"
        );
        // Somebody else's mistake is none of ours.
        let fine = with(&broken, "linen").1.unwrap();
        assert!(fine.all.iter().all(|theme| theme.name != "mine"));
        assert!(with(&[("terminal.toml", "[roles]\ntext = 'red'\n")], "terminal").1.is_ok());
    }
}
