//! From the command line to the commands that read something else than the driver.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use anyhow::{Context, anyhow};

use crate::analyze::workload::calibrate;
use crate::analyze::{Holder, View};
use crate::cli::args::{ExplainArgs, FitArgs, FixesArgs};
use crate::cmd::fit::{FitGpu, FitOptions, parse_context};
use crate::cmd::look::{self, Form};
use crate::cmd::{Exit, explain, fit, fixes, hanging, no_answer, no_driver, past};
use crate::rules::{self, Wanted};
use crate::runtime::gather::Gathered;
use crate::runtime::options::Options;
use crate::sample::text::{clean, clean_path};
use crate::units::Bytes;

/// Between the two looks at the machine that complete an explanation.
const APART_MS: u64 = 300;

/// A writer to standard output to whom a reader that has gone is no error.
struct Out(io::Stdout, bool);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 {
            return Ok(bytes.len());
        }
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.1 = true;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

fn out() -> Out {
    Out(io::stdout(), false)
}

/// `vramlens explain`.
pub fn explain(args: &ExplainArgs, options: &Options, form: Form) -> anyhow::Result<Exit> {
    let input: Box<dyn Read> = match args.file.as_deref() {
        Some(path) if path != Path::new("-") => {
            Box::new(File::open(path).with_context(|| format!("cannot open {}", clean_path(path)))?)
        }
        _ => {
            if io::stdin().is_terminal() {
                let _ = Write::write_all(
                    &mut io::stderr(),
                    b"Paste the error, then press Ctrl-D on a line of its own.\n",
                );
            }
            Box::new(io::stdin())
        }
    };
    let mut answer = explain::read(input)?;
    // What was asked for is what the cache of an allocator is judged by.
    let request = options.request.or(answer.requested_bytes.map(Bytes));
    let options = Options { request, ..options.clone() };
    let view = if let Some(recording) = &args.recording {
        Some(past::last_view(recording, &options)?)
    } else if answer.is_gpu_oom && !args.alone {
        // Without a driver the message stands alone; that is no failure.
        let looked = look::look(&options, APART_MS).ok();
        if let Some((found, _)) = &looked {
            look::is_there(found)?;
        }
        looked.map(|(_, view)| view)
    } else {
        None
    };
    if let Some(view) = &view {
        answer.join(view);
    }
    let machine = view.as_ref().filter(|view| !view.gpus.is_empty());
    explain::write_for(&explain::Options { json: form.json }, &answer, machine, &mut out())?;
    Ok(Exit::from_code(answer.exit_code()))
}

/// `vramlens fixes`.
pub fn fixes(args: &FixesArgs, form: Form) -> anyhow::Result<Exit> {
    let options = fixes::Options { which: args.which.clone(), json: form.json };
    Ok(Exit::from_code(fixes::run(&options, io::empty(), &mut out())?))
}

/// `vramlens fit`.
pub fn fit(args: &FitArgs, options: &Options, form: Form, color: bool) -> anyhow::Result<Exit> {
    let size = |text: &Option<String>| text.as_deref().map(str::parse::<Bytes>).transpose();
    // `--gpu 24GiB` is a card that is not here, `--gpu 0` is one that is.
    let (cards, names): (Vec<&String>, Vec<&String>) =
        options.gpus.iter().partition(|name| is_size(name));
    let cards = cards.into_iter().map(|name| name.parse()).collect::<Result<Vec<Bytes>, _>>()?;
    let (keys, values) = cache_types(args.cache_type.as_deref())?;
    let wanted = FitOptions {
        model: args.model.clone(),
        context: args.context.as_deref().map(parse_context).transpose().map_err(|e| anyhow!(e))?,
        cache_type_k: keys,
        cache_type_v: values,
        parallel: args.parallel,
        ubatch: args.ubatch,
        gpu_layers: args.gpu_layers,
        cpu_experts: args.cpu_experts,
        no_flash_attention: args.no_flash_attention,
        swa_full: args.swa_full,
        no_kv_offload: args.no_kv_offload,
        no_op_offload: args.no_op_offload,
        era: args.era.as_deref().map(str::parse).transpose().map_err(|e: String| anyhow!(e))?,
        draft: args.draft,
        kv_per_slot: args.kv_per_slot,
        quant: args.quant.clone(),
        mmproj: args.mmproj.clone(),
        cards,
        margin: size(&args.margin)?,
        overhead: size(&args.overhead)?,
        json: form.json,
        ascii: form.ascii,
        color,
    };
    let here = Options { gpus: names.into_iter().cloned().collect(), ..options.clone() };
    if let (Some(name), false) = (here.gpus.first(), wanted.cards.is_empty()) {
        anyhow::bail!(
            "--gpu {} is a GPU of this machine, and the others are cards that are not here: ask \
             about one kind at a time{}",
            clean(name),
            did_you_mean_a_size(&here.gpus)
        );
    }
    let looked = wanted.cards.is_empty().then(|| look::look(&here, APART_MS).ok()).flatten();
    if let Some((found, view)) = looked.as_ref().filter(|_| !here.gpus.is_empty())
        && let Some(exit) = not_seen(&here, found, view, form.json)?
    {
        return Ok(exit);
    }
    let view = looked.map(|(_, view)| view);
    let gpus = view.as_ref().map(gpus).unwrap_or_default();
    let room = |bytes| {
        let view = view.as_ref()?;
        let findings = rules::run(view);
        rules::closest(view, Wanted::anywhere(bytes), &findings).map(look::cleaned)
    };
    Ok(Exit::from_code(fit::run_here(&wanted, &gpus, &room, &mut out())?))
}

