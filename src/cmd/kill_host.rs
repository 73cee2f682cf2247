//! `vramlens kill --host`: asks the far end for a plan, gives the user's word, and says what the far
//! end says came back.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::analyze::timeline::Timeline;
use crate::analyze::{View, select};
use crate::cmd::kill::{Kill, confirmed};
use crate::cmd::look::Form;
use crate::cmd::top::print;
use crate::cmd::{Exit, json_text};
use crate::history::History;
use crate::ids::{GpuIndex, Pid, ProcId};
use crate::record::Ask;
use crate::runtime::options::Options;
use crate::runtime::remote::Setup;
use crate::runtime::remote::fleet::{Fleet, News};
use crate::sample::text::clean;
use crate::sample::{KillEvent, KillPreset};
use crate::ui::Position;
use crate::ui::hosts::HostState;
use crate::ui::kill::{Dialog, Proof, words};

/// How long the first looks, and a plan, may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a kill may take: the gentlest preset and its proof.
const LONGEST: Duration = Duration::from_mins(5);
/// Between the two looks that the verdicts are made of. Milliseconds.
const APART_MS: u64 = 1_000;

/// Ends holders on one machine.
///
/// # Errors
/// Where there is nobody to ask, the machine cannot be reached, or the output fails.
pub fn run(kill: &Kill, setup: &Setup, options: &Options, form: Form) -> anyhow::Result<Exit> {
    if setup.hosts.len() != 1 {
        anyhow::bail!("processes are ended on one machine at a time: give one --host");
    }
    let setup = Arc::new(Setup { interval_ms: APART_MS, ..setup.clone() });
    let options = Options { interval_ms: APART_MS, ..options.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        let fleet = Fleet::open(&setup, &options)?;
        Session { fleet, history: History::new(), options, form }.end(kill).await
    });
    runtime.shutdown_background();
    exit
}

struct Session {
    fleet: Fleet,
    history: History,
    options: Options,
    form: Form,
}

impl Session {
    async fn end(mut self, kill: &Kill) -> anyhow::Result<Exit> {
        if let Err(why) = self.seen().await {
            if !self.form.json {
                let _ = writeln!(io::stderr(), "{}", clean(&why));
            }
            return self.report(&json!({ "error": clean(&why) })).map(|()| Exit::Stalled);
        }
        let ask = self.ask(kill)?;
        self.fleet.plan(ask).map_err(|why| anyhow::anyhow!(clean(&why).into_owned()))?;
        let dialog = match self.news(Instant::now() + PATIENCE).await? {
            News::Plan(dialog) => dialog,
            News::Refused(why) => anyhow::bail!(clean(&why).into_owned()),
            News::Kill(_) | News::Proof(_) => anyhow::bail!("it answered what was not asked"),
        };
        self.say(&describe(&dialog))?;
        let nothing = dialog.order.targets.is_empty();
        if nothing || kill.dry_run {
            self.report(&answer(&dialog, &[], None))?;
            let missed = nothing && !kill.pids.is_empty();
            return Ok(if missed { Exit::Findings } else { Exit::Fine });
        }
        let word = dialog.typed.as_ref().map(|typed| typed.word.clone());
        if !confirmed(kill, word.as_deref())? {
            let _ = writeln!(io::stderr(), "nothing was sent");
            return Ok(Exit::Findings);
        }
        let sent = self.fleet.kill(&dialog.order, word);
        sent.map_err(|why| anyhow::anyhow!(clean(&why).into_owned()))?;
        let (events, proof) = self.carry_out().await?;
        let mut text = format!("{}\n", clean(&proof.sentence));
        text.extend(proof.remaining.iter().map(|line| format!("  {}\n", clean(line))));
        self.say(&text)?;
        self.report(&answer(&dialog, &events, Some(&proof)))?;
        Ok(match proof {
            Proof { complete: true, .. } => Exit::Fine,
            Proof { unknown: true, .. } => Exit::Stalled,
            _ => Exit::Findings,
        })
    }

