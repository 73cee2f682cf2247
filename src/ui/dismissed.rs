//! Fixes that the user does not want to see again: a rule about a process, or about a GPU. They stay
//! away for the session. What is hidden is said to be; verdicts are never hidden.

use std::collections::BTreeSet;

use super::app::{App, Context};
use crate::analyze::View;
use crate::ids::{GpuUuid, Pid, ProcId};
use crate::rules::Finding;

/// More are not remembered.
const MOST: usize = 4_096;

/// What a finding is about, so that it is the same one in the next view and not that of another
/// process with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// On whatever GPU.
    Process(ProcId),
    /// A pid that stands for no process that can be seen.
    Row(Option<GpuUuid>, Pid),
    /// A GPU as a whole, or the machine.
    Gpu(Option<GpuUuid>),
}

/// The fixes that stay away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dismissed(BTreeSet<(&'static str, Subject)>);

impl Dismissed {
    /// Lets a finding stay away. False where there is no room to remember it.
    pub fn add(&mut self, view: &View, finding: &Finding) -> bool {
        self.0.len() < MOST && self.0.insert((finding.rule, subject(view, finding)))
    }

    /// Brings everything back; gives how many rules stayed away.
    pub fn clear(&mut self) -> usize {
        std::mem::take(&mut self.0).len()
    }

    fn has(&self, view: &View, finding: &Finding) -> bool {
        !self.0.is_empty() && self.0.contains(&(finding.rule, subject(view, finding)))
    }
}

fn subject(view: &View, finding: &Finding) -> Subject {
    let gpu = view.gpus.iter().find(|gpu| Some(gpu.sample.index) == finding.gpu);
    let gpu = gpu.map(|gpu| gpu.sample.uuid.clone());
    let Some(pid) = finding.pid else { return Subject::Gpu(gpu) };
    let named = view.holders.iter().find(|holder| holder.pid == pid);
    match named.and_then(|holder| holder.id) {
        Some(id) => Subject::Process(id),
        None => Subject::Row(gpu, pid),
    }
}

impl App {
    /// The findings that the user has not sent away, in the rules' order; where only one GPU is shown,
    /// those of no other.
    pub fn findings<'a>(&self, context: Context<'a>) -> Vec<&'a Finding> {
        let elsewhere = self.elsewhere(context.view);
        let shown =
            |finding: &&Finding| !elsewhere(finding) && !self.dismissed.has(context.view, finding);
        context.findings.iter().filter(shown).collect()
    }

    /// How many the user has sent away.
    pub fn hidden_findings(&self, context: Context<'_>) -> usize {
        let sent_away = |finding: &&Finding| self.dismissed.has(context.view, finding);
        context.findings.iter().filter(sent_away).count()
    }

    /// How many are left out because only another GPU is shown.
    pub fn findings_elsewhere(&self, context: Context<'_>) -> usize {
        let elsewhere = self.elsewhere(context.view);
        let left_out =
            |finding: &&Finding| elsewhere(finding) && !self.dismissed.has(context.view, finding);
        context.findings.iter().filter(left_out).count()
    }

    /// Whether a finding is about a GPU that is not shown.
    fn elsewhere(&self, view: &View) -> impl Fn(&Finding) -> bool + use<> {
        let scope = self.scope.as_ref();
        let shown = scope.and_then(|uuid| view.gpus.iter().find(|gpu| gpu.sample.uuid == *uuid));
        let shown = shown.map(|gpu| gpu.sample.index);
        move |finding| shown.is_some_and(|index| finding.gpu.is_some_and(|gpu| gpu != index))
    }
}