/// How it ends where the GPUs that were named cannot be looked at.
fn not_seen(
    options: &Options,
    found: &Gathered,
    view: &View,
    json: bool,
) -> anyhow::Result<Option<Exit>> {
    let meant = did_you_mean_a_size(&options.gpus);
    if let Some(nowhere) = &found.nowhere {
        anyhow::bail!("{}{meant}", clean(nowhere));
    }
    if !view.gpus.is_empty() {
        return Ok(None);
    }
    let asked = format!("--gpu {} is a GPU of this machine", clean(&options.gpus.join(",")));
    if let Some(stall) = &found.stalled {
        let why = format!(
            "the driver does not answer{}, so what fits there cannot be told. {asked}{meant}",
            hanging(stall)
        );
        return no_answer(&why, json).map(Some);
    }
    let Some(error) = &found.failure else { return Ok(None) };
    let exit = no_driver(error, options, json)?;
    let _ = writeln!(io::stderr(), "{asked}{meant}");
    Ok(Some(exit))
}

/// `; did you mean 24GiB?`, where that is likely.
fn did_you_mean_a_size(names: &[String]) -> String {
    let number = |name: &String| name.parse::<u32>().is_ok_and(|n| n >= 4);
    if names.iter().all(number) {
        format!("; did you mean {}?", meant_sizes(names))
    } else {
        "; a card that is not here is a size, such as 24GiB".to_owned()
    }
}

fn meant_sizes(names: &[String]) -> String {
    let size = |name: &String| {
        if name.parse::<u32>().is_ok() { format!("{name}GiB") } else { clean(name).into_owned() }
    };
    names.iter().map(size).collect::<Vec<_>>().join(",")
}

/// A number alone is an index; with a unit it is a size.
fn is_size(name: &str) -> bool {
    name.ends_with(|c: char| c.is_ascii_alphabetic()) && name.parse::<Bytes>().is_ok()
}

type CacheTypes = (Option<crate::model::ggml::CacheType>, Option<crate::model::ggml::CacheType>);

fn cache_types(text: Option<&str>) -> anyhow::Result<CacheTypes> {
    let Some(text) = text else { return Ok((None, None)) };
    let (keys, values) = text.split_once(',').unwrap_or((text, text));
    let parse = |name: &str| name.trim().parse().map_err(|error: String| anyhow!(error));
    Ok((Some(parse(keys)?), Some(parse(values)?)))
}

/// The GPUs of this machine as they are now; none where there is no driver. What CUDA takes is that
/// of a llama.cpp process which runs here, where there is one whose model could be read.
fn gpus(view: &View) -> Vec<FitGpu> {
    let mut gpus = FitGpu::from_view(view);
    for gpu in &mut gpus {
        let here = view.holders.iter().filter(|holder| Some(holder.index.0) == gpu.index);
        gpu.overhead = here.filter_map(|holder| overhead(view, holder)).max();
    }
    gpus
}

fn overhead(view: &View, holder: &Holder) -> Option<Bytes> {
    let workload = holder.workload.as_ref()?;
    let facts = view.models.get(holder.model_path()?)?.value()?;
    let measured = calibrate(workload, &facts.shape, &facts.weights, holder.bytes.get()?)?;
    Some(Bytes(measured.bytes))
}
