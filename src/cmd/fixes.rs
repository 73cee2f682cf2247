//! `vramlens fixes [N]`: the nine fixes, and answers to three questions.

use std::io::{Read, Write};

use serde::Serialize;

use crate::oom::fixes::{FixText, TEXTS, find};

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// A number or a key; all titles where there is none.
    pub which: Option<String>,
    /// JSON instead of text.
    pub json: bool,
}

/// A text as JSON.
#[derive(Debug, Serialize)]
struct Fix {
    number: u8,
    key: &'static str,
    title: &'static str,
    /// Markdown.
    text: &'static str,
}

impl Fix {
    fn of(text: &FixText) -> Self {
        Self { number: text.number, key: text.key, title: text.title(), text: text.text }
    }
}

fn json(out: &mut impl Write, value: &impl Serialize) -> anyhow::Result<u8> {
    writeln!(out, "{}", serde_json::to_string_pretty(value)?)?;
    Ok(0)
}

/// Prints one text, or the list of them. It reads nothing.
///
/// # Errors
/// Where there is no such text, or the output cannot be written.
pub fn run(options: &Options, _input: impl Read, out: &mut impl Write) -> anyhow::Result<u8> {
    let Some(which) = &options.which else {
        if options.json {
            return json(out, &TEXTS.iter().map(Fix::of).collect::<Vec<_>>());
        }
        writeln!(out, "The nine fixes for CUDA out of memory, and three answers:\n")?;
        for text in TEXTS {
            let title = text.title();
            let title = title.split_once(": ").map_or(title, |(_, rest)| rest);
            writeln!(out, "  {:>2}  {:<18} {title}", text.number, text.key)?;
        }
        writeln!(
            out,
            "\nvramlens fixes N prints one; vramlens explain LOG says which one applies."
        )?;
        return Ok(0);
    };
    if let Some(text) = find(which) {
        if options.json {
            return json(out, &Fix::of(text));
        }
        out.write_all(text.text.as_bytes())?;
        return Ok(0);
    }
    let keys: Vec<&str> = TEXTS.iter().map(|text| text.key).collect();
    anyhow::bail!("there is no such fix; there are 1 to {}: {}", TEXTS.len(), keys.join(", "))
}
