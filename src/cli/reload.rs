//! From settings to a session, at the start and when they are read again.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use crate::cli::args::Common;
use crate::cli::config::{Resolved, SettingsError, keys_variable, resolve};
use crate::cli::dispatch::{Environment, options};
use crate::cli::settings::SETTINGS;
use crate::cli::show::is_at_once;
use crate::cli::{terminal, themes};
use crate::runtime::clock;
use crate::runtime::reload::{Reload, Reloaded};
use crate::ui;
use crate::ui::action::{ACTIONS, KeyMap};
use crate::ui::columns::Columns;
use crate::ui::theme::Look;

/// What is asked of the environment besides the settings.
const OTHERS: [&str; 13] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "VRAMLENS_CONFIG",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "TERM",
    "STY",
    "TMUX",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
];

/// What the screen is told.
///
/// # Errors
/// Where the theme does not exist or cannot be read.
pub fn screen(resolved: &Resolved, env: Environment<'_>) -> Result<ui::Settings, SettingsError> {
    let settings = &resolved.settings;
    let depth = terminal::depth(settings, env, std::io::stdout().is_terminal());
    let themes = themes::choose(resolved, depth, &env)?;
    let chosen = themes.all.iter().find(|theme| theme.name == themes.name);
    let theme = chosen.map_or_else(ui::theme::Theme::terminal, |chosen| chosen.theme);
    Ok(ui::Settings {
        look: Look::themed(theme, depth, terminal::is_ascii(settings, env)),
        themes,
        // Both were looked at when the settings were resolved.
        keys: KeyMap::with(&settings.keys).unwrap_or_default(),
        columns: Columns::parse(settings.columns.iter().map(String::as_str)).unwrap_or_default(),
        utc_offset_s: clock::utc_offset_seconds(clock::now()),
        interval_ms: settings.interval_ms,
        confirm_kill: settings.kill_confirm,
        chart: settings.chart,
        ..ui::Settings::default()
    })
}

/// How the same command line and environment are resolved again, later and on another thread.
pub fn again(common: &Common, resolved: &Resolved, env: Environment<'_>) -> Reload {
    let names = SETTINGS.iter().map(|row| row.env.to_owned());
    let names = names.chain(ACTIONS.iter().map(|row| keys_variable(row.name)));
    let names = names.chain(OTHERS.map(ToOwned::to_owned));
    let kept: BTreeMap<String, String> =
        names.filter_map(|name| env(&name).map(|value| (name, value))).collect();
    let (common, started) = (common.clone(), resolved.clone());
    Reload::new(move || {
        let get = |name: &str| kept.get(name).cloned();
        let read = || -> Result<Reloaded, SettingsError> {
            let new = resolve(&common, get)?;
            let later = later(&started, &new);
            Ok(Reloaded { ui: screen(&new, &get)?, options: options(&new.settings), later })
        };
        let home = kept.get("HOME").filter(|home| home.len() > 1);
        read().map(Box::new).map_err(|error| {
            // Short enough for a line of the screen.
            let text = error.to_string().replace('\n', "; ");
            home.map_or(text.clone(), |home| text.replace(&format!("{home}/"), "~/"))
        })
    })
}

/// What differs from the start, and waits for the next one.
fn later(started: &Resolved, new: &Resolved) -> Vec<String> {
    let value = |of: &Resolved, key: &str| of.origins.get(key).map(|(value, _)| value.clone());
    let keys = SETTINGS.iter().map(|row| row.key).filter(|key| !is_at_once(key));
    keys.filter(|key| value(started, key) != value(new, key)).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::action::Action;
    use std::sync::mpsc::channel;

    #[test]
    fn what_is_read_again_has_the_same_command_line_and_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("");
        let common =
            Common { config: Some(file.clone()), interval: Some("3s".into()), ..Common::default() };
        let env = |name: &str| (name == "VRAMLENS_ASCII").then(|| "true".to_owned());
        let resolved = resolve(&common, env).unwrap();
        let reload = again(&common, &resolved, &env);
        let read = || {
            let (done, outcome) = channel();
            assert!(reload.begin(move |outcome| done.send(outcome).unwrap()));
            outcome.recv().unwrap()
        };
        write(
            "[view]\ninterval = '9s'\ntheme = 'linen'\n[driver]\nlibrary = 'x.so'\n[keys]\nsort = ['o']\n",
        );
        let new = read().unwrap();
        assert_eq!(new.ui.interval_ms, 3000, "the flag still counts");
        assert_eq!(new.ui.themes.name, "linen");
        assert!(new.ui.look.glyphs.ascii, "and so does the environment");
        assert_eq!(new.later, ["driver.library"]);
        assert!(new.ui.keys.keys(Action::Sort).any(|key| key.to_string() == "o"));
        write("[view]\n\nthem = 'linen'\n");
        let wrong = read().unwrap_err();
        assert!(wrong.contains("config.toml:3: ") && wrong.contains("view.theme"), "{wrong}");
    }
}
