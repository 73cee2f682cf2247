//! `vramlens replay FILE --svg OUT --png OUT`: a recording as a picture.

use std::fs::{self, File};
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::analyze::moment::{Span, parse};
use crate::cmd::Exit;
use crate::cmd::damage::Damage;
use crate::ids::Stamp;
use crate::record::{Header, ReadError, Reader, Recording};
use crate::report::picture::{Collector, Figure, usual};
use crate::runtime::clock;
use crate::sample::Tick;
use crate::sample::text::clean_path;

/// What to draw.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The recording; `-` for standard input.
    pub file: PathBuf,
    /// Where to write an SVG; `-` for standard output.
    pub svg: Option<PathBuf>,
    /// Where to write a PNG; `-` for standard output.
    pub png: Option<PathBuf>,
    /// From this moment on, as typed.
    pub from: Option<String>,
    /// Up to this moment.
    pub to: Option<String>,
    /// `1200x600`.
    pub size: Option<String>,
    /// Only these GPUs; empty for all.
    pub gpus: Vec<String>,
}

/// Draws it.
///
/// # Errors
/// Where the recording cannot be read, a time or size cannot be understood, or the output fails.
pub fn run(picture: &Picture) -> anyhow::Result<Exit> {
    let size = picture.size.as_deref().map(size).transpose()?;
    let dash = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if dash(&picture.svg) && dash(&picture.png) {
        bail!("only one of --svg and --png can go to standard output");
    }
    if dash(&picture.png) && io::stdout().is_terminal() {
        bail!("a PNG is no text: write it to a file, or pipe it on");
    }
    let named = || format!("{} is no recording", clean_path(&picture.file));
    let Opened { header, range, mut ticks } = open(picture)?;
    let usual_ms = header.as_ref().map_or(1_000, |header| header.interval_ms);
    let mut collected = Collector::new(&picture.gpus, range, usual_ms);
    let mut damage = Damage::default();
    for tick in &mut ticks {
        let tick = tick.with_context(named)?;
        damage.push(&tick);
        if !collected.push(&tick) {
            break;
        }
    }
    damage.check(&clean_path(&picture.file))?;
    let figure = figure(collected, header.as_ref()).with_context(|| clean_path(&picture.file))?;
    if figure.gpus.is_empty() && !picture.gpus.is_empty() {
        bail!("{}: no GPU {} in it", clean_path(&picture.file), picture.gpus.join(", "));
    }
    let size = size.unwrap_or_else(|| usual(figure.gpus.len()));
    let drawn = figure.laid_out(size)?;
    if let Some(path) = &picture.svg {
        write(path, drawn.svg().as_bytes())?;
    }
    if let Some(path) = &picture.png {
        write(path, &drawn.png()?)?;
        let unshown = drawn.unshown_in_png();
        if unshown > 0 {
            let texts = if unshown == 1 { "1 text has" } else { &format!("{unshown} texts have") };
            let _ = writeln!(
                io::stderr(),
                "vramlens: {texts} letters that the font of a PNG lacks, shown as boxes: --svg has all"
            );
        }
    }
    Ok(Exit::Fine)
}

/// Whether a file can be played, before a screen is opened for it.
///
/// # Errors
/// Where the file is not there, is no recording, or is a pipe, in which nothing can be sought.
pub fn check(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let named = || format!("cannot open {}", clean_path(path));
    if !fs::metadata(path).with_context(named)?.is_file() {
        bail!("{} is no file: vramlens replay - reads from a pipe", clean_path(path));
    }
    Recording::open(path).with_context(named)?;
    Ok(())
}

fn figure(mut collected: Collector, header: Option<&Header>) -> anyhow::Result<Figure> {
    let known = |reading: &crate::sample::Reading<String>| reading.value().cloned();
    // A recording of which the names were taken out says so in its header too.
    collected.host = header.and_then(|header| known(&header.hostname)).or(collected.host);
    collected.driver = collected.driver.or(header.and_then(|header| known(&header.driver)));
    let offset = collected.span.map_or(0, |span| clock::utc_offset_seconds(span.1));
    Ok(Figure::new(collected, offset)?)
}

/// What is drawn of.
struct Opened {
    header: Option<Header>,
    /// In milliseconds since boot.
    range: (u64, u64),
    ticks: Box<dyn Iterator<Item = Result<Tick, ReadError>>>,
}

impl Opened {
    fn new(ticks: Reader<impl Read + 'static>, range: (u64, u64)) -> Self {
        Self { header: ticks.header().cloned(), range, ticks: Box::new(ticks) }
    }
}

