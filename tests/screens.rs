//! The screens: drawn into a buffer, compared with what was looked at before.
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "screens/ages.rs"]
mod ages;
#[path = "screens/details.rs"]
mod details;
#[path = "screens/dialog.rs"]
mod dialog;
#[path = "screens/paper.rs"]
mod paper;
mod scenes;
#[path = "screens/words.rs"]
mod words;

use std::sync::Arc;

use insta::assert_snapshot;
use paper::{ASCII, COLOUR, MONO, app, drawn, page, screen, show, styles, text};
use proptest::prelude::*;
use ratatui::style::Color;
use scenes::findings;
use vramlens::analyze::{Class, Freshness, View};
use vramlens::ids::GpuIndex;
use vramlens::sample::{Reading, Why};
use vramlens::ui::filter::Filter;
use vramlens::ui::{App, NoGpu, Page, Position, Prompt, PromptKind, Tab};

#[test]
fn one_gpu() {
    let view = scenes::one_gpu();
    assert_snapshot!("one_40x10", show(&COLOUR, &view, (40, 10)));
    assert_snapshot!("one_80x24", show(&COLOUR, &view, (80, 24)));
    assert_snapshot!("one_80x24_ascii", show(&ASCII, &view, (80, 24)));
    assert_snapshot!("one_120x40", show(&COLOUR, &view, (120, 40)));
    assert_snapshot!("one_200x60", show(&COLOUR, &view, (200, 60)));
    // Mono draws the same characters.
    assert_eq!(show(&MONO, &view, (80, 24)), show(&COLOUR, &view, (80, 24)));
}

#[test]
fn colours_have_a_meaning() {
    let view = scenes::one_gpu();
    let colour = screen(&app(&COLOUR), &view, &findings(), (80, 24));
    assert_snapshot!("one_80x24_styles", styles(&colour));
    let mono = screen(&app(&MONO), &view, &findings(), (80, 24));
    assert!(mono.content.iter().all(|cell| cell.fg == Color::Reset));
    assert_snapshot!("one_80x24_mono_styles", styles(&mono));
}

#[test]
fn many_gpus() {
    assert_snapshot!("eight_40x10_ascii", show(&ASCII, &scenes::many(8, 6), (40, 10)));
    assert_snapshot!("eight_80x24", show(&COLOUR, &scenes::many(8, 6), (80, 24)));
    assert_snapshot!("eight_120x40_ascii", show(&ASCII, &scenes::many(8, 6), (120, 40)));
    assert_snapshot!("sixteen_80x24", show(&COLOUR, &scenes::many(16, 25), (80, 24)));
    assert_snapshot!("two_80x24", show(&COLOUR, &scenes::many(2, 3), (80, 24)));
}

#[test]
fn slices_of_a_gpu() {
    assert_snapshot!("mig_80x24", show(&COLOUR, &scenes::mig(), (80, 24)));
}

#[test]
fn a_driver_that_hangs() {
    let buffer = screen(&app(&COLOUR), &scenes::stalled(), &findings(), (80, 24));
    assert_snapshot!("stalled_80x24", text(&buffer));
    assert_snapshot!("stalled_80x24_styles", styles(&buffer));
    assert_snapshot!("stalled_40x10_ascii", show(&ASCII, &scenes::stalled(), (40, 10)));
    let mut nothing = scenes::nothing();
    nothing.freshness =
        Freshness::Stalled { call: Some("nvmlInit_v2".into()), gpu: None, for_ms: 40_000 };
    assert_snapshot!("stalled_at_start_80x24", show(&COLOUR, &nothing, (80, 24)));
}

#[test]
fn the_last_frame_before_it_rests_says_so() {
    for (look, mark) in [(&COLOUR, "‖"), (&ASCII, "=")] {
        let mut app = app(look);
        app.unattended = true;
        let first = |view: &View, columns| {
            let text = text(&screen(&app, view, &findings(), (columns, 24)));
            text.lines().next().unwrap_or_default().to_owned()
        };
        for view in [scenes::one_gpu(), scenes::stalled(), scenes::nothing()] {
            let wide = first(&view, 80);
            assert!(wide.contains("rests while nobody is attached"), "{wide}");
            let narrow = first(&view, 40);
            assert!(narrow.contains(" rests "), "{narrow}");
            assert!(!wide.contains("live") && !narrow.contains("live"), "{wide}");
        }
        assert!(first(&scenes::one_gpu(), 80).contains(mark), "{mark}");
    }
}

