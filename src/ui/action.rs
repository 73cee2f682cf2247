//! Everything that a key can do: one table. Key map, help, footer and documentation come from it.

pub use super::keymap::{Key, KeyMap, KeyMapError, ParseKeyError};

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
    NextHost,
    PreviousHost,
    RetryHost,
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
    NextMarker,
    PreviousMarker,
    GoTo,
    Step,
    StepBack,
    Stacked,
    Faster,
    Slower,
    Kill,
    KillChoose,
    KillZombies,
    Copy,
    Dismiss,
    Restore,
    Explain,
    Snapshot,
    Look,
    Cost,
    Demo,
    Open,
    Help,
    Theme,
    Reload,
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
    Show Stacked "stacked" ["v"], "stacked", "charts by holder, or allocated and cached";
    Show Filter "filter" ["/"], "filter", "filter: user:ana state:zombie vram>2G python";
    Show NextHost "next-host" ["h"], "next host", "with --host: the next machine";
    Show PreviousHost "previous-host" ["H"], "previous host", "with --host: the machine before";
    Show RetryHost "retry-host" ["R"], "retry now", "with --host: try to reach this machine now";
    Time Back "back" ["left"], "back in time", "back in time";
    Time Forward "forward" ["right"], "forward", "forward in time";
    Time Oldest "oldest" ["home"], "oldest", "the oldest moment that is kept";
    Time Live "live" ["end"], "live", "now; in a recording go on playing";
    Time Pause "pause" ["p"], "pause", "hold this moment, or go on";
    Time NextMarker "next-marker" ["n", "]"], "next event", "what happened next: came, went, gap";
    Time PreviousMarker "previous-marker" ["N", "["], "event before", "what happened before";
    Time GoTo "go-to" ["@"], "go to a time", "go to a time: 03:58, -10m, 2026-11-30 03:58";
    Time Step "step" ["."], "step", "one sample on, and hold";
    Time StepBack "step-back" [","], "step back", "one sample back";
    Time Faster "faster" ["+", "="], "faster", "refresh more often; play a recording faster";
    Time Slower "slower" ["-"], "slower", "refresh less often; play a recording slower";
    Act Kill "kill" ["x"], "kill", "end the selected or marked processes";
    Act KillChoose "kill-choose" ["X"], "kill with", "the same, after a choice of how hard";
    Act KillZombies "kill-zombies" ["z"], "end zombies", "end all zombies";
    Act Mark "mark" ["space"], "mark", "mark for kill, or unmark";
    Act Copy "copy" ["y"], "copy", "copy the line or the pid (OSC 52, works over SSH)";
    Act Dismiss "dismiss" ["D", "delete"], "hide fix",
        "the selected fix stays away: for this process, this session";
    Act Restore "restore" ["U"], "all fixes", "bring every fix back that was sent away";
    Program Explain "explain" ["e"], "explain", "explain an error message: paste it";
    Program Snapshot "snapshot" ["w"], "save", "write this moment to a file";
    Program Look "look" ["u"], "look", "look at GPUs that sleep or are let sleep: wakes them";
    Program Cost "cost" ["c"], "own cost", "what this program costs, in the last line";
    Program Demo "demo" ["d"], "demo", "without a GPU: a recording of a real one";
    Program Open "open" ["r"], "open a recording", "without a GPU: open a recording";
    Program Help "help" ["?", "f1"], "help", "this page";
    Program Theme "theme" ["T"], "theme", "the next theme";
    Program Reload "reload" ["ctrl-r"], "reload", "read the configuration again";
    Program Redraw "redraw" ["ctrl-l"], "redraw", "draw the screen anew";
    Program Suspend "suspend" ["ctrl-z"], "suspend", "to the shell; fg comes back";
    Program Quit "quit" ["q", "ctrl-c"], "quit", "quit";
}

/// Where an action can be asked for. Keys may do two things where these never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// On every page.
    Always,
    /// Where there is a GPU to look at.
    WithGpu,
    /// On the page that says why there is none.
    WithoutGpu,
}

impl Place {
    /// Whether there is a moment at which both can be asked for.
    pub fn meets(self, other: Self) -> bool {
        self == other || self == Self::Always || other == Self::Always
    }
}

impl Action {
    /// Where it can be asked for.
    pub fn place(self) -> Place {
        match (self, self.row().group) {
            (Self::Demo | Self::Open, _) => Place::WithoutGpu,
            (_, Group::Show | Group::Time | Group::Act) => Place::WithGpu,
            (_, Group::Move | Group::Program) => Place::Always,
        }
    }

    /// Its row of the table.
    pub fn row(self) -> &'static ActionRow {
        ACTIONS.iter().find(|row| row.action == self).unwrap_or(&ACTIONS[0])
    }
}
