//! Pictures of recordings: well-formed, the same every time, with heights that are bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod verdict_support;

use std::path::PathBuf;

use assert_cmd::Command;
use roxmltree::{Document, Node};
use verdict_support::*;
use vramlens::ids::GpuIndex;
use vramlens::record::{Form, Header, Redaction, Writer};
use vramlens::report::picture::{Collector, Figure, PictureError};
use vramlens::sample::{Gap, GapCause, ProcSample, Reading, Tick};

const SIZE: (u32, u32) = (1_200, 400);

fn figure(ticks: &[Tick]) -> Result<Figure, PictureError> {
    let mut collected = Collector::new(&[], (0, u64::MAX), 1_000);
    for tick in ticks {
        assert!(collected.push(tick));
    }
    Figure::new(collected, 0)
}

fn rows(second: u64, rows: &[(u32, u64)]) -> Tick {
    let rows = rows.iter().map(|(pid, bytes)| row(*pid, *bytes)).collect();
    gpu_tick(T0 + second * 1_000, vec![with_rows(gpu(0), rows)])
}

fn named(pid: u32, arguments: &[&str]) -> ProcSample {
    let mut process = cuda(process(pid, "python"), &[0]);
    process.cmdline = Reading::Value(arguments.iter().map(|&a| a.to_owned()).collect());
    process
}

/// Ten minutes: a server, a run that comes, grows and goes, a gap, and again.
fn story() -> Vec<Tick> {
    let mut ticks = Vec::new();
    for second in 0..600 {
        if (300..420).contains(&second) {
            continue;
        }
        let mut held = vec![(10, 20 * GIB)];
        if (60..240).contains(&second) {
            held.push((11, (second - 59) * GIB / 4));
        }
        if second == 420 {
            let (from, to) = (stamp(T0 + 299_000), stamp(T0 + 420_000));
            ticks.push(Tick::Gap(Gap { from, to, cause: GapCause::Suspended }));
        }
        ticks.push(rows(second, &held));
        if second % 5 == 0 {
            let both = vec![named(10, &["/usr/bin/server"]), named(11, &["python", "train.py"])];
            ticks.push(proc_tick(T0 + second * 1_000 + 20, host(), both));
        }
    }
    ticks
}

/// The areas, by what they stand for: the pieces of their outline as x, y.
fn areas(svg: &str) -> Vec<(String, Vec<(i32, i32)>)> {
    let document = Document::parse(svg).unwrap();
    let title = |node: &Node<'_, '_>| -> Option<String> {
        let title = node.children().find(|child| child.has_tag_name("title"))?;
        title.text().map(ToOwned::to_owned)
    };
    let path = |node: Node<'_, '_>| {
        let (mut points, mut x, mut y) = (Vec::new(), 0, 0);
        let d = node.attribute("d").unwrap();
        let mut rest = d;
        while let Some(c) = rest.chars().next() {
            let after = rest.get(1..).unwrap();
            let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(after.len());
            let (numbers, next) = after.split_at(end);
            let mut numbers = numbers.split(' ').filter_map(|n| n.parse::<i32>().ok());
            match c {
                'M' => (x, y) = (numbers.next().unwrap(), numbers.next().unwrap()),
                'H' => x = numbers.next().unwrap(),
                'V' => y = numbers.next().unwrap(),
                _ => {}
            }
            points.push((x, y));
            rest = next;
        }
        points
    };
    let area = |node: &Node<'_, '_>| {
        node.has_tag_name("path")
            && title(node).is_some_and(|title| title.contains("up to"))
            && node.attribute("stroke").is_none()
    };
    let nodes = document.descendants().filter(area);
    nodes.map(|node| (title(&node).unwrap(), path(node))).collect()
}

/// x, y, width and height of the frame around the plot.
fn plot(svg: &str) -> (i32, i32, i32, i32) {
    let document = Document::parse(svg).unwrap();
    let number = |node: &Node<'_, '_>, name| {
        let text = node.attribute(name).unwrap();
        text.split('.').next().unwrap().parse::<i32>().unwrap()
    };
    let frame = document
        .descendants()
        .filter(|node| node.attribute("fill") == Some("none"))
        .map(|node| ["x", "y", "width", "height"].map(|name| number(&node, name)))
        .find(|frame| frame[2] > 500 && frame[0] > 0)
        .unwrap();
    (frame[0], frame[1], frame[2] + 1, frame[3] + 1)
}

