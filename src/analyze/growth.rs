//! How memory moves: a robust slope with its error, and no statement before there is evidence.

use super::Growth;
use crate::history::{Series, TIERS};
use crate::units::{Bytes, BytesPerMinute};

/// Points that a slope is fitted to: the work grows with their square.
const POINTS: usize = 30;
/// Movement below this is noise, in KiB.
const NOISE_KIB: f64 = 1_024.0;
/// The stretch that a change is told of, in milliseconds.
const MINUTE_MS: u64 = 60_000;
/// A stretch that a trend is looked for in.
struct Window {
    tier: usize,
    span_ms: u64,
    least_ms: u64,
    least_points: usize,
}

const WINDOWS: [Window; 2] = [
    Window { tier: 0, span_ms: 120_000, least_ms: 30_000, least_points: 10 },
    Window { tier: 1, span_ms: 3_600_000, least_ms: 900_000, least_points: 8 },
];

/// How a series moved up to `now_ms`; `free` is what is left on its GPU, for the forecast.
pub fn of_series(series: &Series, now_ms: u64, free: Option<Bytes>) -> Growth {
    let mut growth = Growth::NotYet;
    for window in &WINDOWS {
        let from_ms = now_ms.saturating_sub(window.span_ms);
        let found = if series.constant_since(window.tier, from_ms) {
            Growth::Steady
        } else {
            in_window(series, window, now_ms, free)
        };
        match (&growth, &found) {
            (_, Growth::Trend { .. }) => return found,
            (Growth::NotYet, _) => growth = found,
            _ => {}
        }
        if growth == Growth::NotYet {
            break;
        }
    }
    growth
}

fn in_window(series: &Series, window: &Window, now_ms: u64, free: Option<Bytes>) -> Growth {
    let from_ms = now_ms.saturating_sub(window.span_ms);
    if let Some(held) = series.held(window.tier, from_ms, now_ms) {
        return of_one_value(held, window);
    }
    let points = thinned(series.cells(window.tier, from_ms, now_ms), window);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Growth::NotYet };
    if points.len() < window.least_points || last.0 - first.0 < window.least_ms as f64 / 60_000.0 {
        return Growth::NotYet;
    }
    let lowest = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let highest = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let noise = NOISE_KIB.max(highest * 0.000_5);
    if highest - lowest <= noise {
        return Growth::Steady;
    }
    if let Some((slope, error)) = steady_slope(&points, noise) {
        return Growth::Trend {
            per_minute: per_minute(slope),
            error: per_minute(error),
            full_in_ms: free.and_then(|free| full_in_ms(free, slope, error)),
        };
    }
    in_last_minute(series, now_ms, noise)
}

/// The word and the figure of what is no trend, from the same minute: whether it moved in it, and
/// the difference between its ends.
fn in_last_minute(series: &Series, now_ms: u64, noise: f64) -> Growth {
    let (step, _) = TIERS[0];
    let then_ms = now_ms.saturating_sub(MINUTE_MS) / step * step;
    let mut cells = series.cells(0, then_ms, now_ms);
    let Some(first) = cells.next().filter(|first| first.0 == then_ms && now_ms >= MINUTE_MS) else {
        return Growth::NotYet;
    };
    let (mut low, mut high, mut last) = (first.1, first.1, first.1);
    for (_, cell) in cells {
        (low, high, last) = (low.min(cell), high.max(cell), cell);
    }
    if f64::from(high - low) <= noise {
        return Growth::Steady;
    }
    Growth::Changing { per_minute: per_minute(f64::from(last) - f64::from(first.1)) }
}

/// What a series says that held one value in all cells from the first to the last: what its points
/// would, without making them. Most holders are like that, for as long as they are watched.
fn of_one_value((first_ms, last_ms): (u64, u64), window: &Window) -> Growth {
    let (stretch, (step, _)) = (stretch_ms(window), TIERS[window.tier]);
    let (begin, end) = (first_ms / stretch, last_ms / stretch);
    // A point stands at the mean of its stretch.
    let first_end = last_ms.min((begin + 1) * stretch - step);
    let last_begin = first_ms.max(end * stretch);
    let twice = (last_begin + last_ms).saturating_sub(first_ms + first_end);
    if ((end - begin + 1) as usize) < window.least_points || twice < 2 * window.least_ms {
        return Growth::NotYet;
    }
    Growth::Steady
}

