//! Requests of sessions with all that they may hold, for `scripts/sdk-types`: the types of the
//! providers' own SDKs check what `AFTERIMAGE_BODIES` names a folder for.

use std::{fs, path::PathBuf, sync::Arc};

use afterimage::{
    id::FacetType,
    json,
    session::{Awaits, MemoryStore, Model, Session, SessionOptions},
    tokens::Chars4,
    transcript::{Api, Record, Transcript},
    veil::{Facet, FacetOp, FacetPart, Frame, Media, PartContent, PartSource, Source},
};
use afterimage_testkit::data;

use super::living_session::{APIS, answer, tools};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Recordings of more bytes take too long here.
const MOST_BYTES: u64 = 300_000;

/// Bodies, each in a file, where somebody wants them.
struct Bodies {
    folder: Option<PathBuf>,
    count: usize,
}

impl Bodies {
    fn keep(&mut self, api: Api, body: &str) {
        self.count += 1;
        if let Some(folder) = &self.folder {
            fs::write(folder.join(format!("{api}-{}.json", self.count)), body).unwrap();
        }
    }
}

fn image(id: String) -> Facet {
    let block = format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PNG}"}}}}"#
    );
    let source = PartSource::of_block(json::read(block.as_bytes()).unwrap());
    let media = Media { media_type: Some("image/png".into()), ..Media::default() };
    let part = FacetPart { source, ..FacetPart::new(PartContent::Image(media)) };
    let mut facet = Facet::new(id, FacetType::IMAGE, "[image/png, 70 bytes]");
    facet.part = Some(Box::new(part));
    facet
}

/// Tools, reasoning, images in the user's words and in results, summaries, what holds now.
fn live(api: Api, bodies: &mut Bodies) {
    let options = SessionOptions { counter: Arc::new(Chars4), ..SessionOptions::default() };
    let mut session = Session::open_with(MemoryStore::default(), options).unwrap();
    let model = Model::new(api, "m", 2_500).output(500);
    session.system("You are a harbour pilot.").unwrap();
    session.tools(tools()).unwrap();
    while session.turns() < 60 {
        let turn = session.turns();
        match session.awaits() {
            Awaits::Answer => {
                session.ambient("clock", format!("It is {turn} o'clock.")).unwrap();
                let request = session.request(&model).unwrap();
                bodies.keep(api, &request.body);
                session.answer(answer(api, &request.body)).unwrap();
            }
            Awaits::Results(calls) => {
                for call in calls {
                    let id = format!("seen-{turn}");
                    let said = "High water at 06:10. ".repeat(1 + turn as usize % 9 * 6);
                    let mut result =
                        Facet::tool_result(id.as_str(), Some(&call.id), Some(&call.name), said);
                    if turn.is_multiple_of(3) {
                        result = result.with_child(image(format!("image-{turn}")));
                    }
                    let frame = Frame::new(0, Source::Environment).with(FacetOp::add(result));
                    session.push(frame).unwrap();
                }
            }
            Awaits::User => {
                session.user(format!("And harbour {turn}?")).unwrap();
                let image = image(format!("plan-{turn}"));
                session.push(Frame::new(0, Source::User).with(FacetOp::add(image))).unwrap();
            }
        }
    }
}

/// The requests of sessions that go on from recordings.
fn read(bodies: &mut Bodies) {
    let folders = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];
    let files =
        folders.into_iter().filter_map(data::recordings).flat_map(|of| data::files_under(&of));
    for path in files.filter(|path| fs::metadata(path).unwrap().len() < MOST_BYTES) {
        let Ok(transcript) = Transcript::open(&path) else { continue };
        let mut records: Vec<Record> = transcript.filter_map(Result::ok).collect();
        let Some(name) = records.first().map(|record| record.session.clone()) else { continue };
        records.retain(|record| record.session == name);
        for api in APIS {
            let options = SessionOptions { counter: Arc::new(Chars4), ..SessionOptions::default() };
            let mut session = Session::open_with(MemoryStore::default(), options).unwrap();
            session.read(records.iter().cloned().map(Ok)).unwrap();
            session.tools(tools()).unwrap();
            session.user("Go on.").unwrap();
            bodies.keep(api, &session.request(&Model::new(api, "m", 8_000)).unwrap().body);
        }
    }
}

#[test]
fn sessions_make_requests_for_the_types_of_the_sdks() {
    let folder = std::env::var_os("AFTERIMAGE_BODIES").map(PathBuf::from);
    let mut bodies = Bodies { folder, count: 0 };
    for api in APIS {
        live(api, &mut bodies);
    }
    assert_eq!(bodies.count, 180);
    read(&mut bodies);
    eprintln!("{} requests", bodies.count);
}
