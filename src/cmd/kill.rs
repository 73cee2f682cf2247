//! `vramlens kill`: ends holders, and proves what came back.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::analyze::{KillPlan, KillProof, View};
use crate::cmd::kill_whom as whom;
use crate::cmd::look::{Form, Session, is_there};
use crate::cmd::top::print;
use crate::cmd::{Exit, json_text, no_answer, no_driver};
use crate::runtime::kill::{CONFIRMATION, Killing, POLL, note, refused, title};
use crate::runtime::options::Options;
use crate::sample::KillEvent;
use crate::sample::text::clean;
use crate::ui::kill::words;

/// Between the two looks that the verdicts are made of.
const APART_MS: u64 = 1_000;
/// No look is waited for any longer, once all signals are sent: more than any proof waits for.
const LONGEST: Duration = Duration::from_secs(16);

/// Whom, and how.
#[derive(Debug, Clone)]
pub struct Kill {
    /// Whom; empty for all zombies.
    pub pids: Vec<u32>,
    /// Only show the plan.
    pub dry_run: bool,
    /// Do not ask.
    pub yes: bool,
    /// KILL at once.
    pub now: bool,
    /// Also what others may need.
    pub protected: bool,
}

/// Ends them.
///
/// # Errors
/// Where there is nobody to ask, or the output fails.
pub fn run(kill: &Kill, options: &Options, form: Form) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(end(kill, options, form));
    runtime.shutdown_background();
    exit
}

async fn end(kill: &Kill, options: &Options, form: Form) -> anyhow::Result<Exit> {
    let mut session = Session::open(options, APART_MS)?;
    let (gathered, view) = session.look(2).await;
    is_there(&gathered)?;
    if let (Some(error), None) = (&gathered.failure, view.gpus.first()) {
        return no_driver(error, options, form.json);
    }
    if let Some(silence) = whom::silence(kill, &gathered, &view) {
        return no_answer(&silence, form.json);
    }
    let plan = match whom::planned(kill, &gathered, &view) {
        Ok(plan) => plan,
        Err(text) => anyhow::bail!(text),
    };
    let plan_text = describe(&plan, &view);
    if plan.is_empty() || kill.dry_run {
        report(form, &plan, &[], None, &plan_text)?;
        let nothing = plan.is_empty() && !kill.pids.is_empty();
        return Ok(if nothing { Exit::Findings } else { Exit::Fine });
    }
    if !form.json {
        print(&plan_text)?;
    }
    let word = plan.needs_typed_confirmation.then_some(CONFIRMATION);
    if !confirmed(kill, word)? {
        let _ = writeln!(io::stderr(), "nothing was sent");
        return Ok(Exit::Findings);
    }
    let (events, proof) = carry_out(&plan, view, &mut session, form).await?;
    if form.json {
        report(form, &plan, &events, Some(&proof), "")?;
    } else {
        print(&outcome(&proof))?;
    }
    Ok(match &proof {
        proof if proof.complete() => Exit::Fine,
        proof if proof.is_open() => Exit::Stalled,
        _ => Exit::Findings,
    })
}

fn describe(plan: &KillPlan, view: &View) -> String {
    let mut text = format!("{}\n", title(plan));
    for row in &plan.rows {
        let bytes = row.holds();
        let user = row.user.value().map_or("?", String::as_str);
        let why = row.why();
        let reason = clean(&why);
        text += &format!(
            "  {:>7}  {:<8} {:<16} {bytes:>9}  {reason}\n",
            row.id.pid,
            clean(user),
            clean(&row.name)
        );
    }
    for refusal in &plan.refused {
        text += &format!("  not {}\n", clean(&refused(refusal)));
    }
    if !plan.is_empty() {
        text += &format!("{}\n", note(plan.order.preset));
    } else if plan.refused.is_empty() {
        text += match view.holders.len() {
            0 => "Nobody holds GPU memory.\n".to_owned(),
            1 => "The one holder is no zombie.\n".to_owned(),
            seen => format!("None of {seen} holders is a zombie.\n"),
        }
        .as_str();
    }
    text
}

