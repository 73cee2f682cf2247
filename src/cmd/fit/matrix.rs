//! What fits in what: sizes of models by sizes of cards.

use std::io::Write;

use serde::Serialize;

use super::FitGpu;
use super::show::{Show, Tone, tokens};
use crate::model::best::{LEAST_CONTEXT, Question};
use crate::model::overhead::{expected, usable};
use crate::model::plan::{Settings, place};
use crate::model::quant::{Quant, named};
use crate::model::template::{TEMPLATES, weights_of};
use crate::units::Bytes;

/// Nominal sizes of the cards in GiB.
const CARDS: [u64; 8] = [8, 12, 16, 24, 32, 48, 80, 141];
/// The quantisations: how they are called, and the row of the table of quantisations.
const QUANTS: [(&str, &str); 3] = [("4-bit", "Q4_K_M"), ("8-bit", "Q8_0"), ("16-bit", "F16")];
/// Sizes of models that have a row.
const ROWS: [&str; 13] = [
    "1B", "3B", "4B", "8B", "14B", "24B", "27B", "30B-A3B", "32B", "70B", "120B-A5B", "123B",
    "405B",
];
/// Left free: the bands of the estimates, in thousandths of the sum and in bytes.
const MARGIN: (u64, u64) = (30, 128 << 20);

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// Columns: names and usable bytes.
    pub cards: Vec<Card>,
    /// One block a quantisation.
    pub blocks: Vec<Block>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Card {
    /// `24 GB`, or `GPU 0`.
    pub name: String,
    /// Bytes that programs can use.
    pub usable_bytes: u64,
    /// Bytes that CUDA takes of them.
    pub cuda_bytes: u64,
}

/// One quantisation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// `4-bit`.
    pub name: &'static str,
    /// `Q4_K_M`.
    pub quant: &'static str,
    /// The rows.
    pub rows: Vec<MatrixRow>,
}

/// One size of model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixRow {
    /// `8B`.
    pub model: &'static str,
    /// Bytes of weights on the GPU.
    pub weights_bytes: u64,
    /// The longest context by card; 0 where even 4096 tokens do not fit.
    pub longest_context: Vec<u64>,
}

/// Computes it, with a column for each GPU that is here.
pub(super) fn build(here: &[FitGpu]) -> Matrix {
    let mut cards: Vec<Card> = CARDS
        .iter()
        .map(|gib| {
            let bytes = Bytes::gib(*gib).0;
            let cuda_bytes = expected("", bytes).bytes;
            Card { name: format!("{gib} GB"), usable_bytes: usable(bytes), cuda_bytes }
        })
        .collect();
    for gpu in here.iter().take(1) {
        if let Some(free) = gpu.free.get() {
            let cuda_bytes =
                gpu.overhead.map_or_else(|| expected(&gpu.name, gpu.total.0).bytes, |o| o.0);
            cards.push(Card { name: "now".to_owned(), usable_bytes: free.0, cuda_bytes });
        }
    }
    let block = |(name, quant): (&'static str, &'static str)| {
        let kind = named(quant)?;
        let rows = TEMPLATES.iter().filter(|t| ROWS.contains(&t.name));
        let rows = rows.map(|t| row(t.name, &t.shape(), &kind, &cards)).collect();
        Some(Block { name, quant, rows })
    };
    let blocks = QUANTS.into_iter().filter_map(block).collect();
    Matrix { cards, blocks }
}

fn row(
    model: &'static str,
    shape: &crate::model::shape::Shape,
    quant: &Quant,
    cards: &[Card],
) -> MatrixRow {
    let weights = quant.weights(&weights_of(shape));
    let settings = Settings::new(LEAST_CONTEXT);
    let placed = place(shape, &weights, &settings);
    let longest = cards.iter().map(|card| {
        let left = card.usable_bytes.saturating_sub(card.cuda_bytes).saturating_sub(MARGIN.1);
        let budgets = [left / (1000 + MARGIN.0) * 1000];
        let n = Question { shape, weights: &weights, budgets: &budgets }.context(&settings);
        if n < LEAST_CONTEXT { 0 } else { n }
    });
    MatrixRow {
        model,
        weights_bytes: placed.gpus.first().map_or(0, |g| g.weights),
        longest_context: longest.collect(),
    }
}

/// Writes it.
pub(super) fn write(table: &Matrix, show: Show, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, " {}", show.paint(Tone::Head, "WHAT FITS IN WHAT"))?;
    let text = " Longest context with all layers on one empty GPU, f16 cache, llama-server";
    writeln!(out, "{text}")?;
    for block in &table.blocks {
        let head = format!("{} {}", block.name, block.quant);
        let names: Vec<String> = table.cards.iter().map(|c| format!("{:>7}", c.name)).collect();
        let line = format!("\n {head:<15}{}", names.concat());
        writeln!(out, "{}", show.paint(Tone::Head, &line))?;
        for row in &block.rows {
            let weights = super::show::gib(row.weights_bytes);
            write!(out, " {:<9}{}", row.model, show.paint(Tone::Faint, &format!("{weights:>6}")))?;
            for n in &row.longest_context {
                let cell = if *n == 0 { show.pick("·", "-").to_owned() } else { tokens(*n) };
                let pad = " ".repeat(7_usize.saturating_sub(cell.chars().count()));
                let tone = if *n == 0 { Tone::Faint } else { Tone::Good };
                write!(out, "{pad}{}", show.paint(tone, &cell))?;
            }
            writeln!(out)?;
        }
    }
    writeln!(out)?;
    let foot = [
        " The second column is GiB of weights on the GPU. A q8_0 cache nearly doubles the",
        " context; none goes beyond training. For one model: vramlens fit FILE or SIZE.",
    ];
    for line in foot {
        writeln!(out, "{}", show.text(line))?;
    }
    Ok(())
}
