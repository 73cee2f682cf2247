//! Theme files.
//!
//! ```toml
//! about = "slate blue, quiet"
//! background = "#171b22"
//!
//! [palette]
//! ink = "#cdd3de"
//! sky = "#74b3e8"
//!
//! [roles]
//! text = "ink"
//! accent = "sky bold"
//! selected = "on #242b36"
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::colour::{luminance, parse_hex, rgb_of};
use super::{ROLES, Theme};
use crate::sample::nearest::did_you_mean;
use crate::sample::text::clean;

/// A theme with what is said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// What the configuration calls it.
    pub name: String,
    /// In a few words.
    pub about: String,
    /// Whether it is made for a light ground; `None` where it takes the terminal's.
    pub light: Option<bool>,
    /// In all its colours.
    pub theme: Theme,
}

impl Definition {
    /// The terminal's own colours.
    pub fn terminal() -> Self {
        Self {
            name: super::TERMINAL.to_owned(),
            about: "the terminal's own sixteen colours, and its own background".to_owned(),
            light: None,
            theme: Theme::terminal(),
        }
    }
}

/// What a theme file may say, as comments for somebody who begins one.
pub fn help() -> String {
    let mut text = String::from(
        "# A theme: a file NAME.toml in ~/.config/vramlens/themes, chosen with theme = \"NAME\" under [view].\n\
         # A colour is #rrggbb, a name of [palette], or one of the terminal's own:\n",
    );
    text += &format!("# {}.\n", NAMED.map(|row| row.0).join(", "));
    text += &format!(
        "# A role is a colour, \"on\" and a second one, and any of {}. The roles:\n",
        WEIGHTS.map(|row| row.0).join(", ")
    );
    for role in ROLES {
        text += &format!("#   {:<12} {}\n", role.name, role.doc);
    }
    text
}

/// What is wrong with a theme file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}:{line}: {reason}")]
pub struct ThemeError {
    /// Which file, or the name of the theme.
    pub place: String,
    /// Where in it.
    pub line: usize,
    /// What, and what is allowed.
    pub reason: String,
}

/// The names that a terminal's sixteen colours have in a theme file.
const NAMED: [(&str, Color); 17] = [
    ("default", Color::Reset),
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::Gray),
    ("bright-black", Color::DarkGray),
    ("bright-red", Color::LightRed),
    ("bright-green", Color::LightGreen),
    ("bright-yellow", Color::LightYellow),
    ("bright-blue", Color::LightBlue),
    ("bright-magenta", Color::LightMagenta),
    ("bright-cyan", Color::LightCyan),
    ("bright-white", Color::White),
];

const WEIGHTS: [(&str, Modifier); 5] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underline", Modifier::UNDERLINED),
    ("reversed", Modifier::REVERSED),
];

/// What stands at the top of a file.
const PARTS: [&str; 4] = ["about", "background", "palette", "roles"];

/// A longer file is no theme.
const LONGEST: usize = 65_536;

type Palette = BTreeMap<String, Color>;
/// What is wrong, and where: an offset in the file.
type Complaint = (usize, String);
/// A name and what stands behind it.
type Row<'t> = (&'t Spanned<Cow<'t, str>>, &'t Spanned<DeValue<'t>>);

/// Reads a theme file. `place` names it in errors and, without folder and ending, the theme.
///
/// # Errors
/// Where it is no TOML, or names a part, role or colour that does not exist.
pub fn parse(place: &str, text: &str) -> Result<Definition, ThemeError> {
    let at = |(offset, reason): Complaint| {
        let before = text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        ThemeError { place: place.to_owned(), line: before + 1, reason }
    };
    if text.len() > LONGEST {
        return Err(at((0, format!("longer than {LONGEST} bytes: this is no theme"))));
    }
    let table = DeTable::parse(text).map_err(|error| {
        at((error.span().map_or(0, |span| span.start), error.message().to_owned()))
    })?;
    let file = place.rsplit('/').next().unwrap_or(place);
    let name = file.strip_suffix(".toml").unwrap_or(file).to_owned();
    read(name, table.get_ref()).map_err(at)
}

fn read(name: String, table: &DeTable<'_>) -> Result<Definition, Complaint> {
    for (key, _) in table {
        let written = key.get_ref().as_ref();
        if !PARTS.contains(&written) {
            return Err((key.span().start, unknown("part of a theme", written, PARTS)));
        }
    }
    let about = match table.get("about") {
        Some(value) => clean(string(value)?).chars().take(80).collect(),
        None => String::new(),
    };
    let mut palette = Palette::new();
    for (key, value) in rows(table, "palette")? {
        let written = string(value)?;
        let colour = hex(written).ok_or_else(|| (value.span().start, no_colour(written, &palette)));
        palette.insert(key.get_ref().to_string(), colour?);
    }
    let mut theme = plain();
    if let Some(value) = table.get("background") {
        theme.paper.bg =
            Some(colour(string(value)?, &palette).map_err(|r| (value.span().start, r))?);
    }
    let roles = rows(table, "roles")?;
    // Ordinary text first: whatever the file leaves out looks like it.
    let ordinary = roles.iter().find(|row| row.0.get_ref() == "text");
    if let Some((_, value)) = ordinary {
        let ink = style(string(value)?, &palette).map_err(|r| (value.span().start, r))?;
        theme.paper.fg = ink.fg.filter(|ink| *ink != Color::Reset);
    }
    for (key, value) in &roles {
        let written = key.get_ref().as_ref();
        let Some(role) = ROLES.iter().find(|role| role.name == written) else {
            let known = ROLES.iter().map(|role| role.name);
            return Err((key.span().start, unknown("role", written, known)));
        };
        let found = style(string(value)?, &palette).map_err(|r| (value.span().start, r))?;
        *(role.of)(&mut theme) = found;
    }
    let light = theme.paper.bg.and_then(rgb_of).map(|rgb| luminance(rgb) > 0.18);
    Ok(Definition { name, about, light, theme })
}

