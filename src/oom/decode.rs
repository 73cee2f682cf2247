//! Encodings of a whole input: UTF-8 as it is, UTF-16 with or without its mark (`PowerShell` writes
//! it) as UTF-8.

/// Turns UTF-16 into UTF-8 on the way, and passes everything else on.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    state: State,
    held: Vec<u8>,
    high: Option<u16>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Plain,
    Little,
    Big,
}

/// Bytes that are enough to recognise UTF-16 without its mark.
const SAMPLE: usize = 64;

impl Decoder {
    /// Passes `bytes` on to `out`.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8])) {
        match self.state {
            State::Plain => out(bytes),
            State::Unknown => {
                self.held.extend_from_slice(bytes);
                if self.held.len() >= SAMPLE {
                    self.decide(out);
                }
            }
            State::Little | State::Big => self.wide(bytes, out),
        }
    }

    /// The end of the input.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(&[u8])) {
        if self.state == State::Unknown {
            self.decide(out);
        }
        if self.high.take().is_some() {
            out("\u{fffd}".as_bytes());
        }
    }

    fn decide(&mut self, out: &mut impl FnMut(&[u8])) {
        let held = std::mem::take(&mut self.held);
        let sample = held.get(..SAMPLE.min(held.len())).unwrap_or_default();
        let zeros = |parity: usize| {
            sample.iter().enumerate().filter(|(at, b)| at % 2 == parity && **b == 0).count() * 3
        };
        let (skip, state) = match sample {
            [0xFF, 0xFE, ..] => (2, State::Little),
            [0xFE, 0xFF, ..] => (2, State::Big),
            [0xEF, 0xBB, 0xBF, ..] => (3, State::Plain),
            _ if sample.len() > 7 && zeros(1) > sample.len() && zeros(0) == 0 => (0, State::Little),
            _ if sample.len() > 7 && zeros(0) > sample.len() && zeros(1) == 0 => (0, State::Big),
            _ => (0, State::Plain),
        };
        self.state = state;
        self.push(held.get(skip..).unwrap_or_default(), out);
    }

    fn wide(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8])) {
        if bytes.is_empty() {
            return;
        }
        let mut text = String::with_capacity(bytes.len() / 2 + 4);
        let mut bytes = bytes;
        let carried;
        if let (Some(first), Some(second)) = (self.held.pop(), bytes.first()) {
            carried = [first, *second];
            self.unit(carried, &mut text);
            bytes = bytes.get(1..).unwrap_or_default();
        }
        let mut pairs = bytes.chunks_exact(2);
        for pair in pairs.by_ref() {
            if let [a, b] = pair {
                self.unit([*a, *b], &mut text);
            }
        }
        self.held.extend_from_slice(pairs.remainder());
        out(text.as_bytes());
    }

    fn unit(&mut self, pair: [u8; 2], text: &mut String) {
        let unit = if self.state == State::Big {
            u16::from_be_bytes(pair)
        } else {
            u16::from_le_bytes(pair)
        };
        let units = match self.high.take() {
            Some(high) => [high, unit],
            None if (0xD800..0xDC00).contains(&unit) => {
                self.high = Some(unit);
                return;
            }
            None => [unit, 0],
        };
        let used = if units[1] == 0 && units[0] == unit { 1 } else { 2 };
        let units = units.get(..used).unwrap_or_default().iter().copied();
        text.extend(char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], step: usize) -> String {
        let mut out = Vec::new();
        let mut decoder = Decoder::default();
        let mut sink = |bytes: &[u8]| out.extend_from_slice(bytes);
        for chunk in bytes.chunks(step) {
            decoder.push(chunk, &mut sink);
        }
        decoder.finish(&mut sink);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn both_widths_read_alike_in_pieces_of_any_size() {
        let text = "CUDA out of memory. Tried to allocate 1.25 GiB 😀 é end, and some more of it";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = [&[0xFF, 0xFE][..], &little].concat();
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(decode(text.as_bytes(), step), text);
            assert_eq!(decode(&little, step), text);
            assert_eq!(decode(&big, step), text);
            assert_eq!(decode(&marked, step), text);
        }
        assert_eq!(decode(b"\xef\xbb\xbfab", 1), "ab");
        assert_eq!(decode(b"", 1), "");
    }
}
