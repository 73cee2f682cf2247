//! Where the lines of a grid are, and what they are called.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::ids::Stamp;
use crate::units::Bytes;

/// Steps of a time axis, in seconds.
const STEPS_S: [u64; 19] = [
    1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800,
];

/// Marks on the time axis: milliseconds since boot, and the local time there. At most `most`.
pub fn times(from: Stamp, to: Stamp, most: usize, utc_offset_s: i32) -> Vec<(u64, String)> {
    let span_s = to.since(from) / 1_000;
    let most = most.max(1) as u64;
    let step_s = STEPS_S.into_iter().find(|step| span_s / step <= most);
    let step_ms = step_s.unwrap_or_else(|| (span_s / most).max(1)) * 1_000;
    let format = match step_ms {
        0..60_000 => "%H:%M:%S",
        60_000..86_400_000 => "%H:%M",
        _ => "%m-%d",
    };
    let offset = Offset::from_seconds(utc_offset_s).unwrap_or(Offset::UTC);
    // Whole steps of the local day.
    let local_ms = i128::from(from.wall_ms) + i128::from(utc_offset_s) * 1_000;
    let past = local_ms.rem_euclid(i128::from(step_ms)) as u64;
    let mut after = if past == 0 { 0 } else { step_ms - past };
    let mut marks = Vec::new();
    while after <= to.since(from) && marks.len() <= 4_096 {
        let wall = i64::try_from(from.wall_ms + after).unwrap_or(0);
        if let Ok(time) = Timestamp::from_millisecond(wall) {
            let label = offset.to_datetime(time).strftime(format).to_string();
            marks.push((from.boot_ms + after, label));
        }
        after += step_ms;
    }
    marks
}

/// Marks on the axis of memory from nothing to `top`, at most `most` above zero, and `top` itself.
pub fn sizes(top: Bytes, most: usize) -> Vec<Bytes> {
    let unit = if top > Bytes::gib(2) { Bytes::gib(1) } else { Bytes::mib(1) };
    let nice = [1, 2, 5].into_iter();
    let steps = (0..6_u32).flat_map(|power| nice.clone().map(move |n| n * 10_u64.pow(power)));
    let step = steps.map(|n| Bytes(n * unit.0)).find(|step| top.0 / step.0.max(1) <= most as u64);
    let Some(step) = step.filter(|_| top > Bytes::ZERO) else { return vec![Bytes::ZERO, top] };
    let mut marks: Vec<Bytes> = (0..=top.0 / step.0).map(|n| Bytes(n * step.0)).collect();
    // The last one gives way to the top where the two would touch.
    if marks.last().is_some_and(|last| top.0 - last.0 < step.0 / 2 && last.0 > 0) {
        marks.pop();
    }
    marks.push(top);
    marks
}

/// `140 GiB`, `139.8 GiB`, `512 MiB`.
pub fn size(bytes: Bytes) -> String {
    let whole = |unit: u64| bytes.0.is_multiple_of(unit).then_some(bytes.0 / unit);
    match (bytes, whole(Bytes::gib(1).0)) {
        (Bytes::ZERO, _) => "0".to_owned(),
        (_, Some(gib)) => format!("{gib} GiB"),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_in_local_time() {
        let from = Stamp { boot_ms: 1_000, wall_ms: 1_796_001_127_000 };
        let to = Stamp { boot_ms: 7_201_000, wall_ms: 1_796_008_327_000 };
        let labels = |most, offset| -> Vec<String> {
            times(from, to, most, offset).into_iter().map(|mark| mark.1).collect()
        };
        assert_eq!(labels(4, 3_600), ["02:30", "03:00", "03:30", "04:00"]);
        // Half an hour off, as in India.
        assert_eq!(labels(2, 19_800), ["07:00", "08:00"]);
        assert_eq!(times(from, to, 4, 3_600)[0].0, 1_000 + 1_073_000);
        assert_eq!(times(from, from, 4, 0).len(), 1);
    }

    #[test]
    fn sizes_are_round_and_end_at_the_top() {
        let gib = |n: &[u64]| n.iter().map(|n| Bytes::gib(*n)).collect::<Vec<_>>();
        assert_eq!(sizes(Bytes::gib(140), 4), gib(&[0, 50, 100, 140]));
        assert_eq!(sizes(Bytes::gib(24), 4), gib(&[0, 5, 10, 15, 20, 24]));
        assert_eq!(sizes(Bytes::gib(80), 4), gib(&[0, 20, 40, 60, 80]));
        assert_eq!(sizes(Bytes::ZERO, 4), [Bytes::ZERO, Bytes::ZERO]);
        assert_eq!(size(Bytes::gib(140)), "140 GiB");
        assert_eq!(size(Bytes(150_108_962_816)), "139.8 GiB");
    }
}
