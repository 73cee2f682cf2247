//! Recordings: what is written is read, and what is damaged is passed over.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "record/ticks.rs"]
mod ticks;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proptest::prelude::*;
use ticks::{header, proc_tick, process, series};
use vramlens::ids::{Pid, ProcId};
use vramlens::record::{
    FileWriter, Form, Full, Header, Index, OnFull, OutputError, ReadError, Reader, Recording,
    Redaction, SCHEMA, Writer, part_path,
};
use vramlens::sample::{
    Gap, GapCause, KillMark, KillMarked, Reading, Tick, WatchedGpu, XidEvent, XidReport,
};

fn kept(arguments: &[String]) -> Vec<String> {
    arguments.to_vec()
}

fn write(ticks: &[Tick], form: Form) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), form, header(), Redaction::secrets(kept)).unwrap();
    for tick in ticks {
        writer.push(tick).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<Tick>, ReadError> {
    Reader::new(bytes)?.collect()
}

fn is_damage(tick: &Tick) -> bool {
    matches!(tick, Tick::Gap(Gap { cause: GapCause::Damaged, .. }))
}

#[test]
fn both_forms_read_as_they_were_written() {
    let ticks = series(100);
    for form in [Form::Frames, Form::Plain] {
        let bytes = write(&ticks, form);
        let reader = Reader::new(&bytes[..]).unwrap();
        assert_eq!(reader.header(), Some(&header()));
        assert_eq!(reader.is_plain(), form == Form::Plain);
        let back: Vec<Tick> = reader.map(Result::unwrap).collect();
        assert_eq!(back, ticks);
    }
}

#[test]
fn recordings_of_the_first_schema_are_read_for_ever() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/v1.vrt");
    assert_eq!(read(&fs::read(path).unwrap()).unwrap(), series(8));
}

#[test]
fn faults_are_kept_and_ticks_without_any_are_written_as_before() {
    let mut ticks = series(2);
    let without = String::from_utf8(write(&ticks, Form::Plain)).unwrap();
    assert!(!without.contains("xid"), "{without}");
    for tick in &mut ticks {
        let Tick::Gpus(tick) = tick else { continue };
        let gpu = tick.gpus[0].uuid.clone();
        tick.xid = XidReport {
            watched: vec![WatchedGpu { gpu: gpu.clone(), state: Reading::Value(()) }],
            events: vec![XidEvent {
                at: tick.at,
                gpu,
                code: 94,
                gpu_instance: Some(3),
                compute_instance: None,
            }],
            lost: 2,
        };
    }
    for form in [Form::Frames, Form::Plain] {
        assert_eq!(read(&write(&ticks, form)).unwrap(), ticks);
    }
}

#[test]
fn zstd_alone_makes_the_plain_form_and_one_more_line() {
    let ticks = series(40);
    let text = zstd::decode_all(&write(&ticks, Form::Frames)[..]).unwrap();
    let plain = write(&ticks, Form::Plain);
    assert_eq!(&text[..plain.len()], &plain[..]);
    assert_eq!(&text[plain.len()..], b"{\"end\":{\"ticks\":80}}\n");
    assert_eq!(read(&text).unwrap(), ticks);
}

#[test]
fn what_a_later_version_adds_is_passed_over() {
    let plain = String::from_utf8(write(&series(2), Form::Plain)).unwrap();
    let schema = format!("\"schema\":\"{SCHEMA}\"");
    let later = plain
        .replace(&schema, "\"schema\":\"1.7\",\"mood\":\"good\"")
        .replace("\"took_ms\"", "\"weather\":{\"wind\":[1,2]},\"took_ms\"")
        + "{\"network\":{\"at\":1}}\n\n";
    assert_eq!(read(later.as_bytes()).unwrap(), series(2));
    let other = plain.replace(&schema, "\"schema\":\"2.0\"");
    let error = read(other.as_bytes()).unwrap_err();
    assert!(matches!(&error, ReadError::Schema(found) if found.major == 2), "{error}");
    assert!(error.to_string().contains(&SCHEMA.to_string()));
}

