//! Colours as numbers: how far apart two look, how well one can be read on the other, and which of
//! the colours that a terminal has comes nearest.

use ratatui::style::Color;

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Depth {
    /// None, or none are wanted.
    None,
    /// The sixteen that every terminal sets as it likes.
    #[default]
    Ansi,
    /// These, a cube of 216 and a ramp of 24 greys.
    Indexed,
    /// 24 bits.
    True,
}

/// Red, green and blue in sRGB.
pub type Rgb = (u8, u8, u8);

/// The least contrast of text and what lies behind it, by WCAG 2.1 (level AA).
pub const READABLE: f64 = 4.5;

/// The sixteen colours as xterm has them. Terminals differ; these are what most begin with.
const ANSI: [(Color, Rgb); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];

/// The sixteen colours in the order of their numbers.
pub const SIXTEEN: [Color; 16] = {
    let mut all = [Color::Reset; 16];
    let mut n = 0;
    while n < 16 {
        all[n] = ANSI[n].0;
        n += 1;
    }
    all
};

/// What a colour looks like; `None` for the terminal's own foreground or background.
pub fn rgb_of(colour: Color) -> Option<Rgb> {
    match colour {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Indexed(n) if n >= 16 => Some(indexed(n)),
        Color::Indexed(n) => Some(ANSI[usize::from(n)].1),
        other => ANSI.iter().find(|row| row.0 == other).map(|row| row.1),
    }
}

/// A colour of the cube or of the greys, as every terminal with 256 colours has them.
const fn indexed(n: u8) -> Rgb {
    const fn level(n: u8) -> u8 {
        if n == 0 { 0 } else { 55 + 40 * n }
    }
    if n >= 232 {
        let grey = 8 + 10 * (n - 232);
        return (grey, grey, grey);
    }
    let n = n.saturating_sub(16);
    (level(n / 36), level(n / 6 % 6), level(n % 6))
}

