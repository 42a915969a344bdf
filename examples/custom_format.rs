//! A HUD with a format of its own: a ship's log, where every entry carries its watch.
//!
//! `cargo run -p afterimage --example custom_format`

use std::sync::Arc;

use afterimage::{
    Result,
    hud::{Canvas, Format, Hud, RenderRequest},
    id::{FacetType, Millis},
    json::Object,
    tokens::{Bpe, Memo},
    veil::{Facet, FacetOp, Frame, History, Source},
};

struct ShipsLog;

impl Format for ShipsLog {
    fn id(&self) -> &'static str {
        "ships-log"
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        if facet.content.is_empty() {
            return Ok(());
        }
        let watch = facet.attributes.get("watch").and_then(|watch| watch.as_str());
        canvas.tag(&format!("[{}] ", watch.unwrap_or("all watches")));
        canvas.text(&facet.content);
        canvas.children(facet, "\n", |child, canvas| self.facet(child, canvas))
    }
}

fn main() -> Result<()> {
    let counter = Memo::new(Bpe::o200k());
    let hud = Hud::builder(Arc::new(counter)).format(Arc::new(ShipsLog)).viewer("captain").build();
    let mut history = History::new();

    let mut sighting = Facet::new("sighting-1", FacetType::EVENT, "A light, bearing 040.");
    sighting.attributes.insert("watch".to_owned(), "first dog".into());
    let wind = Facet::new("wind", FacetType::STATE, "Wind south-west, force 5.");
    let frame = Frame::new(0, Source::Environment);
    let frame = frame.with(FacetOp::add(sighting)).with(FacetOp::add(wind));
    hud.capture(&mut history, frame, Millis::new(0))?;

    // Only the state changes, so only the state is shown again.
    let changes = Object::from_iter([("content".to_owned(), "Wind west, force 7.".into())]);
    let frame = Frame::new(1, Source::Environment).with(FacetOp::rewrite("wind", changes));
    hud.capture(&mut history, frame, Millis::new(60_000))?;

    let context = hud.render(&history, &RenderRequest::default(), Millis::new(60_000))?;
    for message in context.messages() {
        println!("— {} —\n{}", message.role(), message.content());
        for span in context.spans(message) {
            println!("    {:>3}..{:<3} {:?}", span.range.start(), span.range.end(), span.owner);
        }
    }
    println!("{:?}", context.tokens());
    Ok(())
}
