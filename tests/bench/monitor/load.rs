//! The processes that a monitor has to show, and those that it has to pass over.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// How much there is to look at.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    gpus: usize,
    holders: usize,
    others: usize,
}

impl Size {
    /// `8x64` or `8x64+5000`.
    pub fn of(text: &str) -> Self {
        let (machine, others) = text.split_once('+').unwrap_or((text, "0"));
        let (gpus, holders) = machine.split_once('x').expect("GPUSxPROCESSES");
        let number = |text: &str| text.parse().expect("a number");
        Self { gpus: number(gpus), holders: number(holders), others: number(others) }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GPUs, {} processes", self.gpus, self.holders)?;
        if self.others > 0 { write!(f, ", {} others", self.others) } else { Ok(()) }
    }
}

/// Real processes; they sleep.
pub struct Load {
    size: Size,
    holders: Vec<Child>,
    others: Vec<Child>,
}

impl Load {
    /// Starts them.
    pub fn start(size: Size) -> Self {
        let sleeper = |_| {
            let mut command = Command::new("sleep");
            command.arg("1200").process_group(0);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("a process")
        };
        Self {
            size,
            holders: (0..size.holders).map(sleeper).collect(),
            others: (0..size.others).map(sleeper).collect(),
        }
    }

    /// The driver's answers: each GPU lists its share of them, some at work.
    pub fn scenario(&self, count_calls: bool) -> String {
        use fmt::Write as _;
        let mut text = format!("count_calls = {count_calls}\nreread_ms = 1000\n");
        for gpu in 0..self.size.gpus {
            text.push_str("[[gpu]]\nwobble = true\nutilization = [60, 40]\n");
            let here = self.holders.iter().enumerate().skip(gpu).step_by(self.size.gpus);
            for (n, holder) in here {
                let sm = if n.is_multiple_of(3) { n * 7 % 100 } else { 0 };
                let bytes = (256 + n as u64) << 20;
                let pid = holder.id();
                let _ = writeln!(text, "[[gpu.process]]\npid = {pid}\nbytes = {bytes}\nsm = {sm}");
            }
        }
        text
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let mut all: Vec<Child> = self.holders.drain(..).chain(self.others.drain(..)).collect();
        for child in &mut all {
            let _ = child.kill();
        }
        for child in &mut all {
            let _ = child.wait();
        }
    }
}
