//! What stands before a message on its line: who wrote it (a rank, a container, an actor, a unit),
//! when, and how loud.

/// A line without its marks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stripped {
    /// Who wrote it, empty where the line does not say.
    pub writer: String,
    /// Length of what is left, in bytes, counted from the end of the line.
    pub body_len: usize,
}

/// More marks than this on one line are no marks.
const MARKS_MAX: usize = 8;

/// Takes the marks off.
pub(super) fn strip(line: &str) -> Stripped {
    let mut writer = String::new();
    let mut rest = line;
    for _ in 0..MARKS_MAX {
        let trimmed = rest.trim_start_matches([' ', '│']);
        if let Some((mark, after)) = who(trimmed) {
            if writer.is_empty() || !mark.is_empty() {
                if !writer.is_empty() {
                    writer.push(' ');
                }
                writer.extend(mark.chars().take(64));
            }
            rest = after;
        } else if let Some(after) = when(trimmed) {
            rest = after;
        } else {
            break;
        }
    }
    Stripped { writer, body_len: rest.len() }
}

/// A mark that names the writer, and what follows it.
fn who(text: &str) -> Option<(&str, &str)> {
    if let Some(after) = text.strip_prefix("> ") {
        return Some(("", after));
    }
    bracketed_rank(text).or_else(|| actor(text)).or_else(|| compose(text)).or_else(|| journal(text))
}

/// `[rank3]: `, `[default0]:`, `[pod/name/container] `.
fn bracketed_rank(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('[')?;
    let (mark, after) = inner.split_once(']')?;
    let numbered = |name: &str| {
        mark.strip_prefix(name)
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let known =
        numbered("rank") || numbered("default") || numbered("worker") || mark.starts_with("pod/");
    known.then(|| (mark, after.strip_prefix(':').unwrap_or(after)))
}

/// `(TrainWorker pid=70211, ip=10.0.0.1) `, `(EngineCore_DP0 pid=1) `.
fn actor(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('(')?;
    let (mark, after) = inner.split_once(')')?;
    (mark.len() < 96 && mark.contains("pid=")).then_some((mark, after))
}

/// `name-1  | `, as docker compose writes it.
fn compose(text: &str) -> Option<(&str, &str)> {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = text.find(|c: char| !name(c))?;
    let (mark, after) = text.split_at(end);
    let after = after.trim_start_matches(' ').strip_prefix("| ")?;
    let plausible = mark.len() < 64 && mark.bytes().any(|b| b.is_ascii_alphabetic());
    // A progress bar or a table of figures also has bars.
    let ends_as_a_name = mark.bytes().any(|b| matches!(b, b'-' | b'_')) || after.len() > 3;
    (plausible && ends_as_a_name).then_some((mark, after))
}

/// `Mar 02 11:20:31 host unit[911]: `.
fn journal(text: &str) -> Option<(&str, &str)> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = text.get(..3)?;
    if !MONTHS.contains(&month) {
        return None;
    }
    let mut words = text.split_ascii_whitespace();
    let (_, day, time) = (words.next()?, words.next()?, words.next()?);
    if day.len() > 2 || !is_clock(time) {
        return None;
    }
    let (_, unit) = (words.next()?, words.next()?);
    let mark = unit.strip_suffix(':')?;
    let (_, after) = text.split_once(unit)?;
    Some((mark, after))
}

/// A time, a level or a source position, and what follows it.
fn when(text: &str) -> Option<&str> {
    bracketed(text)
        .or_else(|| glog(text))
        .or_else(|| stamp(text))
        .or_else(|| ggml_clock(text))
        .or_else(|| level(text))
}

/// `[2026-05-20 03:12:45 TP0] `, `[19:01:44] `, `[912345.118204] `, `[file.py:12] `.
fn bracketed(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('[')?;
    let (mark, after) = inner.split_once(']')?;
    if mark.len() > 64 || after.is_empty() {
        return None;
    }
    let word = mark.split_ascii_whitespace().next()?;
    let seconds = mark.trim_start();
    let uptime = seconds.contains('.') && seconds.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let position = mark.rsplit_once(':').is_some_and(|(file, line)| {
        file.rsplit_once('.')
            .is_some_and(|(_, ending)| matches!(ending, "py" | "cpp" | "cc" | "cu"))
            && line.bytes().all(|b| b.is_ascii_digit())
    });
    let dated = is_date(word) || is_clock(word) || is_date(word.get(..10).unwrap_or_default());
    (uptime || position || dated || mark == "INFO" || mark == "ERROR").then_some(after)
}