#[test]
fn a_gpu_that_is_lost() {
    assert_snapshot!("lost_120x40", show(&COLOUR, &scenes::lost(), (120, 40)));
}

#[test]
fn memory_that_is_shared_with_the_host() {
    assert_snapshot!("unified_80x24_ascii", show(&ASCII, &scenes::unified(), (80, 24)));
    assert_snapshot!("shared_80x24_ascii", show(&ASCII, &scenes::shared(), (80, 24)));
    assert_snapshot!("shared_80x24_mono", show(&MONO, &scenes::shared(), (80, 24)));
    assert_snapshot!("shared_160x50", show(&MONO, &scenes::shared(), (160, 50)));
    assert_snapshot!("shared_160x50_ascii", show(&ASCII, &scenes::shared(), (160, 50)));
}

#[test]
fn gpus_that_sleep() {
    assert_snapshot!("resting_80x24", show(&COLOUR, &scenes::resting(), (80, 24)));
    assert_snapshot!("resting_120x40_ascii", show(&ASCII, &scenes::resting(), (120, 40)));
    assert_snapshot!("resting_40x10_ascii", show(&ASCII, &scenes::resting(), (40, 10)));
}

#[test]
fn windows_below() {
    assert_snapshot!("windows_80x24", show(&COLOUR, &scenes::windows(), (80, 24)));
    assert_snapshot!("windows_160x50_ascii", show(&ASCII, &scenes::windows(), (160, 50)));
}

#[test]
fn the_own_cost() {
    let mut app = app(&COLOUR);
    app.cost = Some(vramlens::fields::OwnCost {
        cpu_percent: Reading::Value(0.8),
        cpu_ms_per_look: Reading::Value(8.1),
        resident: Reading::Value(vramlens::units::Bytes::mib(14)),
        driver_ms: Reading::Value(4),
        driver_calls: Reading::Value(17),
        terminal_bytes_per_second: Reading::Value(1_230.0),
        lost_looks: 0,
    });
    let last = |size| {
        let text = text(&screen(&app, &scenes::one_gpu(), &findings(), size));
        text.lines().last().unwrap_or_default().trim_end().to_owned()
    };
    let line = " CPU 0.8% 8.1 ms  memory 14M  driver 4 ms  calls 17  tty 1.2K/s  lost 0";
    assert!(last((80, 24)).starts_with(line), "{}", last((80, 24)));
    assert!(line.starts_with(&last((40, 10))), "{}", last((40, 10)));
}

#[test]
fn nothing_yet_and_nothing_at_all() {
    assert_snapshot!("nothing_40x10", show(&COLOUR, &scenes::nothing(), (40, 10)));
    let no_gpu = |look, size| {
        let mut app = app(look);
        app.page = Page::NoGpu(scenes::no_gpu());
        text(&screen(&app, &scenes::nothing(), &[], size))
    };
    assert_snapshot!("no_gpu_80x24", no_gpu(&COLOUR, (80, 24)));
    assert_snapshot!("no_gpu_40x10_ascii", no_gpu(&ASCII, (40, 10)));
    let idle = scenes::view(vec![scenes::gpu_sample(0, "NVIDIA H200", 1398, 0, 6)], Vec::new());
    assert_snapshot!("idle_80x24", text(&screen(&app(&COLOUR), &idle, &[], (80, 24))));
}

/// What was not looked at is not said to be well.
#[test]
fn nothing_to_mend_is_said_only_where_that_is_known() {
    let says = |change: fn(&mut View)| {
        let mut view = scenes::one_gpu();
        change(&mut view);
        text(&screen(&app(&COLOUR), &view, &[], (100, 24)))
    };
    let fixes = |text: &str| {
        text.lines().find(|line| line.contains("FIXES")).unwrap().trim_end().to_owned()
    };
    assert_eq!(fixes(&says(|_| {})), " FIXES  nothing to mend");
    let past = says(|view| (view.freshness, view.procs_age_ms) = (Freshness::Past, None));
    assert_eq!(fixes(&past), " FIXES  not kept for this earlier moment");
    assert_eq!(fixes(&says(|view| view.procs_age_ms = None)), " FIXES  not known yet");
    let unlisted = says(|view| {
        view.gpus[0].sample.processes = Reading::Absent(Why::NotSupported);
    });
    assert_eq!(fixes(&unlisted), " FIXES  nothing to mend, as far as can be seen");
}

