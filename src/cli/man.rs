//! The manual: one page of the program, one of each command. Keys, settings, examples and exit codes
//! come from their tables.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::cli::help::{EXITS, Example, command, examples};
use crate::cli::settings::SETTINGS;
use crate::ui::action::{ACTIONS, Group};

/// What it reads and writes.
const FILES: &[(&str, &str)] = &[
    (
        "~/.config/vramlens/config.toml",
        "The settings. $XDG_CONFIG_HOME takes the place of ~/.config.",
    ),
    ("~/.config/vramlens/themes/NAME.toml", "Themes of your own."),
    (
        "~/.local/state/vramlens/vramlens.log",
        "The log, where log.file is \"on\". $XDG_STATE_HOME takes the place of ~/.local/state.",
    ),
    (
        "libnvidia-ml.so.1",
        "The driver's library, as the loader finds it; driver.library names another.",
    ),
];

/// Variables beside those of the settings.
const VARIABLES: &[(&str, &str)] = &[
    ("VRAMLENS_CONFIG", "The configuration to read instead of the usual one, as --config."),
    ("NO_COLOR, CLICOLOR, CLICOLOR_FORCE", "Whether to use colour, where --color is auto."),
    ("TERM, COLORTERM", "What the terminal can do. With TERM=dumb one frame is printed as text."),
    (
        "COLUMNS",
        "How wide lines are where no terminal is written to, at least 60 columns. Without it commands \
         are written whole, and the rest has 80.",
    ),
    ("LC_ALL, LC_CTYPE, LANG", "Without UTF-8 in the first that is set, only ASCII is drawn."),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME", "Where the files below are looked for."),
];

/// The commands that have a page.
pub fn names() -> Vec<String> {
    built()
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
        .map(|sub| sub.get_name().to_owned())
        .collect()
}

/// The page of a command, that of the program for `""`; `None` where there is no such command.
pub fn page(name: &str) -> Option<String> {
    let root = built();
    let of = if name.is_empty() {
        root
    } else {
        let of = root.get_subcommands().find(|sub| sub.get_name() == name && !sub.is_hide_set())?;
        of.clone()
    };
    let mut bytes = Vec::new();
    // Into a buffer: nothing can fail.
    write(&of, name, &mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // No trailing blanks, one newline at the end.
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Some(lines.join("\n").trim_end().to_owned() + "\n")
}

/// Without the command `help`, which has no page.
fn built() -> Command {
    let mut root = command().disable_help_subcommand(true);
    root.build();
    root
}

fn write(of: &Command, name: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
    let version = concat!("vramlens ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(of.clone()).source(version).manual("vramlens");
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if of.get_subcommands().any(|sub| !sub.is_hide_set()) {
        page.render_subcommands_section(out)?;
    }
    let mut roff = Roff::default();
    if name.is_empty() {
        keys(&mut roff);
        settings(&mut roff);
        list(&mut roff, "ENVIRONMENT", VARIABLES);
        list(&mut roff, "FILES", FILES);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (code, what) in EXITS {
        entry(&mut roff, &code.to_string(), what);
    }
    shown(&mut roff, examples(name));
    see_also(&mut roff, name);
    roff.to_writer(out)
}

fn entry(roff: &mut Roff, term: &str, text: &str) {
    roff.control("TP", []).text([bold(term)]).text([roman(text)]);
}

fn list(roff: &mut Roff, title: &str, rows: &[(&str, &str)]) {
    roff.control("SH", [title]);
    for (name, what) in rows {
        entry(roff, name, what);
    }
}

/// Keys, as the configuration writes them, and the name by which they can be given others.
fn keys(roff: &mut Roff) {
    roff.control("SH", ["KEYS"]);
    roff.text([roman("In the live view and in a replay. The name in brackets is the action's.")]);
    for group in Group::ALL {
        let title: String = group.title().to_owned();
        roff.control("SS", [title.as_str()]);
        for row in ACTIONS.iter().filter(|row| row.group == group) {
            let what = vec![roman(format!("{} (", row.doc)), italic(row.name), roman(")")];
            roff.control("TP", []).text([bold(row.keys.join(", "))]).text(what);
        }
    }
}

fn settings(roff: &mut Roff) {
    roff.control("SH", ["CONFIGURATION"]);
    roff.text([roman(
        "A value comes from the default, the file, the environment or the command line; the later \
         wins. \"vramlens config\" shows each one and its origin.",
    )]);
    for row in SETTINGS {
        roff.control("TP", []).text([bold(row.key), roman(format!(" = {}", row.default))]);
        roff.text([roman(format!("{} Also ", row.doc)), italic(row.env), roman(".")]);
    }
}

fn shown(roff: &mut Roff, rows: &[Example]) {
    roff.control("SH", ["EXAMPLES"]);
    for (line, what) in rows {
        entry(roff, line, what);
    }
}

fn see_also(roff: &mut Roff, own: &str) {
    roff.control("SH", ["SEE ALSO"]);
    let others = std::iter::once(String::new()).chain(names()).filter(|name| name != own);
    let words: Vec<String> = others
        .map(
            |name| {
                if name.is_empty() { "vramlens(1)".into() } else { format!("vramlens-{name}(1)") }
            },
        )
        .chain(["nvidia-smi(1)".to_owned()])
        .collect();
    roff.text([roman(words.join(", "))]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_key_setting_and_exit_code() {
        let text = page("").unwrap().replace("\\-", "-").replace("\\&", "");
        for row in ACTIONS {
            assert!(text.contains(row.name), "{}", row.name);
        }
        for row in SETTINGS {
            assert!(text.contains(row.key) && text.contains(row.env), "{}", row.key);
        }
        for (code, what) in EXITS {
            assert!(text.contains(&format!("\\fB{code}\\fR")) && text.contains(what), "{code}");
        }
    }

    #[test]
    fn hidden_commands_have_no_page() {
        assert_eq!(page("nothing"), None);
        assert!(names().iter().all(|name| page(name).is_some()));
        assert!(!names().iter().any(|name| name == "help"));
    }
}
