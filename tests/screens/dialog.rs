//! The dialog that ends processes.

use insta::assert_snapshot;
use vramlens::ui::kill::{Phase, Proof, Typed};

use crate::paper::{COLOUR, app, screen, text};
use crate::scenes::{self, findings};

#[test]
fn nothing_of_what_will_be_sent_is_cut_off() {
    let mut app = app(&COLOUR);
    let mut dialog = scenes::dialog();
    dialog.note = "INT, TERM after 15 s; no KILL: it may be saving.".into();
    dialog.rows.truncate(1);
    dialog.rows[0].note = "chosen".into();
    app.kill = Some(dialog);
    for size in [(60, 24), (80, 24), (160, 50)] {
        let shown = text(&screen(&app, &scenes::one_gpu(), &findings(), size));
        assert!(shown.contains("no KILL: it may be saving."), "{size:?}\n{shown}");
        assert!(shown.contains("dry run") && shown.contains("esc  leave"), "{size:?}\n{shown}");
    }
}

#[test]
fn the_kill_dialog() {
    let mut app = app(&COLOUR);
    let mut shown = |dialog, size| {
        app.kill = Some(dialog);
        text(&screen(&app, &scenes::one_gpu(), &findings(), size))
    };
    let asked = scenes::dialog();
    assert_snapshot!("kill_asks_80x24", shown(asked.clone(), (80, 24)));
    assert_snapshot!("kill_asks_40x10", shown(asked.clone(), (40, 10)));
    let mut protected = asked.clone();
    protected.typed = Some(Typed { word: "Xorg".into(), entered: "Xo".into() });
    assert_snapshot!("kill_protected_80x24", shown(protected, (80, 24)));
    let mut running = asked;
    running.phase = Phase::Running(vec!["TERM sent 40011".into(), "40011 gone after 0.3 s".into()]);
    assert_snapshot!("kill_runs_80x24", shown(running.clone(), (80, 24)));
    running.proven(Proof {
        sentence: "freed 22.1 of 44.2 GiB".into(),
        complete: false,
        unknown: false,
        remaining: vec![
            "40012 waits in nvidia_close: no signal helps, a GPU reset does".into(),
            "sudo nvidia-smi --gpu-reset -i 1".into(),
        ],
    });
    assert_snapshot!("kill_done_80x24", shown(running, (80, 24)));
    app.kill = None;
    app.choosing = true;
    let chooser = text(&screen(&app, &scenes::one_gpu(), &findings(), (80, 24)));
    assert_snapshot!("kill_chooser_80x24", chooser);
}

#[test]
fn why_it_is_not_known_what_came_back_is_told_whole() {
    let mut app = app(&COLOUR);
    let mut dialog = scenes::dialog();
    let sentence = "what came back of 44.2 GiB on GPU 0 is not known: the list of graphics processes \
                    could not be read (no permission)";
    dialog.phase = Phase::Running(vec!["40011 gone after 0.3 s".into()]);
    dialog.proven(Proof {
        sentence: sentence.into(),
        complete: false,
        unknown: true,
        remaining: vec!["vramlens doctor".into()],
    });
    app.kill = Some(dialog);
    for size in [(60, 24), (80, 24), (160, 50)] {
        let shown = text(&screen(&app, &scenes::one_gpu(), &[], size));
        let words: Vec<&str> = shown.split_whitespace().filter(|word| *word != "│").collect();
        assert!(words.join(" ").contains(sentence), "{size:?}\n{shown}");
        assert!(
            shown.contains("40011 gone after") && shown.contains("copy the command"),
            "{shown}"
        );
        assert!(shown.contains("vramlens doctor"), "{size:?}\n{shown}");
    }
}

#[test]
fn who_would_be_ended_is_told_with_all_of_the_reason() {
    let mut app = app(&COLOUR);
    let mut dialog = scenes::dialog();
    let reason =
        "zombie: the leader of its process group, 39980, is gone since two days and a half";
    dialog.rows[0].note = reason.into();
    app.kill = Some(dialog.clone());
    for size in [(60, 24), (80, 24), (160, 50)] {
        let shown = text(&screen(&app, &scenes::one_gpu(), &[], size));
        let words: Vec<&str> = shown.split_whitespace().filter(|word| *word != "│").collect();
        assert!(words.join(" ").contains(reason), "{size:?}\n{shown}");
    }
    // Nobody to end: nothing is said of signals.
    dialog.order.targets.clear();
    dialog.rows.clear();
    app.kill = Some(dialog);
    let shown = text(&screen(&app, &scenes::one_gpu(), &[], (80, 24)));
    assert!(shown.contains("never ended") && !shown.contains("TERM"), "{shown}");
}
