//! Lines of a page of 80 columns.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

/// Columns of the page.
pub(super) const WIDTH: usize = 80;

/// Text in lines of at most [`WIDTH`] columns; a word that is longer is cut. What stands between
/// backticks is a command and stays on one line, where a line has room for it.
pub(super) fn paragraph(out: &mut String, first: &str, next: &str, text: &str) {
    let room = WIDTH.saturating_sub(next.width());
    flow(out, first, next, "", &words(text, room));
}

/// A line to type: broken behind a comma or a semicolon where that is enough, and in a shell's
/// command so that the shell reads on.
pub(super) fn code(out: &mut String, lead: &str, text: &str) {
    let next = format!("{lead}  ");
    if lead.width() + text.width() <= WIDTH {
        let _ = writeln!(out, "{lead}{text}");
    } else if is_shell(text) {
        let all: Vec<&str> = text.split_whitespace().collect();
        flow(out, lead, &next, " \\", &all);
    } else {
        let room = WIDTH.saturating_sub(next.width());
        flow(out, lead, &next, "", &parts(text, room));
    }
}

/// Whether a line is for a shell: it sets a variable, names an option, or begins with a program.
fn is_shell(text: &str) -> bool {
    const PROGRAMS: [&str; 8] =
        ["ollama", "vllm", "vramlens", "docker", "sudo", "lms", "nvidia-smi", "python"];
    let first = text.split_whitespace().next().unwrap_or_default();
    let variable = first.split_once('=').is_some_and(|(name, _)| {
        name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    });
    variable || first.starts_with('-') || PROGRAMS.contains(&first)
}

/// The words of a text, those between backticks as one.
fn words(text: &str, room: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let space = |text: &str| text.find(char::is_whitespace).unwrap_or(text.len());
        let mut end = space(rest);
        let word = rest.get(..end).unwrap_or(rest);
        if let Some(open) = word.find('`').filter(|_| word.matches('`').count() == 1)
            && let Some(close) = rest.get(open + 1..).and_then(|after| after.find('`'))
        {
            let closed = open + 2 + close;
            let whole = closed + rest.get(closed..).map_or(0, space);
            if rest.get(..whole).is_some_and(|whole| whole.width() <= room) {
                end = whole;
            }
        }
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// The parts of a call or of statements, which end with a comma or a semicolon; words, where a part
/// has no room on a line.
fn parts(text: &str, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in text.split_inclusive(", ").flat_map(|part| part.split_inclusive("; ")) {
        let part = part.trim();
        if part.width() <= room {
            parts.push(part);
        } else {
            parts.extend(part.split_whitespace());
        }
    }
    parts
}

/// Words in lines; `end` stands at the end of every line but the last.
fn flow(out: &mut String, first: &str, next: &str, end: &str, words: &[&str]) {
    let width = WIDTH.saturating_sub(end.width());
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words.iter().copied() {
        let mut word = word;
        loop {
            let space = usize::from(!empty);
            if line.width() + space + word.width() <= width {
                line.push_str(if empty { "" } else { " " });
                line.push_str(word);
                empty = false;
                break;
            }
            if empty {
                let (head, tail) = head(word, width.saturating_sub(line.width()).max(1));
                line.push_str(head);
                word = tail;
            }
            let _ = writeln!(out, "{line}{end}");
            next.clone_into(&mut line);
            empty = true;
            if word.is_empty() {
                break;
            }
        }
    }
    if !empty {
        let _ = writeln!(out, "{line}");
    }
}

/// The part of a word that fits into `width` columns, and the rest; at least one character.
fn head(word: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let end = word
        .char_indices()
        .find(|(at, c)| {
            used += c.to_string().width();
            used > width && *at > 0
        })
        .map_or(word.len(), |(at, _)| at);
    word.split_at_checked(end).unwrap_or((word, ""))
}

/// Exactly `width` columns: cut with an ellipsis, or filled with spaces.
pub(super) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return format!("{text}{}", " ".repeat(width - text.width()));
    }
    let (head, _) = head(text, width.saturating_sub(1));
    let fill = width.saturating_sub(head.width() + 1);
    format!("{head}…{}", " ".repeat(fill))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_page() {
        let mut out = String::new();
        paragraph(
            &mut out,
            "  - ",
            "    ",
            &format!("{} 宽宽宽 {}", "x".repeat(200), "a b c ".repeat(40)),
        );
        assert!(out.lines().all(|line| line.width() <= WIDTH), "{out}");
        assert!(out.contains(&"x".repeat(70)));
        assert_eq!(fit("宽宽宽", 4).width(), 4);
    }

    fn coded(text: &str) -> String {
        let mut out = String::new();
        code(&mut out, "       ", text);
        out
    }

    #[test]
    fn a_command_is_not_broken_and_a_shell_reads_on() {
        let mut out = String::new();
        let text = "live: who holds it, which are leftovers; then `vramlens kill --dry-run PID`";
        paragraph(&mut out, "       # ", "       # ", text);
        assert!(out.contains("# `vramlens kill --dry-run PID`\n"), "{out}");
        // One that has no room on any line is broken all the same.
        let long = format!("`{}`", "a b ".repeat(60));
        paragraph(&mut out, "", "", &long);
        assert!(out.lines().all(|line| line.width() <= WIDTH), "{out}");
        paragraph(&mut out, "", "", "an ` without its second");
        assert!(out.ends_with("an ` without its second\n"));

        let line = "OLLAMA_CONTEXT_LENGTH=65536 OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve";
        let out = coded(line);
        assert!(out.lines().count() > 1 && out.lines().all(|line| line.width() <= WIDTH), "{out}");
        let joined = out.replace(" \\\n", " ");
        assert_eq!(joined.split_whitespace().collect::<Vec<_>>().join(" "), line);
    }

    #[test]
    fn a_call_is_broken_behind_a_comma() {
        let out = coded(
            "from_pretrained(..., device_map=\"auto\", max_memory={0: \"21GiB\", \"cpu\": \"60GiB\"})",
        );
        let mut lines = out.lines();
        assert!(lines.next().is_some_and(|line| line.ends_with(',')), "{out}");
        assert_eq!(lines.next(), Some("         \"cpu\": \"60GiB\"})"));
    }
}
