//! What the screen says of figures that are not of the look beside them.

use vramlens::analyze::View;
use vramlens::ids::Stamp;
use vramlens::sample::{Earlier, Reading, Why};
use vramlens::ui::{Page, Tab};

use crate::paper::{COLOUR, app, screen, text};
use crate::scenes;

/// The lines of a wide screen that name what is read in turns, and the GPU's own.
fn clocks(view: &View, interval_ms: u64) -> [String; 3] {
    let mut app = app(&COLOUR);
    app.settings.interval_ms = interval_ms;
    let shown = text(&screen(&app, view, &[], (160, 50)));
    ["memory 3201 MHz", "PCIe in", "NVIDIA H200"].map(|part| {
        let line = shown.lines().find(|line| line.contains(part)).unwrap_or(&shown);
        line.split("  ")
            .filter(|words| !words.is_empty())
            .map(str::trim)
            .collect::<Vec<_>>()
            .join("|")
    })
}

#[test]
fn what_is_read_in_turns_says_so_and_stands_still() {
    let mut view = scenes::one_gpu();
    let look_ms = view.at.boot_ms - view.gpus_age_ms.unwrap();
    let first = clocks(&view, 1_000);
    assert!(first[0].ends_with("|P0|<4s") && first[1].ends_with("/s|<4s"), "{first:?}");
    assert!(!first[2].contains("old"), "{first:?}");
    // Fresh, and up to its turn: the same letters, so that nothing is drawn anew.
    for old_ms in [0, 1_000, 2_000, 3_999] {
        view.gpus[0].sample.earlier = Earlier {
            details_boot_ms: Some(look_ms - old_ms),
            pcie_boot_ms: Some(look_ms - old_ms),
            lists_boot_ms: Some(look_ms - old_ms),
            settings_boot_ms: Some(look_ms - 2 * old_ms),
        };
        assert_eq!(clocks(&view, 1_000), first, "{old_ms}");
    }
    // Looks further apart read everything: no mark.
    view.gpus[0].sample.earlier = Earlier::default();
    let slow = clocks(&view, 5_000);
    assert!(slow[0].ends_with("|P0") && slow[1].ends_with("/s"), "{slow:?}");
    // Older than its turn: its age, however often it is drawn.
    view.gpus[0].sample.earlier = Earlier {
        details_boot_ms: Some(look_ms - 12_400),
        pcie_boot_ms: Some(look_ms - 61_000),
        settings_boot_ms: Some(look_ms - 300_000),
        ..Earlier::default()
    };
    for interval_ms in [1_000, 60_000] {
        let old = clocks(&view, interval_ms);
        assert!(old[0].ends_with("|P0|12s") && old[1].ends_with("/s|1m"), "{old:?}");
        assert!(old[2].contains("W (limit 5m old)"), "{old:?}");
    }
    // What is absent has no age.
    view.gpus[0].sample.pcie = Reading::Absent(Why::NotSupported);
    let shown = text(&screen(&app(&COLOUR), &view, &[], (160, 50)));
    assert!(shown.lines().any(|line| line.trim_end().ends_with("PCIe not supported here")));
}

#[test]
fn what_was_read_by_other_threads_has_its_moment() {
    let read = |tab, change: &dyn Fn(&mut View)| {
        let mut view = scenes::one_gpu();
        change(&mut view);
        let mut app = app(&COLOUR);
        app.page = Page::Detail(tab);
        text(&screen(&app, &view, &[], (100, 40)))
    };
    let allocator = |old_ms: u64, blocks_old_ms: Option<u64>| {
        read(Tab::Allocator, &|view| {
            let back = |ms| Stamp { boot_ms: view.at.boot_ms - ms, wall_ms: view.at.wall_ms - ms };
            let (at, read_at) = (back(old_ms), blocks_old_ms.map(back));
            let holder = view.holders.iter_mut().find(|h| h.allocator.is_some()).unwrap();
            let Some(Reading::Value(sample)) = &mut holder.allocator else { panic!() };
            sample.at = at;
            if let Reading::Value(free) = &mut sample.devices[0].free {
                free.read_at = read_at;
            }
        })
    };
    let fresh = allocator(1_000, None);
    assert!(fresh.contains("block by block") && !fresh.contains("as of"), "{fresh}");
    assert_eq!(allocator(5_000, None), fresh, "a look or two later it is the same");
    let old = allocator(60_000, Some(90_000));
    assert!(old.contains("block by block, as of ") && old.contains("MiB, as of "), "{old}");
}

#[test]
fn a_look_long_past_shows_nothing_that_moves_by_the_second() {
    let shown = text(&screen(&app(&COLOUR), &scenes::stalled(), &[], (160, 50)));
    assert!(!shown.contains(" MHz") && !shown.contains("PCIe"), "{shown}");
}
