//! What scripts ask several machines, of which one can answer and another cannot.

use serde_json::Value;

use crate::farm::Farm;
use crate::{GIB, output, used};

#[test]
fn each_machine_is_asked_about_its_own_gpus() {
    let Some(farm) = Farm::new(&[("box1", &used(35)), ("box2", &used(70))]) else { return };
    let hosts = ["--host", "box1", "--host", "box2"];
    let (code, text) = output(&farm, &[&hosts[..], &["--once", "--gpu", "9"]].concat());
    assert_eq!(
        (code, text.matches("there is no GPU 9; there is only GPU 0").count()),
        (2, 2),
        "{text}"
    );
    let kill = ["kill", "--host", "box1", "--zombies", "--dry-run", "--gpu", "9"];
    let (code, text) = output(&farm, &kill);
    assert!(code == 2 && text.contains("box1: there is no GPU 9"), "{text}");
    let (code, text) = output(&farm, &[&["triage", "--need", "100GiB"], &hosts[..]].concat());
    assert!(code == 0 && text.contains("do not fit"), "one of the two has room: {text}");
}

#[test]
fn scripts_get_an_answer_for_each_machine() {
    let Some(mut farm) = Farm::new(&[("box1", &used(35)), ("box2", &used(70))]) else { return };
    let hosts = ["--host", "box1", "--host", "box2"];
    let (code, text) = output(&farm, &[&hosts[..], &["--once"]].concat());
    assert_eq!(code, 0, "{text}");
    let (first, second) = text.split_once("host box2").unwrap();
    assert!(first.contains("host box1") && first.contains("35.0 of 140.0"), "{text}");
    assert!(second.contains("70.0 of 140.0"), "{text}");

    farm.stop("box2");
    let (code, text) = output(&farm, &[&hosts[..], &["--json"]].concat());
    assert_eq!(code, 4, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer[0]["host"], "box1");
    assert_eq!(answer[0]["snapshot"]["gpus"][0]["memory"]["used_bytes"], 35 * GIB, "{text}");
    assert_eq!(answer[1]["host"], "box2");
    assert!(answer[1]["error"].as_str().unwrap().contains("away"), "{text}");

    let (code, text) = output(&farm, &["triage", "--host", "box1", "--json"]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    let findings = answer[0]["triage"]["findings"].as_array().unwrap();
    let serious = findings.iter().any(|finding| finding["severity"] != "notice");
    assert_eq!(code, i32::from(serious), "{text}");
}
