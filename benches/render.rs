//! Rendering with capture beside plain string building of the same facets.

mod support;

use std::{hint::black_box, sync::Arc};

use afterimage::{
    hud::{Hud, NativeFormat, XmlFormat},
    id::Millis,
    json::Value,
    snapshot::Part,
    veil::{Facet, Source},
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::{KnownCounts, Session};

fn render(criterion: &mut Criterion) {
    let (name, sessions) = support::corpus();
    let xml = Hud::builder(Arc::new(KnownCounts)).format(Arc::new(XmlFormat)).build();
    let native = Hud::builder(Arc::new(KnownCounts)).format(Arc::new(NativeFormat)).build();
    for (format, hud, plain) in
        [("xml", xml, plain_xml as fn(&Session) -> usize), ("native", native, plain_native)]
    {
        let bytes: usize = sessions.iter().map(|session| captured(&hud, session)).sum();
        let built: usize = sessions.iter().map(plain).sum();
        assert!(built.abs_diff(bytes) * 50 < bytes, "{built} bytes built, {bytes} rendered");
        let mut group = criterion.benchmark_group(format!("render/{format}/{name}-{bytes}-bytes"));
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function("plain strings", |bench| {
            bench.iter(|| sessions.iter().map(|session| plain(black_box(session))).sum::<usize>());
        });
        group.bench_function("with capture", |bench| {
            bench.iter(|| {
                sessions.iter().map(|session| captured(&hud, black_box(session))).sum::<usize>()
            });
        });
        group.finish();
    }
}

fn captured(hud: &Hud, session: &Session) -> usize {
    let snapshots: Vec<_> = session
        .frames
        .iter()
        .map(|(frame, shown)| hud.render_frame(frame, shown, Millis::new(0)).unwrap())
        .collect();
    black_box(&snapshots).iter().map(|snapshot| snapshot.text().len()).sum()
}

/// The same text without chunks, facets, counts and guards: a string a frame.
fn plain_xml(session: &Session) -> usize {
    let texts: Vec<String> = session
        .frames
        .iter()
        .map(|(frame, shown)| {
            let agent = frame.source == Source::Agent;
            let mut text = String::new();
            for (index, facet) in shown.facets.iter().enumerate() {
                if index > 0 {
                    text.push_str(if agent { "\n\n" } else { "\n" });
                } else if agent {
                    text.push_str("<my_turn>\n\n");
                }
                xml_facet(facet, &mut text);
            }
            if agent && !text.is_empty() {
                text.push_str("\n\n</my_turn>");
            }
            text
        })
        .collect();
    black_box(&texts).iter().map(String::len).sum()
}

fn xml_facet(facet: &Facet, text: &mut String) {
    use std::fmt::Write;
    if let Some(call) = facet.call() {
        let _ = writeln!(text, "<tool_call name=\"{}\">", call.name);
        match call.parameters {
            Some(Value::Object(parameters)) => {
                for (name, value) in parameters {
                    let _ = match value {
                        Value::String(value) => {
                            writeln!(text, "<parameter name=\"{name}\">{value}</parameter>")
                        }
                        value => writeln!(text, "<parameter name=\"{name}\">{value}</parameter>"),
                    };
                }
            }
            _ => text.push_str(call.arguments.unwrap_or_default()),
        }
        text.push_str("</tool_call>");
        return;
    }
    let closing = match (facet.chunk_part(), facet.facet_type.as_str()) {
        (Part::Result { .. }, _) => {
            let _ =
                writeln!(text, "<tool_result name=\"{}\">", facet.tool_name().unwrap_or_default());
            "\n</tool_result>"
        }
        (_, "thought") => {
            text.push_str("<thought>");
            "</thought>"
        }
        _ => "",
    };
    text.push_str(&facet.content);
    for (index, child) in facet.children.iter().enumerate() {
        if index > 0 || !facet.content.is_empty() {
            text.push('\n');
        }
        xml_facet(child, text);
    }
    text.push_str(closing);
}

fn plain_native(session: &Session) -> usize {
    fn facet(facet_: &Facet, text: &mut String) {
        use std::fmt::Write;
        match facet_.call() {
            Some(call) => match (call.arguments, call.parameters) {
                (Some(arguments), _) => text.push_str(arguments),
                (None, Some(parameters)) => {
                    let _ = write!(text, "{parameters}");
                }
                (None, None) => {}
            },
            None => text.push_str(&facet_.content),
        }
        facet_.children.iter().for_each(|child| facet(child, text));
    }
    let texts: Vec<String> = session
        .frames
        .iter()
        .map(|(_, shown)| {
            let mut text = String::new();
            shown.facets.iter().for_each(|shown| facet(shown, &mut text));
            text
        })
        .collect();
    black_box(&texts).iter().map(String::len).sum()
}

criterion_group!(benches, render);
criterion_main!(benches);
