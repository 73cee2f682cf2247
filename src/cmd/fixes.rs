//! `vramlens fixes [N]`: the nine fixes, and answers to three questions.

use std::io::{Read, Write};

use crate::oom::fixes::{TEXTS, find};

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// A number or a key; all titles where there is none.
    pub which: Option<String>,
}

/// Prints one text, or the list of them. Ends with 2 where there is no such text. It reads nothing.
///
/// # Errors
/// Where the output cannot be written.
pub fn run(options: &Options, _input: impl Read, out: &mut impl Write) -> anyhow::Result<u8> {
    let Some(which) = &options.which else {
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
        out.write_all(text.text.as_bytes())?;
        return Ok(0);
    }
    let keys: Vec<&str> = TEXTS.iter().map(|text| text.key).collect();
    writeln!(out, "There is no such fix. There are 1 to {}: {}.", TEXTS.len(), keys.join(", "))?;
    Ok(2)
}
