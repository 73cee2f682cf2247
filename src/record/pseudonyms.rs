//! Names that stand for others: what is of one user, unit or job stays so, and nobody learns whose it
//! is.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

use super::kept;
use crate::ids::GpuUuid;
use crate::sample::EnvVar;

/// Names of one kind that are remembered however long ago they were seen. Of more, whatever the look
/// before did not have is forgotten: what comes back after that has a new name, and nobody else's.
const MOST: usize = 1024;

/// Numbers that stand for users begin here, as a distribution's ordinary users do.
const FIRST_USER: u32 = 1000;
/// Parts of a cgroup's path that every machine has, and that name nobody.
const COMMON: [&str; 12] = [
    "",
    "app.slice",
    "background.slice",
    "docker",
    "init.scope",
    "kubepods",
    "kubepods.slice",
    "machine.slice",
    "session.slice",
    "slurm",
    "system.slice",
    "user.slice",
];
const KINDS_OF_UNIT: [&str; 3] = ["service", "scope", "slice"];

/// What was seen, and its number: from 1, in the order of first sight, and never given twice.
#[derive(Debug, Clone)]
struct Numbers<K> {
    known: BTreeMap<K, Seen>,
    given: u64,
    look: u64,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    number: u64,
    look: u64,
}

impl<K: Ord> Numbers<K> {
    const fn new() -> Self {
        Self { known: BTreeMap::new(), given: 0, look: 0 }
    }

    fn of<Q: Ord + ToOwned<Owned = K> + ?Sized>(&mut self, name: &Q) -> u64
    where
        K: Borrow<Q>,
    {
        if let Some(seen) = self.known.get_mut(name) {
            seen.look = self.look;
            return seen.number;
        }
        self.given += 1;
        self.known.insert(name.to_owned(), Seen { number: self.given, look: self.look });
        self.given
    }

    fn begin_look(&mut self) {
        if self.known.len() > MOST {
            let last = self.look;
            self.known.retain(|_, seen| seen.look == last);
        }
        self.look += 1;
    }
}

impl Numbers<String> {
    /// What is empty says that there is nothing.
    fn text(&mut self, name: &str) -> String {
        if name.is_empty() { String::new() } else { self.of(name).to_string() }
    }
}

/// Whose names were seen.
#[derive(Debug, Clone)]
pub(super) struct Pseudonyms {
    users: Numbers<u32>,
    units: Numbers<String>,
    jobs: Numbers<String>,
    runs: Numbers<String>,
    ports: Numbers<String>,
    models: Numbers<String>,
    scripts: Numbers<String>,
    gpus: Numbers<String>,
}

impl Pseudonyms {
    pub(super) const fn new() -> Self {
        Self {
            users: Numbers::new(),
            units: Numbers::new(),
            jobs: Numbers::new(),
            runs: Numbers::new(),
            ports: Numbers::new(),
            models: Numbers::new(),
            scripts: Numbers::new(),
            gpus: Numbers::new(),
        }
    }

    /// Before a look at the processes.
    pub(super) fn begin_processes(&mut self) {
        self.users.begin_look();
        let texts = [&mut self.units, &mut self.jobs, &mut self.runs, &mut self.ports];
        texts.into_iter().for_each(Numbers::begin_look);
        [&mut self.models, &mut self.scripts].into_iter().for_each(Numbers::begin_look);
    }

    /// Before a look at the GPUs.
    pub(super) fn begin_gpus(&mut self) {
        self.gpus.begin_look();
    }

    /// Root stays root: what could be read hangs on it.
    pub(super) fn uid(&mut self, uid: u32) -> u32 {
        if uid == 0 {
            return 0;
        }
        let before = u32::try_from(self.users.of(&uid) - 1).unwrap_or(u32::MAX);
        FIRST_USER.saturating_add(before)
    }

    /// A name for what [`Pseudonyms::uid`] gave: `user0` for root, `user1` and so on for the others.
    pub(super) fn user(uid: u32) -> String {
        format!("user{}", uid.checked_sub(FIRST_USER).map_or(0, |n| n + 1))
    }

    pub(super) fn job(&mut self, job: &str) -> String {
        self.jobs.of(job).to_string()
    }

