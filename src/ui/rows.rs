//! The rows of the process table: filtered, sorted, or as a tree. Identity, not position, names a
//! row, so that a selection stays with its process.

use std::cmp::Ordering;

use super::filter::Filter;
use crate::analyze::{GpuView, Holder, View};
use crate::fields::{self, Align, FieldId, Unit};
use crate::ids::quick::{Map, Set};
use crate::ids::{GpuUuid, Pid};
use crate::units::Bytes;

/// Which row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// A holder on a GPU; two processes with one pid at different times are two.
    Holder {
        /// On which GPU.
        gpu: GpuUuid,
        /// As the driver gives it.
        pid: Pid,
        /// When it started, where that is known.
        start_ticks: Option<u64>,
    },
    /// A GPU's unaccounted memory.
    Unaccounted {
        /// Of which GPU.
        gpu: GpuUuid,
    },
    /// Processes with one parent, which itself holds nothing.
    Job {
        /// The parent.
        parent: Pid,
    },
}

impl RowKey {
    /// Of a holder.
    pub fn of(holder: &Holder) -> Self {
        let start_ticks = holder.id.map(|id| id.start_ticks);
        Self::Holder { gpu: holder.gpu.clone(), pid: holder.pid, start_ticks }
    }

    /// Whether it is this holder's; without building one.
    pub fn is_of(&self, holder: &Holder) -> bool {
        match self {
            Self::Holder { gpu, pid, start_ticks } => {
                holder.pid == *pid
                    && holder.gpu == *gpu
                    && holder.id.map(|id| id.start_ticks) == *start_ticks
            }
            Self::Unaccounted { .. } | Self::Job { .. } => false,
        }
    }
}

/// What a row is about.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'v> {
    /// A process on a GPU.
    Holder(&'v Holder),
    /// A GPU's unaccounted memory.
    Unaccounted(&'v GpuView, Bytes),
    /// Processes with one parent: the parent, how many, what they hold; `None` where one of them
    /// does not tell.
    Job(Pid, usize, Option<Bytes>),
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'v> {
    /// What it is about.
    pub subject: Subject<'v>,
    /// How deep in the tree.
    pub depth: u8,
    /// Whether it is its parent's last child.
    pub last: bool,
}

impl Row<'_> {
    /// Its identity.
    pub fn key(&self) -> RowKey {
        match self.subject {
            Subject::Holder(holder) => RowKey::of(holder),
            Subject::Unaccounted(gpu, _) => RowKey::Unaccounted { gpu: gpu.sample.uuid.clone() },
            Subject::Job(parent, ..) => RowKey::Job { parent },
        }
    }

    /// Whether this is its identity; without building one.
    pub fn is(&self, key: &RowKey) -> bool {
        match (self.subject, key) {
            (Subject::Holder(holder), RowKey::Holder { .. }) => key.is_of(holder),
            (Subject::Unaccounted(view, _), RowKey::Unaccounted { gpu }) => {
                view.sample.uuid == *gpu
            }
            (Subject::Job(pid, ..), RowKey::Job { parent }) => pid == *parent,
            _ => false,
        }
    }
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// By which column.
    pub by: FieldId,
    /// Whether the order is turned round: numbers fall and words rise by default.
    pub reversed: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self { by: FieldId::Vram, reversed: false }
    }
}

impl Sort {
    /// Whether values fall from the first row to the last.
    pub fn falls(self) -> bool {
        let numbers = self.by.field().align == Align::Right && self.by != FieldId::Gpu;
        numbers != self.reversed
    }

    /// Puts holders into this order; equal ones by GPU and pid.
    pub fn apply(self, holders: &mut Vec<&Holder>) {
        let falls = self.falls();
        let turn = |order: Ordering| if falls { order.reverse() } else { order };
        let tie = |a: &Holder, b: &Holder| a.index.cmp(&b.index).then(a.pid.cmp(&b.pid));
        if self.by.field().unit == Unit::Text
            && !matches!(self.by, FieldId::Gpu | FieldId::Pid | FieldId::State)
        {
            // Words are made once for each, not for each comparison.
            let mut words: Vec<(String, &Holder)> =
                holders.iter().map(|&holder| (fields::cell(self.by, holder), holder)).collect();
            words.sort_by(|a, b| turn(a.0.cmp(&b.0)).then_with(|| tie(a.1, b.1)));
            holders.clear();
            holders.extend(words.into_iter().map(|(_, holder)| holder));
        } else if matches!(self.by, FieldId::Gpu | FieldId::Pid | FieldId::State) {
            holders.sort_by(|a, b| turn(fields::compare(self.by, a, b)).then_with(|| tie(a, b)));
        } else {
            // And so are numbers; what is absent is the smallest.
            let number = |holder| fields::number(self.by, holder).unwrap_or(f64::MIN);
            let mut numbers: Vec<(f64, &Holder)> =
                holders.iter().map(|&holder| (number(holder), holder)).collect();
            numbers.sort_by(|a, b| turn(a.0.total_cmp(&b.0)).then_with(|| tie(a.1, b.1)));
            holders.clear();
            holders.extend(numbers.into_iter().map(|(_, holder)| holder));
        }
    }
}

