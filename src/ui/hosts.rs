//! Several machines: what the overview says of each. Filled outside of the view.

use crate::units::Bytes;

/// Programs that act on the machine on which they are started.
const ACTING: [&str; 7] =
    ["vramlens", "sudo", "nvidia-smi", "systemctl", "docker", "podman", "kill"];

/// The machines of a session; empty where only this one is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    /// All, in the order in which they were named.
    pub lines: Vec<HostLine>,
    /// Which of them fills the rest of the screen.
    pub selected: usize,
}

impl Hosts {
    /// The machine that fills the screen.
    pub fn current(&self) -> Option<&HostLine> {
        self.lines.get(self.selected)
    }

    /// A command for the machine that fills the screen, as it is typed on this one: what ends a
    /// process there means another one here.
    pub fn command_here(&self, line: &str) -> String {
        let acts = line.split(' ').next().is_some_and(|word| ACTING.contains(&word));
        match self.current().filter(|host| acts && host.name != "local") {
            Some(host) => format!("ssh -t {} '{}'", host.name, line.replace('\'', r"'\''")),
            None => line.to_owned(),
        }
    }

    /// Whether there is anything to choose from.
    pub const fn is_many(&self) -> bool {
        self.lines.len() > 1
    }

    /// Zombies on the machines that are not selected, and on how many of them.
    pub fn zombies_elsewhere(&self) -> (usize, usize) {
        let others = self.lines.iter().enumerate().filter(|(n, _)| *n != self.selected);
        let counts = others.map(|(_, line)| line.zombies).filter(|zombies| *zombies > 0);
        counts.fold((0, 0), |(zombies, hosts), more| (zombies + more, hosts + 1))
    }

    /// The machine `by` further, round.
    pub fn step(&self, forward: bool) -> usize {
        let count = self.lines.len().max(1);
        (self.selected + if forward { 1 } else { count - 1 }) % count
    }
}

/// One machine in the overview.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostLine {
    /// As the user named it. Hostile text.
    pub name: String,
    /// How it is.
    pub state: HostState,
    /// Whether it runs an older version, which can end nothing for us.
    pub older: bool,
    /// Its GPUs, slices not counted.
    pub gpus: usize,
    /// How many of them tell their memory.
    pub told: usize,
    /// What is not free of their memory, of all that tell.
    pub used: Bytes,
    /// Total memory of those.
    pub total: Bytes,
    /// Processes that may be ended with one key.
    pub zombies: usize,
    /// Findings that are more than a notice.
    pub findings: usize,
    /// Age of the figures, in milliseconds; `None` where there are none.
    pub age_ms: Option<u64>,
}

/// How a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HostState {
    /// Not reached yet.
    #[default]
    Connecting,
    /// Its figures arrive.
    Live,
    /// It is connected, and its figures do not arrive.
    Stalled {
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// Its driver cannot be asked.
    NoGpu {
        /// Why. Hostile text.
        why: String,
    },
    /// It cannot be reached.
    Away {
        /// For how long, in milliseconds.
        for_ms: u64,
        /// Why. Hostile text.
        why: String,
        /// Until the next try, in milliseconds; `None` while one is under way.
        retry_in_ms: Option<u64>,
    },
}

impl HostState {
    /// Whether the figures are of now.
    pub const fn is_current(&self) -> bool {
        matches!(self, Self::Live)
    }

    /// In a word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Live => "live",
            Self::Stalled { .. } => "stalled",
            Self::NoGpu { .. } => "no GPU",
            Self::Away { .. } => "away",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_for_another_machine_goes_there() {
        let host = |name: &str| HostLine { name: name.to_owned(), ..HostLine::default() };
        let mut hosts = Hosts::default();
        assert_eq!(hosts.command_here("sudo vramlens kill 7"), "sudo vramlens kill 7");
        hosts.lines = vec![host("ana@box"), host("local")];
        assert_eq!(hosts.command_here("vramlens kill 7"), "ssh -t ana@box 'vramlens kill 7'");
        assert_eq!(hosts.command_here("docker rm 'x'"), r"ssh -t ana@box 'docker rm '\''x'\'''");
        assert_eq!(hosts.command_here("export A=1"), "export A=1");
        assert_eq!((hosts.step(true), hosts.step(false)), (1, 1));
        hosts.selected = 1;
        assert_eq!(hosts.command_here("vramlens kill 7"), "vramlens kill 7");
    }
}
