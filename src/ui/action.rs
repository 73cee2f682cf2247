//! Everything that a key can do: one table. Key map, help, footer and documentation come from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Something that a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the table below says what each one does")]
pub enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Detail,
    Leave,
    Fixes,
    NextGpu,
    PreviousGpu,
    Gpu,
    AllGpus,
    Sort,
    Reverse,
    Tree,
    Mark,
    Filter,
    Back,
    Forward,
    Oldest,
    Live,
    Pause,
    Faster,
    Slower,
    Kill,
    KillChoose,
    KillZombies,
    Copy,
    Explain,
    Snapshot,
    Look,
    Cost,
    Demo,
    Open,
    Help,
    Suspend,
    Redraw,
    Quit,
}

/// The part of the help that an action stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// Moving about.
    Move,
    /// What is shown.
    Show,
    /// When.
    Time,
    /// Acting on processes.
    Act,
    /// The program.
    Program,
}

impl Group {
    /// In the order of the help.
    pub const ALL: [Self; 5] = [Self::Move, Self::Show, Self::Time, Self::Act, Self::Program];

    /// Its heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Move => "MOVE",
            Self::Show => "SHOW",
            Self::Time => "TIME",
            Self::Act => "ACT",
            Self::Program => "PROGRAM",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct ActionRow {
    /// What it is in the program.
    pub action: Action,
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its default keys, as the configuration writes them.
    pub keys: &'static [&'static str],
    /// Where the help lists it.
    pub group: Group,
    /// A word or two for the footer.
    pub short: &'static str,
    /// What it does.
    pub doc: &'static str,
}

macro_rules! actions {
    ($($group:ident $action:ident $name:literal $keys:expr, $short:literal, $doc:literal;)*) => {
        /// Every action.
        pub const ACTIONS: &[ActionRow] = &[$(ActionRow {
            action: Action::$action, name: $name, keys: &$keys, group: Group::$group,
            short: $short, doc: $doc,
        },)*];
    };
}

actions! {
    Move Up "up" ["up", "k"], "up", "select the row above";
    Move Down "down" ["down", "j"], "down", "select the row below";
    Move PageUp "page-up" ["pageup", "ctrl-b"], "page up", "a page up";
    Move PageDown "page-down" ["pagedown", "ctrl-f"], "page down", "a page down";
    Move Top "top" ["g"], "top", "the first row";
    Move Bottom "bottom" ["G"], "bottom", "the last row";
    Move Detail "detail" ["enter"], "detail", "the selected process in full";
    Move Leave "leave" ["esc", "backspace"], "leave", "back; drops filter and marks";
    Show Fixes "fixes" ["f"], "fixes", "every fix with its whole text";
    Show NextGpu "next-gpu" ["tab"], "next GPU", "the next GPU; in the detail the next tab";
    Show PreviousGpu "previous-gpu" ["backtab"], "previous GPU", "the one before";
    Show Gpu "gpu" ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], "one GPU",
        "only the GPU of this number";
    Show AllGpus "all-gpus" ["a"], "all GPUs", "processes of all GPUs";
    Show Sort "sort" ["s"], "sort", "sort by the next column";
    Show Reverse "reverse" ["S"], "reverse", "turn the order round";
    Show Tree "tree" ["t"], "tree", "processes under their launchers";
    Show Filter "filter" ["/"], "filter", "filter: user:ana state:zombie vram>2G python";
    Time Back "back" ["left"], "back in time", "back in time";
    Time Forward "forward" ["right"], "forward", "forward in time";
    Time Oldest "oldest" ["home"], "oldest", "the oldest moment that is kept";
    Time Live "live" ["end"], "live", "now";
    Time Pause "pause" ["p"], "pause", "hold this moment, or go on";
    Time Faster "faster" ["+", "="], "faster", "refresh more often";
    Time Slower "slower" ["-"], "slower", "refresh less often";
    Act Kill "kill" ["x"], "kill", "end the selected or marked processes";
    Act KillChoose "kill-choose" ["X"], "kill with", "the same, after a choice of how hard";
    Act KillZombies "kill-zombies" ["z"], "end zombies", "end all zombies";
    Act Mark "mark" ["space"], "mark", "mark for kill, or unmark";
    Act Copy "copy" ["y"], "copy", "copy the line or the pid (OSC 52, works over SSH)";
    Program Explain "explain" ["e"], "explain", "explain an error message: paste it";
    Program Snapshot "snapshot" ["w"], "save", "write this moment to a file";
    Program Look "look" ["u"], "look", "look at GPUs that sleep or are let sleep: wakes them";
    Program Cost "cost" ["c"], "own cost", "what this program costs, in the last line";
    Program Demo "demo" ["d"], "demo", "without a GPU: a recording of a real one";
    Program Open "open" ["r"], "open a recording", "without a GPU: open a recording";
    Program Help "help" ["?", "f1"], "help", "this page";
    Program Redraw "redraw" ["ctrl-l"], "redraw", "draw the screen anew";
    Program Suspend "suspend" ["ctrl-z"], "suspend", "to the shell; fg comes back";
    Program Quit "quit" ["q", "ctrl-c"], "quit", "quit";
}

