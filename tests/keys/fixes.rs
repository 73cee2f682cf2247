//! Fixes that are sent away, and brought back.

use vramlens::analyze::Class;
use vramlens::analyze::xid::{self, XidSeen};
use vramlens::ids::{Pid, ProcId};
use vramlens::rules::{Wanted, closest};
use vramlens::ui::Page;

use crate::desk::Desk;
use crate::scenes;

fn rules(desk: &Desk) -> Vec<&'static str> {
    desk.shown_findings().iter().map(|finding| finding.rule).collect()
}

#[test]
fn a_fix_that_is_sent_away_stays_away_and_is_counted() {
    let mut desk = Desk::new(scenes::one_gpu());
    let before = rules(&desk);
    desk.keys("fD");
    assert_eq!(rules(&desk), before[1..]);
    assert!(desk.app.message.as_ref().unwrap().text.contains("U brings it back"));
    assert!(desk.screen().contains("FIXES  1 hidden"), "{}", desk.screen());
    // Also on the main page, and in the next view.
    desk.keys("f");
    assert_eq!(desk.app.page, Page::Main);
    assert!(desk.screen().contains("FIXES  1 hidden"), "{}", desk.screen());
    for _ in 1..before.len() {
        desk.keys("D");
    }
    assert_eq!(rules(&desk), [] as [&str; 0]);
    assert!(desk.screen().contains("nothing else to mend"), "{}", desk.screen());
    desk.keys("D");
    assert_eq!(desk.app.message.as_ref().unwrap().text, "there is no fix here");
    desk.keys("U");
    assert_eq!(rules(&desk), before);
    assert!(!desk.screen().contains("hidden"), "{}", desk.screen());
}

#[test]
fn it_is_about_one_process_and_not_about_its_pid() {
    let mut desk = Desk::new(scenes::one_gpu());
    let finding = desk.findings.iter().position(|finding| finding.pid.is_some()).unwrap();
    let (rule, pid) = (desk.findings[finding].rule, desk.findings[finding].pid.unwrap());
    desk.app.page = Page::Fixes;
    desk.app.finding = finding;
    desk.keys("D");
    assert!(!rules(&desk).contains(&rule));
    // Another process gets the pid.
    let holder = desk.view.holders.iter_mut().find(|holder| holder.pid == pid).unwrap();
    holder.id = Some(ProcId { pid, start_ticks: 77 });
    assert!(rules(&desk).contains(&rule));
    // The same rule about another process was never sent away.
    let mut other = desk.findings[finding].clone();
    other.pid = Some(Pid(1));
    desk.findings.push(other);
    desk.keys("UD");
    assert!(desk.shown_findings().iter().any(|finding| finding.pid == Some(Pid(1))));
}

#[test]
fn a_kill_that_is_sent_away_hides_no_verdict() {
    let mut desk = Desk::new(scenes::one_gpu());
    let zombie = desk.view.holders.iter().find(|holder| holder.verdict.zombie).unwrap();
    assert_eq!(zombie.verdict.class, Class::Orphan);
    let at = desk.findings.iter().position(|finding| finding.rule == "leftovers").unwrap();
    (desk.app.page, desk.app.finding) = (Page::Fixes, at);
    desk.keys("Df");
    assert!(!rules(&desk).contains(&"leftovers"));
    assert!(desk.screen().to_lowercase().contains("zombie"), "{}", desk.screen());
    assert_eq!(desk.keys("z"), [vramlens::ui::Effect::PlanZombies]);
}

#[test]
fn a_fault_stands_in_the_title_of_its_gpu_for_a_while() {
    let mut desk = Desk::new(scenes::one_gpu());
    let fault = |code, seconds: u64| XidSeen {
        at: scenes::NOW,
        age_ms: seconds * 1_000,
        xid: xid::meaning(code),
        instance: (None, None),
    };
    for (code, seconds, told) in
        [(31, 12, true), (31, 90, false), (48, 90, true), (48, 5_000, false), (63, 1, false)]
    {
        desk.view.gpus[0].xids.recent = vec![fault(code, seconds)];
        let said = desk.screen().contains(&format!("XID {code} {seconds} s ago"));
        assert_eq!(said, told, "{code} {seconds}: {}", desk.screen());
    }
}

#[test]
fn what_is_wanted_stands_in_the_title_of_the_fixes() {
    let mut desk = Desk::new(scenes::one_gpu());
    let wanted = Wanted::anywhere(scenes::g(400));
    desk.app.fit = closest(&desk.view, wanted, &desk.findings);
    assert!(desk.screen().contains("FIXES  40.0 GiB on GPU 0: fits after"), "{}", desk.screen());
    desk.app.wanted_by_error = true;
    assert!(desk.screen().contains("FIXES  the error's 40.0 GiB on GPU 0: fits after"));
    let wanted = Wanted::anywhere(scenes::g(9_000));
    desk.app.fit = closest(&desk.view, wanted, &desk.findings);
    assert!(desk.screen().contains("missing even after all fixes"), "{}", desk.screen());
}
