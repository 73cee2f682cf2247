//! The themes that come with the program.

use super::file::{Definition, parse};

/// The name of the theme that takes the terminal's own colours.
pub const TERMINAL: &str = "terminal";

macro_rules! themes {
    ($($name:literal)*) => {
        /// Names and files of the themes that are built in, besides [`TERMINAL`].
        pub const BUILT_IN: &[(&str, &str)] = &[$(
            ($name, include_str!(concat!("../../../assets/themes/", $name, ".toml"))),
        )*];
    };
}

themes! { "harbor" "ember" "moss" "linen" "iris" "beacon" "noon" }

/// A theme that is built in, by its name.
pub fn built_in(name: &str) -> Option<Definition> {
    if name == TERMINAL {
        return Some(Definition::terminal());
    }
    let (_, text) = BUILT_IN.iter().find(|row| row.0 == name)?;
    // A test reads every one of them.
    parse(name, text).ok()
}

#[cfg(test)]
mod tests {
    use ratatui::style::{Color, Modifier, Style};

    use super::*;
    use crate::ui::theme::{Depth, READABLE, ROLES, Rgb, Theme, contrast, difference, rgb_of};

    fn all() -> impl Iterator<Item = (&'static str, Definition)> {
        BUILT_IN.iter().map(|(name, text)| {
            (*name, parse(name, text).unwrap_or_else(|error| panic!("{name}: {error}")))
        })
    }

    /// What a role's text is read on: the ground, and the selected row where that keeps colours.
    fn grounds(theme: &mut Theme, style: Style, selected: bool) -> Vec<Rgb> {
        let paper = theme.paper.bg.and_then(rgb_of).unwrap();
        let band = theme.selected.bg.and_then(rgb_of);
        match band {
            Some(band) if selected => vec![style.bg.and_then(rgb_of).unwrap_or(band)],
            Some(band) => vec![paper, band],
            None => vec![paper],
        }
    }

    #[test]
    fn every_text_can_be_read_on_its_ground_with_all_and_with_fewer_colours() {
        for (name, definition) in all() {
            for depth in [Depth::True, Depth::Indexed, Depth::Ansi] {
                let mut theme = definition.theme.at(depth);
                for role in ROLES {
                    let style = *(role.of)(&mut theme);
                    assert!(!style.add_modifier.contains(Modifier::DIM), "{name} {}", role.name);
                    let Some(ink) = style.fg.or(theme.paper.fg).and_then(rgb_of) else {
                        panic!("{name}: {} has no colour", role.name)
                    };
                    // Lines and patterns: WCAG 1.4.11 asks 3 of what carries a meaning; a rule
                    // only parts what blank lines part too.
                    let least = match (role.shape, role.name) {
                        (false, _) => READABLE,
                        (true, "rule") => 1.2,
                        (true, _) => 3.0,
                    };
                    for ground in grounds(&mut theme, style, role.name == "selected") {
                        let found = contrast(ink, ground);
                        assert!(
                            found >= least || (depth == Depth::Ansi && role.name == "rule"),
                            "{name} {depth:?}: {} has {found:.2} on {ground:?}",
                            role.name
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_two_of_high_contrast_have_it() {
        for name in ["beacon", "noon"] {
            let mut theme = built_in(name).unwrap().theme;
            for role in ROLES.iter().filter(|role| !role.shape) {
                let style = *(role.of)(&mut theme);
                let ink = style.fg.or(theme.paper.fg).and_then(rgb_of).unwrap();
                for ground in grounds(&mut theme, style, role.name == "selected") {
                    let found = contrast(ink, ground);
                    assert!(found >= 7.0, "{name}: {} has {found:.2}", role.name);
                }
            }
        }
    }

    /// As somebody without one kind of cone sees it (Viénot, Brettel and Mollon 1999, in linear
    /// light).
    fn seen(rgb: Rgb, red_missing: bool) -> Rgb {
        let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
        let (r, g, b) = (linear(rgb.0), linear(rgb.1), linear(rgb.2));
        let mixed = if red_missing { 0.11238 * r + 0.88762 * g } else { 0.29275 * r + 0.70725 * g };
        let blue = if red_missing { 0.00401 * (r - g) + b } else { -0.02234 * (r - g) + b };
        let byte = |c: f64| (c.clamp(0.0, 1.0).powf(1.0 / 2.2) * 255.0).round() as u8;
        (byte(mixed), byte(mixed), byte(blue))
    }

    #[test]
    fn iris_keeps_its_meanings_apart_without_red_or_green_cones() {
        let theme = built_in("iris").unwrap().theme;
        let colours = [theme.text, theme.good, theme.warn, theme.bad, theme.accent]
            .map(|style| style.fg.and_then(rgb_of).unwrap());
        for red_missing in [true, false] {
            for (n, a) in colours.iter().enumerate() {
                for b in &colours[n + 1..] {
                    let apart = difference(seen(*a, red_missing), seen(*b, red_missing));
                    assert!(apart > 0.08, "{a:?} and {b:?}: {apart:.3}, red {red_missing}");
                }
            }
        }
    }

    #[test]
    fn the_terminals_own_theme_sets_no_ground_and_only_its_sixteen_colours() {
        let mut theme = built_in(TERMINAL).unwrap().theme;
        assert_eq!(theme.paper, Style::new());
        for role in ROLES {
            let style = *(role.of)(&mut theme);
            assert_eq!(style.bg, None);
            assert!(!matches!(style.fg, Some(Color::Rgb(..) | Color::Indexed(_))));
        }
        assert_eq!(theme.at(Depth::Ansi), theme);
        assert_eq!(theme.at(Depth::None), Theme::mono());
    }
}