impl Action {
    /// Its row of the table.
    pub fn row(self) -> &'static ActionRow {
        ACTIONS.iter().find(|row| row.action == self).unwrap_or(&ACTIONS[0])
    }
}

/// A key with its modifiers. Shift is part of the character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which.
    pub code: KeyCode,
    /// Control and Alt.
    pub modifiers: KeyModifiers,
}

/// Why a text names no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no key: write one character, or enter, esc, tab, space, up, f1, ctrl-x, alt-x")]
pub struct ParseKeyError(String);

impl Key {
    /// As the terminal reports it.
    pub fn of(event: KeyEvent) -> Self {
        let kept = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT);
        Self { code: event.code, modifiers: kept }
    }
}

/// The names that keys have besides their character.
const NAMED: [(&str, KeyCode, &str, &str); 16] = [
    ("enter", KeyCode::Enter, "⏎", "Enter"),
    ("esc", KeyCode::Esc, "esc", "esc"),
    ("tab", KeyCode::Tab, "⇥", "Tab"),
    ("backtab", KeyCode::BackTab, "⇤", "BackTab"),
    ("space", KeyCode::Char(' '), "space", "space"),
    ("backspace", KeyCode::Backspace, "⌫", "BkSp"),
    ("delete", KeyCode::Delete, "del", "del"),
    ("insert", KeyCode::Insert, "ins", "ins"),
    ("up", KeyCode::Up, "↑", "Up"),
    ("down", KeyCode::Down, "↓", "Down"),
    ("left", KeyCode::Left, "←", "Left"),
    ("right", KeyCode::Right, "→", "Right"),
    ("pageup", KeyCode::PageUp, "PgUp", "PgUp"),
    ("pagedown", KeyCode::PageDown, "PgDn", "PgDn"),
    ("home", KeyCode::Home, "Home", "Home"),
    ("end", KeyCode::End, "End", "End"),
];

impl std::str::FromStr for Key {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut modifiers, mut rest) = (KeyModifiers::NONE, text);
        loop {
            let (modifier, prefix) = match () {
                () if rest.starts_with("ctrl-") => (KeyModifiers::CONTROL, "ctrl-"),
                () if rest.starts_with("alt-") => (KeyModifiers::ALT, "alt-"),
                () => break,
            };
            modifiers |= modifier;
            rest = rest.strip_prefix(prefix).unwrap_or(rest);
        }
        let bad = || ParseKeyError(text.chars().take(32).collect());
        let mut characters = rest.chars();
        let code = match (characters.next(), characters.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => match rest.strip_prefix('f').and_then(|n| n.parse().ok()) {
                Some(n @ 1..=24) => KeyCode::F(n),
                _ => NAMED.iter().find(|name| name.0 == rest).ok_or_else(bad)?.1,
            },
        };
        Ok(Self { code, modifiers })
    }
}