/// The user's word: `--yes`, or an answer on the terminal; `typed` is what others' processes need.
pub(super) fn confirmed(kill: &Kill, typed: Option<&str>) -> anyhow::Result<bool> {
    if typed.is_some() && kill.yes && !kill.protected {
        anyhow::bail!(
            "others may need one of these, so --yes is not enough: add --protected, or answer on a terminal"
        );
    }
    if kill.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        anyhow::bail!("there is no terminal to ask on and nothing was sent: add --yes");
    }
    let word = typed.unwrap_or("y");
    let mut out = io::stderr();
    write!(out, "Type {} to go on: ", clean(word))?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == word)
}

async fn carry_out(
    plan: &KillPlan,
    before: View,
    session: &mut Session,
    form: Form,
) -> anyhow::Result<(Vec<KillEvent>, KillProof)> {
    let mut killing = Killing::begin(plan.clone(), before)?;
    let mut events = Vec::new();
    while !killing.has_finished() {
        tokio::select! {
            event = killing.next() => if let Some(event) = event {
                if !form.json {
                    print(&format!("  {}\n", clean(&words(&event))))?;
                }
                events.push(event);
            },
            _ = tokio::signal::ctrl_c() => killing.cancel(),
        }
    }
    session.set_interval(POLL);
    let (end, mut last) = (Instant::now() + LONGEST, None);
    // A driver that hangs holds a look up for long.
    while let Ok((gathered, after)) = timeout_at(end, session.look(1)).await {
        if let Some(proof) = killing.proof(&after) {
            return Ok((events, proof));
        }
        if gathered.ended {
            return Ok((events, killing.unseen()));
        }
        last = Some(after);
    }
    let proof = last.and_then(|after| killing.proof(&after));
    Ok((events, proof.unwrap_or_else(|| killing.unseen())))
}

fn outcome(proof: &KillProof) -> String {
    let mut text = format!("{}\n", proof.sentence);
    for left in &proof.remaining {
        let bytes = left.bytes.map(|bytes| format!(" ({bytes})")).unwrap_or_default();
        text += &format!("  {}{bytes}: {}\n", left.pid, clean(&left.reason));
        if let Some(command) = &left.command {
            text += &format!("    → {}\n", clean(command));
        }
    }
    if let Some(command) = proof.next() {
        text += &format!("    → {command}\n");
    }
    text
}

fn report(
    form: Form,
    plan: &KillPlan,
    events: &[KillEvent],
    proof: Option<&KillProof>,
    text: &str,
) -> io::Result<()> {
    if !form.json {
        return print(text);
    }
    let targets: Vec<_> = plan
        .rows
        .iter()
        .map(|row| {
            json!({
                "pid": row.id.pid, "start": row.id.start_ticks, "user": row.user,
                "name": clean(&row.name), "bytes": row.told(), "reason": clean(&row.reason),
                "zombie": row.zombie, "shares_with": row.shares_with,
            })
        })
        .collect();
    let left_alone: Vec<_> = plan
        .refused
        .iter()
        .map(|one| json!({ "pid": one.pid, "reason": clean(&one.reason), "command": one.command }))
        .collect();
    let answer = json!({
        "schema": 1,
        "targets": targets,
        "refused": left_alone,
        "expected_bytes": plan.expected_told(),
        "events": events,
        "proof": proof.map(|proof| json!({
            "freed_bytes": proof.freed_total(),
            "expected_bytes": plan.expected_told(),
            "complete": proof.complete(),
            "unknown": proof.is_open(),
            "next": proof.next(),
            "sentence": proof.sentence,
            "remaining": proof.remaining.iter().map(|left| json!({
                "pid": left.pid, "bytes": left.bytes, "reason": clean(&left.reason),
                "command": left.command,
            })).collect::<Vec<_>>(),
        })),
    });
    print(&json_text(&answer)?)
}
