//! Fixes that are sent away, and brought back.

use vramlens::analyze::Class;
use vramlens::ids::{Pid, ProcId};
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
