//! `vramlens doctor` on machines made of files, over the stand-in driver.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/fake.rs"]
mod fake;
#[path = "doctor/machine.rs"]
mod machine;

use std::path::Path;
use std::process::Command;

use fake::Fake;
use machine::{CAP_ALL, CAP_NONE, Machine, ONE, line, of, says, unasked};
use serde_json::Value;
use vramlens::host::absence;
use vramlens::report::doctor::State;
use vramlens::sample::Access;

#[test]
fn a_good_machine_is_in_order() {
    let (report, code) = Machine::good().over(ONE);
    assert_eq!((code, report["schema"].as_u64()), (0, Some(1)), "{report:#}");
    let lines = report["lines"].as_array().unwrap();
    for line in lines.iter().filter(|line| line["key"] != "verdicts") {
        assert_eq!(line["state"], "ok", "{line}");
        assert_eq!(line["mend"].as_array().unwrap().len(), 0, "{line}");
    }
    says(&report, "driver", "ok", &["580.159.04", "CUDA up to 13.0", "GPUs: 1"]);
    says(&report, "versions", "ok", &["both 580.159.04"]);
    says(&report, "devices", "ok", &["1 of /dev/nvidiaN"]);
    says(&report, "persistence", "ok", &["on for GPU 0", "a little more power"]);
    says(&report, "signals", "ok", &["every user"]);
}

#[test]
fn without_a_driver_it_exits_with_3_and_says_what_to_install() {
    let nowhere = Path::new("/nowhere/libnvidia-ml.so.1");
    let (report, code) = Machine::bare().asked(nowhere, &[]);
    assert_eq!((code, &report["state"]), (3, &Value::from("broken")));
    says(&report, "driver", "broken", &["cannot be loaded", "install the driver package"]);
    says(&report, "module", "broken", &["not loaded", "modprobe nvidia"]);
    says(&report, "library", "broken", &["usual folders"]);
    says(&report, "devices", "broken", &["/dev/nvidiactl", "nvidia-modprobe"]);
    says(&report, "verdicts", "limited", &["none while"]);
    says(&report, "gauges", "limited", &["none while"]);

    let nouveau = Machine::bare();
    nouveau.put("proc/modules", "nouveau 1 0 - Live 0x0\n").gpu("0000:01:00.0", "nouveau");
    let (report, code) = nouveau.asked(nowhere, &[]);
    assert_eq!(code, 3);
    says(&report, "module", "broken", &["nouveau", "blacklist-nouveau.conf"]);
    says(&report, "pci", "limited", &["0000:01:00.0 (nouveau)"]);

    let unloadable = Machine::good();
    let (report, _) = unloadable.asked(nowhere, &[]);
    says(&report, "library", "broken", &["cannot be loaded", "ldconfig"]);
}

#[test]
fn modules_that_cannot_be_read_are_not_said_to_be_missing() {
    let machine = Machine::bare();
    machine.remove("proc/modules").put(".dockerenv", "");
    let none = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory";
    let failure = absence::Failure::NoLibrary;
    let other = absence::look(machine.0.path(), failure, "libnvidia-ml.so.1", none).text();
    assert!(other.contains("cannot be told: /proc/modules is not readable"), "{other}");
    let nowhere = Path::new("/nowhere/libnvidia-ml.so.1");
    let (report, _) = machine.asked(nowhere, &[]);
    says(&report, "module", "limited", &["cannot be told: /proc/modules is not readable"]);
    assert!(!line(&report, "module").1.contains("sudo modprobe nvidia"), "{report}");
    // In a container that sees them: they are the host's to load.
    machine.put("proc/modules", "");
    let (report, _) = machine.asked(nowhere, &[]);
    says(&report, "module", "broken", &["on the host: sudo modprobe nvidia"]);
}