#[test]
fn memory_that_is_nobodys_has_a_page_too() {
    let mut view = scenes::one_gpu();
    view.holders.clear();
    let mut app = app(&COLOUR);
    app.page = Page::Detail(Tab::Verdict);
    // Its page, and beside the table.
    let says = |view: &View, title: &str| {
        let page = text(&screen(&app, view, &findings(), (80, 24)));
        for shown in [page, show(&COLOUR, view, (240, 50))] {
            assert!(shown.contains(title), "{shown}");
            assert!(shown.contains("? likely managed memory of 41233"), "{shown}");
        }
    };
    says(&view, "3.7 GiB on GPU 0 unaccounted: used, and in no process's name");
    view.gpus[0].sample.processes = Reading::Absent(Why::NotSupported);
    says(&view, "3.7 GiB on GPU 0 used, and by whom is not told");
}

#[test]
fn the_page_of_a_process() {
    for tab in Tab::ALL {
        let name = format!("tab_{}_80x24", tab.title());
        assert_snapshot!(name, page(&COLOUR, Page::Detail(tab), (80, 24)));
    }
    // Nothing is made up where nothing could be read.
    let mut bare = app(&COLOUR);
    bare.page = Page::Detail(Tab::Allocator);
    bare.sort.reversed = true;
    let buffer = screen(&bare, &scenes::one_gpu(), &[], (80, 24));
    assert!(text(&buffer).contains("ALLOCATOR  none was found in it"), "{}", text(&buffer));
}

#[test]
fn help_and_fixes() {
    assert_snapshot!("help_120x40", page(&COLOUR, Page::Help, (120, 40)));
    assert_snapshot!("help_80x24_ascii", page(&ASCII, Page::Help, (80, 24)));
    assert_snapshot!("fixes_80x24", page(&COLOUR, Page::Fixes, (80, 24)));
}

#[test]
fn a_tree_and_a_filter() {
    let mut app = app(&COLOUR);
    app.tree = true;
    app.filter = Filter::parse("vram>5G");
    app.scope = Some(scenes::uuid(3));
    app.prompt = Some(Prompt { kind: PromptKind::Filter, text: "vram>5G colour:red".into() });
    app.filter = Filter::parse("vram>5G");
    let mut view = scenes::many(8, 6);
    for holder in &mut view.holders {
        Arc::make_mut(holder.process.as_mut().unwrap()).parent = vramlens::ids::Pid(19_000);
    }
    // One of them is the child of another.
    let on_it: Vec<usize> =
        (0..view.holders.len()).filter(|&n| view.holders[n].index == GpuIndex(3)).collect();
    let parent = view.holders[on_it[1]].pid;
    Arc::make_mut(view.holders[on_it[2]].process.as_mut().unwrap()).parent = parent;
    assert_snapshot!("tree_120x40", text(&screen(&app, &view, &[], (120, 40))));
}

#[test]
fn another_moment_and_a_recording() {
    let mut past = app(&COLOUR);
    past.position = Position::At(scenes::NOW.boot_ms - 150_000);
    let mut view = scenes::one_gpu();
    view.freshness = Freshness::Past;
    view.at.boot_ms -= 150_000;
    view.at.wall_ms -= 150_000;
    let first = |app: &App, view: &View, columns| {
        let all = text(&screen(app, view, &[], (columns, 24)));
        let mut lines = all.lines();
        format!("{}\n{}\n", lines.next().unwrap(), lines.next_back().unwrap())
    };
    assert_snapshot!("past", first(&past, &view, 80));
    let mut replay = app(&ASCII);
    replay.recording = Some("oom\x1b[31m.vrt".into());
    view.freshness = Freshness::Replay;
    assert_snapshot!("recording", first(&replay, &view, 120));
}