#[test]
fn heights_are_bytes_and_columns_are_moments() {
    let svg = figure(&story()).unwrap().laid_out(SIZE).unwrap().svg();
    let (x, y, w, h) = plot(&svg);
    let areas = areas(&svg);
    let names: Vec<&str> = areas.iter().map(|area| area.0.as_str()).collect();
    assert_eq!(
        names,
        ["train.py 11, up to 45.0 GiB", "server 10, up to 20.0 GiB", "driver, up to 1.0 GiB"]
    );
    // 80 GiB in h rows: the server is a quarter, above the run or at the bottom.
    let row = |gib: i32| y + h - (gib * h + 40) / 80;
    let column = |second: i32| x + second * w / 599;
    let server = &areas[1].1;
    let highest = server.iter().map(|point| point.1).min().unwrap();
    assert_eq!(highest, row(65));
    let before = server.iter().filter(|point| point.0 < column(59)).map(|point| point.1);
    assert_eq!(before.min(), Some(row(20)));
    let train = &areas[0].1;
    assert!((train.iter().map(|p| p.0).min().unwrap() - column(60)).abs() <= 1);
    assert!((train.iter().map(|p| p.0).max().unwrap() - column(240)).abs() <= 1);
    // Nothing is drawn where nothing is known.
    let (from, to) = (column(301), column(419));
    for (name, points) in &areas {
        assert!(!points.iter().any(|p| p.0 > from && p.0 < to), "{name} is drawn in the gap");
    }
    assert!(svg.contains("no data"));
    for words in [
        "verdicts: GPU memory, 2023-11-14 ",
        "train.py 11 came, up to 45.0 GiB, ",
        "train.py 11 went, held 45.0 GiB, ",
        "nothing is known for 2 min: the machine slept, or vramlens was stopped, ",
        "peak 65.0 GiB of 80 GiB at ",
    ] {
        let words = words.replace("verdicts", &host_name());
        assert!(svg.contains(&words), "{words}: {svg}");
    }
}

fn host_name() -> String {
    host().hostname.value().unwrap().clone()
}

#[test]
fn both_forms_are_the_same_every_time() {
    let figure = figure(&story()).unwrap();
    let both = |figure: &Figure| {
        let out = figure.laid_out(SIZE).unwrap();
        (out.svg(), out.png().unwrap())
    };
    assert_eq!(both(&figure), both(&figure));
    let again = self::figure(&story()).unwrap();
    assert_eq!(both(&figure), both(&again));
}

#[test]
fn a_png_has_its_size_and_the_colours_of_what_was_held() {
    let bytes = figure(&story()).unwrap().laid_out(SIZE).unwrap().png().unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), SIZE);
    let at = |x: i32, y: i32| {
        let at = 3 * (y as usize * SIZE.0 as usize + x as usize);
        [pixels[at], pixels[at + 1], pixels[at + 2]]
    };
    let (x, y, w, h) = plot(&figure(&story()).unwrap().laid_out(SIZE).unwrap().svg());
    let second = |second: i32| x + second * w / 599;
    let bottom = y + h - 3;
    assert_eq!(at(second(200), bottom), [0x2a, 0x7a, 0xb8], "the run is the largest: blue");
    assert_eq!(at(second(30), bottom), [0xe8, 0xa8, 0x33], "the server: orange");
    assert_eq!(at(second(30), y + 30), [0xff; 3], "free: paper");
    // There is text: dark pixels in the title.
    let dark = (20..400).filter(|x| (18..32).any(|y| at(*x, y)[0] < 90)).count();
    assert!(dark > 100, "{dark}");
}

