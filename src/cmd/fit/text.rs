//! The answer as text, 80 columns.

use std::io::{Result, Write};

use super::answer::{Answer, Cell, Fits, Row, Section, Table, Verdict};
use super::llama::title;
use super::show::{Show, Tone, cut, gib, grouped, size, tokens};
use crate::model::need::{Basis, Line};
use crate::sample::text::clean;

/// Columns.
const WIDTH: usize = 80;
/// Columns of a GPU's name.
const WHO: usize = 24;

/// Writes it.
pub(super) fn write(answer: &Answer, show: Show, out: &mut dyn Write) -> Result<()> {
    head(answer, show, out)?;
    need(answer, show, out)?;
    verdicts(answer, show, out)?;
    if let Some(table) = &answer.table {
        self::table(table, show, out)?;
    }
    for section in &answer.sections {
        self::section(section, show, out)?;
    }
    steps(answer, show, out)?;
    if !answer.lines.is_empty() {
        writeln!(out, "\n {}", show.paint(Tone::Head, "TYPE"))?;
        for line in &answer.lines {
            writeln!(out, "   {}", clean(line))?;
        }
    }
    Ok(())
}

fn head(answer: &Answer, show: Show, out: &mut dyn Write) -> Result<()> {
    let about = &answer.model;
    let right = show.text(&title(about));
    let room = WIDTH.saturating_sub(right.chars().count() + 4).max(12);
    let name = show.text(&cut(&about.name, room));
    let gap = WIDTH.saturating_sub(name.chars().count() + right.chars().count() + 2).max(2);
    writeln!(out, " {}{}{}", show.paint(Tone::Head, &name), " ".repeat(gap), right)?;
    if !about.shape.is_empty() {
        writeln!(out, " {}", show.text(&cut(&about.shape, WIDTH - 2)))?;
    }
    for note in &about.notes {
        writeln!(out, " {}", show.paint(Tone::Fair, &show.text(&cut(note, WIDTH - 2))))?;
    }
    Ok(())
}

fn need(answer: &Answer, show: Show, out: &mut dyn Write) -> Result<()> {
    let head = show.paint(Tone::Head, "NEEDS");
    let mut setup = show.text(&cut(&answer.setup, WIDTH - 24));
    if !setup.is_empty() {
        setup.push_str("  ");
    }
    writeln!(out, "\n {head}  {setup}{}", show.paint(Tone::Faint, answer.engine))?;
    for line in &answer.need.lines {
        let (sure, note) = (show.text(&band(line)), show.text(&cut(&line.note, 35)));
        let figure = size(line.bytes);
        let row = format!("   {:<18}{figure:>10}   {sure:<11} ", line.label);
        writeln!(out, "{row}{}", show.paint(Tone::Faint, &note))?;
    }
    let margin = format!("{}{}", show.pick("±", "+-"), size(answer.margin_bytes));
    let host = answer.need.host_bytes;
    let host = if host > 0 { format!("and {} of host memory", size(host)) } else { String::new() };
    let sum = format!("   {:<18}{:>10}", "in all", size(answer.need_bytes));
    writeln!(out, "{}   {margin:<11} {host}", show.paint(Tone::Head, &sum))?;
    for remark in &answer.remarks {
        let remark = show.text(&cut(remark, WIDTH - 4));
        writeln!(out, "   {}", show.paint(Tone::Faint, &remark))?;
    }
    Ok(())
}

fn band(line: &Line) -> String {
    match line.basis {
        Basis::Exact => "exact".to_owned(),
        Basis::Measured => "measured".to_owned(),
        Basis::Assumed => "assumed".to_owned(),
        Basis::Estimated if line.high == line.low => "fixed".to_owned(),
        Basis::Estimated => {
            let up = line.high - line.bytes;
            if line.bytes == 0 || up != line.bytes - line.low {
                let mib = |n: u64| n >> 20;
                return format!("{}–{} MiB", mib(line.low), mib(line.high));
            }
            let percent = (u128::from(up) * 1000 / u128::from(line.bytes) + 5) / 10;
            format!("±{percent} %")
        }
    }
}

fn mark(fits: Fits, show: Show) -> String {
    let (tone, text) = match fits {
        Fits::Yes => (Tone::Good, show.pick("✓ fits ", "+ fits ")),
        Fits::Tight => (Tone::Fair, show.pick("~ tight", "~ tight")),
        Fits::No => (Tone::Bad, show.pick("✗ no   ", "x no   ")),
    };
    show.paint(tone, text)
}

fn verdicts(answer: &Answer, show: Show, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n {}", show.paint(Tone::Head, "FITS"))?;
    if answer.verdicts.is_empty() {
        return writeln!(out, "   no GPU is known here: ask about a card with --gpu 24GiB");
    }
    let mut last = ("", "");
    for verdict in &answer.verdicts {
        // Two cards that are not here differ by their size alone.
        let same = last == (verdict.gpu.as_str(), verdict.name.as_str());
        let name = verdict.name.trim_start_matches("NVIDIA ").trim_start_matches("GeForce ");
        let who = if same { String::new() } else { format!("{}  {name}", verdict.gpu) };
        last = (&verdict.gpu, &verdict.name);
        let who = show.text(&cut(&who, WHO));
        let spare = size(verdict.spare_bytes.unsigned_abs());
        let spare = if verdict.spare_bytes < 0 {
            format!("{spare} short")
        } else {
            format!("{spare} spare")
        };
        let pad = WHO.saturating_sub(who.chars().count());
        let free = size(verdict.free_bytes);
        let mark = mark(verdict.fits, show);
        let when = if verdict.when == "without zombies" { "no zombies" } else { verdict.when };
        writeln!(
            out,
            "   {who}{} {when:<10} {free:>10} free  {mark} {spare:>14}",
            " ".repeat(pad)
        )?;
        if let Some(text) = advice(answer, verdict) {
            writeln!(out, "     {}", show.text(&text))?;
        }
    }
    Ok(())
}