/// Light, by WCAG 2.1: 0 for black, 1 for white.
pub fn luminance((r, g, b): Rgb) -> f64 {
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

/// How well one can be read on the other, from 1 to 21, by WCAG 2.1.
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn linear(channel: u8) -> f64 {
    let c = f64::from(channel) / 255.0;
    if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// How far apart two colours look: the distance in OKLab, about 1 from black to white.
pub fn difference(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (oklab(a), oklab(b));
    ((a.0 - b.0).powi(2) + (a.1 - b.1).powi(2) + (a.2 - b.2).powi(2)).sqrt()
}

/// After Björn Ottosson, "A perceptual color space for image processing", 2020.
fn oklab(colour: Rgb) -> (f64, f64, f64) {
    let (r, g, b) = (linear(colour.0), linear(colour.1), linear(colour.2));
    let long = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let middle = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let short = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    (
        0.210_454_255_3 * long + 0.793_617_785_0 * middle - 0.004_072_046_8 * short,
        1.977_998_495_1 * long - 2.428_592_205_0 * middle + 0.450_593_709_9 * short,
        0.025_904_037_1 * long + 0.782_771_766_2 * middle - 0.808_675_766_0 * short,
    )
}

impl Depth {
    /// The colour that this terminal has for it. `behind` is what it will lie on: among those that
    /// can be read there the nearest, where the colour itself can be.
    pub fn map(self, colour: Color, behind: Option<Rgb>) -> Color {
        let rgb = match (self, colour) {
            (Self::None, _) => return Color::Reset,
            (Self::Indexed, Color::Rgb(..))
            | (Self::Ansi, Color::Rgb(..) | Color::Indexed(16..)) => rgb_of(colour),
            // It has this one.
            _ => None,
        };
        let Some(rgb) = rgb else { return colour };
        let floor = behind.map_or(0.0, |behind| contrast(rgb, behind).min(READABLE));
        let readable = |candidate: &(Color, Rgb)| {
            behind.is_none_or(|behind| contrast(candidate.1, behind) >= floor)
        };
        let nearest = |all: &mut dyn Iterator<Item = (Color, Rgb)>| {
            all.filter(readable)
                .min_by(|a, b| difference(a.1, rgb).total_cmp(&difference(b.1, rgb)))
                .map(|found| found.0)
        };
        let found = if self == Self::Ansi {
            let kin = family(rgb);
            nearest(&mut kin.iter().map(|&n| ANSI[n]))
                // None of that hue can be read here: better no hue than another one's meaning.
                .or_else(|| nearest(&mut GREYS.iter().map(|&n| ANSI[n])))
        } else {
            // The first sixteen are not the same everywhere.
            nearest(&mut (16..=255).map(|n| (Color::Indexed(n), indexed(n))))
        };
        found.unwrap_or(Color::Reset)
    }
}

/// Black to white, among the sixteen.
const GREYS: [usize; 4] = [0, 8, 7, 15];

/// Hues of the sixteen in degrees of OKLCh, as people name them rather than as xterm has them: what
/// is called yellow reaches from brown to lemon. With each the plain and the bright one.
const HUES: [(f64, &[usize]); 6] = [
    (20.0, &[1, 9]),
    (85.0, &[3, 11]),
    (140.0, &[2, 10]),
    (200.0, &[6, 14]),
    // Blue cannot be read on black: cyan is its neighbour, and means nothing else.
    (255.0, &[4, 12, 6, 14]),
    (335.0, &[5, 13]),
];

/// A colour with less is called a grey.
const LEAST_CHROMA: f64 = 0.05;

/// Those of the sixteen that have the same name as this colour.
fn family(rgb: Rgb) -> &'static [usize] {
    let (_, a, b) = oklab(rgb);
    if a.hypot(b) < LEAST_CHROMA {
        return &GREYS;
    }
    let hue = b.atan2(a).to_degrees().rem_euclid(360.0);
    let apart = |other: f64| {
        let turn = (hue - other).abs();
        turn.min(360.0 - turn)
    };
    let mut nearest = &HUES[0];
    for row in &HUES[1..] {
        if apart(row.0) < apart(nearest.0) {
            nearest = row;
        }
    }
    nearest.1
}

/// `#rrggbb`.
pub fn parse_hex(text: &str) -> Option<Rgb> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    let [_, r, g, b] = number.to_be_bytes();
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some((r, g, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 1e-9);
        // A grey that is often named as the first that passes on white.
        assert!((contrast((0x76, 0x76, 0x76), (255, 255, 255)) - 4.54).abs() < 0.01);
        assert!((contrast((1, 2, 3), (1, 2, 3)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn colours_are_read_and_measured() {
        assert_eq!(parse_hex("#16Fa00"), Some((0x16, 0xfa, 0)));
        for bad in ["16fa00", "#16fa0", "#16fa000", "#+6fa00", "#é6fa", "red"] {
            assert_eq!(parse_hex(bad), None, "{bad}");
        }
        assert_eq!(indexed(16), (0, 0, 0));
        assert_eq!(indexed(231), (255, 255, 255));
        assert_eq!(indexed(110), (135, 175, 215));
        assert_eq!(indexed(244), (128, 128, 128));
        assert!((difference((0, 0, 0), (255, 255, 255)) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_terminal_gets_the_nearest_colour_that_it_has() {
        let sky = Color::Rgb(0x87, 0xae, 0xd6);
        assert_eq!(Depth::True.map(sky, None), sky);
        assert_eq!(Depth::Indexed.map(sky, None), Color::Indexed(110));
        assert_eq!(Depth::Ansi.map(Color::Rgb(250, 10, 5), None), Color::LightRed);
        assert_eq!(Depth::None.map(sky, None), Color::Reset);
        assert_eq!(Depth::Ansi.map(Color::Reset, None), Color::Reset);
        // Grey on black: what is nearest could not be read.
        let grey = Color::Rgb(118, 118, 118);
        assert_eq!(Depth::Ansi.map(Color::Rgb(20, 30, 150), Some((255, 255, 255))), Color::Blue);
        assert_eq!(Depth::Ansi.map(grey, None), Color::DarkGray);
        // The hue is what is meant: never red for a grey, nor blue for a green.
        let white = Some((255, 255, 255));
        assert_eq!(Depth::Ansi.map(Color::Rgb(0x69, 0x62, 0x58), white), Color::Black);
        assert_eq!(Depth::Ansi.map(Color::Rgb(0x3d, 0x6a, 0x2a), white), Color::Black);
        assert_eq!(Depth::Ansi.map(Color::Rgb(0xa5, 0x30, 0x2a), white), Color::Red);
        assert_eq!(Depth::Ansi.map(Color::Rgb(0x93, 0xc4, 0x8a), Some((0, 0, 0))), Color::Green);
    }

    proptest! {
        #[test]
        fn what_can_be_read_can_still_be_read_with_fewer_colours(
            ink in any::<Rgb>(),
            paper in any::<Rgb>(),
        ) {
            for depth in [Depth::Indexed, Depth::Ansi] {
                let paper = rgb_of(depth.map(Color::Rgb(paper.0, paper.1, paper.2), None)).unwrap();
                let mapped = depth.map(Color::Rgb(ink.0, ink.1, ink.2), Some(paper));
                let before = contrast(ink, paper).min(READABLE);
                prop_assert!(contrast(rgb_of(mapped).unwrap(), paper) >= before);
            }
        }
    }
}
