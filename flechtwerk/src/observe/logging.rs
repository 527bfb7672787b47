//! Log lines: to standard error, as text or JSON. Stage, topic and partition are fields of the spans and events that
//! the runtime makes; they appear in both forms.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use super::Restores;
use crate::settings::{LogFormat, Settings};

/// Starts logging for the process. Where somebody has set a subscriber before, theirs stays.
pub(crate) fn start(settings: &Settings, default_filter: &str, colour: bool, restores: Option<&Restores>) {
    let writer = Stderr { restores: restores.cloned() };
    let _ = tracing::subscriber::set_global_default(subscriber(settings, default_filter, colour, writer));
}

fn subscriber<W>(
    settings: &Settings,
    default_filter: &str,
    colour: bool,
    writer: W,
) -> Box<dyn tracing::Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::new(settings.log.as_deref().unwrap_or(default_filter));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    let registry = tracing_subscriber::registry().with(filter);
    match settings.log_format {
        LogFormat::Text => Box::new(registry.with(layer.with_ansi(colour).with_target(false))),
        LogFormat::Json => {
            let layer = layer.json().flatten_event(true).with_current_span(true).with_span_list(false);
            Box::new(registry.with(layer))
        }
    }
}

/// Standard error, with the progress bars out of the way while a line is written.
struct Stderr {
    restores: Option<Restores>,
}

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { restores: self.restores.as_ref(), text: Vec::new() }
    }
}

/// One event's text, written at once.
struct Line<'a> {
    restores: Option<&'a Restores>,
    text: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // A log that can't be written must not stop the work.
        let write = || drop(io::stderr().lock().write_all(&self.text));
        match self.restores {
            Some(restores) => restores.suspend(write),
            None => write(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Captured {
        type Writer = Captured;

        fn make_writer(&'a self) -> Captured {
            self.clone()
        }
    }

    fn captured(settings: &Settings) -> String {
        let captured = Captured::default();
        tracing::subscriber::with_default(subscriber(settings, "info", false, captured.clone()), || {
            let span = tracing::info_span!("task", stage = "count", partition = 3);
            let _entered = span.enter();
            tracing::info!(topic = "words", offset = 7, "restored");
            tracing::debug!("not wanted");
        });
        let bytes = captured.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_lines_carry_the_fields_of_span_and_event() {
        let text = captured(&Settings::default());
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in ["INFO", "stage=\"count\"", "partition=3", "topic=\"words\"", "offset=7", "restored"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn json_lines_are_one_object_each() {
        let text = captured(&Settings { log_format: LogFormat::Json, ..Settings::default() });
        let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!(line["message"], "restored");
        assert_eq!(line["topic"], "words");
        assert_eq!(line["span"]["stage"], "count");
        assert_eq!(line["span"]["partition"], 3);
    }

    #[test]
    fn the_filter_is_the_settings() {
        let text = captured(&Settings { log: Some("off".into()), ..Settings::default() });
        assert_eq!(text, "");
        let text = captured(&Settings { log: Some("debug".into()), ..Settings::default() });
        assert_eq!(text.lines().count(), 2);
    }
}
