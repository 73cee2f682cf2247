//! Whether the kernel has killed for lack of memory on the host, meanwhile.

/// How often it had, at one moment; absent where the kernel does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kills(Option<u64>);

impl Kills {
    /// Now. In this process's cgroup, where that counts; else on the whole machine.
    pub fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let own = read("/proc/self/cgroup").and_then(|text| {
            let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
            counter(&read(&format!("/sys/fs/cgroup{path}/memory.events"))?)
        });
        Self(own.or_else(|| counter(&read("/proc/vmstat")?)))
    }

    /// How many times since.
    pub fn since(self) -> Option<u64> {
        Some(Self::now().0?.saturating_sub(self.0?))
    }
}

fn counter(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_counter_is_found() {
        let text = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(super::counter(text), Some(2));
        assert_eq!(super::counter("low 0\n"), None);
    }
}