/// A part of a recording is found by its ends, so that it is sought in; all of it is read as it
/// comes, which may be a pipe.
fn open(picture: &Picture) -> anyhow::Result<Opened> {
    let (path, input) = (&picture.file, picture.file == Path::new("-"));
    let all = (0, u64::MAX);
    let unopened = || format!("cannot open {}", clean_path(path));
    let named = || format!("{} is no recording", clean_path(path));
    match (input, picture.from.is_some() || picture.to.is_some()) {
        (true, true) => {
            bail!("--from and --to need a file: standard input can be read only once")
        }
        (true, false) => Ok(Opened::new(Reader::new(io::stdin()).with_context(named)?, all)),
        (false, false) => {
            let file = File::open(path).with_context(unopened)?;
            Ok(Opened::new(Reader::new(BufReader::new(file)).with_context(named)?, all))
        }
        (false, true) => {
            let recording = Recording::open(path).with_context(named)?;
            let range = range(picture, &recording)?;
            Ok(Opened::new(recording.ticks(None).with_context(named)?, range))
        }
    }
}

/// The moment that a text means, in milliseconds since boot.
///
/// # Errors
/// Where the recording cannot be read or sought in, holds nothing, or has no such moment.
pub fn moment(path: &Path, text: &str) -> anyhow::Result<u64> {
    if path == Path::new("-") {
        bail!("--to needs a file: standard input can be read only once");
    }
    check(path)?;
    let named = || clean_path(path);
    parse(text, &span(path, &Recording::open(path).with_context(named)?)?).with_context(named)
}

/// All of a recording, for moments that are typed.
fn span(path: &Path, recording: &Recording) -> anyhow::Result<Span> {
    let holds_nothing = || format!("{} holds nothing", clean_path(path));
    let (first, last) = ends(recording)?.with_context(holds_nothing)?;
    let utc_offset_s = clock::utc_offset_seconds(last);
    Ok(Span { from: first, to: last, back_from: last, on_from: first, utc_offset_s })
}

/// The moments that `--from` and `--to` mean, in milliseconds since boot.
fn range(picture: &Picture, recording: &Recording) -> anyhow::Result<(u64, u64)> {
    let span = span(&picture.file, recording)?;
    let moment = |text: &Option<String>, otherwise: u64| {
        let parsed = text.as_deref().map_or(Ok(otherwise), |text| parse(text, &span));
        parsed.with_context(|| clean_path(&picture.file))
    };
    let (from, to) = (moment(&picture.from, 0)?, moment(&picture.to, u64::MAX)?);
    if from >= to {
        bail!("--from is not before --to");
    }
    Ok((from, to))
}

/// The first and the last moment: by the index where there is one.
fn ends(recording: &Recording) -> anyhow::Result<Option<(Stamp, Stamp)>> {
    let first = |tick: &Tick| match tick {
        Tick::Gap(gap) => gap.from,
        other => other.at(),
    };
    let mut ticks = recording.ticks(None)?;
    let Some(begin) = ticks.next().transpose()?.as_ref().map(first) else {
        return Ok(None);
    };
    let from = recording.index().covers().map(|covers| covers.1);
    let mut end = begin;
    for tick in recording.ticks(from)? {
        end = end.max(tick?.at());
    }
    Ok(Some((begin, end)))
}

/// `1200x600`, within what a picture can be.
fn size(text: &str) -> anyhow::Result<(u32, u32)> {
    let parts = text.split_once(['x', 'X', '×']);
    let parsed = parts.and_then(|(w, h)| Some((w.trim().parse().ok()?, h.trim().parse().ok()?)));
    match parsed {
        Some((w, h)) if (1..=8_192).contains(&w) && (1..=8_192).contains(&h) => Ok((w, h)),
        _ => bail!("{text:?} is no size: write 1200x600, up to 8192x8192"),
    }
}

/// Writes a whole file or none: what was there stays until all of it is written.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        return match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        };
    }
    let at = || format!("cannot write {}", clean_path(path));
    // A device or a pipe is written to as it is.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, bytes).with_context(at);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let done = fs::write(&part, bytes).and_then(|()| fs::rename(&part, path));
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    done.with_context(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_bounded() {
        assert_eq!(size("1200x600").unwrap(), (1200, 600));
        assert_eq!(size(" 800 x 400").unwrap(), (800, 400));
        for bad in ["", "1200", "0x600", "9000x100", "axb", "-1x5"] {
            assert!(size(bad).unwrap_err().to_string().contains("1200x600"), "{bad}");
        }
    }
}