#[test]
fn an_upgrade_under_a_loaded_module_says_reboot_or_reload() {
    const OLD: &str = "[[error]]\ncall = \"nvmlInit*\"\ncode = 18\n";
    let machine = Machine::good();
    machine
        .remove("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04")
        .put("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.590.44.01", "");
    let (report, code) = machine.over(OLD);
    assert_eq!(code, 3);
    says(&report, "versions", "broken", &["module is 580.159.04", "library 590.44.01", "reboot"]);
    says(&report, "versions", "broken", &["rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia"]);

    machine.put("proc/modules", "nvidia 1 1 nvidia_uvm, Live 0x0\n");
    says(&machine.over(OLD).0, "versions", "broken", &["nothing uses the module: sudo rmmod"]);

    machine.put("proc/modules", "nvidia 1 9 nvidia_modeset, Live 0x0\nnvidia_drm 1 4 - Live 0x0\n");
    let report = machine.over(OLD).0;
    says(&report, "versions", "broken", &["reboot: the display"]);
    assert!(!line(&report, "versions").1.contains("rmmod"));

    machine.put(".dockerenv", "");
    says(&machine.over(OLD).0, "versions", "broken", &["start the container anew"]);

    let two = Machine::good();
    two.put("usr/lib64/libnvidia-ml.so.535.54.03", "");
    says(&two.over(ONE).0, "versions", "limited", &["535.54.03, 580.159.04"]);
}

#[test]
fn a_driver_that_hangs_is_named_with_its_call_and_exits_with_4() {
    let scenario = "[[gpu]]\n[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\n";
    let (report, code) = Machine::bare().over(scenario);
    assert_eq!(code, 4);
    says(&report, "driver", "broken", &["nvmlDeviceGetMemoryInfo_v2 on GPU 0", "dmesg"]);
    says(&report, "module", "ok", &["the driver is there"]);
}

#[test]
fn device_files_may_be_missing_or_closed() {
    let machine = Machine::good();
    machine.remove("dev/nvidia-uvm");
    let (report, code) = machine.over(ONE);
    assert_eq!(code, 0);
    says(&report, "devices", "limited", &["/dev/nvidia-uvm missing", "nvidia-modprobe -u -c 0"]);
    machine.remove("dev/nvidia0");
    let (report, code) = machine.over(ONE);
    assert_eq!(code, 1);
    says(&report, "devices", "broken", &["no /dev/nvidiaN"]);

    // Root may open everything, so that the kernel's answer is put in here.
    let mut facts = Machine::good().facts();
    facts.devices[0].access = Access::Denied;
    for (mode, group, mend) in [(0o660, 44, "usermod -aG"), (0o600, 0, "sudo vramlens")] {
        (facts.devices[0].mode, facts.devices[0].group) = (Some(mode), Some(group));
        let lines = unasked(&facts);
        let line = of(&lines, "devices");
        assert_eq!(line.state, State::Broken);
        assert!(line.found.contains(&format!("/dev/nvidiactl (mode {mode:04o})")), "{line:?}");
        assert!(line.mend[0].contains(mend), "{line:?}");
    }
    let denied = "[[error]]\ncall = \"nvmlInit*\"\ncode = 4\n";
    let (report, code) = Machine::good().over(denied);
    assert_eq!(code, 3);
    says(&report, "driver", "broken", &["no permission", "/dev/nvidia*"]);
}

#[test]
fn a_sleeping_gpu_is_not_woken() {
    let machine = Machine::good();
    let power = "sys/bus/pci/devices/0000:1b:00.0/power";
    machine.put(&format!("{power}/control"), "auto\n");
    says(&machine.over(ONE).0, "sleep", "ok", &["awake and may sleep"]);

    machine.put(&format!("{power}/runtime_status"), "suspended\n");
    let fake = Fake::new(&format!("count_calls = true\n{ONE}"));
    let (report, code) = machine.asked(&fake.library(), &[]);
    // The file of counts comes with the first call.
    let was_called = || fake.dir().join("libnvidia-ml.so.1.calls").exists();
    assert_eq!((code, was_called()), (0, false));
    says(&report, "driver", "limited", &["not asked", "vramlens doctor --wake"]);
    says(&report, "sleep", "limited", &["0000:1b:00.0 asleep"]);
    says(&report, "versions", "ok", &["580.159.04"]);

    let (report, _) = machine.asked(&fake.library(), &["--wake"]);
    assert!(was_called());
    says(&report, "driver", "ok", &["GPUs: 1"]);
    says(&report, "sleep", "limited", &["asleep"]);
}