    /// Waits until the machine has been looked at twice.
    async fn seen(&mut self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let machine = self.fleet.current().ok_or_else(String::new)?;
            let (gpus, processes) = machine.looks();
            match machine.line(&self.options).state {
                HostState::Away { why, .. } => return Err(format!("away: {why}")),
                HostState::NoGpu { why } => return Err(format!("no GPU: {why}")),
                _ if gpus > 1 && processes > 1 => return Ok(()),
                _ => {}
            }
            if timeout_at(end, self.fleet.next()).await.is_err() {
                return Err("no answer in time".to_owned());
            }
            self.fleet.take(&mut self.history, &mut Timeline::new(), &self.options);
        }
    }

    fn ask(&self, kill: &Kill) -> anyhow::Result<Ask> {
        let machine = self.fleet.current().context("no machine")?;
        let mut view = View::build(&self.history, &machine.moment(Position::Live, &self.options));
        if let Some(nowhere) = select::nowhere(&view, &self.options.gpus) {
            anyhow::bail!("{}: {}", machine.host.name(), clean(&nowhere));
        }
        select::keep(&mut view, &self.options.gpus);
        if kill.pids.is_empty() {
            let mut gpus: Vec<GpuIndex> = view.gpus.iter().map(|gpu| gpu.sample.index).collect();
            gpus.dedup();
            return match gpus.as_slice() {
                _ if self.options.gpus.is_empty() => Ok(Ask::Zombies { gpu: None }),
                [one] => Ok(Ask::Zombies { gpu: Some(*one) }),
                _ => anyhow::bail!(
                    "on another machine zombies are ended on one GPU at a time, or on all"
                ),
            };
        }
        let mut targets: Vec<ProcId> = Vec::new();
        for pid in &kill.pids {
            let held = view.holders.iter().filter(|holder| holder.pid == Pid(*pid));
            // A dead pid stands for those who keep its memory.
            let ids = held.flat_map(|one| one.id.into_iter().chain(one.survivors.iter().copied()));
            let before = targets.len();
            targets.extend(ids);
            if targets.len() == before {
                let name = machine.host.name();
                let there = if self.options.gpus.is_empty() { "" } else { " on these GPUs" };
                anyhow::bail!("{pid} holds no GPU memory on {name}{there}: nothing was sent");
            }
        }
        targets.sort_unstable();
        targets.dedup();
        Ok(Ask::Plan { targets, preset: kill.now.then_some(KillPreset::Now) })
    }

    /// The next thing that the far end says of what it was asked.
    async fn news(&mut self, end: Instant) -> anyhow::Result<News> {
        loop {
            let (news, _) = self.fleet.take(&mut self.history, &mut Timeline::new(), &self.options);
            if let Some(first) = news.into_iter().next() {
                return Ok(first);
            }
            timeout_at(end, self.fleet.next()).await.context("no answer in time")?;
        }
    }

    async fn carry_out(&mut self) -> anyhow::Result<(Vec<KillEvent>, Proof)> {
        let (mut events, end) = (Vec::new(), Instant::now() + LONGEST);
        loop {
            let (news, _) = self.fleet.take(&mut self.history, &mut Timeline::new(), &self.options);
            for one in news {
                match one {
                    News::Kill(event) => {
                        self.say(&format!("  {}\n", clean(&words(&event))))?;
                        events.push(event);
                    }
                    News::Proof(proof) => return Ok((events, proof)),
                    News::Refused(why) => anyhow::bail!(clean(&why).into_owned()),
                    News::Plan(_) => {}
                }
            }
            tokio::select! {
                came = timeout_at(end, self.fleet.next()) => came.context("no answer in time")?,
                _ = tokio::signal::ctrl_c() => self.fleet.cancel(),
            }
        }
    }

    fn say(&self, text: &str) -> io::Result<()> {
        if self.form.json { Ok(()) } else { print(text) }
    }

    fn report(&self, answer: &Value) -> anyhow::Result<()> {
        if self.form.json {
            print(&json_text(answer)?)?;
        }
        Ok(())
    }
}

fn describe(dialog: &Dialog) -> String {
    let mut text = format!("{}\n", clean(&dialog.title));
    for row in &dialog.rows {
        text += &format!(
            "  {:>7}  {:<8} {:<16} {:>9}  {}\n",
            row.pid,
            clean(&row.user),
            clean(&row.command),
            clean(&row.bytes),
            clean(&row.note)
        );
    }
    for refused in &dialog.refused {
        text += &format!("  not {}\n", clean(refused));
    }
    if !dialog.order.targets.is_empty() {
        text += &format!("{}\n", clean(&dialog.note));
    }
    text
}

fn answer(dialog: &Dialog, events: &[KillEvent], proof: Option<&Proof>) -> Value {
    let rows = dialog.rows.iter().map(|row| {
        json!({
            "pid": row.pid, "start": row.id.map(|id| id.start_ticks), "user": clean(&row.user),
            "name": clean(&row.command), "held": clean(&row.bytes), "reason": clean(&row.note),
        })
    });
    json!({
        "schema": 1,
        "title": clean(&dialog.title),
        "targets": rows.collect::<Vec<_>>(),
        "refused": dialog.refused.iter().map(|line| clean(line)).collect::<Vec<_>>(),
        "events": events,
        "proof": proof.map(|proof| json!({
            "complete": proof.complete,
            "unknown": proof.unknown,
            "sentence": clean(&proof.sentence),
            "remaining": proof.remaining.iter().map(|line| clean(line)).collect::<Vec<_>>(),
        })),
    })
}
