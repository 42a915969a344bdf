use std::{io, sync::Arc};

use indexmap::IndexMap;

use super::{
    SCHEMA_URL, chat,
    span::{Attributes, CLIENT, INTERNAL, Span, SpanTimes, span_id, trace_id},
    times::{self, TimeSource},
    tools::CallPairs,
};
use crate::{
    Error, Result,
    json::{Value, object},
    request::{Exchange, ExchangeOutcome, Recording},
};

/// Writes recordings as one document of OTLP JSON. What was written is kept nowhere.
#[derive(Debug)]
pub struct OtlpWriter<W> {
    out: W,
    report: OtlpReport,
}

/// What a document holds.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtlpReport {
    /// Sessions: each is a trace.
    pub sessions: u64,
    /// Requests: each is a span `chat`.
    pub requests: u64,
    /// Calls of tools whose times are known: each is a span `execute_tool`.
    pub tools: u64,
    /// Requests whose source has no time: they have that of their neighbour, or of their order.
    pub without_time: u64,
    /// Exchanges that no list of requests has. They are in no span.
    pub unlisted: u64,
}

impl<W: io::Write> OtlpWriter<W> {
    /// Begins a document.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn new(out: W) -> Result<Self> {
        let mut resource = Attributes::default();
        resource.put("service.name", "afterimage");
        let resource = object! { "attributes": resource.into_value() };
        let scope = object! { "name": "afterimage", "version": env!("CARGO_PKG_VERSION") };
        let mut writer = Self { out, report: OtlpReport::default() };
        writer.write(&format!(
            r#"{{"resourceSpans":[{{"resource":{},"scopeSpans":[{{"scope":{},"spans":["#,
            Value::from(resource),
            Value::from(scope)
        ))?;
        Ok(writer)
    }

    /// Adds the sessions of a recording that are wanted, each with its requests. `moment` reads a
    /// time as a source writes it: nanoseconds since 1970. Each request is worked out, written and
    /// let go.
    ///
    /// # Errors
    /// Those of [`Recording::request`], and [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn add(
        &mut self,
        recording: &Recording,
        is_wanted: impl Fn(&str) -> bool,
        moment: impl Fn(&str) -> Option<u64>,
    ) -> Result<()> {
        let mut sessions: IndexMap<Arc<str>, Vec<&Exchange>> = IndexMap::new();
        let all = recording.exchanges().iter();
        for exchange in all.filter(|exchange| is_wanted(&exchange.session)) {
            sessions.entry(Arc::clone(&exchange.session)).or_default().push(exchange);
        }
        let unlisted = recording.reported().filter(|reported| !reported.is_listed);
        let unlisted = unlisted.filter(|reported| is_wanted(&reported.session));
        self.report.unlisted += unlisted.count() as u64;
        for (session, exchanges) in &sessions {
            self.session(recording, session, exchanges, &moment)?;
        }
        Ok(())
    }

    /// Ends the document.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn finish(mut self) -> Result<OtlpReport> {
        let url = Value::from(SCHEMA_URL);
        self.write(&format!("],\"schemaUrl\":{url}}}],\"schemaUrl\":{url}}}]}}\n"))?;
        self.out.flush().map_err(|error| Error::io(error, "cannot write"))?;
        Ok(self.report)
    }

    fn session(
        &mut self,
        recording: &Recording,
        session: &str,
        exchanges: &[&Exchange],
        moment: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<()> {
        let Some(first) = exchanges.first() else { return Ok(()) };
        let format = recording.format();
        let begins = recording.request(first.number)?;
        let trace =
            trace_id(&[format.name().as_bytes(), session.as_bytes(), begins.body().as_bytes()]);
        let root = span_id(&[trace.as_bytes(), b"invoke_agent"]);
        let times = times::of_session(recording, exchanges, moment);
        let mut whole: Option<SpanTimes> = None;
        let history = recording.history(session);
        let pairs = history.map(CallPairs::of);
        for (exchange, (times, source)) in exchanges.iter().zip(times) {
            let mut attributes = chat::attributes(recording, exchange)?;
            attributes.put("afterimage.time", source.as_str());
            let is_told = matches!(source, TimeSource::Recorded | TimeSource::Start);
            self.report.without_time += u64::from(!is_told);
            let number = exchange.number.to_le_bytes();
            let name = match &exchange.model {
                Some(model) => format!("chat {model}"),
                None => "chat".to_owned(),
            };
            let failure = match &exchange.outcome {
                ExchangeOutcome::Failed { reason } => Some(reason.as_str()),
                _ => None,
            };
            let id = span_id(&[trace.as_bytes(), b"chat", &number]);
            self.report.requests += 1;
            self.span(Span {
                trace: &trace,
                id: &id,
                parent: Some(&root),
                name,
                kind: CLIENT,
                times,
                attributes,
                failure,
            })?;
            let mut end = times.end;
            for frame in &exchange.response.frames {
                let Some((history, pairs)) = history.zip(pairs.as_ref()) else { break };
                for (index, call) in
                    pairs.executions(history, *frame, moment).into_iter().enumerate()
                {
                    end = end.max(call.times.end);
                    let place = [frame.get().to_le_bytes(), (index as u64).to_le_bytes()].concat();
                    self.report.tools += 1;
                    self.span(Span {
                        trace: &trace,
                        id: &span_id(&[trace.as_bytes(), b"execute_tool", &place]),
                        parent: Some(&root),
                        name: format!("execute_tool {}", call.name),
                        kind: INTERNAL,
                        times: call.times,
                        attributes: call.attributes,
                        failure: call.is_failed.then_some("the tool failed"),
                    })?;
                }
            }
            let known = whole.unwrap_or(times);
            whole = Some(SpanTimes { start: known.start.min(times.start), end: known.end.max(end) });
        }
        let mut attributes = Attributes::default();
        attributes.put("gen_ai.operation.name", "invoke_agent");
        attributes.put("gen_ai.provider.name", chat::provider(first.api, format));
        attributes.put("gen_ai.conversation.id", session);
        attributes.put("afterimage.format", format.name());
        self.report.sessions += 1;
        self.span(Span {
            trace: &trace,
            id: &root,
            parent: None,
            name: "invoke_agent".to_owned(),
            kind: INTERNAL,
            times: whole.unwrap_or(SpanTimes { start: 1, end: 1 }),
            attributes,
            failure: None,
        })
    }

    fn span(&mut self, span: Span<'_>) -> Result<()> {
        let OtlpReport { sessions, requests, tools, .. } = self.report;
        let is_first = sessions + requests + tools == 1;
        let separator = if is_first { "\n" } else { ",\n" };
        self.write(separator)?;
        self.write(&span.into_value().to_string())
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(|error| Error::io(error, "cannot write"))
    }
}
