//! What can hang, on a tree of files.

use super::*;

const ALL: Want = Want { arguments: true, environment: true, maps: true, written: true };

fn tree() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::new(dir.path());
    std::fs::create_dir_all(root.path("proc/7")).unwrap();
    (dir, root)
}

#[test]
fn facts_are_read() {
    let (_dir, root) = tree();
    std::fs::write(root.of(Pid(7), "cmdline"), b"python\0train.py\0\0\0").unwrap();
    std::fs::write(root.of(Pid(7), "environ"), b"RANK=3\0HOME=/x\0").unwrap();
    std::fs::write(root.of(Pid(7), "io"), "rchar: 9\nwrite_bytes: 4096\n").unwrap();
    std::fs::write(
        root.of(Pid(7), "maps"),
        "7f0-7f1 r--p 0 fe:0 9 /m/a.gguf\n7f1-7f2 r--p 0 fe:0 9 /m/a.gguf\n\
         7f2-7f3 rw-s 0 0:6 9    /dev/nvidia0\n7f3-7f4 rw-p 0 0:0 0 [heap]\n",
    )
    .unwrap();
    let mut slow = Slow::new(&root, Duration::from_secs(5));
    let mut seen = 0;
    slow.ask(vec![Job::Process(Pid(7), ALL)], Duration::from_secs(5), |outcome| {
        let Outcome::Answered(Answer::Process(Pid(7), facts)) = outcome else {
            panic!("{outcome:?}")
        };
        let arguments = ["python", "train.py"].map(ToOwned::to_owned).to_vec();
        assert_eq!(facts.arguments, Some(Reading::Value(arguments)));
        assert_eq!(facts.environment.unwrap().value().unwrap()[0].value, "3");
        assert_eq!(facts.written, Some(Reading::Value(Bytes(4096))));
        let mapped = Mapped { models: vec!["/m/a.gguf".to_owned()], devices: 1 };
        assert_eq!(facts.mapped, Some(Reading::Value(mapped)));
        seen += 1;
    });
    assert_eq!(seen, 1);
}

#[test]
fn a_hanging_read_is_given_up_and_the_next_one_answers() {
    let (_dir, root) = tree();
    std::fs::create_dir_all(root.path("proc/8")).unwrap();
    std::fs::write(root.of(Pid(8), "cmdline"), b"sh\0").unwrap();
    // Opening a FIFO that nobody writes to waits for ever.
    let fifo = root.of(Pid(7), "cmdline");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut slow = Slow::new(&root, Duration::from_millis(50));
    let want = Want { arguments: true, ..Want::default() };
    let jobs = [Job::Process(Pid(7), want), Job::Process(Pid(8), want)];
    let mut outcomes = Vec::new();
    slow.ask(jobs.to_vec(), Duration::from_secs(20), |outcome| outcomes.push(outcome));
    assert!(matches!(outcomes[0], Outcome::Hung(Job::Process(Pid(7), _))), "{outcomes:?}");
    assert!(matches!(outcomes[1], Outcome::Answered(Answer::Process(Pid(8), _))));
    // However often it hangs, the number of waiting threads is bounded.
    for _ in 0..10 {
        slow.ask(jobs[..1].to_vec(), Duration::from_secs(20), |_| {});
    }
    assert!(slow.abandoned.load(Ordering::Relaxed) <= MOST_ABANDONED + 1);
    // Once they return, questions are answered again.
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut answered = false;
    while !answered && Instant::now() < deadline {
        drop(std::fs::OpenOptions::new().read(true).write(true).open(&fifo));
        slow.ask(jobs[1..].to_vec(), Duration::from_secs(1), |outcome| {
            answered = matches!(outcome, Outcome::Answered(_));
        });
    }
    assert!(answered);
}

#[test]
fn what_was_begun_comes_first_and_one_that_hangs_costs_only_itself() {
    let (_dir, root) = tree();
    let want = Want { arguments: true, ..Want::default() };
    let job = |pid| Job::Process(Pid(pid), want);
    nix::unistd::mkfifo(&root.of(Pid(7), "cmdline"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut slow = Slow::new(&root, Duration::from_millis(500));
    let many = u32::try_from(3 * AT_ONCE).unwrap();
    let begun = (100..100 + many).chain([7]).chain(200..205);
    for pid in begun.clone() {
        slow.begin(job(pid));
    }
    let mut outcomes = Vec::new();
    slow.ask(vec![job(300)], Duration::from_secs(20), |outcome| {
        outcomes.push(match outcome {
            Outcome::Answered(Answer::Process(pid, _)) => (pid.0, true),
            Outcome::Hung(Job::Process(pid, _)) => (pid.0, false),
            other => panic!("{other:?}"),
        });
    });
    let expected: Vec<_> = begun.chain([300]).map(|pid| (pid, pid != 7)).collect();
    assert_eq!(outcomes, expected);
    // Nothing is left of it for the next time.
    let mut count = 0;
    slow.ask(vec![job(300)], Duration::from_secs(20), |_| count += 1);
    assert_eq!((count, slow.handed_over, slow.waiting.len()), (1, 0, 0));
}

#[test]
fn without_time_what_was_begun_is_dropped() {
    let (_dir, root) = tree();
    let mut slow = Slow::new(&root, Duration::from_secs(5));
    let want = Want { arguments: true, ..Want::default() };
    for pid in 100..200 {
        slow.begin(Job::Process(Pid(pid), want));
    }
    // Those that have come are taken, and one is waited for.
    let mut count = 0;
    slow.ask(Vec::new(), Duration::ZERO, |_| count += 1);
    assert!((1..=100).contains(&count), "{count}");
    assert_eq!((slow.waiting.len(), slow.handed_over, slow.answered.len()), (0, 0, 0));
    let mut count = 0;
    slow.ask(vec![Job::Process(Pid(9), want)], Duration::from_secs(5), |outcome| {
        assert!(matches!(outcome, Outcome::Answered(Answer::Process(Pid(9), _))));
        count += 1;
    });
    assert_eq!(count, 1);
}

#[test]
fn real_processes_and_users_answer() {
    let mut slow = Slow::new(&Root::machine(), Duration::from_secs(5));
    let own = Pid(std::process::id());
    let mut count = 0;
    let jobs = vec![Job::Process(own, ALL), Job::User(0)];
    slow.ask(jobs, Duration::from_secs(10), |outcome| {
        match outcome {
            Outcome::Answered(Answer::Process(pid, facts)) => {
                assert_eq!(pid, own);
                assert!(facts.arguments.unwrap().value().is_some_and(|list| !list.is_empty()));
                assert!(facts.mapped.unwrap().value().is_some());
            }
            Outcome::Answered(Answer::User(uid, name)) => {
                assert_eq!((uid, name), (0, Reading::Value("root".to_owned())));
            }
            Outcome::Hung(job) => panic!("{job:?}"),
        }
        count += 1;
    });
    assert_eq!(count, 2);
}