#[test]
fn hostile_text_stays_in_its_place() {
    let mut view = scenes::one_gpu();
    let commands: [&[&str]; 4] = [
        &["python", "\x1b]0;owned\x07\x1b[2J\x1b[31mtrain.py\n"],
        &["訓練/模型.py", "--名前=猫🐈"],
        &["a\u{202e}gpj.exe", "e\u{301}\u{301}\u{301}\u{301}\u{301}clair"],
        &["\u{200b}", "\u{feff}👨\u{200d}👩\u{200d}👧 family"],
    ];
    view.holders = commands
        .iter()
        .zip(0..)
        .map(|(arguments, n)| scenes::holder(0, 100 + n, "ユーザー名前", arguments, 300))
        .collect();
    view.driver.as_mut().unwrap().version = Reading::Value("1\x1b[5m2".into());
    view.host.as_mut().unwrap().hostname = Reading::Value("ho\x07st".into());
    view.gpus[0].sample.name = Reading::Value("NVIDIA\r\x1b[A".into());
    let mut evil = findings();
    evil[0].headline = "\x1b[8mhidden\u{2066}".into();
    let buffer = screen(&app(&COLOUR), &view, &evil, (80, 24));
    let shown = text(&buffer);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    assert_snapshot!("hostile_80x24", shown);
    let ascii = text(&screen(&app(&ASCII), &view, &evil, (80, 24)));
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn ascii_screens_are_ascii() {
    for view in [scenes::one_gpu(), scenes::many(8, 6), scenes::mig(), scenes::stalled()] {
        for size in [(40, 10), (80, 24), (200, 60)] {
            assert!(show(&ASCII, &view, size).is_ascii(), "{}", show(&ASCII, &view, size));
        }
    }
    for tab in Tab::ALL {
        assert!(page(&ASCII, Page::Detail(tab), (80, 24)).is_ascii(), "{tab:?}");
    }
    for other in [Page::Help, Page::Fixes] {
        assert!(page(&ASCII, other, (200, 60)).is_ascii());
    }
}

#[test]
fn the_layout_does_not_move_when_numbers_change() {
    let before = show(&COLOUR, &scenes::one_gpu(), (120, 40));
    let mut view = scenes::one_gpu();
    view.holders[0].bytes = Reading::Value(scenes::g(9));
    view.holders[0].age_ms = Reading::Value(7_000);
    view.holders[0].sm = Reading::Value(vramlens::units::Percent(100.0));
    view.holders[0].verdict.class = Class::Unkillable;
    let after = show(&COLOUR, &view, (120, 40));
    let place = |screen: &str| {
        let row = screen.lines().find(|line| line.contains("41233")).unwrap().to_owned();
        ["41233", "python train.py"]
            .map(|word| row.split(word).next().map(|before| before.chars().count()))
    };
    assert_eq!(place(&before), place(&after));
}

#[test]
fn slow_figures_are_asked_for_only_where_they_are_shown() {
    let wants = |app: &App, size| drawn(app, &scenes::one_gpu(), &[], size).1.wants;
    let mut app = app(&COLOUR);
    assert!(!wants(&app, (40, 10)).process_utilization);
    assert!(wants(&app, (80, 24)).process_utilization && !wants(&app, (80, 24)).pcie);
    assert!(wants(&app, (160, 50)).pcie);
    app.page = Page::Help;
    assert_eq!(wants(&app, (160, 50)), vramlens::ui::Wants::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_size_and_no_page_makes_it_panic(
        size in (1_u16..310, 1_u16..110),
        scene in 0_usize..10,
        page in 0_usize..12,
        look in 0_usize..3,
        tree in any::<bool>(),
    ) {
        let view = match scene {
            0 => scenes::nothing(),
            1 => scenes::one_gpu(),
            2 => scenes::many(16, 3),
            3 => scenes::mig(),
            4 => scenes::stalled(),
            5 => scenes::lost(),
            6 => scenes::shared(),
            7 => scenes::resting(),
            8 => scenes::windows(),
            _ => scenes::unified(),
        };
        let mut app = app([&COLOUR, &MONO, &ASCII][look]);
        app.tree = tree;
        app.page = match page {
            n @ 0..5 => Page::Detail(Tab::ALL[n]),
            5 => Page::Help,
            6 => Page::Fixes,
            7 => Page::NoGpu(scenes::no_gpu()),
            8 => Page::NoGpu(NoGpu::default()),
            9 => Page::Text { title: "t".into(), lines: vec!["long ".repeat(99)] },
            _ => Page::Main,
        };
        if page == 10 {
            app.kill = Some(scenes::dialog());
        }
        let small = (size.0 % 12 + 1, size.1 % 8 + 1);
        screen(&app, &view, &findings(), size);
        screen(&app, &view, &findings(), small);
    }
}
