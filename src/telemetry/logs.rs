//! Logs go to stderr: stdout belongs to the results of commands.
//!
//! `RUST_LOG` decides what is logged, within one limit that it cannot lift: libraries that write
//! whole headers, frames or rows at their finest levels are capped, so that turning a log up
//! during an incident does not write somebody's API key to disk.

use std::io;

use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    filter::{ParseError, filter_fn},
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::{SubscriberInitExt, TryInitError},
};

use crate::config::{LogFormat, LogSettings};

/// The finest level that a library may use, by the beginning of its target. At finer levels hyper
/// and h2 write headers, `Authorization` among them, and sqlx writes rows; sqlx's statements, at
/// `debug`, have placeholders and no values.
const CAPS: [(&str, Level); 4] = [
    ("h2", Level::INFO),
    ("hyper", Level::INFO),
    ("reqwest", Level::INFO),
    ("sqlx", Level::DEBUG),
];

/// Why nothing would be logged.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("RUST_LOG is not a list of filter directives")]
    Filter(#[from] ParseError),
    #[error("logs were set up before")]
    Twice(#[from] TryInitError),
}

/// Sends this process's logs to stderr. Once per process.
pub fn init(settings: &LogSettings) -> Result<(), LogError> {
    Ok(subscriber(settings, io::stderr)?.try_init()?)
}

/// Both filters are layers of their own and not filters of the layer that writes: sqlx asks whether
/// its statements would be logged, and a filter of one layer takes a "no" for the next event of the
/// thread, whatever that is, which then is lost.
fn subscriber<W>(
    settings: &LogSettings,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogError>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let wanted = EnvFilter::builder().parse(&settings.filter)?;
    let filtered = tracing_subscriber::registry()
        .with(wanted)
        .with(filter_fn(is_within_caps));
    let lines = fmt::layer().with_writer(writer);
    Ok(match settings.format {
        LogFormat::Text => Box::new(filtered.with(lines.with_ansi(false))),
        LogFormat::Json => Box::new(filtered.with(lines.json().flatten_event(true))),
    })
}

fn is_within_caps(metadata: &Metadata<'_>) -> bool {
    CAPS.iter()
        .filter(|(target, _)| metadata.target().starts_with(target))
        .all(|(_, finest)| metadata.level() <= finest)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    /// Collects what is written.
    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            written.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str, act: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let settings = LogSettings {
            format,
            filter: filter.to_owned(),
        };
        let subscriber = subscriber(&settings, move || writer.clone()).unwrap();

        tracing::subscriber::with_default(subscriber, act);

        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_filter_lifts_the_cap_on_libraries_that_write_secrets() {
        let text = logged(LogFormat::Text, "trace,h2=trace,sqlx=trace", || {
            tracing::debug!(target: "h2::codec", "authorization: Bearer sk_leaked");
            tracing::debug!(target: "hyper::proto", "authorization: Bearer sk_leaked");
            tracing::debug!(target: "hyper_util::client", "authorization: Bearer sk_leaked");
            tracing::trace!(target: "sqlx_postgres::connection", "row: sk_leaked");
            tracing::debug!(target: "sqlx::query", "a statement");
            tracing::trace!(target: "oncepay", "our own");
        });

        assert!(!text.contains("sk_leaked"), "{text}");
        assert!(text.contains("a statement"), "{text}");
        assert!(text.contains("our own"), "{text}");
    }

    #[test]
    fn the_filter_decides_the_rest() {
        let text = logged(LogFormat::Text, "warn,oncepay=info", || {
            tracing::info!(target: "oncepay::cli", "kept");
            tracing::debug!(target: "oncepay::cli", "dropped");
            tracing::info!(target: "sqlx::query", "dropped");
        });

        assert!(text.contains("kept"), "{text}");
        assert!(!text.contains("dropped"), "{text}");
    }

    #[test]
    fn a_question_about_one_event_does_not_lose_the_next() {
        let text = logged(LogFormat::Text, "info", || {
            assert!(!tracing::enabled!(target: "sqlx::query", Level::DEBUG));
            tracing::info!(target: "oncepay::cli", "kept");
        });

        assert!(text.contains("kept"), "{text}");
    }

    #[test]
    fn a_json_line_has_the_fields_of_the_event_and_its_span() {
        let text = logged(LogFormat::Json, "info", || {
            let span = tracing::info_span!("request", request_id = "req_1");
            span.in_scope(|| tracing::info!(operation = "payments.create", "settled"));
        });

        let line: serde_json::Value = serde_json::from_str(&text).unwrap();

        assert_eq!(line["message"], "settled");
        assert_eq!(line["operation"], "payments.create");
        assert_eq!(line["span"]["request_id"], "req_1");
    }
}