    /// `unit1.service`; what a user's own manager and a user's slice are called stays, with another
    /// number.
    pub(super) fn unit(&mut self, unit: &str) -> String {
        for (before, after) in [("user@", ".service"), ("user-", ".slice")] {
            let inner = unit.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            if let Some(uid) = inner.and_then(|text| text.parse().ok()) {
                return format!("{before}{}{after}", self.uid(uid));
            }
        }
        let n = self.units.of(unit);
        match unit.rsplit_once('.') {
            Some((_, kind)) if KINDS_OF_UNIT.contains(&kind) => format!("unit{n}.{kind}"),
            _ => format!("unit{n}"),
        }
    }

    /// A path with as many parts, of which those that name something have other names.
    pub(super) fn cgroup(&mut self, path: &str) -> String {
        let part = |part: &str| {
            if COMMON.contains(&part) {
                part.to_owned()
            } else if let Some(job) = part.strip_prefix("job_") {
                format!("job_{}", self.job(job))
            } else {
                self.unit(part)
            }
        };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// `model1`, with the format of its weights where the name tells it: `model1-Q4_K_M`.
    pub(super) fn model(&mut self, name: &str) -> String {
        let n = self.models.of(name);
        kept::format(name).map_or_else(|| format!("model{n}"), |word| format!("model{n}-{word}"))
    }

    /// A program's name; a script's is another.
    pub(super) fn program(&mut self, name: &str) -> String {
        let base = kept::base_name(name);
        if kept::is_script(base) { self.script(base) } else { kept::title(base).to_owned() }
    }

    /// The short name of a process that has these arguments.
    pub(super) fn comm(&mut self, comm: &str, arguments: &[String]) -> String {
        if kept::names_script(comm, arguments) {
            return self.script(comm);
        }
        kept::title(comm.split_whitespace().next().unwrap_or_default()).to_owned()
    }

    fn script(&mut self, name: &str) -> String {
        format!("script{}", self.scripts.of(kept::short(name)))
    }

    /// Of the same kind and form. One that could not be read stays so.
    pub(super) fn gpu(&mut self, uuid: &GpuUuid) -> GpuUuid {
        let n = self.gpus.of(&*uuid.0);
        if uuid.is_unknown() { GpuUuid::unknown(&n) } else { GpuUuid::new(&uuid_of(&uuid.0, n)) }
    }

    /// What a variable calls a GPU: the beginning of its UUID is enough, where only one has it.
    fn gpu_called(&self, start: &str) -> String {
        let known = self.gpus.known.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        let mut fitting = known
            .take_while(|(uuid, _)| uuid.starts_with(start))
            .filter(|(_, seen)| seen.look == self.gpus.look);
        let found = fitting.next().filter(|_| fitting.next().is_none());
        uuid_of(start, found.map_or(NO_GPU, |(_, seen)| seen.number))
    }

    /// What is kept of a variable: a setting; of the name of a run and of its port which ones are
    /// the same.
    pub(super) fn variable(&mut self, variable: &EnvVar) -> Option<EnvVar> {
        let value = match variable.name.as_str() {
            "TORCHELASTIC_RUN_ID" => self.runs.text(&variable.value),
            "MASTER_PORT" => self.ports.text(&variable.value),
            name if kept::is_setting(name) => {
                kept::setting(&variable.value, |start| self.gpu_called(start))?
            }
            _ => return None,
        };
        Some(EnvVar { name: variable.name.clone(), value })
    }
}

/// The number of no GPU.
const NO_GPU: u64 = u32::MAX as u64;

fn uuid_of(uuid: &str, n: u64) -> String {
    let kind = if uuid.starts_with("MIG-") { "MIG" } else { "GPU" };
    format!("{kind}-{n:08x}-0000-0000-0000-{n:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gets_the_same_and_the_shape_stays() {
        let mut names = Pseudonyms::new();
        let of_user = "/user.slice/user-1234.slice/user@1234.service/app.slice/secret-x.service";
        let of_system = "/system.slice/secret-x.service";
        let kept = "/user.slice/user-1000.slice/user@1000.service/app.slice/unit1.service";
        assert_eq!(names.cgroup(of_user), kept);
        assert_eq!(names.cgroup(of_system), "/system.slice/unit1.service");
        assert_eq!(names.cgroup("/slurm/uid_1234/job_778/step_0"), "/slurm/unit2/job_1/unit3");
        assert_eq!((names.job("778"), names.job("779")), ("1".to_owned(), "2".to_owned()));
        assert_eq!((names.uid(0), names.uid(77), names.uid(1234)), (0, 1001, 1000));
        assert_eq!(Pseudonyms::user(0), "user0");
        assert_eq!(Pseudonyms::user(1001), "user2");
        assert_eq!(names.model("ana/secret:8b-q4_k_m"), "model1-Q4_K_M");
        assert_eq!([names.model("ana/x"), names.model("ana/x")], ["model2", "model2"]);
        assert_eq!(names.program("/home/ana/secret_training.py"), "script1");
        assert_eq!(names.comm("secret_training", &["/a/secret_training.py".into()]), "script1");
        assert_eq!(names.comm("tmux: server", &[]), "tmux:");
    }

    #[test]
    fn runs_and_ports_stay_apart_and_settings_stay() {
        let mut names = Pseudonyms::new();
        let mut of = |name: &str, value: &str| {
            let kept = names.variable(&EnvVar { name: name.to_owned(), value: value.to_owned() });
            kept.map(|variable| variable.value)
        };
        assert_eq!(of("JPY_PARENT_PID", "42").as_deref(), Some("42"));
        for name in ["TORCHELASTIC_RUN_ID", "MASTER_PORT"] {
            let values = ["29500", "anas-run", "29500", ""].map(|value| of(name, value).unwrap());
            assert_eq!(values, ["1", "2", "1", ""], "{name}");
        }
        assert_eq!(of("CUDA_VISIBLE_DEVICES", "/home/ana"), None);
        assert_eq!(of("MODEL_ID", "ana/secret"), None);
    }

    #[test]
    fn a_gpu_is_known_by_the_beginning_of_its_uuid() {
        let mut names = Pseudonyms::new();
        names.begin_gpus();
        let [a, b] = ["GPU-aa11", "GPU-ab22"].map(|uuid| names.gpu(&GpuUuid::new(uuid)));
        assert_eq!(&*b.0, "GPU-00000002-0000-0000-0000-000000000002");
        let none = "GPU-ffffffff-0000-0000-0000-0000ffffffff";
        let visible = EnvVar {
            name: "CUDA_VISIBLE_DEVICES".to_owned(),
            value: "GPU-ab,GPU-aa11,GPU-a,GPU-c,1".to_owned(),
        };
        let kept = names.variable(&visible).unwrap().value;
        assert_eq!(kept, format!("{b},{a},{none},{none},1"));
        // An instance that is gone does not make the beginning ambiguous.
        names.begin_gpus();
        assert_eq!(names.gpu(&GpuUuid::new("GPU-aa11")), a);
        assert_eq!(names.gpu_called("GPU-a"), &*a.0);
        let unknown = names.gpu(&GpuUuid::unknown(&"0000:1b:00.0"));
        assert!(unknown.is_unknown() && !unknown.0.contains("1b"), "{unknown}");
    }

    #[test]
    fn what_is_gone_is_forgotten_and_its_number_is_not_given_again() {
        let mut names = Pseudonyms::new();
        let run = |n: u32| EnvVar { name: "TORCHELASTIC_RUN_ID".into(), value: format!("run{n}") };
        for n in 0..20_000 {
            names.begin_processes();
            names.begin_gpus();
            let unit = names.unit(&format!("run-{n}.scope"));
            let expected = if n == 0 { 1 } else { n + 2 };
            assert_eq!(unit, format!("unit{expected}.scope"));
            let _ = (names.job(&n.to_string()), names.uid(n + 1), names.model(&n.to_string()));
            let _ = (names.variable(&run(n)), names.comm(&format!("{n}.py"), &[]));
            let _ = names.gpu(&GpuUuid::new(&format!("MIG-{n}")));
            // Who stays keeps the name.
            assert_eq!(names.cgroup("/a.service"), "/unit2.service");
            assert_eq!(names.job("stays"), "2");
        }
        let sizes = [names.units.known.len(), names.jobs.known.len(), names.runs.known.len()];
        let others = [names.models.known.len(), names.scripts.known.len(), names.gpus.known.len()];
        for size in sizes.into_iter().chain(others).chain([names.users.known.len()]) {
            assert!(size <= MOST + 3, "{size}");
        }
        assert_eq!(names.job("never seen"), "20002");
    }
}
