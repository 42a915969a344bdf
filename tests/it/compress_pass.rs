//! A pass over many frames reads each original once, and neither renders nor counts it again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use afterimage::{
    Result,
    compress::{CompressionJob, CompressionOptions, CompressionTransform, Engine, Summary},
    hud::{Canvas, Format, Hud, XmlFormat},
    id::{FacetType, Millis, Role},
    tokens::{Chars4, TokenCounter},
    veil::{Facet, History},
};
use compressing::{NOW, captured, render_with, turns};

/// Counts the facets that are written, by type.
#[derive(Default)]
struct CountingFormat(Mutex<HashMap<FacetType, usize>>);

impl Format for CountingFormat {
    fn id(&self) -> &str {
        XmlFormat.id()
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        *self.0.lock().unwrap().entry(facet.facet_type.clone()).or_default() += 1;
        XmlFormat.facet(facet, canvas)
    }

    fn turn(&self, role: Role) -> Option<(&str, &str)> {
        XmlFormat.turn(role)
    }

    fn separator(&self, role: Role) -> &str {
        XmlFormat.separator(role)
    }
}

/// Counts the bytes whose tokens are counted.
#[derive(Debug, Default)]
struct CountingCounter(AtomicUsize);

impl TokenCounter for CountingCounter {
    fn id(&self) -> &str {
        Chars4.id()
    }

    fn is_exact(&self) -> bool {
        Chars4.is_exact()
    }

    fn count(&self, text: &str) -> usize {
        self.0.fetch_add(text.len(), Ordering::Relaxed);
        Chars4.count(text)
    }
}

/// Notes what it is given to read, and how much it answers.
#[derive(Debug, Default)]
struct CountingEngine {
    /// How often the text at an address was read, and its length.
    read: Mutex<HashMap<(usize, usize), usize>>,
    answered: AtomicUsize,
}

impl Engine for CountingEngine {
    fn id(&self) -> &'static str {
        "counting"
    }

    fn summarize(&self, job: &CompressionJob, _: &dyn TokenCounter) -> Result<String> {
        for passage in &job.passages {
            let text = passage.snapshot.text();
            let key = (text.as_ptr().addr(), text.len());
            *self.read.lock().unwrap().entry(key).or_default() += 1;
        }
        let answer = compressing::beginning(job);
        self.answered.fetch_add(answer.len(), Ordering::Relaxed);
        Ok(answer)
    }
}

#[test]
fn a_pass_over_ten_thousand_frames_reads_each_byte_once_and_renders_none_again() {
    let format = Arc::new(CountingFormat::default());
    let counter = Arc::new(CountingCounter::default());
    let hud = Hud::builder(counter.clone()).format(format.clone()).build();
    let history = captured(&hud, &turns(2_500));
    assert_eq!(history.frames().len(), 10_000);
    format.0.lock().unwrap().clear();
    counter.0.store(0, Ordering::Relaxed);

    let engine = CountingEngine::default();
    let mut transform = CompressionTransform::new(CompressionOptions::default());
    let (mut summaries, mut of_frames) = (0, 0);
    loop {
        transform.plan(&history).unwrap();
        while let Some(job) = transform.next_job(&history, Millis::new(i64::MAX)).unwrap() {
            let summary = engine.summarize(&job, &Chars4).unwrap();
            let render = render_with(&hud, &history);
            transform
                .complete(&job, Summary { text: &summary, engine: engine.id() }, NOW, render)
                .unwrap();
            summaries += 1;
            of_frames += usize::from(job.level == 1);
        }
        if transform.apply().is_none() {
            break;
        }
    }

    let read = engine.read.into_inner().unwrap();
    assert!(read.values().all(|times| *times == 1), "a text was handed out twice");
    let place = |frame: Arc<afterimage::veil::Frame>| {
        let text = frame.rendered_snapshot.as_ref().unwrap().text();
        (text.as_ptr().addr(), text.len())
    };
    let originals: HashSet<(usize, usize)> = history.frames().map(place).collect();
    // The originals are those of the history, not copies of them.
    let (handed, whole): (Vec<_>, usize) = (
        read.keys().filter(|key| originals.contains(key)).collect(),
        originals.iter().map(|(_, len)| len).sum(),
    );
    let bytes: usize = handed.iter().map(|(_, len)| len).sum();
    assert!(bytes <= whole && bytes * 10 > whole * 9, "{bytes} of {whole}");
    // What else was read are summaries, each by one block of blocks.
    assert!(of_frames > 50 && read.len() - handed.len() < summaries, "{summaries} summaries");

    let rendered = format.0.lock().unwrap().clone();
    assert_eq!(rendered, HashMap::from([(FacetType::SUMMARY, summaries)]));
    let (counted, answered) =
        (counter.0.load(Ordering::Relaxed), engine.answered.load(Ordering::Relaxed));
    assert!(counted <= 2 * answered, "{counted} bytes were counted for {answered} of summaries");
}

#[test]
fn the_contexts_of_a_compressed_history_render_nothing_again() {
    let format = Arc::new(CountingFormat::default());
    let hud = Hud::builder(Arc::new(Chars4)).format(format.clone()).build();
    let history: History = captured(&hud, &turns(100));
    let mut transform = CompressionTransform::new(compressing::small());
    assert!(compressing::run(&hud, &mut transform, &history) > 0);
    format.0.lock().unwrap().clear();
    hud.render(&history, &compressing::request(&transform), NOW).unwrap();
    assert!(format.0.lock().unwrap().is_empty());
}