#[test]
fn where_some_sleep_the_others_are_asked() {
    let machine = Machine::good();
    machine.gpu("0000:1c:00.0", "nvidia");
    machine.put("dev/nvidia1", "");
    let power = "sys/bus/pci/devices/0000:1c:00.0/power";
    machine.put(&format!("{power}/control"), "auto\n");
    machine.put(&format!("{power}/runtime_status"), "suspended\n");
    let fake = Fake::new(&format!("count_calls = true\n{ONE}[[gpu]]\n"));
    let (report, code) = machine.asked(&fake.library(), &[]);
    assert_eq!((code, fake.calls("gpu:1")), (0, 0));
    assert!(fake.calls("gpu:0") > 0);
    says(&report, "driver", "ok", &["GPUs: 2"]);
    says(&report, "sleep", "limited", &["0000:1c:00.0 asleep", "vramlens doctor --wake"]);
    says(&report, "persistence", "ok", &["on for GPU 0"]);
    let lost = report["lines"].as_array().unwrap().iter().find(|line| line["key"] == "lost");
    assert!(lost.is_none_or(|line| line["state"] == "ok"), "{lost:?}");
}

#[test]
fn persistence_mode_and_its_cost() {
    let machine = Machine::good();
    let off = "[[gpu]]\npersistence = false\n[[gpu]]\n";
    let report = machine.over(off).0;
    says(&report, "persistence", "limited", &["off for GPU 0", "1 to 3 s", "enable --now"]);
    machine.put("proc/77/comm", "nvidia-persiste\n");
    says(&machine.over(off).0, "persistence", "limited", &["nvidia-smi -pm 1"]);
    machine.put(".dockerenv", "");
    says(&machine.over(off).0, "persistence", "limited", &["on the host"]);
}

#[test]
fn containers_are_told_the_exact_flag() {
    let nowhere = Path::new("/nowhere/libnvidia-ml.so.1");
    let cases = [
        (
            ".dockerenv",
            "",
            "docker run --gpus all",
            "docker run --pid=host",
            "--cap-add=SYS_PTRACE",
        ),
        (
            "run/.containerenv",
            "",
            "nvidia.com/gpu=all",
            "podman run --pid=host",
            "podman run --cap",
        ),
        ("var/run/secrets/kubernetes.io/x", "", "nvidia.com/gpu: 1", "hostPID: true", "add: [SYS_"),
        (".singularity.d/x", "", "apptainer exec --nv", "without --pid", "on the host"),
        ("run/systemd/container", "lxc", "nvidia.runtime=true", "on the host", "on the host"),
    ];
    for (marker, text, gpus, pid, ptrace) in cases {
        let machine = Machine::bare();
        machine
            .put(marker, text)
            .put("proc/self/status", CAP_NONE)
            .link("proc/self/ns/pid", "pid:[4026532999]");
        let (report, code) = machine.asked(nowhere, &[]);
        assert_eq!(code, 3);
        says(&report, "container", "limited", &[gpus]);
        says(&report, "library", "broken", &["not in this container", gpus]);
        says(&report, "pid_namespace", "limited", &[pid]);
        says(&report, "ptrace", "limited", &[ptrace]);
        let (report, _) = machine.over(ONE);
        says(&report, "container", "ok", &["with its GPUs"]);
        says(&report, "verdicts", "limited", &["ghosts", pid]);
    }
}