/// What this program did stands between what was seen; a name is an argument where those are taken out.
#[test]
fn signals_and_what_came_back_are_kept() {
    let id = ProcId { pid: Pid(7), start_ticks: 9 };
    let mark = |at, what| Tick::Kill(KillMark { at: ticks::stamp(at), what });
    let signal = |name: &str| KillMarked::Signal { id, name: name.to_owned(), signal: 15 };
    let mut all = series(40);
    all.insert(10, mark(9_500, signal("train.py")));
    all.insert(20, mark(19_700, KillMarked::Outcome("freed 1.0 of 1.0 GiB on GPU 0".to_owned())));
    for form in [Form::Frames, Form::Plain] {
        assert_eq!(read(&write(&all, form)).unwrap(), all);
    }
    let text = String::from_utf8(write(&all, Form::Plain)).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("{\"kill\":")).collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].contains("\"pid\":7") && lines[0].contains("\"start_ticks\":9"),
        "{}",
        lines[0]
    );
    // A reader of schema 1.1 does not know the kind, as this one does not know that of a later version.
    let later = text.replace("{\"kill\":", "{\"pardon\":");
    assert_eq!(read(later.as_bytes()).unwrap(), series(40));
    let header = Header::new(ticks::stamp(1), 1_000);
    let redaction = Redaction::identities(kept);
    let mut writer = Writer::new(Vec::new(), Form::Plain, header, redaction).unwrap();
    writer.push(&mark(9_500, signal("/home/ana/secret.py"))).unwrap();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert!(!text.contains("secret") && text.contains("\"signal\":15"), "{text}");
}

#[test]
fn what_is_no_recording_is_refused() {
    for bytes in [&b""[..], b"\x28\xb5\x2f\xfd", b"{}", b"hello\n", b"[1,2]\n{\"a\":", &[0; 4096]] {
        assert!(matches!(read(bytes), Err(ReadError::NotARecording)), "{bytes:?}");
    }
}

#[test]
fn a_broken_frame_costs_itself_and_no_more() {
    let ticks = series(200);
    let bytes = write(&ticks, Form::Frames);
    let index = Index::scan(&mut std::io::Cursor::new(&bytes)).unwrap();
    let frames = index.entries();
    assert!(frames.len() > 4, "{}", frames.len());
    let mut before = 0;
    for entry in frames {
        let held = entry.span.ticks as usize;
        let mut broken = bytes.clone();
        let middle = entry.offset as usize + 32 + entry.span.frame_bytes as usize / 2;
        broken[middle] ^= 0x10;
        let mut expected = ticks.clone();
        let lost: Vec<Tick> = expected.drain(before..before + held).collect();
        let back = read(&broken).unwrap();
        let gap_at = back.iter().position(is_damage).expect("a gap");
        assert_eq!(back.iter().filter(|tick| is_damage(tick)).count(), 1);
        assert_eq!(gap_at, before);
        let rest: Vec<Tick> = back.into_iter().filter(|tick| !is_damage(tick)).collect();
        assert_eq!(rest, expected, "without {} ticks", lost.len());
        before += held;
    }
}

#[test]
fn a_lost_header_does_not_lose_the_ticks() {
    let ticks = series(70);
    let mut bytes = write(&ticks, Form::Frames);
    bytes[0] ^= 0xff;
    let reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.header(), None);
    let back: Vec<Tick> = reader.map(Result::unwrap).collect();
    assert!(is_damage(&back[0]));
    assert_eq!(&back[1..], &ticks[..]);
}

