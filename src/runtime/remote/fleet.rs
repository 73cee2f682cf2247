//! All machines of a session, as the loop has them: one is selected and fills the screen, of the
//! others there is a line.

use std::io;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::analyze::timeline::Timeline;
use crate::history::History;
use crate::record::{Answer, Answered, Ask, Offer, Outcome, Request};
use crate::runtime::options::Options;
use crate::runtime::remote::Setup;
use crate::runtime::remote::machine::Machine;
use crate::sample::{KillEvent, KillOrder};
use crate::ui::hosts::HostLine;
use crate::ui::kill::{Dialog, DialogRow, Phase, Proof, Typed};

/// Machines whose line is made anew in one turn of the loop.
const BUILDS_A_TURN: usize = 4;
/// Rows of a plan that are shown.
const ROWS: usize = 512;

/// What the loop is told of.
#[derive(Debug)]
pub enum News {
    /// The plan that was asked for.
    Plan(Dialog),
    /// Something happened while it is carried out.
    Kill(KillEvent),
    /// What came back.
    Proof(Proof),
    /// What was asked for is not done, and why. Hostile text.
    Refused(String),
}

/// The machines.
pub struct Fleet {
    /// All, in the order in which they were named.
    pub machines: Vec<Machine>,
    /// Which one is selected.
    pub selected: usize,
    bell: Arc<Notify>,
    last_id: u64,
    asked: Option<Asked>,
    turn: usize,
    pcie: bool,
    /// They look no more often than this, in milliseconds: more where nobody sees the screen.
    least_ms: u64,
    /// Whose view is new since it was last asked.
    fresh: Vec<usize>,
}

/// What was asked of a machine, and is not answered to its end.
struct Asked {
    machine: usize,
    /// The id of the plan's request.
    plan: u64,
    order: Option<KillOrder>,
    /// The id of the request to carry it out.
    kill: Option<u64>,
}

