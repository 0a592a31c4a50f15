"""Methods called later: after a delay, at a date, by a cron line or at an interval."""