#[test]
fn hostile_names_are_text_and_nothing_else() {
    let evil = "x</title><script>alert(1)</script>&\"'\u{1b}[2J\u{202e}\u{0}\u{ffff}";
    let mut ticks = vec![rows(0, &[(10, GIB)])];
    let mut machine = host();
    machine.hostname = Reading::Value(format!("h{evil}"));
    ticks.push(proc_tick(T0 + 10, machine, vec![named(10, &[evil])]));
    let mut gpu = with_rows(gpu(0), vec![row(10, GIB), row(11, 2 * GIB)]);
    gpu.name = Reading::Value(evil.repeat(40));
    ticks.push(gpu_tick(T0 + 1_000, vec![gpu]));
    ticks.push(rows(2, &[(11, GIB)]));
    let figure = figure(&ticks).unwrap();
    let svg = figure.laid_out(SIZE).unwrap().svg();
    let document = Document::parse(&svg).unwrap();
    assert!(!document.descendants().any(|node| node.has_tag_name("script")));
    assert!(!svg.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{svg}");
    // Nothing runs out of the picture.
    for node in document.descendants().filter(|node| node.has_tag_name("text")) {
        let x: i32 = node.attribute("x").unwrap().parse().unwrap();
        let columns = i32::try_from(node.text().unwrap_or("").chars().count()).unwrap();
        let (from, to) = match node.attribute("text-anchor") {
            Some("end") => (x - 7 * columns, x),
            Some("middle") => (x - 7 * columns / 2, x + 7 * columns / 2),
            _ => (x, x + 7 * columns),
        };
        assert!(from >= 0 && to <= 1_200, "{:?} from {from} to {to}", node.text());
    }
    figure.laid_out(SIZE).unwrap().png().unwrap();
}

/// The story with another name for its server.
fn story_of(name: &str) -> Vec<Tick> {
    let mut ticks = story();
    for tick in &mut ticks {
        let Tick::Procs(look) = tick else { continue };
        for process in look.procs.iter_mut().filter(|process| process.id.pid.0 == 10) {
            std::sync::Arc::make_mut(process).cmdline = Reading::Value(vec![name.to_owned()]);
        }
    }
    ticks
}

#[test]
fn letters_that_the_font_of_a_png_lacks_are_boxes_and_are_told() {
    let drawn = |name: &str| {
        let figure = figure(&story_of(name)).unwrap();
        let drawn = figure.laid_out(SIZE).unwrap();
        assert!(drawn.svg().contains(name), "{name}: an SVG has all letters");
        (drawn.png().unwrap(), drawn.unshown_in_png())
    };
    assert_eq!(drawn("server").1, 0);
    assert_eq!(drawn("sérvër-½").1, 0, "Latin-1 is in the font");
    let japanese = drawn("日本");
    assert!(japanese.1 > 0);
    // No question mark, which could be a name's own.
    assert_ne!(japanese.0, drawn("????").0);
    // A mark that the font cannot put on its letter is told as well.
    assert!(drawn("e\u{301}").1 > 0);
    // The command says it, and the file is there all the same.
    let folder = tempfile::tempdir().unwrap();
    let path = recording(&folder, &story_of("日本"));
    let png = folder.path().join("o.png");
    let out = replay(&path, &["--png", png.to_str().unwrap()]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success() && said.contains("shown as boxes: --svg has all"), "{said}");
    assert!(png.exists());
}

#[test]
fn little_is_shown_as_what_it_is() {
    assert_eq!(figure(&[]).unwrap_err(), PictureError::Empty);
    // One sample lasts as long as the interval.
    let one = figure(&[rows(0, &[(10, 40 * GIB)])]).unwrap();
    assert_eq!(one.to.boot_ms - one.from.boot_ms, 1_000);
    let svg = one.laid_out(SIZE).unwrap().svg();
    let (x, _, w, _) = plot(&svg);
    let pid = &areas(&svg)[0];
    assert_eq!(pid.0, "pid 10, up to 40.0 GiB");
    assert_eq!(pid.1.iter().map(|p| p.0).max(), Some(x + w));
    // Only gaps.
    let cause = GapCause::Stall { call: "nvmlInit_v2".into(), gpu: Some(GpuIndex(0)) };
    let gap = Tick::Gap(Gap { from: stamp(T0), to: stamp(T0 + 60_000), cause });
    let gaps = figure(&[gap]).unwrap();
    let svg = gaps.laid_out(SIZE).unwrap().svg();
    assert!(svg.contains("No figure of a GPU") && svg.contains("nvmlInit_v2 hung"), "{svg}");
    Document::parse(&svg).unwrap();
    gaps.laid_out(SIZE).unwrap().png().unwrap();
    // A GPU of which nothing could be read.
    let mut blind = gpu(0);
    blind.memory = Reading::Absent(vramlens::sample::Why::TimedOut);
    let blind = figure(&[gpu_tick(T0, vec![blind])]).unwrap().laid_out(SIZE).unwrap().svg();
    assert!(blind.contains("no figure of its memory"), "{blind}");
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let gpus =
        |n: u32| gpu_tick(T0, (0..n).map(|n| with_rows(gpu(n), vec![row(9, GIB)])).collect());
    let eight = figure(&[gpus(8)]).unwrap();
    let error = eight.laid_out((1_200, 400)).unwrap_err().to_string();
    assert!(error.contains("1200x400 is too small for 8 GPUs: it takes 600x"), "{error}");
    let size = vramlens::report::picture::usual(8);
    Document::parse(&eight.laid_out(size).unwrap().svg()).unwrap();
    eight.laid_out(size).unwrap().png().unwrap();
}

fn recording(folder: &tempfile::TempDir, ticks: &[Tick]) -> PathBuf {
    let path = folder.path().join("a.vrt");
    let header =
        Header { hostname: Reading::Value("gpubox".into()), ..Header::new(stamp(T0), 1_000) };
    let file = std::fs::File::create(&path).unwrap();
    let mut writer =
        Writer::new(file, Form::Frames, header, Redaction::secrets(vramlens::sample::redact))
            .unwrap();
    for tick in ticks {
        writer.push(tick).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn replay(path: &std::path::Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("vramlens").unwrap();
    command.env("TZ", "UTC").arg("replay").arg(path).args(arguments);
    command.output().unwrap()
}

#[test]
fn the_command_writes_files_and_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(&folder, &story());
    let (svg, png) = (folder.path().join("o.svg"), folder.path().join("o.png"));
    std::fs::write(&svg, "an old one").unwrap();
    let out = replay(&path, &["--svg", svg.to_str().unwrap(), "--png", png.to_str().unwrap()]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let written = std::fs::read(&svg).unwrap();
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
    let out = replay(&path, &["--svg", "-"]);
    assert_eq!(out.stdout, written, "the same bytes");
    assert!(String::from_utf8(written).unwrap().contains("<title>gpubox: GPU memory"));
}

#[test]
fn a_range_a_size_and_a_gpu_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(&folder, &story());
    let shown = |arguments: &[&str]| {
        let out = replay(&path, &[&["--svg", "-"], arguments].concat());
        String::from_utf8([out.stdout, out.stderr].concat()).unwrap()
    };
    // The recording begins at 23:13:20 of UTC.
    let svg = shown(&["--from", "+1m", "--to", "23:16", "--size", "900x300"]);
    assert!(svg.contains("width=\"900\" height=\"300\""), "{svg}");
    assert!(svg.contains("2023-11-14 23:14:20 to 23:16:00"), "{svg}");
    let svg = shown(&["--from", "-10s"]);
    assert!(svg.contains("23:23:09 to 23:23:19"), "{svg}");
    assert!(shown(&["--gpu", "0"]).starts_with("<svg"));
    for (arguments, complaint) in [
        (["--gpu", "7"], "no GPU 7 in it"),
        (["--from", "noon"], "\"noon\" is no time: write 03:58, 03:58:11"),
        (["--from", "04:00"], "is not in what is kept: 2023-11-14 23:13:20 to"),
        (["--size", "big"], "write 1200x600"),
        (["--size", "300x100"], "300x100 is too small"),
    ] {
        assert!(shown(&arguments).contains(complaint), "{complaint}: {}", shown(&arguments));
    }
    assert!(shown(&["--from", "-1m", "--to", "-2m"]).contains("--from is not before --to"));
}