impl Fleet {
    /// Begins to connect to all.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn open(setup: &Arc<Setup>, options: &Options) -> io::Result<Self> {
        let bell = Arc::new(Notify::new());
        let hosts = setup.hosts.iter().cloned();
        let machines: io::Result<Vec<_>> =
            hosts.map(|host| Machine::open(host, setup, options, &bell)).collect();
        Ok(Self {
            machines: machines?,
            selected: 0,
            bell,
            last_id: 0,
            asked: None,
            turn: 0,
            pcie: false,
            least_ms: 0,
            fresh: Vec::new(),
        })
    }

    /// Waits until something has come from any of them.
    pub async fn next(&self) {
        self.bell.notified().await;
    }

    /// The selected one.
    pub fn current(&self) -> Option<&Machine> {
        self.machines.get(self.selected)
    }

    /// Takes what has come; `history` and `timeline` are those of the selected machine, and yes
    /// means that something came from that one.
    pub fn take(
        &mut self,
        history: &mut History,
        timeline: &mut Timeline,
        options: &Options,
    ) -> (Vec<News>, bool) {
        let (mut answers, mut begun, mut own_news) = (Vec::new(), Vec::new(), false);
        for (n, machine) in self.machines.iter_mut().enumerate() {
            let was_open = machine.is_open();
            let mut parked = std::mem::take(&mut machine.seen.history);
            let mut line = std::mem::take(&mut machine.seen.timeline);
            let own = if n == self.selected {
                (&mut *history, &mut *timeline)
            } else {
                (&mut parked, &mut line)
            };
            for came in machine.link.inbox.take() {
                own_news |= n == self.selected;
                answers.extend(machine.take(came, own.0).map(|answer| (n, answer)));
                if own.0.oldest().is_none() {
                    // It was started anew: times of two boots have no order.
                    *own.1 = Timeline::new();
                }
                own.1.follow(own.0);
            }
            (machine.seen.history, machine.seen.timeline) = (parked, line);
            if machine.is_open() && !was_open {
                begun.push(n);
            }
        }
        for n in begun {
            self.look(n, options);
        }
        let mut news: Vec<_> =
            answers.into_iter().filter_map(|(n, answer)| self.answered(n, answer)).collect();
        news.extend(self.lost());
        (news, own_news)
    }

    fn answered(&mut self, machine: usize, answer: Answer) -> Option<News> {
        let name = self.machines.get(machine)?.host.name().to_owned();
        let asked = self.asked.as_mut().filter(|asked| asked.machine == machine)?;
        let of_plan = answer.id == asked.plan && asked.kill.is_none();
        let of_kill = Some(answer.id) == asked.kill;
        match answer.what {
            Answered::Plan(offer) if of_plan && asked.order.is_none() => {
                asked.order = Some(offer.order.clone());
                Some(News::Plan(dialog(&name, *offer)))
            }
            Answered::Kill(event) if of_kill => Some(News::Kill(event)),
            Answered::Proof(outcome) if of_kill => {
                self.asked = None;
                Some(News::Proof(proof(outcome)))
            }
            Answered::Refused(why) if of_plan || of_kill => {
                self.asked = None;
                Some(News::Refused(format!("{name}: {why}")))
            }
            // Not asked for.
            _ => None,
        }
    }

    /// A machine that goes away takes what was asked of it along.
    fn lost(&mut self) -> Option<News> {
        let asked = self.asked.as_ref()?;
        let machine = self.machines.get(asked.machine)?;
        if machine.is_open() {
            return None;
        }
        let (name, running) = (machine.host.name().to_owned(), asked.kill.is_some());
        self.asked = None;
        Some(if running {
            News::Proof(Proof {
                sentence: format!("the connection to {name} is lost: what came back is not known"),
                complete: false,
                unknown: true,
                remaining: Vec::new(),
            })
        } else {
            News::Refused(format!("the connection to {name} is lost: nothing was sent"))
        })
    }

    fn request(&mut self, machine: usize, ask: Ask) -> Result<u64, String> {
        self.last_id += 1;
        let id = self.last_id;
        let Some(machine) = self.machines.get(machine) else { return Err(String::new()) };
        let name = machine.host.name();
        if machine.is_older() {
            return Err(format!(
                "{name} has an older version of vramlens: nothing can be ended through it. \
                 Update it, or run: ssh {name} vramlens kill"
            ));
        }
        let sent = machine.link.send(&Request { id, ask });
        sent.map(|()| id).map_err(|error| format!("{name}: {error}"))
    }

    /// Asks the selected machine for a plan.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub fn plan(&mut self, ask: Ask) -> Result<(), String> {
        if self.asked.as_ref().is_some_and(|asked| asked.kill.is_some()) {
            return Err("a plan is being carried out".to_owned());
        }
        let machine = self.selected;
        let plan = self.request(machine, ask)?;
        self.asked = Some(Asked { machine, plan, order: None, kill: None });
        Ok(())
    }

    /// Has the plan that was shown carried out, and nothing else.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn kill(&mut self, order: &KillOrder, typed: Option<String>) -> Result<(), String> {
        let shown = self.asked.as_ref().filter(|asked| asked.order.as_ref() == Some(order));
        let Some((machine, plan)) = shown.map(|asked| (asked.machine, asked.plan)) else {
            return Err("this plan is not the newest: nothing was sent".to_owned());
        };
        let id = self.request(machine, Ask::Kill { plan, typed })?;
        if let Some(asked) = &mut self.asked {
            asked.kill = Some(id);
        }
        Ok(())
    }

    /// Has no further signal sent.
    pub fn cancel(&mut self) {
        if let Some(machine) = self.asked.as_ref().map(|asked| asked.machine) {
            let _ = self.request(machine, Ask::Cancel {});
        }
    }

    /// What slow figures of the selected machine are shown now.
    pub fn want(&mut self, pcie: bool, options: &Options) {
        self.pcie = pcie;
        self.look(self.selected, options);
    }

    /// Tells every machine how often to look: as the settings have it, and no more often than every
    /// `least_ms` milliseconds.
    pub fn look_all(&mut self, options: &Options, least_ms: u64) {
        self.least_ms = least_ms;
        for n in 0..self.machines.len() {
            self.look(n, options);
        }
    }

    fn look(&mut self, machine: usize, options: &Options) {
        let pcie = self.pcie && machine == self.selected;
        // An older version looks as often as it was started to.
        let interval_ms = options.interval_ms.max(self.least_ms);
        let _ = self.request(machine, Ask::Look { interval_ms, pcie });
    }

    /// Tries the selected machine again now, where its figures do not arrive.
    pub fn retry(&self, options: &Options) {
        let machine = self.current();
        if let Some(machine) = machine.filter(|one| !one.line(options).state.is_current()) {
            machine.link.retry();
        }
    }

    /// The machines that are not selected and whose view is new since this was last asked.
    pub fn fresh(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.fresh)
    }

    /// Makes the overview.
    pub fn lines(&mut self, options: &Options) -> Vec<HostLine> {
        let count = self.machines.len();
        let mut built = 0;
        for step in 0..count {
            let n = (self.turn + step) % count;
            let Some(machine) = self.machines.get_mut(n).filter(|_| n != self.selected) else {
                continue;
            };
            if machine.refresh(options) {
                built += 1;
                if self.fresh.len() < count {
                    self.fresh.push(n);
                }
                if built == BUILDS_A_TURN {
                    self.turn = n + 1;
                    break;
                }
            }
        }
        self.machines.iter().map(|machine| machine.line(options)).collect()
    }
}