#[test]
fn rights_decide_what_can_be_looked_into() {
    let machine = Machine::good();
    machine.put("proc/self/status", CAP_NONE);
    machine.put("proc/self/mounts", "proc /proc proc rw,hidepid=2 0 0\n");
    let report = machine.over(ONE).0;
    says(&report, "hidepid", "limited", &["invisible", "remount,hidepid=0"]);
    says(&report, "ptrace", "limited", &["scope is 1", "not even your own", "setcap"]);
    says(&report, "gauges", "limited", &["fragmentation: see ptrace"]);
    says(&report, "signals", "limited", &["only your own", "sudo vramlens kill"]);

    machine.put("proc/sys/kernel/yama/ptrace_scope", "0\n");
    let report = machine.over(ONE).0;
    says(&report, "ptrace", "limited", &["only your own processes"]);
    says(&report, "gauges", "limited", &["of other users"]);

    machine.put("proc/self/status", CAP_ALL);
    let report = machine.over(ONE).0;
    says(&report, "hidepid", "ok", &["does not bind"]);
    says(&report, "ptrace", "ok", &["scope is 0"]);
    says(&report, "gauges", "ok", &[]);

    machine.put("proc/sys/kernel/yama/ptrace_scope", "3\n");
    let report = machine.over(ONE).0;
    says(&report, "ptrace", "limited", &["until the next boot"]);
    says(&report, "gauges", "limited", &["fragmentation: see ptrace"]);

    machine.remove("proc/sys/kernel/yama/ptrace_scope").remove("proc/self/ns/pid");
    let report = machine.over(ONE).0;
    says(&report, "ptrace", "ok", &["no yama"]);
    says(&report, "pid_namespace", "limited", &["cannot be told"]);
}

#[test]
fn kinds_of_machines_are_told_apart() {
    let machine = Machine::good();
    let mig = include_str!("scenarios/mig.toml");
    let report = machine.over(mig).0;
    says(&report, "mig", "ok", &["on for GPU 0, instances: 2"]);
    says(&report, "gauges", "limited", &["use per process"]);
    says(&machine.over("[[gpu]]\nmig = true\n").0, "mig", "limited", &["-cgi 0 -C"]);
    let root_only = "[[gpu]]\nmig = true\n[[gpu.instance]]\nuuid = \"MIG-1\"\ngi = 1\nci = 0\n\
                     total = 1073741824\n[[error]]\ncall = \"nvmlDeviceGetComputeRunningProcesses*\"\n\
                     code = 4\n";
    says(&machine.over(root_only).0, "mig", "limited", &["root only", "sudo vramlens"]);

    let report = machine.over(include_str!("scenarios/unified.toml")).0;
    says(&report, "unified_memory", "limited", &["GPU 0", "MemAvailable"]);

    let (report, code) = machine.over("[[gpu]]\nlost = true\n[[gpu]]\n");
    assert_eq!(code, 1);
    says(&report, "lost", "broken", &["GPU 0 fell off", "--gpu-reset -i 0"]);

    machine.put("proc/88/comm", "nvidia-cuda-mps\n");
    says(&machine.over(ONE).0, "mps", "limited", &["share the server's context", "echo quit"]);

    machine.put("dev/dxg", "").remove("sys/module/nvidia/version").put("proc/modules", "");
    let report = machine.over("[[gpu]]\nprocess = [{ pid = 9001, bytes = -1 }]\n").0;
    says(&report, "wsl", "limited", &["Windows", "Task Manager"]);
    says(&report, "module", "ok", &["Windows"]);
    says(&report, "gauges", "limited", &["bytes of some processes"]);
}

#[test]
fn what_an_old_driver_lacks_is_said() {
    let fake = Fake::without(fake::NOT_IN_470, ONE);
    let (report, _) = Machine::good().asked(&fake.library(), &[]);
    says(&report, "gauges", "limited", &["keeps for itself", "R510"]);
}

#[test]
fn a_gpu_of_another_driver_is_named() {
    let machine = Machine::good();
    machine.gpu("0000:2b:00.0", "vfio-pci");
    says(&machine.over(ONE).0, "pci", "limited", &["2 on the bus", "0000:2b:00.0 (vfio-pci)"]);
    machine.put("proc/modules", "nvidia 1 0 - Live 0x0\nnouveau 1 0 - Live 0x0\n");
    says(&machine.over(ONE).0, "module", "limited", &["nouveau is too"]);
}

#[test]
fn the_text_has_a_line_for_each_and_fits_80_columns() {
    let (machine, fake) = (Machine::bare(), Fake::new(ONE));
    let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(["doctor", "--ascii"])
        .env("VRAMLENS_NVML_LIB", fake.library())
        .env("VRAMLENS_TEST_ROOT", machine.0.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.is_ascii() && text.contains("ok       driver"), "{text}");
    let typed = |line: &str| line.contains("-> ");
    assert!(text.lines().all(|line| line.len() <= 80 || typed(line)), "{text}");
    assert!(text.trim_end().ends_with(" ok"), "{text}");
}
