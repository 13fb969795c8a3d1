//! Metrics of this process, which all its tests share: only that one grows can be said.

use oncepay::telemetry::metrics;

/// The value of one series, written as in the exposition.
pub fn shared(series: &str) -> f64 {
    let text = metrics::install().unwrap().render();
    value(&text, series).unwrap_or_else(|| panic!("{series} is not among\n{text}"))
}

/// The value of one series in an exposition.
pub fn value(exposition: &str, series: &str) -> Option<f64> {
    exposition.lines().find_map(|line| {
        let value = line.strip_prefix(series)?.strip_prefix(' ')?;
        value.parse().ok()
    })
}
