//! Durations as kubectl shows them: with at most two units, and more precise the shorter they are.

use jiff::SignedDuration;

/// `45s`, `3m5s`, `12m`, `5h10m`, `3d2h`, `200d`, `3y20d`.
pub(super) fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        pair(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        pair(days, "d", hours % 24, "h")
    } else if days < 365 * 2 {
        format!("{days}d")
    } else if days < 365 * 8 {
        pair(days / 365, "y", days % 365, "d")
    } else {
        format!("{}y", days / 365)
    }
}

fn pair(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_kubectl_shows_them() {
        let rows = [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (660, "11m"),
            (3 * 3_600 + 60, "3h1m"),
            (9 * 3_600, "9h"),
            (50 * 3_600, "2d2h"),
            (10 * 86_400, "10d"),
            (800 * 86_400, "2y70d"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