/// What a far end offers to end, as the dialog asks about it.
pub fn dialog(host: &str, mut offer: Offer) -> Dialog {
    offer.rows.truncate(ROWS);
    offer.refused.truncate(ROWS);
    let rows = offer.rows.into_iter().map(|row| DialogRow {
        id: Some(row.id),
        pid: row.id.pid.0,
        user: row.user,
        command: row.command,
        bytes: row.bytes,
        note: row.reason,
    });
    Dialog {
        title: format!("{host}: {}", offer.title),
        rows: rows.collect(),
        refused: offer.refused,
        note: offer.note,
        order: offer.order,
        typed: offer.typed.map(|word| Typed { word, entered: String::new() }),
        phase: Phase::Asking,
    }
}

/// What came back, as the dialog shows it.
pub fn proof(outcome: Outcome) -> Proof {
    let Outcome { sentence, complete, unknown, mut remaining, .. } = outcome;
    remaining.truncate(ROWS);
    Proof { sentence, complete, unknown, remaining }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn machines_look_less_often_while_nobody_sees_the_screen() {
        // Instead of a connection: what keeps the requests.
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("requests");
        let keep = format!("cat > '{}'", kept.display());
        let setup = Setup {
            hosts: vec!["box1".parse().unwrap()],
            ssh: ["/bin/sh", "-c", &keep].map(ToOwned::to_owned).into(),
            command: vec!["vramlens".to_owned()],
            config: None,
            interval_ms: 1_000,
        };
        let options = Options { interval_ms: 1_000, ..Options::default() };
        let mut fleet = Fleet::open(&Arc::new(setup), &options).unwrap();
        let mut asked = |least_ms, interval_ms: u64| {
            let end = Instant::now() + Duration::from_mins(1);
            let wanted = format!("\"interval_ms\":{interval_ms},");
            loop {
                // Until there is a connection it is said to nobody.
                fleet.look_all(&options, least_ms);
                let said = std::fs::read_to_string(&kept).unwrap_or_default();
                if said.lines().last().is_some_and(|line| line.contains(&wanted)) {
                    return;
                }
                assert!(Instant::now() < end, "no {wanted} in {said}");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        asked(4_000, 4_000);
        asked(0, 1_000);
    }
}
