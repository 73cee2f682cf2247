//! What one view leaves to the next: conclusions whose grounds have not changed.

use std::collections::HashMap;
use std::sync::Arc;

use super::scene::Scene;
use super::workload::{ANCESTORS, Workload, recognise, same_grounds};
use crate::ids::ProcId;
use crate::sample::ProcSample;

/// Conclusions, each with the facts that it rests on. With or without them a view is the same.
#[derive(Debug, Default)]
pub struct Kept {
    workloads: HashMap<ProcId, Recognised>,
    round: u64,
}

/// What a process runs.
#[derive(Debug)]
struct Recognised {
    process: Arc<ProcSample>,
    above: Vec<Arc<ProcSample>>,
    workload: Option<Arc<Workload>>,
    round: u64,
}

impl Recognised {
    /// Whether it would be recognised as the same again.
    fn holds(&self, process: &Arc<ProcSample>, above: &[&Arc<ProcSample>]) -> bool {
        let same =
            |a: &Arc<ProcSample>, b: &Arc<ProcSample>| Arc::ptr_eq(a, b) || same_grounds(a, b);
        same(&self.process, process)
            && self.above.len() == above.len()
            && self.above.iter().zip(above).all(|(a, b)| same(a, b))
    }

    /// Holds the samples of this look, so that the older ones, which are equal in what counts here,
    /// need not be kept beside them.
    fn follow(&mut self, process: &Arc<ProcSample>, above: &[&Arc<ProcSample>]) {
        let held = std::iter::once(&mut self.process).chain(&mut self.above);
        let now = std::iter::once(process).chain(above.iter().copied());
        for (held, now) in held.zip(now) {
            if !Arc::ptr_eq(held, now) {
                *held = Arc::clone(now);
            }
        }
    }
}

impl Kept {
    /// What a process runs, however many GPUs it has memory on.
    pub(super) fn workload(
        &mut self,
        scene: &Scene<'_>,
        process: &Arc<ProcSample>,
    ) -> Option<Arc<Workload>> {
        let chain = scene.ancestors(process);
        let above = chain.get(..ANCESTORS.min(chain.len())).unwrap_or_default();
        let round = self.round;
        if let Some(known) = self.workloads.get_mut(&process.id)
            && known.holds(process, above)
        {
            known.round = round;
            known.follow(process, above);
            return known.workload.clone();
        }
        let nearest: Vec<&ProcSample> = above.iter().map(|above| &***above).collect();
        let workload = recognise(process, &nearest).known().cloned().map(Arc::new);
        let known = Recognised {
            process: Arc::clone(process),
            above: above.iter().map(|above| Arc::clone(above)).collect(),
            workload: workload.clone(),
            round,
        };
        self.workloads.insert(process.id, known);
        workload
    }

    /// Ends a view: what it did not ask for is forgotten.
    pub(super) fn forget_others(&mut self) {
        let round = self.round;
        self.workloads.retain(|_, known| known.round == round);
        self.round += 1;
    }
}
