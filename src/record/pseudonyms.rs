//! Names that stand for others: what is of one user, unit or job stays so, and nobody learns whose it
//! is.

use std::collections::BTreeMap;

use crate::sample::EnvVar;

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

/// Words by which workers and their launchers are known, wherever in an argument they stand.
const WORDS: [&str; 10] = [
    "multiprocessing.spawn",
    "multiprocessing.forkserver",
    "multiprocessing.resource_t",
    "compile_worker",
    "torchrun",
    "accelerate",
    "vllm",
    "sglang",
    "ipykernel",
    "colab_kernel",
];

/// Variables that hold a setting and no name: whatever is no such value of them is left out, too.
const SETTINGS: [&str; 22] = [
    "ACCELERATE_MIXED_PRECISION",
    "CUDA_DEVICE_ORDER",
    "CUDA_MEMORY_FRACTION",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_VISIBLE_DEVICES",
    "JPY_PARENT_PID",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "RANK",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "WORLD_SIZE",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
];

/// Whose names were seen, in the order of their first sight.
#[derive(Debug, Clone, Default)]
pub(super) struct Pseudonyms {
    users: BTreeMap<u32, u32>,
    units: BTreeMap<String, usize>,
    jobs: BTreeMap<String, usize>,
}

impl Pseudonyms {
    pub(super) const fn new() -> Self {
        Self { users: BTreeMap::new(), units: BTreeMap::new(), jobs: BTreeMap::new() }
    }

    /// Root stays root: what could be read hangs on it.
    pub(super) fn uid(&mut self, uid: u32) -> u32 {
        if uid == 0 {
            return 0;
        }
        let next = FIRST_USER + self.users.len() as u32;
        *self.users.entry(uid).or_insert(next)
    }

    /// A name for what [`Pseudonyms::uid`] gave: `user0` for root, `user1` and so on for the others.
    pub(super) fn user(uid: u32) -> String {
        format!("user{}", uid.checked_sub(FIRST_USER).map_or(0, |n| n + 1))
    }

    pub(super) fn job(&mut self, job: &str) -> String {
        number(&mut self.jobs, job).to_string()
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
        let n = number(&mut self.units, unit);
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
}

fn number(known: &mut BTreeMap<String, usize>, name: &str) -> usize {
    if let Some(n) = known.get(name) {
        return *n;
    }
    let next = known.len() + 1;
    known.insert(name.to_owned(), next);
    next
}

/// What is kept of an argument behind the program's name: a word on the list, and nothing around it.
pub(super) fn argument(n: usize, text: &str) -> Option<String> {
    if n == 1 && text == "runner" {
        return Some(text.to_owned());
    }
    WORDS.iter().find(|word| text.contains(*word)).map(|word| (*word).to_owned())
}

/// What is kept of a variable: a setting. Of a job's name only that there is one.
pub(super) fn variable(variable: &EnvVar) -> Option<EnvVar> {
    if variable.name == "TORCHELASTIC_RUN_ID" {
        return Some(EnvVar { name: variable.name.clone(), value: "1".to_owned() });
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:,.[]>%+-".contains(c);
    let kept = SETTINGS.contains(&variable.name.as_str()) && variable.value.chars().all(plain);
    kept.then(|| variable.clone())
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
    }

    #[test]
    fn of_arguments_and_variables_only_what_tells_a_kind_is_kept() {
        assert_eq!(argument(2, "/home/ana/vllm/secret.py").as_deref(), Some("vllm"));
        assert_eq!(argument(1, "train.py"), None);
        let of = |name: &str, value: &str| {
            variable(&EnvVar { name: name.to_owned(), value: value.to_owned() })
        };
        assert_eq!(of("JPY_PARENT_PID", "42").map(|var| var.value).as_deref(), Some("42"));
        assert_eq!(of("TORCHELASTIC_RUN_ID", "anas-run").map(|v| v.value).as_deref(), Some("1"));
        assert_eq!(of("CUDA_VISIBLE_DEVICES", "/home/ana"), None);
        assert_eq!(of("MODEL_ID", "ana/secret"), None);
    }
}
