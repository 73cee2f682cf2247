//! What is done when there is something to tell: a bell, a notification by the terminal, a command,
//! a line in a log. Commands and files are a thread's own business; nothing waits for it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::analyze::View;
use crate::analyze::alerts::{Alert, AlertRules, Alerts};
use crate::runtime::clock;
use crate::sample::text::clean;

/// Alerts that wait at the most. More are counted, and told of in the log.
const QUEUE: usize = 16;
/// How long a command may run.
const PATIENCE: Duration = Duration::from_secs(10);
/// The desktop's own way; the text follows as the summary, in which nothing is markup.
const NOTIFY_SEND: [&str; 3] = ["notify-send", "--app-name=vramlens", "--"];
/// Longest text, in characters.
const TEXT: usize = 400;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actions {
    /// A program and its arguments, which get the text as one more. No shell is asked.
    pub command: Vec<String>,
    /// Ring the terminal's bell.
    pub bell: bool,
    /// Have the terminal notify the desktop (OSC 9).
    pub osc9: bool,
    /// The same in the form of urxvt, foot and others (OSC 777).
    pub osc777: bool,
    /// Run notify-send.
    pub desktop: bool,
    /// Append a line to this file.
    pub log: Option<PathBuf>,
}

/// Everything about alerts in one session.
pub struct Notifier {
    alerts: Alerts,
    /// Of several machines each one's, by name.
    of_hosts: HashMap<String, Alerts>,
    rules: AlertRules,
    listens: bool,
    actions: Actions,
    queue: Option<SyncSender<(Alert, u64)>>,
    dropped: Arc<AtomicU64>,
}

impl Notifier {
    /// Begins; without anything to tell of it costs nothing.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn spawn(rules: AlertRules, actions: Actions) -> io::Result<Self> {
        let dropped = Arc::new(AtomicU64::new(0));
        let works = !actions.command.is_empty() || actions.log.is_some() || actions.desktop;
        let queue = if rules.any() && works {
            let (queue, queue_in) = sync_channel(QUEUE);
            let (own, count) = (actions.clone(), Arc::clone(&dropped));
            let thread = std::thread::Builder::new().name("alerts".to_owned());
            thread.stack_size(256 * 1024).spawn(move || work(&own, &queue_in, &count))?;
            Some(queue)
        } else {
            None
        };
        let (alerts, of_hosts) = (Alerts::new(rules), HashMap::new());
        Ok(Self { alerts, of_hosts, rules, listens: rules.any(), actions, queue, dropped })
    }

    /// Looks at a view, and has done what is to be done. Gives the bytes for the terminal, empty
    /// where there are none: whoever owns the terminal writes them.
    pub fn look(&mut self, view: &View) -> Vec<u8> {
        let alerts = self.alerts.look(view);
        self.tell(alerts)
    }

    /// The same of one machine among several; its name stands before each text.
    pub fn look_at(&mut self, host: &str, view: &View) -> Vec<u8> {
        let rules = self.rules;
        let own = self.of_hosts.entry(host.to_owned()).or_insert_with(|| Alerts::new(rules));
        let mut alerts = own.look(view);
        for alert in &mut alerts {
            alert.text = format!("{host}: {}", alert.text);
        }
        self.tell(alerts)
    }

    fn tell(&self, alerts: Vec<Alert>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for alert in alerts {
            bytes.extend(self.terminal(&alert));
            if let Some(queue) = &self.queue
                && queue.try_send((alert, clock::now().wall_ms)).is_err()
            {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                log::warn!("an alert found no room for its command");
            }
        }
        bytes
    }

    /// Whether there is anything to be told of.
    pub const fn listens(&self) -> bool {
        self.listens
    }

    /// Alerts for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn terminal(&self, alert: &Alert) -> Vec<u8> {
        let mut bytes = Vec::new();
        log::warn!("{}: {}", alert.kind.key(), alert.text);
        let text = visible(&alert.text);
        let tmux = std::env::var_os("TMUX").is_some_and(|value| !value.is_empty());
        if self.actions.osc9 {
            bytes.extend(request(&format!("9;vramlens: {text}"), tmux).bytes());
        }
        if self.actions.osc777 {
            // The parts stand between semicolons.
            let text = text.replace(';', ",");
            bytes.extend(request(&format!("777;notify;vramlens;{text}"), tmux).bytes());
        }
        if self.actions.bell {
            bytes.push(7);
        }
        bytes
    }
}

/// A request to the terminal (OSC). Within tmux it is handed through to the one outside, where tmux
/// allows that (`allow-passthrough`).
fn request(text: &str, tmux: bool) -> String {
    let request = format!("\x1b]{text}\x1b\\");
    if tmux { format!("\x1bPtmux;{}\x1b\\", request.replace('\x1b', "\x1b\x1b")) } else { request }
}

/// Without anything that a terminal would obey, or that would end a line or an argument.
fn visible(text: &str) -> String {
    clean(text).chars().take(TEXT).collect()
}

fn work(actions: &Actions, queue: &Receiver<(Alert, u64)>, dropped: &AtomicU64) {
    let mut told = 0;
    for (alert, wall_ms) in queue {
        let lost = dropped.load(Ordering::Relaxed);
        if let Some(path) = &actions.log {
            // A log that cannot be written must not end the session; the next line tries again.
            if let Err(error) = log(path, &alert, wall_ms, lost - told) {
                log::warn!("{}: {error}", path.display());
            }
        }
        told = lost;
        if actions.desktop {
            run(&NOTIFY_SEND.map(ToOwned::to_owned), &alert);
        }
        run(&actions.command, &alert);
    }
}

fn log(path: &PathBuf, alert: &Alert, wall_ms: u64, lost: u64) -> io::Result<()> {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(wall_ms).unwrap_or(0));
    let at = at.map_or_else(|_| "-".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let mut line = format!("{at} {} {}", alert.kind.key(), visible(&alert.text));
    if lost > 0 {
        line += &format!(" ({lost} alerts before it found no room)");
    }
    line.push('\n');
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(line.as_bytes())
}

/// Runs the command to its end, or until it has had its time.
fn run(command: &[String], alert: &Alert) {
    let Some((program, arguments)) = command.split_first() else { return };
    let text = format!("vramlens: {}", visible(&alert.text));
    let mut what = Command::new(program);
    what.args(arguments).arg(&text);
    what.env("VRAMLENS_ALERT", alert.kind.key()).env("VRAMLENS_ALERT_TEXT", &text);
    what.env("VRAMLENS_ALERT_GPU", alert.gpu.to_string());
    what.env("VRAMLENS_ALERT_GPU_UUID", visible(&alert.uuid.0));
    what.env("VRAMLENS_ALERT_PID", alert.pid.map_or_else(String::new, |pid| pid.to_string()));
    // The terminal is the view's.
    what.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = match what.spawn() {
        Ok(child) => child,
        Err(error) => return log::warn!("cannot run {program}: {error}"),
    };
    let end = Instant::now() + PATIENCE;
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= end {
            // This program's own child, not reaped: the number is its own.
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_is_asked_to_hand_it_through() {
        assert_eq!(request("9;full", false), "\x1b]9;full\x1b\\");
        let wrapped = "\x1bPtmux;\x1b\x1b]9;full\x1b\x1b\\\x1b\\";
        assert_eq!(request("9;full", true), wrapped);
    }
}
