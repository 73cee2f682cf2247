//! Why a process may not be read, and what to do about it. Pure.

/// What is known about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// `kernel.yama.ptrace_scope`; `None` where the kernel has none.
    pub ptrace_scope: Option<u32>,
    /// The effective user id of this program.
    pub reader: u32,
    /// The real user id of the process, where it is known.
    pub owner: Option<u32>,
}

/// The ways out, as lines to type.
pub const WAYS_OUT: [&str; 2] =
    ["sudo vramlens", "sudo setcap cap_sys_ptrace+ep \"$(command -v vramlens)\""];

impl Refusal {
    /// The reason, in one sentence.
    pub const fn reason(&self) -> &'static str {
        match (self.ptrace_scope, self.owner) {
            (Some(3), _) => "kernel.yama.ptrace_scope is 3: no process can be read until a restart",
            (_, Some(owner)) if owner != self.reader && self.reader != 0 => {
                "the process belongs to another user"
            }
            (Some(2), _) => "kernel.yama.ptrace_scope is 2: only with CAP_SYS_PTRACE",
            (Some(1), _) if self.reader != 0 => {
                "kernel.yama.ptrace_scope is 1: a process is read by its ancestors only"
            }
            (_, _) if self.reader == 0 => {
                "root lacks CAP_SYS_PTRACE here, as in a container without --cap-add SYS_PTRACE"
            }
            _ => "the process protects its memory, or a sandbox forbids the call",
        }
    }

    /// Lines to type; the first suffices. Empty where nothing helps.
    pub const fn ways_out(&self) -> &'static [&'static str] {
        match (self.ptrace_scope, self.reader) {
            (Some(3), _) => &[],
            (_, 0) => &["docker run --cap-add SYS_PTRACE …"],
            _ => &WAYS_OUT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(ptrace_scope: Option<u32>, reader: u32, owner: Option<u32>) -> Refusal {
        Refusal { ptrace_scope, reader, owner }
    }

    #[test]
    fn each_refusal_has_its_reason_and_its_ways_out() {
        for (case, word, ways) in [
            (refusal(Some(1), 1000, Some(1000)), "ptrace_scope is 1", 2),
            (refusal(Some(1), 1000, None), "ptrace_scope is 1", 2),
            (refusal(Some(1), 1000, Some(0)), "another user", 2),
            (refusal(None, 1000, Some(1001)), "another user", 2),
            (refusal(Some(2), 1000, Some(1000)), "ptrace_scope is 2", 2),
            (refusal(Some(3), 0, Some(0)), "until a restart", 0),
            (refusal(Some(0), 1000, Some(1000)), "protects its memory", 2),
            (refusal(Some(1), 0, Some(1000)), "CAP_SYS_PTRACE", 1),
        ] {
            assert!(case.reason().contains(word), "{case:?}: {}", case.reason());
            assert_eq!(case.ways_out().len(), ways, "{case:?}");
        }
    }
}
