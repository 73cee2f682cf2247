use proptest::prelude::*;

use super::*;

fn change(name: &str, keys: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), keys.iter().map(|key| (*key).to_owned()).collect())
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

#[test]
fn no_default_key_does_two_things_in_one_place_and_every_one_can_be_read() {
    let map = KeyMap::default();
    let written: usize = ACTIONS.iter().map(|row| row.keys.len()).sum();
    assert_eq!(map.keys.len(), written);
    for (n, (key, action)) in map.keys.iter().enumerate() {
        let twin = map
            .keys
            .iter()
            .skip(n + 1)
            .find(|(other, twin)| other == key && twin.place().meets(action.place()));
        assert_eq!(twin, None, "{} and another", action.row().name);
    }
    for row in ACTIONS {
        assert_eq!(row.action.row().name, row.name);
        assert_eq!(ACTIONS.iter().filter(|other| other.name == row.name).count(), 1);
    }
    // What the table says is what the defaults written out say.
    let all: Vec<_> = ACTIONS.iter().map(|row| change(row.name, row.keys)).collect();
    assert_eq!(KeyMap::with(&all).unwrap(), map);
}

#[test]
fn every_action_can_have_another_key() {
    for row in ACTIONS {
        let map = KeyMap::with(&[change(row.name, &["f12"])]).unwrap();
        assert_eq!(map.action(key("f12")), Some(row.action));
        for old in row.keys {
            assert_eq!(map.action(key(old)), None, "{old} of {}", row.name);
        }
    }
}

#[test]
fn keys_can_be_given_away_and_conflicts_are_refused_with_both_names() {
    let map = KeyMap::with(&[change("quit", &["ctrl-q"])]).unwrap();
    assert_eq!(map.action(key("ctrl-q")), Some(Action::Quit));
    assert_eq!(map.action(key("q")), None);
    let error = KeyMap::with(&[change("quit", &["x"])]).unwrap_err().to_string();
    assert!(error.starts_with("the key x is given to both kill and quit: "), "{error}");
    // Two that change places.
    let swapped = KeyMap::with(&[change("kill", &["z"]), change("kill-zombies", &["x"])]).unwrap();
    assert_eq!(swapped.action(key("z")), Some(Action::Kill));
    // Unbound, and then free.
    let freed = KeyMap::with(&[change("kill", &[]), change("sort", &["x", "x"])]).unwrap();
    assert_eq!(freed.keys(Action::Kill).count(), 0);
    assert_eq!(freed.keys(Action::Sort).count(), 1);
    let error = KeyMap::with(&[change("kil", &["x"])]).unwrap_err().to_string();
    assert!(error.contains("did you mean kill?"), "{error}");
    assert!(KeyMap::with(&[change("quit", &["hyper-q"])]).is_err());
}

#[test]
fn keys_may_do_two_things_where_these_never_meet() {
    let map = KeyMap::with(&[change("sort", &["d"])]).unwrap();
    assert_eq!(map.action_at(key("d"), Place::WithGpu), Some(Action::Sort));
    assert_eq!(map.action_at(key("d"), Place::WithoutGpu), Some(Action::Demo));
    assert!(KeyMap::with(&[change("help", &["d"])]).is_err(), "help is everywhere");
}

#[test]
fn there_is_always_a_way_out() {
    assert_eq!(KeyMap::with(&[change("quit", &[])]), Err(KeyMapError::NoQuit));
    let taken = KeyMap::with(&[change("quit", &["Q"]), change("copy", &["ctrl-c"])]);
    assert_eq!(taken, Err(KeyMapError::Leave("copy")));
}

#[test]
fn keys_are_written_as_people_write_them() {
    for (written, same) in [
        ("shift-tab", "backtab"),
        ("shift-g", "G"),
        ("ctrl-R", "ctrl-r"),
        ("ctrl-i", "tab"),
        ("ctrl-m", "enter"),
        ("pgup", "pageup"),
        ("escape", "esc"),
        ("alt-shift-x", "alt-X"),
    ] {
        assert_eq!(key(written), key(same), "{written}");
    }
    for written in ["ctrl-r", "f5", "f24", "backtab", "home", "space", "G", "-", "ctrl--", "alt-é"]
    {
        assert_eq!(key(written).to_string(), written);
    }
    for bad in ["", "f0", "f25", "f05", "xx", "ctrl-", "ctrl-shift-a", "shift-1", "meta-x"] {
        assert!(bad.parse::<Key>().is_err(), "{bad}");
    }
    let error = "ctrl-spce".parse::<Key>().unwrap_err().to_string();
    assert!(error.contains("did you mean space?") && error.contains("pagedown"), "{error}");
}

#[test]
fn shift_counts_only_where_somebody_asked_for_it() {
    let shifted = |code| Key::of(KeyEvent::new(code, KeyModifiers::SHIFT));
    let map = KeyMap::default();
    assert_eq!(map.action(shifted(KeyCode::Up)), Some(Action::Up));
    assert_eq!(map.action(shifted(KeyCode::Char('G'))), Some(Action::Bottom));
    assert_eq!(map.action(shifted(KeyCode::BackTab)), Some(Action::PreviousGpu));
    let map = KeyMap::with(&[change("top", &["shift-up"])]).unwrap();
    assert_eq!(map.action(shifted(KeyCode::Up)), Some(Action::Top));
    assert_eq!(map.action(key("up")), Some(Action::Up));
}

proptest! {
    #[test]
    fn what_is_written_reads_back(text in "(ctrl-|alt-|shift-){0,2}(.|[a-z0-9]{0,9})") {
        if let Ok(key) = text.parse::<Key>() {
            prop_assert_eq!(key.to_string().parse::<Key>(), Ok(key));
        }
    }
}
