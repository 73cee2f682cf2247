//! `vramlens doctor`: what can and cannot be seen here, and how to mend it.

use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::Context;

use crate::analyze::View;
use crate::cmd::look::{Form, Session, is_there};
use crate::cmd::top::print;
use crate::cmd::{Exit, json_text};
use crate::history::History;
use crate::host::{Root, doctor as host};
use crate::report::doctor::{Answer, Fault, Patient, Report, State, examine, text, worst};
use crate::runtime::clock;
use crate::runtime::gather::Gathered;
use crate::runtime::options::{Options, absent_below, blank, root};
use crate::sample::MachineFacts;
use crate::source::SourceError;

/// Reading `/proc` and `/sys` takes milliseconds, and can hang.
const DEADLINE: Duration = Duration::from_secs(10);
/// One look is made; a second would come so much later.
const APART_MS: u64 = 1_000;

/// Looks at the machine, then at the driver, unless a GPU sleeps and may not be woken.
///
/// # Errors
/// Where `/proc` or `/sys` hang, there are no threads, or the output fails.
pub fn run(options: &Options, form: Form, wake: bool) -> anyhow::Result<Exit> {
    let root = root();
    let machine = machine(&root)?;
    let options = &Options { wake, ..options.clone() };
    // Where some are awake these are asked, and no other.
    let (answer, view) = if machine.all_sleep() && !wake {
        (Answer::NotAsked, View::build(&History::new(), &blank(clock::now(), APART_MS)))
    } else {
        ask(options, &root)?
    };
    let lines = examine(&Patient { machine: &machine, driver: &answer, view: &view });
    let out =
        if form.json { json_text(&Report::new(&lines))? } else { text(&lines, &form.style()) };
    print(&out)?;
    Ok(exit(&answer, worst(&lines)))
}

fn exit(answer: &Answer, worst: State) -> Exit {
    match answer {
        Answer::Hung { .. } => Exit::Stalled,
        Answer::Failed { .. } => Exit::NoDriver,
        Answer::Answered | Answer::NotAsked if worst == State::Broken => Exit::Findings,
        Answer::Answered | Answer::NotAsked => Exit::Fine,
    }
}

fn machine(root: &Path) -> anyhow::Result<MachineFacts> {
    let (to, facts) = sync_channel(1);
    let root = Root::new(root);
    std::thread::Builder::new()
        .name("machine".to_owned())
        .spawn(move || drop(to.send(host::read(&root))))?;
    facts.recv_timeout(DEADLINE).context(
        "/proc or /sys did not answer within 10 s; look for processes in state D with `ps -eo pid,stat,wchan:32,comm`",
    )
}

fn ask(options: &Options, root: &Path) -> anyhow::Result<(Answer, View)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let looked = runtime.block_on(async {
        let mut session = Session::open(options, APART_MS)?;
        anyhow::Ok(session.look(1).await)
    });
    // A driver that hangs is not waited for.
    runtime.shutdown_background();
    let (gathered, view) = looked?;
    is_there(&gathered)?;
    Ok((answer(&gathered, options, root), view))
}

fn answer(gathered: &Gathered, options: &Options, root: &Path) -> Answer {
    if let Some(stall) = &gathered.stalled {
        return Answer::Hung {
            call: stall.call.as_ref().map(|call| call.call.to_owned()),
            gpu: stall.call.as_ref().and_then(|call| call.gpu),
            for_ms: stall.waited_ms,
        };
    }
    match &gathered.failure {
        None => Answer::Answered,
        Some(error) => Answer::Failed {
            error: error.to_string(),
            fault: fault(error),
            absence: absent_below(root, error, options.library_name()),
        },
    }
}

const fn fault(error: &SourceError) -> Fault {
    match error {
        SourceError::NoLibrary(_) => Fault::NoLibrary,
        SourceError::VersionMismatch => Fault::Mismatch,
        _ => Fault::Other,
    }
}