#[test]
fn lengths_in_a_file_are_not_believed() {
    // A frame that claims to unpack to a terabyte, a skippable one that claims 4 GiB.
    let mut claims = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1110_0000];
    claims.extend(1_u64.rotate_left(40).to_le_bytes());
    claims.extend([0x5a, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff]);
    let good = write(&series(3), Form::Frames);
    claims.extend(&good);
    let back = read(&claims).unwrap();
    assert!(is_damage(&back[0]));
    assert_eq!(&back[1..], &series(3)[..]);
    // A few kilobytes that unpack to a quarter of a gigabyte of blanks.
    let bomb = zstd::encode_all(std::io::Read::take(std::io::repeat(b' '), 256 << 20), 1).unwrap();
    let mut file = good.clone();
    file.truncate(good.len() - 5);
    file.extend(bomb);
    let back = read(&file).unwrap();
    assert_eq!(&back[..6], &series(3)[..]);
    // A line without an end.
    let mut plain = write(&series(3), Form::Plain);
    plain.extend(vec![b'x'; 20 << 20]);
    let back = read(&plain).unwrap();
    assert_eq!(back.len(), 7);
    assert!(is_damage(&back[6]));
}

#[test]
fn joined_recordings_are_read_through() {
    let joined = [write(&series(3), Form::Frames), write(&series(5), Form::Frames)].concat();
    assert_eq!(read(&joined).unwrap(), [series(3), series(5)].concat());
}

#[test]
fn frames_inside_of_frames_do_not_keep_the_reader_busy() {
    // Each of these unpacks to more than is allowed, and holds the start of the next.
    let blanks = std::io::Read::take(std::io::repeat(b' '), 64 << 20);
    let bomb = zstd::encode_all(blanks, 1).unwrap();
    let mut file = write(&series(1), Form::Frames);
    for _ in 0..2000 {
        file.extend(&bomb);
    }
    let back = read(&file).unwrap();
    assert_eq!(back[..2], series(1)[..]);
    assert!(is_damage(&back[2]) && back.len() == 3);
}

#[test]
fn a_moment_is_found_without_reading_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.vrt");
    let ticks = series(1000);
    fs::write(&path, write(&ticks, Form::Frames)).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.index().covers(), Some((5_000, 1_004_500)));
    assert_eq!(recording.ticks(None).unwrap().count(), ticks.len());
    let from: Vec<Tick> = recording.ticks(Some(700_000)).unwrap().map(Result::unwrap).collect();
    assert!(from.len() < 700 && from.len() > 600, "{}", from.len());
    assert!(from[0].at().boot_ms <= 700_000);
    assert_eq!(from[..], ticks[ticks.len() - from.len()..]);
    // Before the beginning and behind the end there is the nearest that exists.
    assert_eq!(recording.ticks(Some(0)).unwrap().count(), ticks.len());
    assert!(recording.ticks(Some(u64::MAX)).unwrap().count() > 0);
}

#[test]
fn a_file_has_its_name_only_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vrt");
    let mut file = FileWriter::create(&path, header(), Redaction::secrets(kept), None).unwrap();
    for tick in &series(80) {
        assert!(file.push(tick).unwrap());
    }
    let part = part_path(&path);
    assert!(!path.exists());
    assert_eq!(fs::metadata(&part).unwrap().permissions().mode() & 0o777, 0o600);
    let again = FileWriter::create(&path, header(), Redaction::secrets(kept), None);
    assert!(matches!(again, Err(OutputError::Unfinished(_))));
    file.finish().unwrap();
    assert!(path.exists() && !part.exists());
    assert_eq!(read(&fs::read(&path).unwrap()).unwrap(), series(80));
    let again = FileWriter::create(&path, header(), Redaction::secrets(kept), None);
    assert!(matches!(again, Err(OutputError::Exists(_))));
}

#[test]
fn a_full_file_ends_or_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let ticks = series(600);
    let full = |then| Some(Full { at_bytes: 4_000, then });
    let make = |name: &str, then| {
        let path = folder.path().join(name);
        FileWriter::create(&path, header(), Redaction::secrets(kept), full(then)).unwrap()
    };
    let mut ends = make("ends.vrt", OnFull::End);
    let taken = ticks.iter().take_while(|tick| ends.push(tick).unwrap()).count() + 1;
    ends.finish().unwrap();
    let back = read(&fs::read(folder.path().join("ends.vrt")).unwrap()).unwrap();
    assert_eq!(back, ticks[..taken]);
    assert!(taken < ticks.len());

    let mut turns = make("turns.vrt", OnFull::Rotate { keep: 2 });
    for tick in &ticks {
        assert!(turns.push(tick).unwrap());
    }
    turns.finish().unwrap();
    let at = |name: &str| read(&fs::read(folder.path().join(name)).unwrap()).unwrap();
    let all = [at("turns.vrt.2"), at("turns.vrt.1"), at("turns.vrt")].concat();
    assert!(all.len() > 200 && all.len() < ticks.len());
    assert_eq!(all[..], ticks[ticks.len() - all.len()..]);
    assert!(!folder.path().join("turns.vrt.3").exists());
}