/// What is best there, on a line of its own.
fn advice(answer: &Answer, verdict: &Verdict) -> Option<String> {
    let longest = |n: Option<u64>| n.filter(|n| *n >= 256).map(grouped);
    let mut parts = Vec::new();
    if let Some(n) = longest(verdict.longest_context) {
        let eight = longest(verdict.longest_context_q8_0).filter(|eight| *eight != n);
        let eight = eight.map_or_else(String::new, |n| format!(", q8_0 cache {n}"));
        parts.push(format!("longest context {n}{eight}"));
    }
    let all = answer.placement.as_ref().map_or(0, |p| p.all_layers);
    match verdict.best {
        Some(best) if !best.complete && best.gpu_layers == all => {
            parts.push(format!("at this context --n-cpu-moe {}", best.cpu_experts));
        }
        Some(best) if !best.complete && best.gpu_layers > 0 => {
            let experts = if best.cpu_experts > 0 { " with all experts on the CPU" } else { "" };
            parts.push(format!("at this context -ngl {} of {all}{experts}", best.gpu_layers));
        }
        Some(best) if !best.complete => parts.push("no layer fits at this context".to_owned()),
        // Room enough, but for what was to be left free.
        None if answer.placement.is_some() && verdict.fits == Fits::Tight => {
            parts.push(format!("the margin of {} is not left", size(answer.margin_bytes)));
        }
        None if answer.placement.is_some() => parts.push("not even its scratch fits".to_owned()),
        _ => {}
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn table(table: &Table, show: Show, out: &mut dyn Write) -> Result<()> {
    let legend = match table.gpu.as_deref() {
        Some("card") => "GiB in all · ✓ fits".to_owned(),
        Some(gpu) => format!("GiB in all · {gpu}: ✓ fits now, ~ when empty"),
        None => "GiB in all".to_owned(),
    };
    let title = show.paint(Tone::Head, "QUANTISATION × CONTEXT");
    let title = if show.ascii { title.replace('×', "x") } else { title };
    writeln!(out, "\n {title}  {}", show.text(&legend))?;
    let mut head = format!("   {:<18}{:>7}", "", "weights");
    let columns: Vec<String> =
        table.contexts.iter().map(|n| format!("{:>7}", tokens(*n))).collect();
    head.push_str(&columns.concat());
    writeln!(out, "{}", show.paint(Tone::Faint, &format!("{head}{:>8}", "longest")))?;
    for row in &table.rows {
        self::row(row, show, out)?;
    }
    Ok(())
}

fn row(row: &Row, show: Show, out: &mut dyn Write) -> Result<()> {
    let here = if row.this_file { show.pick("▸", ">") } else { " " };
    let quant = show.text(&cut(&row.quant, 18));
    write!(out, " {here} {quant:<18}{:>7}", gib(row.weights_bytes))?;
    for cell in &row.cells {
        write!(out, "{}", self::cell(cell, show))?;
    }
    let longest = match row.longest_context {
        Some(0) => show.pick("·", "-").to_owned(),
        Some(n) => tokens(n),
        None => String::new(),
    };
    let pad = 8_usize.saturating_sub(longest.chars().count());
    writeln!(out, "{}{longest}", " ".repeat(pad))
}

fn cell(cell: &Cell, show: Show) -> String {
    let text = format!("{:>6}", gib(cell.bytes));
    match (cell.now, cell.empty) {
        (Some(true), _) => show.paint(Tone::Good, &format!("{text}{}", show.pick("✓", "+"))),
        (_, Some(true)) => show.paint(Tone::Fair, &format!("{text}~")),
        (None, None) => format!("{text} "),
        _ => show.paint(Tone::Faint, &format!("{text} ")),
    }
}

fn section(section: &Section, show: Show, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n {}", show.paint(Tone::Head, &show.text(&section.title)))?;
    for row in &section.rows {
        let mark = match row.fits {
            Some(true) => show.paint(Tone::Good, show.pick("✓", "+")),
            Some(false) => show.paint(Tone::Bad, show.pick("✗", "x")),
            None => " ".to_owned(),
        };
        let note = show.text(&cut(&row.note, 42));
        let figure = size(row.bytes);
        let text =
            format!("   {:<20}{figure:>10} {mark} {}", row.label, show.paint(Tone::Faint, &note));
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn steps(answer: &Answer, show: Show, out: &mut dyn Write) -> Result<()> {
    if answer.steps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n {}", show.paint(Tone::Head, "WHAT A STEP CHANGES"))?;
    for step in &answer.steps {
        let frees = format!("{}{}", show.pick("−", "-"), size(step.frees_bytes));
        let pad = 12_usize.saturating_sub(frees.chars().count());
        let enough =
            if step.then_fits { show.paint(Tone::Good, "  fits then") } else { String::new() };
        let (title, flag) = (show.text(&cut(&step.title, 30)), show.text(&step.flag));
        writeln!(out, "  {}{frees}   {title:<30} {flag}{enough}", " ".repeat(pad))?;
    }
    Ok(())
}
