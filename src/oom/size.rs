//! Sizes as messages print them, read exactly.

/// A figure of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// In bytes.
    Bytes(u64),
    /// The number that stands for "not known" or "no limit": 2^64-1 bytes and its neighbours.
    NoValue,
}

/// From here on a figure is a sentinel: no device has 8 EiB.
const SENTINEL: u128 = 1 << 63;

/// A number without white space: digits, thousands separators, one point. The mantissa, the number
/// of decimals, and what was read.
fn number(text: &[u8]) -> Option<(u128, u32, usize)> {
    let (mut mantissa, mut decimals, mut at, mut digits) = (0_u128, 0_u32, 0_usize, 0_u32);
    let mut point = false;
    while let Some(&byte) = text.get(at) {
        let next_is_digit = text.get(at + 1).is_some_and(u8::is_ascii_digit);
        match byte {
            b'0'..=b'9' => {
                // 26 digits are more than any figure has; the rest is refused, not wrapped.
                digits += 1;
                if digits > 26 {
                    return None;
                }
                mantissa = mantissa * 10 + u128::from(byte - b'0');
                decimals += u32::from(point);
            }
            b',' if !point && digits > 0 && thousands_follow(text, at) => {}
            b'.' if !point && digits > 0 && next_is_digit => point = true,
            _ => break,
        }
        at += 1;
    }
    (digits > 0).then_some((mantissa, decimals, at))
}

fn thousands_follow(text: &[u8], at: usize) -> bool {
    text.get(at + 1..at + 4).is_some_and(|three| three.iter().all(u8::is_ascii_digit))
        && !text.get(at + 4).is_some_and(u8::is_ascii_digit)
}

/// `1.37GiB`, `20.00MB`, `9.83G`, `0bytes`, `1,073,741,824B`: the value and what was read. Units
/// are powers of 1024 however they are written, unless `decimal`. White space is gone already.
pub(super) fn read(text: &[u8], decimal: bool) -> Option<(Size, usize)> {
    let (mantissa, decimals, at) = number(text)?;
    let rest = text.get(at..)?;
    let (power, unit) = unit(rest)?;
    let base: u128 = if decimal { 1000 } else { 1024 };
    let factor = base.pow(power);
    let scale = 10_u128.pow(decimals);
    let bytes = (mantissa.checked_mul(factor)? + scale / 2) / scale;
    let size =
        if bytes >= SENTINEL { Size::NoValue } else { Size::Bytes(u64::try_from(bytes).ok()?) };
    Some((size, at + unit))
}

/// A bare integer, thousands separators allowed: the value and what was read.
pub(super) fn integer(text: &[u8]) -> Option<(Size, usize)> {
    let (mantissa, decimals, at) = number(text)?;
    if decimals > 0 {
        return None;
    }
    let value = if mantissa >= SENTINEL { Size::NoValue } else { Size::Bytes(mantissa as u64) };
    Some((value, at))
}

/// A bare number in thousandths: `0.92` is 920.
pub(super) fn thousandths(text: &[u8]) -> Option<(Size, usize)> {
    let (mantissa, decimals, at) = number(text)?;
    let value = mantissa.checked_mul(1000)? / 10_u128.pow(decimals);
    Some((Size::Bytes(u64::try_from(value).ok()?), at))
}

/// The power of the unit's base, and the unit's length.
fn unit(text: &[u8]) -> Option<(u32, usize)> {
    let upper = |n: usize| text.get(n).map(u8::to_ascii_uppercase);
    if text.len() >= 4 && text.get(..4).is_some_and(|t| t.eq_ignore_ascii_case(b"byte")) {
        return Some((0, if upper(4) == Some(b'S') { 5 } else { 4 }));
    }
    let power = match upper(0)? {
        b'B' => return ends(text, 1).then_some((0, 1)),
        b'K' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        _ => return None,
    };
    match (upper(1), upper(2)) {
        (Some(b'I'), Some(b'B')) => Some((power, 3)),
        // `16Gi`, as Kubernetes and `free` write it.
        (Some(b'I'), _) if ends(text, 2) => Some((power, 2)),
        (Some(b'B'), _) => Some((power, 2)),
        _ => ends(text, 1).then_some((power, 1)),
    }
}

fn ends(text: &[u8], at: usize) -> bool {
    !text.get(at).is_some_and(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> Option<u64> {
        match read(text.as_bytes(), false) {
            Some((Size::Bytes(n), _)) => Some(n),
            _ => None,
        }
    }

    #[test]
    fn figures_are_exact() {
        assert_eq!(bytes("1.37GiB"), Some(1_471_026_299));
        assert_eq!(bytes("388.75MiB"), Some(407_633_920));
        assert_eq!(bytes("762.939697MB"), Some(800_000_256));
        assert_eq!(bytes("0bytes"), Some(0));
        assert_eq!(bytes("18,446bytes"), Some(18_446));
        assert_eq!(bytes("9.83G(1055"), Some(10_554_882_130));
        assert_eq!(bytes("16Gi"), Some(16 << 30));
        assert_eq!(bytes("16"), None);
        assert_eq!(read(b"42.92GB", true), Some((Size::Bytes(42_920_000_000), 7)));
        assert_eq!(read(b"17179869184.00GiB", false), Some((Size::NoValue, 17)));
        assert_eq!(integer(b"18,446,744,073,709,551,615x"), Some((Size::NoValue, 26)));
        assert_eq!(thousandths(b"0.92,"), Some((Size::Bytes(920), 4)));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(whole in 0_u64..100_000, cents in 0_u64..100) {
            let exact = (u128::from(whole * 100 + cents) * (1 << 30) + 50) / 100;
            prop_assert_eq!(bytes(&format!("{whole}.{cents:02}GiB")), Some(exact as u64));
        }

        #[test]
        fn no_text_panics(text: Vec<u8>) {
            let _ = (read(&text, false), integer(&text), thousandths(&text));
        }
    }
}