/// What a theme is that says nothing: weights, in one colour.
fn plain() -> Theme {
    let dim = Style::new();
    Theme { dim, rule: dim, free: dim, reserved: dim, ..Theme::mono() }
}

fn rows<'t>(table: &'t DeTable<'t>, part: &str) -> Result<Vec<Row<'t>>, Complaint> {
    match table.get(part) {
        None => Ok(Vec::new()),
        Some(value) => match value.get_ref() {
            DeValue::Table(rows) => Ok(rows.iter().collect()),
            _ => Err((value.span().start, format!("{part} must be a table: [{part}]"))),
        },
    }
}

fn string<'t>(value: &'t Spanned<DeValue<'_>>) -> Result<&'t str, Complaint> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err((value.span().start, "must be a text in quotes".to_owned())),
    }
}

fn hex(text: &str) -> Option<Color> {
    parse_hex(text).map(|(r, g, b)| Color::Rgb(r, g, b))
}

fn colour(word: &str, palette: &Palette) -> Result<Color, String> {
    hex(word)
        .or_else(|| palette.get(word).copied())
        .or_else(|| NAMED.iter().find(|row| row.0 == word).map(|row| row.1))
        .ok_or_else(|| no_colour(word, palette))
}

fn no_colour(word: &str, palette: &Palette) -> String {
    let known = || palette.keys().map(String::as_str).chain(NAMED.iter().map(|row| row.0));
    format!(
        "{word:?} is no colour{}; write #rrggbb, a name of [palette], or one of {}",
        did_you_mean(word, known()),
        NAMED.map(|row| row.0).join(", ")
    )
}

/// `sky bold`, `ink on #242b36`, `on band`.
fn style(text: &str, palette: &Palette) -> Result<Style, String> {
    let (mut style, mut behind) = (Style::new(), false);
    for word in text.split_whitespace() {
        if word == "on" && !behind {
            behind = true;
        } else if let Some((_, weight)) = WEIGHTS.iter().find(|row| row.0 == word) {
            style = style.add_modifier(*weight);
        } else if behind {
            style.bg = Some(colour(word, palette)?);
        } else if style.fg.is_none() {
            style.fg = Some(colour(word, palette)?);
        } else {
            return Err(format!(
                "{word:?} is one word too many: write a colour, \"on\" and a second one, and any of {}",
                WEIGHTS.map(|row| row.0).join(", ")
            ));
        }
    }
    Ok(style)
}

fn unknown<'w>(what: &str, word: &str, known: impl IntoIterator<Item = &'w str> + Clone) -> String {
    let word: String = word.chars().take(64).collect();
    let list = known.clone().into_iter().collect::<Vec<_>>().join(", ");
    format!("there is no {what} {word:?}{}; there are {list}", did_you_mean(&word, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_gives_colours_and_weights() {
        let text = "background = '#101010'\n[palette]\nsky = '#74b3e8'\n[roles]\n\
                    text = 'white'\naccent = 'sky bold'\nselected = 'on #242b36'\n";
        let read = parse("/home/ana/themes/mine.toml", text).unwrap();
        assert_eq!((read.name.as_str(), read.light), ("mine", Some(false)));
        assert_eq!(read.theme.accent.fg, Some(Color::Rgb(0x74, 0xb3, 0xe8)));
        assert!(read.theme.accent.add_modifier.contains(Modifier::BOLD));
        assert_eq!(read.theme.selected.bg, Some(Color::Rgb(0x24, 0x2b, 0x36)));
        assert_eq!(read.theme.paper.fg, Some(Color::Gray));
        // What it leaves out is ordinary text.
        assert_eq!(read.theme.good, Style::new());
        assert_eq!(parse("empty", "").unwrap().light, None);
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_is_meant() {
        let of = |text: &str| parse("mine.toml", text).unwrap_err().to_string();
        let role = of("[roles]\n\nacent = 'red'\n");
        assert!(role.starts_with("mine.toml:3: there is no role \"acent\", did you mean accent?"));
        assert!(role.contains("text, dim, strong"), "{role}");
        let colour = of("[palette]\nsky = '#74b3e8'\n[roles]\ngood = 'skye bold'\n");
        assert!(
            colour.starts_with("mine.toml:4: \"skye\" is no colour, did you mean sky?"),
            "{colour}"
        );
        let part = of("backgroud = '#000000'\n");
        assert!(part.contains("did you mean background?"), "{part}");
        assert!(of("[palette]\nsky = '#74b3e'\n").starts_with("mine.toml:2: "));
        assert!(of("[roles]\ngood = 5\n").starts_with("mine.toml:2: must be a text"));
        assert!(of("roles = 'red'").contains("must be a table"));
        assert!(of("[roles]\ngood = 'red green'").contains("one word too many"));
        assert!(of("about = 'a\n").starts_with("mine.toml:1: "));
        assert!(of(&"#\n".repeat(40_000)).contains("no theme"));
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "\\PC{0,200}", role in "[a-z #0-9]{0,30}") {
            let _ = parse("x", &text);
            let _ = parse("x", &format!("[roles]\ntext = '{role}'\n"));
        }
    }
}