/// As a person reads it: `⏎`, `ctrl-c`, `x`.
impl Key {
    /// In Unicode or ASCII.
    pub fn label(self, ascii: bool) -> String {
        let named = NAMED.iter().find(|name| name.1 == self.code);
        let name = match (named, self.code) {
            (Some(name), _) if ascii => name.3.to_owned(),
            (Some(name), _) => name.2.to_owned(),
            (None, KeyCode::Char(c)) => c.to_string(),
            (None, KeyCode::F(n)) => format!("F{n}"),
            (None, _) => "?".to_owned(),
        };
        let control = if self.modifiers.contains(KeyModifiers::CONTROL) { "ctrl-" } else { "" };
        let alt = if self.modifiers.contains(KeyModifiers::ALT) { "alt-" } else { "" };
        format!("{control}{alt}{name}")
    }
}

/// Which key does what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyMap {
    keys: Vec<(Key, Action)>,
}

/// Why keys cannot be set as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    /// No such key.
    #[error(transparent)]
    Key(#[from] ParseKeyError),
    /// No such action.
    #[error("there is no action {0:?}: the help page (?) lists them")]
    Action(String),
    /// One key, two actions.
    #[error("the key {key} is given to both {first} and {second}")]
    Conflict {
        /// The key.
        key: String,
        /// The action that has it.
        first: &'static str,
        /// The action that wants it.
        second: &'static str,
    },
}

impl Default for KeyMap {
    fn default() -> Self {
        let all = ACTIONS.iter().flat_map(|row| row.keys.iter().map(move |key| (key, row.action)));
        Self { keys: all.filter_map(|(key, action)| Some((key.parse().ok()?, action))).collect() }
    }
}

impl KeyMap {
    /// The defaults with other keys for some actions, by name. An action that is named loses its
    /// default keys.
    pub fn with(changes: &[(String, Vec<String>)]) -> Result<Self, KeyMapError> {
        let mut map = Self::default();
        let mut added: Vec<(Key, &'static ActionRow)> = Vec::new();
        for (name, keys) in changes {
            let row = ACTIONS.iter().find(|row| row.name == name);
            let row = row.ok_or_else(|| KeyMapError::Action(name.clone()))?;
            map.keys.retain(|(_, action)| *action != row.action);
            for key in keys {
                added.push((key.parse()?, row));
            }
        }
        for (key, row) in added {
            if let Some(first) = map.action(key) {
                let (key, first) = (key.label(true), first.row().name);
                return Err(KeyMapError::Conflict { key, first, second: row.name });
            }
            map.keys.push((key, row.action));
        }
        Ok(map)
    }

    /// What a key does.
    pub fn action(&self, key: Key) -> Option<Action> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, action)| *action)
    }

    /// The keys of an action, the first is the one to show.
    pub fn keys(&self, action: Action) -> impl Iterator<Item = Key> {
        self.keys.iter().filter(move |(_, other)| *other == action).map(|(key, _)| *key)
    }

    /// The first key of an action, to show; empty for an action without keys.
    pub fn label(&self, action: Action, ascii: bool) -> String {
        self.keys(action).next().map(|key| key.label(ascii)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_default_key_does_two_things_and_every_one_can_be_read() {
        let map = KeyMap::default();
        let written: usize = ACTIONS.iter().map(|row| row.keys.len()).sum();
        assert_eq!(map.keys.len(), written);
        for (n, (key, action)) in map.keys.iter().enumerate() {
            let twin = map.keys.iter().skip(n + 1).find(|(other, _)| other == key);
            assert_eq!(twin, None, "{} and another", action.row().name);
        }
        for row in ACTIONS {
            assert_eq!(row.action.row().name, row.name);
        }
    }

    #[test]
    fn keys_can_be_given_away_and_conflicts_are_refused() {
        let change = |name: &str, key: &str| vec![(name.to_owned(), vec![key.to_owned()])];
        let map = KeyMap::with(&change("quit", "ctrl-q")).unwrap();
        assert_eq!(map.action("ctrl-q".parse().unwrap()), Some(Action::Quit));
        assert_eq!(map.action("q".parse().unwrap()), None);
        let error = KeyMap::with(&change("quit", "x")).unwrap_err();
        assert_eq!(error.to_string(), "the key x is given to both kill and quit");
        assert!(KeyMap::with(&change("fly", "x")).is_err());
        assert!(KeyMap::with(&change("quit", "hyper-q")).is_err());
    }
}