#[test]
fn secrets_and_names_stay_out() {
    let with_secret = ["/home/ana/bin/python", "train.py", "--token", "hf_secret"];
    let hide = |arguments: &[String]| {
        arguments.iter().map(|a| a.replace("hf_secret", "***")).collect::<Vec<_>>()
    };
    let mut other = process(1002, &["/usr/bin/bash"]);
    other.user = Reading::Value("bo".to_owned());
    let ticks = [proc_tick(0, vec![process(1001, &with_secret), other])];
    let text_of = |redaction| {
        let mut writer = Writer::new(Vec::new(), Form::Plain, header(), redaction).unwrap();
        writer.push(&ticks[0]).unwrap();
        String::from_utf8(writer.finish().unwrap()).unwrap()
    };
    let text = text_of(Redaction::secrets(hide));
    assert!(!text.contains("hf_secret") && text.contains("train.py") && text.contains("ana"));
    let text = text_of(Redaction::identities(hide));
    for word in ["hf_secret", "train.py", "ana", "bo\"", "gpubox", "1001.slice", "gguf"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    let back = read(text.as_bytes()).unwrap();
    let Tick::Procs(tick) = &back[0] else { panic!("{back:?}") };
    assert_eq!(tick.procs[0].cmdline, Reading::Value(vec!["python".to_owned()]));
    assert_eq!(tick.procs[0].user, Reading::Value("user1".to_owned()));
    assert_eq!(tick.procs[1].user, Reading::Value("user2".to_owned()));
    let unit = tick.procs[0].unit.as_deref().unwrap();
    assert!(unit.starts_with("unit") && unit.ends_with(".service"), "{unit}");
    assert_eq!(tick.procs[0].uid, Reading::Value(tick.host.euid));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A file that is cut at any byte reads as a prefix, and says that it was cut.
    #[test]
    fn a_cut_file_is_a_prefix(count in 1_u64..60, cut in 0.0..1.0, plain in any::<bool>()) {
        let ticks = series(count);
        let bytes = write(&ticks, if plain { Form::Plain } else { Form::Frames });
        let cut = (bytes.len() as f64 * cut) as usize;
        match read(&bytes[..cut]) {
            Err(error) => prop_assert!(matches!(error, ReadError::NotARecording)),
            Ok(mut back) => {
                // Plain text may end with any line; anything else is told.
                let told = back.last().is_some_and(is_damage);
                let at_line = plain && (bytes[cut - 1] == b'\n' || bytes[cut] == b'\n');
                prop_assert_eq!(told, !at_line);
                if told {
                    back.pop();
                }
                prop_assert_eq!(&back[..], &ticks[..back.len()]);
            }
        }
    }

    /// Any bytes at all are read without a panic, and whole frames among them are found.
    #[test]
    fn anything_can_be_read(
        noise in proptest::collection::vec(any::<u8>(), 0..2000),
        flips in proptest::collection::vec((0.0..1.0, 1_u8..), 0..8),
    ) {
        let mut bytes = write(&series(70), Form::Frames);
        for (place, flip) in flips {
            let place = (bytes.len() as f64 * place) as usize;
            bytes[place] ^= flip;
        }
        bytes.splice(0..0, noise);
        if let Ok(back) = read(&bytes) {
            let original = series(70);
            let mut rest = original.iter();
            for tick in back.iter().filter(|tick| !is_damage(tick)) {
                prop_assert!(rest.any(|t| t == tick), "out of order or changed");
            }
        }
    }
}