/// What decides which rows there are.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Of one GPU only.
    pub scope: Option<&'a GpuUuid>,
    /// Which pass.
    pub filter: &'a Filter,
    /// In which order.
    pub sort: Sort,
    /// As a tree.
    pub tree: bool,
}

/// The rows of a view.
pub fn build<'v>(view: &'v View, choice: Choice<'_>) -> Vec<Row<'v>> {
    let in_scope = |gpu: &GpuUuid| choice.scope.is_none_or(|scope| scope == gpu);
    let mut holders: Vec<&Holder> = view
        .holders
        .iter()
        .filter(|holder| in_scope(&holder.gpu))
        .filter(|holder| choice.filter.is_empty() || choice.filter.matches(holder))
        .collect();
    choice.sort.apply(&mut holders);
    let flat = |holder| Row { subject: Subject::Holder(holder), depth: 0, last: false };
    let mut rows: Vec<Row<'v>> =
        if choice.tree { tree(&holders) } else { holders.into_iter().map(flat).collect() };
    for gpu in view.gpus.iter().filter(|gpu| in_scope(&gpu.sample.uuid)) {
        let Some(bytes) = gpu.ledger.get().map(|ledger| ledger.unaccounted) else { continue };
        // Less is page tables and contexts being made: it is in the ledger, and no row.
        let worth = bytes >= Bytes::mib(64) && !super::ledger::is_split(gpu);
        if worth && choice.filter.matches_unaccounted(gpu.sample.index, bytes) {
            rows.push(Row { subject: Subject::Unaccounted(gpu, bytes), depth: 0, last: false });
        }
    }
    rows
}

type Children<'v> = Map<(&'v GpuUuid, Pid), Vec<&'v Holder>>;

/// Holders under holders; those with one parent that holds nothing under a row for it.
fn tree<'v>(holders: &[&'v Holder]) -> Vec<Row<'v>> {
    let parent = |holder: &Holder| holder.process.as_ref().map(|process| process.parent);
    let present: Set<(&GpuUuid, Pid)> =
        holders.iter().map(|holder| (&holder.gpu, holder.pid)).collect();
    let mut children: Children<'v> = Map::default();
    let mut roots: Vec<(Option<Pid>, Vec<&'v Holder>)> = Vec::new();
    for &holder in holders {
        match parent(holder) {
            Some(pid) if pid != holder.pid && present.contains(&(&holder.gpu, pid)) => {
                children.entry((&holder.gpu, pid)).or_default().push(holder);
            }
            Some(pid) if pid.0 > 1 => match roots.iter_mut().find(|root| root.0 == Some(pid)) {
                Some(root) => root.1.push(holder),
                None => roots.push((Some(pid), vec![holder])),
            },
            _ => roots.push((None, vec![holder])),
        }
    }
    let mut rows = Vec::with_capacity(holders.len() + roots.len());
    for (pid, members) in roots {
        let depth = match pid {
            Some(pid) if members.len() > 1 => {
                let bytes = members.iter().map(|member| member.bytes.get()).sum();
                let subject = Subject::Job(pid, members.len(), bytes);
                rows.push(Row { subject, depth: 0, last: false });
                1
            }
            _ => 0,
        };
        descend(&members, depth, &mut children, &mut rows);
    }
    // Two processes that name each other as parent, as reused pids can: nothing is lost.
    let mut lost: Vec<&Holder> = children.into_values().flatten().collect();
    lost.sort_by_key(|holder| (holder.index, holder.pid));
    rows.extend(lost.into_iter().map(|holder| Row {
        subject: Subject::Holder(holder),
        depth: 0,
        last: false,
    }));
    rows
}

fn descend<'v>(
    members: &[&'v Holder],
    depth: u8,
    children: &mut Children<'v>,
    rows: &mut Vec<Row<'v>>,
) {
    for (n, &holder) in members.iter().enumerate() {
        let last = n + 1 == members.len();
        rows.push(Row { subject: Subject::Holder(holder), depth, last });
        if let Some(below) = children.remove(&(&holder.gpu, holder.pid)) {
            if depth < 16 {
                descend(&below, depth + 1, children, rows);
            } else {
                let flat = |&holder| Row { subject: Subject::Holder(holder), depth, last: false };
                rows.extend(below.iter().map(flat));
            }
        }
    }
}
