//! Moments as people write them, in milliseconds since 1970.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, fmt::rfc2822};

/// A day (`2024-05-01`), a moment (`2024-05-01T12:00:00Z`, with any offset), a date and time without an offset, or a date
/// of a mail (RFC 2822). What has no offset is in UTC. `None` if it is none of these.
#[must_use]
pub fn milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment.as_millisecond());
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return in_utc(time);
    }
    rfc2822::parse(text).ok().map(|zoned| zoned.timestamp().as_millisecond())
}

fn in_utc(time: DateTime) -> Option<i64> {
    TimeZone::UTC.to_timestamp(time).ok().map(Timestamp::as_millisecond)
}

/// As a day: `2024-05-01`.
#[must_use]
pub fn day(milliseconds: i64) -> String {
    match Timestamp::from_millisecond(milliseconds) {
        Ok(moment) => TimeZone::UTC.to_datetime(moment).date().to_string(),
        Err(_) => format!("{milliseconds} ms"),
    }
}

/// As a moment: `2024-05-01T12:00:00Z`.
#[must_use]
pub fn moment(milliseconds: i64) -> String {
    match Timestamp::from_second(milliseconds.div_euclid(1000)) {
        Ok(moment) => moment.to_string(),
        Err(_) => format!("{milliseconds} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_are_read_and_written() {
        assert_eq!(milliseconds("1970-01-02"), Some(86_400_000));
        assert_eq!(milliseconds("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(milliseconds("1970-01-01 00:00:01"), Some(1000));
        assert_eq!(milliseconds("Thu, 01 Jan 1970 00:00:02 +0000"), Some(2000));
        for text in ["", "soon", "2024", "2024-13-01", "1700000000"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
        assert_eq!(day(86_400_000), "1970-01-02");
        assert_eq!(moment(-1), "1969-12-31T23:59:59Z");
    }
}
