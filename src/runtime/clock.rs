//! The clocks of the machine. Time enters everything above as an argument.

use nix::time::{ClockId, clock_gettime};

use crate::ids::Stamp;

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
    jiff::tz::TimeZone::system().to_offset(moment).seconds()
}
