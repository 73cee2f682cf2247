//! Lists of processes that the driver did not give.

use serde::{Deserialize, Serialize};

use super::{GpuSample, GpuTick, NvidiaFds, Why};

/// The lists of one GPU beside that of compute processes that could not be read, and why: whoever
/// stands in no other is missing from [`GpuSample::processes`]. A driver that has no such list has
/// nobody in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadLists {
    /// That of processes that draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphics: Option<Why>,
    /// That of MPS clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mps: Option<Why>,
}

impl UnreadLists {
    /// Some list of some GPU failed, and of which was not recorded.
    const UNTOLD: Self = Self { graphics: Some(Why::UNTOLD), mps: Some(Why::UNTOLD) };

    /// Whether each was read.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How many could not be read.
    pub const fn count(self) -> u32 {
        self.graphics.is_some() as u32 + self.mps.is_some() as u32
    }

    /// Who is missing, and why: `graphics processes`, `no permission`. `None` where nobody is.
    pub fn missing(self) -> Option<(&'static str, String)> {
        Some(match (self.graphics, self.mps) {
            (None, None) => return None,
            (Some(why), None) => ("graphics processes", why.words()),
            (None, Some(why)) => ("MPS clients", why.words()),
            (Some(why), Some(same)) if why == same => {
                ("graphics processes and MPS clients", why.words())
            }
            (Some(why), Some(other)) => (
                "graphics processes and MPS clients",
                format!("{}; {}", why.words(), other.words()),
            ),
        })
    }
}

impl GpuTick {
    /// Which lists of a GPU could not be read. An older recording tells only that some failed: it may
    /// have been any of any GPU's.
    pub fn unread_lists(&self, gpu: &GpuSample) -> UnreadLists {
        let untold = self.nonsense.failed_lists > 0
            && self.gpus.iter().all(|gpu| gpu.unread_lists.is_none());
        if untold { UnreadLists::UNTOLD } else { gpu.unread_lists }
    }

    /// A GPU on which a process that stands in no list, with these files open, may be listed all the
    /// same: one whose lists were not all read.
    pub fn may_list(&self, fds: &NvidiaFds) -> Option<&GpuSample> {
        let opened = |gpu: &GpuSample| {
            // Instances have the device file of their GPU.
            let parent = gpu.mig.as_ref().map(|info| &info.parent);
            let whole = parent.and_then(|uuid| self.gpus.iter().find(|whole| whole.uuid == *uuid));
            match whole.unwrap_or(gpu).minor.get() {
                // A render node is not told apart by GPU.
                Some(minor) => fds.drm || fds.minors.contains(&minor),
                None => true,
            }
        };
        self.gpus.iter().find(|gpu| opened(gpu) && self.is_partly_listed(gpu))
    }

    /// Whether some list of a GPU could not be read.
    pub fn is_partly_listed(&self, gpu: &GpuSample) -> bool {
        gpu.unlisted().is_some() || !self.unread_lists(gpu).is_none()
    }
}

impl GpuSample {
    /// Whether some list of it could not be read.
    pub fn is_partly_listed(&self) -> bool {
        self.unlisted().is_some() || !self.unread_lists.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_missing_is_said_with_the_reason() {
        let (denied, late) = (Some(Why::NoPermission), Some(Why::TimedOut));
        let said = |graphics, mps| UnreadLists { graphics, mps }.missing();
        assert_eq!(said(None, None), None);
        assert_eq!(said(denied, None), Some(("graphics processes", "no permission".to_owned())));
        assert_eq!(said(None, late), Some(("MPS clients", "no answer in time".to_owned())));
        let both = "graphics processes and MPS clients";
        assert_eq!(said(late, late), Some((both, "no answer in time".to_owned())));
        let reasons = "no permission; no answer in time".to_owned();
        assert_eq!(said(denied, late), Some((both, reasons)));
    }

    #[test]
    fn only_what_failed_is_written() {
        let text = |unread: UnreadLists| serde_json::to_string(&unread).unwrap();
        assert_eq!(text(UnreadLists::default()), "{}");
        let mps = UnreadLists { mps: Some(Why::Failed(999)), ..UnreadLists::default() };
        assert_eq!(text(mps), r#"{"mps":"failed:999"}"#);
        assert_eq!(serde_json::from_str::<UnreadLists>(&text(mps)).unwrap(), mps);
        assert_eq!([mps.count(), UnreadLists::UNTOLD.count()], [1, 2]);
    }
}
