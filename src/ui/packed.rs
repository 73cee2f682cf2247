//! A colour as one number.

use ratatui::style::Color;

const INDEXED: u32 = 1 << 8;
const RGB: u32 = 1 << 24;

/// 0 for the terminal's own, 1 to 16 for the named, else by number or by red, green and blue.
pub(super) const fn packed(color: Color) -> u32 {
    match color {
        Color::Reset => 0,
        Color::Black => 1,
        Color::Red => 2,
        Color::Green => 3,
        Color::Yellow => 4,
        Color::Blue => 5,
        Color::Magenta => 6,
        Color::Cyan => 7,
        Color::Gray => 8,
        Color::DarkGray => 9,
        Color::LightRed => 10,
        Color::LightGreen => 11,
        Color::LightYellow => 12,
        Color::LightBlue => 13,
        Color::LightMagenta => 14,
        Color::LightCyan => 15,
        Color::White => 16,
        Color::Indexed(n) => INDEXED | n as u32,
        Color::Rgb(r, g, b) => RGB | (r as u32) << 16 | (g as u32) << 8 | b as u32,
    }
}

/// And back.
pub(super) const fn unpacked(packed: u32) -> Color {
    use Color::{
        Black, Blue, Cyan, DarkGray, Gray, Green, LightBlue, LightCyan, LightGreen, LightMagenta,
        LightRed, LightYellow, Magenta, Red, Reset, White, Yellow,
    };
    const NAMED: [Color; 17] = [
        Reset,
        Black,
        Red,
        Green,
        Yellow,
        Blue,
        Magenta,
        Cyan,
        Gray,
        DarkGray,
        LightRed,
        LightGreen,
        LightYellow,
        LightBlue,
        LightMagenta,
        LightCyan,
        White,
    ];
    if packed & RGB != 0 {
        Color::Rgb((packed >> 16) as u8, (packed >> 8) as u8, packed as u8)
    } else if packed & INDEXED != 0 {
        Color::Indexed(packed as u8)
    } else {
        NAMED[packed as usize % NAMED.len()]
    }
}
