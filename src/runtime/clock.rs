//! The clocks of the machine. Time enters everything above as an argument.

use std::fs::File;
use std::io::Read;

use jiff::tz::TimeZone;
use nix::time::{ClockId, clock_gettime};

use crate::ids::Stamp;

/// The longest files of zones have 4 KiB.
const LONGEST_ZONE: u64 = 1 << 20;

/// Now, on both clocks. A clock that cannot be read is not known to exist on Linux; it would read
/// as zero, the moment of boot.
pub fn now() -> Stamp {
    Stamp { boot_ms: read(ClockId::CLOCK_BOOTTIME), wall_ms: read(ClockId::CLOCK_REALTIME) }
}

fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds * 1000 + u64::try_from(time.tv_nsec()).unwrap_or(0) / 1_000_000
    })
}

/// Seconds to add to UTC for the local time of `at`.
pub fn utc_offset_seconds(at: Stamp) -> i32 {
    let Ok(moment) = jiff::Timestamp::from_millisecond(i64::try_from(at.wall_ms).unwrap_or(0))
    else {
        return 0;
    };
    local().unwrap_or_else(TimeZone::system).to_offset(moment).seconds()
}

/// The machine's time zone, read without the list of all zones that a search by name begins with:
/// that would be a hundred directories at every start. `None` where the user names another one.
fn local() -> Option<TimeZone> {
    if std::env::var_os("TZ").is_some() {
        return None;
    }
    let mut data = Vec::new();
    let file = File::open("/etc/localtime").ok()?;
    file.take(LONGEST_ZONE).read_to_end(&mut data).ok()?;
    TimeZone::tzif("local", &data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_of_the_machine_is_the_one_that_a_search_by_name_finds() {
        let (named, found) = (TimeZone::system(), local());
        for month in 0..24 {
            let moment = jiff::Timestamp::from_second(1_780_000_000 + month * 2_629_746).unwrap();
            if let Some(found) = &found {
                assert_eq!(found.to_offset(moment), named.to_offset(moment));
            }
        }
    }
}