/// How long a stretch one point stands for, in milliseconds.
const fn stretch_ms(window: &Window) -> u64 {
    let (step, _) = TIERS[window.tier];
    (window.span_ms / step).div_ceil(POINTS as u64) * step
}

/// Minutes and KiB, at most `POINTS`: each the mean of its stretch, so that a saw-tooth becomes
/// its level.
fn thinned(cells: impl Iterator<Item = (u64, u32)>, window: &Window) -> Vec<(f64, f64)> {
    let stretch = stretch_ms(window);
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(POINTS + 1);
    let (mut key, mut sum) = (0, (0.0, 0.0, 0.0));
    for (at_ms, cell) in cells {
        if sum.2 > 0.0 && at_ms / stretch != key {
            points.push((sum.0 / sum.2, sum.1 / sum.2));
            sum = (0.0, 0.0, 0.0);
        }
        key = at_ms / stretch;
        sum = (sum.0 + at_ms as f64 / 60_000.0, sum.1 + f64::from(cell), sum.2 + 1.0);
    }
    if sum.2 > 0.0 {
        points.push((sum.0 / sum.2, sum.1 / sum.2));
    }
    points
}

/// The median of all pairs' slopes (Theil and Sen) with its standard error, where the movement is
/// steady: well above its error, and of like slope in the first half and in the second.
fn steady_slope(points: &[(f64, f64)], noise: f64) -> Option<(f64, f64)> {
    let slope = median_slope(points)?;
    let mut offsets: Vec<f64> = points.iter().map(|p| p.1 - slope * p.0).collect();
    let level = median(&mut offsets)?;
    let mut off: Vec<f64> = points.iter().map(|p| (p.1 - slope * p.0 - level).abs()).collect();
    let deviation = 1.4826 * median(&mut off)?;
    let mean = points.iter().map(|p| p.0).sum::<f64>() / points.len() as f64;
    let spread = points.iter().map(|p| (p.0 - mean).powi(2)).sum::<f64>().sqrt();
    let error = deviation / spread;
    let span = points.last()?.0 - points.first()?.0;
    let (early, late) = points.split_at(points.len() / 2);
    let halves = [median_slope(early)?, median_slope(late)?];
    let alike = halves.iter().all(|half| half / slope > 0.4 && half / slope < 2.5);
    (slope.abs() > 4.0 * error && slope.abs() * span > 2.0 * noise && alike)
        .then_some((slope, error))
}

fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (n, a) in points.iter().enumerate() {
        for b in points.iter().skip(n + 1).filter(|b| b.0 > a.0) {
            slopes.push((b.1 - a.1) / (b.0 - a.0));
        }
    }
    median(&mut slopes)
}

fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

fn per_minute(kib: f64) -> BytesPerMinute {
    BytesPerMinute(kib * 1_024.0)
}

