//! All targets in one program, which is built once: `VRAMLENS_FUZZ_TARGET` says which it is.
#![no_main]

use std::sync::LazyLock;

#[path = "../targets.rs"]
mod targets;

static CHOSEN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("VRAMLENS_FUZZ_TARGET").expect("VRAMLENS_FUZZ_TARGET");
    let found = targets::TARGETS.iter().find(|target| target.0 == name);
    found.unwrap_or_else(|| panic!("no target is called {name}")).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| CHOSEN(data));