/// `E0709 11:20:15 train.py:64] `.
fn glog(text: &str) -> Option<&str> {
    let level = text.get(..1)?;
    let digits = text.get(1..5)?;
    if !"IWEF".contains(level) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (lead, after) = text.split_once("] ")?;
    (lead.len() < 120).then_some(after)
}

/// `2026-01-09T12:00:31.881Z `, `2026-01-09 12:00:31,881: `, `07:22:24 `.
fn stamp(text: &str) -> Option<&str> {
    let (word, after) = text.split_once(' ')?;
    let joined = word.get(..10).is_some_and(is_date) && word.len() > 10;
    if joined || is_clock(word.trim_end_matches(':')) {
        return Some(after);
    }
    if is_date(word) || is_short_date(word) {
        let (clock, rest) = after.trim_start().split_once(' ')?;
        return is_clock(clock.trim_end_matches(':')).then_some(rest);
    }
    None
}

/// `0.00.230.375 I `, the clock of llama.cpp since 2026.
fn ggml_clock(text: &str) -> Option<&str> {
    let (word, after) = text.split_once(' ')?;
    let dots = word.bytes().filter(|b| *b == b'.').count();
    if dots != 3 || !word.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let (level, rest) = after.split_once(' ')?;
    matches!(level, "I" | "W" | "E" | "D").then_some(rest)
}

/// `ERROR `, `[W] `, `| INFO | `.
fn level(text: &str) -> Option<&str> {
    const LEVELS: [&str; 9] =
        ["INFO ", "WARN ", "WARNING ", "ERROR ", "DEBUG ", "CRITICAL ", "FATAL ", "| ", "- "];
    LEVELS.iter().find_map(|level| text.strip_prefix(level))
}

fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => matches!(byte, b'-' | b'/' | b'.'),
            _ => byte.is_ascii_digit(),
        })
}

/// `09-28`, as vLLM writes it.
fn is_short_date(word: &str) -> bool {
    word.len() == 5
        && word
            .bytes()
            .enumerate()
            .all(|(at, b)| if at == 2 { b == b'-' } else { b.is_ascii_digit() })
}

/// `11:20:31`, with fractions and a zone.
fn is_clock(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 8
        && bytes.iter().take(8).enumerate().all(|(at, byte)| match at {
            2 | 5 => *byte == b':',
            _ => byte.is_ascii_digit(),
        })
        && bytes.iter().skip(8).all(|b| b.is_ascii_digit() || b".,:+-Z".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(line: &str) -> (String, &str) {
        let stripped = strip(line);
        (stripped.writer, line.get(line.len() - stripped.body_len..).unwrap_or_default())
    }

    #[test]
    fn marks_of_every_writer_are_taken_off() {
        for (line, writer, rest) in [
            ("[rank2]: Traceback", "rank2", " Traceback"),
            ("worker-2  | 2024-02-19T21:44:31.077Z ERROR failed", "worker-2", "failed"),
            (
                "(EngineCore_DP0 pid=1) ERROR 09-28 15:47:24 [core.py:718] Val",
                "EngineCore_DP0 pid=1",
                " Val",
            ),
            ("Mar 02 11:20:31 rook ollama[911]: time=x", "ollama[911]", " time=x"),
            ("0.02.411.311 E alloc_tensor_range: f", "", "alloc_tensor_range: f"),
            ("> > quoted", "", "quoted"),
            ("[2026-05-20 03:12:45 TP0] Prefill", "", " Prefill"),
            ("E0709 11:20:15 train.py:64] first", "", "first"),
            ("2024-07-12 14:40:46.377091: W tensor", "", "W tensor"),
            ("  File \"x\"", "", "  File \"x\""),
            ("| 0 N/A |", "", "0 N/A |"),
        ] {
            assert_eq!(body(line), (writer.to_owned(), rest), "{line}");
        }
    }
}
