//! What the terminal can show, by what the environment says of it: how many colours, and whether
//! anything outside ASCII.

use crate::cli::args::ColorWhen;
use crate::cli::dispatch::Environment;
use crate::cli::settings::Settings;
use crate::ui::theme::Depth;

/// Terminals that have 24-bit colours and say so by their name alone: `COLORTERM` does not come
/// along over SSH, `TERM` does.
const TRUE: [&str; 9] = [
    "alacritty",
    "contour",
    "foot",
    "ghostty",
    "kitty",
    "rio",
    "wezterm",
    "xterm-ghostty",
    "xterm-kitty",
];

/// Beginnings of the names of terminals without colour.
const NONE: [&str; 6] = ["dumb", "vt1", "vt2", "vt3", "vt4", "vt5"];

/// How many colours to use. A pipe has none, unless `CLICOLOR_FORCE` or the setting says otherwise.
pub fn depth(settings: &Settings, env: Environment<'_>, terminal: bool) -> Depth {
    let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    let forced = env("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    match settings.color {
        ColorWhen::Never => Depth::None,
        ColorWhen::Ansi => Depth::Ansi,
        ColorWhen::Indexed => Depth::Indexed,
        ColorWhen::True => Depth::True,
        ColorWhen::Always => known(env).max(Depth::Ansi),
        ColorWhen::Auto if set("NO_COLOR") => Depth::None,
        ColorWhen::Auto if forced => known(env).max(Depth::Ansi),
        ColorWhen::Auto if !terminal || env("CLICOLOR").as_deref() == Some("0") => Depth::None,
        ColorWhen::Auto => known(env),
    }
}

/// How many the terminal has.
fn known(env: Environment<'_>) -> Depth {
    let term = env("TERM").unwrap_or_default();
    let name = term.to_ascii_lowercase();
    if name.is_empty() || NONE.iter().any(|none| name.starts_with(none)) {
        return Depth::None;
    }
    let indexed = name.contains("256color");
    // GNU screen takes the numbers of a 24-bit colour for other attributes, whatever the terminal
    // around it once said.
    let screen = env("STY").is_some_and(|name| !name.is_empty()) && env("TMUX").is_none();
    if screen && name.starts_with("screen") {
        return if indexed { Depth::Indexed } else { Depth::Ansi };
    }
    // The console of Linux has sixteen; COLORTERM may be left over from where it was reached from.
    if name == "linux" {
        return Depth::Ansi;
    }
    // tmux takes 24-bit colours, and brings them down to 256 where its own terminal has no more.
    let colorterm = env("COLORTERM").unwrap_or_default().to_ascii_lowercase();
    let named = TRUE.iter().any(|known| name == *known || name.starts_with(&format!("{known}-")));
    if named || name.ends_with("-direct") || matches!(colorterm.as_str(), "truecolor" | "24bit") {
        return Depth::True;
    }
    let tmux = env("TMUX").is_some_and(|name| !name.is_empty());
    if indexed || tmux { Depth::Indexed } else { Depth::Ansi }
}

/// Where the locale has no UTF-8, nothing outside ASCII can be shown.
pub fn is_ascii(settings: &Settings, env: Environment<'_>) -> bool {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let utf8 = locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    });
    settings.ascii || !utf8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(color: ColorWhen, terminal: bool, env: &[(&str, &str)]) -> Depth {
        let get = |name: &str| env.iter().find(|row| row.0 == name).map(|row| row.1.to_owned());
        depth(&Settings { color, ..Settings::default() }, &get, terminal)
    }

    #[test]
    fn colours_are_those_that_the_terminal_has() {
        let rows: [(&[(&str, &str)], Depth); 20] = [
            (&[], Depth::None),
            (&[("TERM", "")], Depth::None),
            (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], Depth::None),
            (&[("TERM", "vt220")], Depth::None),
            (&[("TERM", "linux"), ("COLORTERM", "truecolor")], Depth::Ansi),
            (&[("TERM", "xterm")], Depth::Ansi),
            (&[("TERM", "xterm-256color")], Depth::Indexed),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], Depth::True),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "24bit")], Depth::True),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "yes")], Depth::Indexed),
            (&[("TERM", "xterm-kitty")], Depth::True),
            (&[("TERM", "foot-extra")], Depth::True),
            (&[("TERM", "footrest")], Depth::Ansi),
            (&[("TERM", "xterm-direct")], Depth::True),
            (&[("TERM", "tmux-256color"), ("TMUX", "/tmp/x")], Depth::Indexed),
            (&[("TERM", "screen"), ("TMUX", "/tmp/x")], Depth::Indexed),
            (
                &[("TERM", "tmux-256color"), ("TMUX", "/tmp/x"), ("COLORTERM", "truecolor")],
                Depth::True,
            ),
            (&[("TERM", "screen"), ("STY", "1.x"), ("COLORTERM", "truecolor")], Depth::Ansi),
            (
                &[("TERM", "screen-256color"), ("STY", "1.x"), ("COLORTERM", "truecolor")],
                Depth::Indexed,
            ),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], Depth::None),
        ];
        for (env, expected) in rows {
            assert_eq!(of(ColorWhen::Auto, true, env), expected, "{env:?}");
        }
    }

    #[test]
    fn words_of_the_user_come_before_what_is_known() {
        let xterm = ("TERM", "xterm-256color");
        assert_eq!(of(ColorWhen::Never, true, &[xterm]), Depth::None);
        assert_eq!(of(ColorWhen::Always, false, &[xterm, ("NO_COLOR", "1")]), Depth::Indexed);
        assert_eq!(of(ColorWhen::Always, false, &[("TERM", "dumb")]), Depth::Ansi);
        assert_eq!(of(ColorWhen::True, true, &[("TERM", "dumb")]), Depth::True);
        assert_eq!(of(ColorWhen::Auto, false, &[xterm]), Depth::None);
        assert_eq!(of(ColorWhen::Auto, false, &[xterm, ("CLICOLOR_FORCE", "1")]), Depth::Indexed);
        assert_eq!(of(ColorWhen::Auto, false, &[xterm, ("CLICOLOR_FORCE", "0")]), Depth::None);
        assert_eq!(of(ColorWhen::Auto, true, &[xterm, ("CLICOLOR", "0")]), Depth::None);
        let both = [xterm, ("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
        assert_eq!(of(ColorWhen::Auto, true, &both), Depth::None);
        // Empty is as if it were not there.
        assert_eq!(of(ColorWhen::Auto, true, &[xterm, ("NO_COLOR", "")]), Depth::Indexed);
    }

    #[test]
    fn a_locale_without_utf_8_gets_ascii() {
        let of = |env: &[(&str, &str)]| {
            let get = |name: &str| env.iter().find(|row| row.0 == name).map(|row| row.1.to_owned());
            is_ascii(&Settings::default(), &get)
        };
        assert!(!of(&[]) && !of(&[("LANG", "de_DE.UTF-8")]) && !of(&[("LC_CTYPE", "C.utf8")]));
        assert!(of(&[("LANG", "C")]) && of(&[("LC_ALL", "POSIX"), ("LANG", "de_DE.UTF-8")]));
        // Empty is not set, and the first that is set counts.
        assert!(!of(&[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")]));
        assert!(is_ascii(&Settings { ascii: true, ..Settings::default() }, &|_| None));
    }
}
