//! What the past is asked for.

use crate::analyze::timeline::Timeline;
use crate::history::{BusyPoint, ChartPoint, History, StackPoint};
use crate::ids::{GpuUuid, Pid, Stamp};

/// What the screen asks of the past; the history answers.
pub trait Charts {
    /// The moment of the newest tick.
    fn latest(&self) -> Option<Stamp>;

    /// The oldest moment that can be shown.
    fn oldest(&self) -> Option<Stamp>;

    /// Used memory of a GPU between two moments (milliseconds since boot), the older first.
    fn gpu(&self, gpu: &GpuUuid, span_ms: (u64, u64), columns: usize) -> Vec<Option<ChartPoint>>;

    /// The same of one process on it.
    fn holder(
        &self,
        holder: (&GpuUuid, Pid),
        span_ms: (u64, u64),
        columns: usize,
    ) -> Vec<Option<ChartPoint>>;

    /// Who held a GPU's memory between two moments; nothing where that was not kept.
    fn stack(
        &self,
        _gpu: &GpuUuid,
        _span_ms: (u64, u64),
        _columns: usize,
        _named: &[Pid],
    ) -> Vec<Option<StackPoint>> {
        Vec::new()
    }

    /// How busy a GPU was, see [`History::busy_chart`]; `None` where that was not kept.
    fn busy(
        &self,
        _gpu: &GpuUuid,
        _to_and_span_ms: (u64, u64),
        _columns: usize,
    ) -> Option<Vec<BusyPoint>> {
        None
    }

    /// What happened when; `None` where nobody kept it.
    fn timeline(&self) -> Option<&Timeline> {
        None
    }
}

impl Charts for History {
    fn latest(&self) -> Option<Stamp> {
        Self::latest(self)
    }

    fn oldest(&self) -> Option<Stamp> {
        Self::oldest(self)
    }

    fn gpu(&self, gpu: &GpuUuid, span_ms: (u64, u64), columns: usize) -> Vec<Option<ChartPoint>> {
        self.gpu_chart(gpu, span_ms.0, span_ms.1, columns)
    }

    fn holder(
        &self,
        (gpu, pid): (&GpuUuid, Pid),
        span_ms: (u64, u64),
        columns: usize,
    ) -> Vec<Option<ChartPoint>> {
        self.holder_chart(gpu, pid, span_ms.0, span_ms.1, columns)
    }

    fn stack(
        &self,
        gpu: &GpuUuid,
        span_ms: (u64, u64),
        columns: usize,
        named: &[Pid],
    ) -> Vec<Option<StackPoint>> {
        self.gpu_stack(gpu, span_ms, columns, named)
    }

    fn busy(
        &self,
        gpu: &GpuUuid,
        (to_ms, span_ms): (u64, u64),
        columns: usize,
    ) -> Option<Vec<BusyPoint>> {
        self.busy_chart(gpu, to_ms, span_ms, columns)
    }
}