fn full_in_ms(free: Bytes, slope: f64, error: f64) -> Option<[u64; 3]> {
    let free_kib = free.0 as f64 / 1_024.0;
    let at = |slope: f64| (free_kib / slope * 60_000.0).min(1e15) as u64;
    (slope > 0.0).then(|| [at(slope + 2.0 * error), at(slope), at(slope - 2.0 * error)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(seconds: u64, kib: impl Fn(u64) -> u64) -> (Series, u64) {
        let mut series = Series::default();
        for n in 0..=seconds {
            series.push(n * 1_000, u32::try_from(kib(n)).unwrap(), n == 0);
        }
        (series, seconds * 1_000)
    }

    fn of(seconds: u64, kib: impl Fn(u64) -> u64) -> Growth {
        let (series, now) = series(seconds, kib);
        of_series(&series, now, Some(Bytes::gib(10)))
    }

    #[test]
    fn a_steady_climb_is_a_trend_with_a_forecast() {
        let Growth::Trend { per_minute, error, full_in_ms } = of(120, |n| 1_000_000 + n * 2_048)
        else {
            panic!("no trend")
        };
        assert!((per_minute.0 / Bytes::mib(120).0 as f64 - 1.0).abs() < 0.02, "{per_minute:?}");
        assert!(error.0.abs() < per_minute.0 * 0.1);
        let [earliest, likely, latest] = full_in_ms.unwrap();
        assert!(earliest <= likely && likely <= latest);
        assert!((4_900_000..5_400_000).contains(&likely), "{likely}");
    }

    #[test]
    fn a_noisy_climb_is_a_trend_and_its_error_is_wider() {
        let noise = |n: u64| (n * 7_919 % 13) * 1_500;
        let Growth::Trend { per_minute, .. } = of(120, |n| 1_000_000 + n * 2_048 + noise(n)) else {
            panic!("no trend")
        };
        assert!((per_minute.0 / Bytes::mib(120).0 as f64 - 1.0).abs() < 0.2, "{per_minute:?}");
    }

    #[test]
    fn no_statement_before_there_is_evidence() {
        assert_eq!(of(8, |n| 1_000_000 + n * 4_096), Growth::NotYet);
    }

    #[test]
    fn constant_and_noisy_levels_are_steady() {
        assert_eq!(of(120, |_| 2_000_000), Growth::Steady);
        assert_eq!(of(120, |n| 2_000_000 + n % 3 * 100), Growth::Steady);
    }

    #[test]
    fn one_value_says_what_its_points_would() {
        for (offset, length) in (0..40).flat_map(|n| (0..260).map(move |m| (n * 7, m * 17))) {
            let mut series = Series::default();
            for n in offset..=offset + length {
                series.push(n * 1_000, 5_000, n == offset);
            }
            let now = (offset + length) * 1_000;
            for window in &WINDOWS {
                let from = now.saturating_sub(window.span_ms);
                let points = thinned(series.cells(window.tier, from, now), window);
                let lasts = points.last().unwrap().0 - points[0].0;
                let known = points.len() >= window.least_points
                    && lasts >= window.least_ms as f64 / 60_000.0 - 1e-9;
                let expected = if known { Growth::Steady } else { Growth::NotYet };
                let held = series.held(window.tier, from, now).unwrap();
                assert_eq!(of_one_value(held, window), expected, "{offset} {length}");
            }
        }
    }

    #[test]
    fn a_saw_tooth_is_no_trend() {
        let growth = of(120, |n| 2_000_000 + n % 10 * 100_000);
        assert!(!matches!(growth, Growth::Trend { .. }), "{growth:?}");
    }

    #[test]
    fn one_step_is_no_trend() {
        for at in [20, 60, 100, 115] {
            let growth = of(120, |n| if n < at { 1_000_000 } else { 5_000_000 });
            assert!(!matches!(growth, Growth::Trend { .. }), "step at {at}: {growth:?}");
        }
        assert!(matches!(
            of(120, |n| if n < 100 { 1_000_000 } else { 5_000_000 }),
            Growth::Changing { .. }
        ));
    }

    #[test]
    fn a_change_is_the_difference_of_a_minute_and_its_word_is_of_the_same_minute() {
        // Up by 16 GiB for 30 s, and back by 15 of them; asked at every second after it.
        let gib = 1_048_576;
        let kib = |n: u64| {
            let risen = if n < 100 { 0 } else { gib };
            70 * gib + risen + if (100..130).contains(&n) { 15 * gib } else { 0 }
        };
        for now in 101..=220 {
            let growth = of(now, kib);
            let within = |n: u64| kib(n.max(now - 60));
            let (low, high) = (now - 60..=now)
                .map(within)
                .fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
            match growth {
                Growth::Changing { per_minute } => {
                    let difference = kib(now) as f64 - kib(now - 60) as f64;
                    assert!((per_minute.0 / 1_024.0 - difference).abs() < 1.0, "{now}: {growth:?}");
                }
                Growth::Steady => assert!(high - low < 100_000, "{now}: {low} {high}"),
                Growth::NotYet | Growth::Trend { .. } => {}
            }
            if (131..=159).contains(&now) {
                assert!(
                    matches!(growth, Growth::Changing { per_minute } if per_minute.0 > 0.0),
                    "{now}"
                );
            }
            if (161..=189).contains(&now) {
                assert!(
                    matches!(growth, Growth::Changing { per_minute } if per_minute.0 < 0.0),
                    "{now}"
                );
            }
        }
        // Less than a minute is no minute.
        assert_eq!(of(45, |n| if n < 30 { 1_000_000 } else { 9_000_000 }), Growth::NotYet);
    }

    #[test]
    fn a_slow_leak_shows_over_the_hour() {
        let growth = of(3_000, |n| 2_000_000 + n * 12);
        assert!(matches!(growth, Growth::Trend { .. }), "{growth:?}");
    }
}
