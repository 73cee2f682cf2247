//! How everything looks, as far as it changes while the view runs: the next theme, settings that
//! were read again.

use super::app::{App, Settings};
use super::event::Effect;
use super::theme::{Definition, Depth};

/// The themes that can be chosen, and the one that is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Themes {
    /// All of them, in the order in which the key goes through them.
    pub all: Vec<Definition>,
    /// The name of the one that is shown.
    pub name: String,
    /// How many colours the terminal has.
    pub depth: Depth,
}

impl Themes {
    fn position(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|theme| theme.name == name)
    }
}

/// Shows the next theme.
pub(super) fn next_theme(app: &mut App) {
    let themes = &mut app.settings.themes;
    if themes.depth == Depth::None {
        return app.say("no colours are shown here: see --color, NO_COLOR and TERM");
    }
    let Some(last) = themes.all.len().checked_sub(1) else { return };
    let next = themes.position(&themes.name).map_or(0, |n| if n < last { n + 1 } else { 0 });
    let chosen = &themes.all[next];
    app.settings.look.theme = chosen.theme.at(themes.depth);
    let words = format!("theme {}: {}", chosen.name, chosen.about);
    themes.name.clone_from(&chosen.name);
    app.say(words);
}

/// Takes settings that were read again. What was changed by a key stays, unless the setting itself
/// has changed.
pub(super) fn settings(app: &mut App, new: Settings) -> Vec<Effect> {
    let mut effects = vec![Effect::Repaint];
    let loaded = app.loaded.replace(Box::new(new.clone()));
    let before = std::mem::replace(&mut app.settings, new);
    let Some(loaded) = loaded else { return effects };
    let now = &mut app.settings;
    if now.themes.name == loaded.themes.name
        && let Some(kept) = now.themes.position(&before.themes.name)
    {
        now.look.theme = now.themes.all[kept].theme.at(now.themes.depth);
        now.themes.name = before.themes.name;
    }
    if now.interval_ms == loaded.interval_ms {
        now.interval_ms = before.interval_ms;
    } else {
        effects.push(Effect::SetInterval(now.interval_ms));
    }
    effects
}
