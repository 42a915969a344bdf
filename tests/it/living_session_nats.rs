//! Sessions on NATS JetStream, which several processes open.

use std::{
    future::Future,
    process::{Command, Stdio},
    time::Duration,
};

use afterimage::{
    ErrorKind, Result,
    id::FacetType,
    journal::{NatsJournal, NatsOptions, SessionName},
    json::{self, Object, ObjectExt},
    session::{Awaits, Model, NatsSession, SessionOptions},
    transcript::Api,
    veil::{Facet, FacetOp, FacetPart, Frame, Media, PartContent, PartSource, Source},
};
use afterimage_testkit::nats_server::{self, Server};

use super::living_session::{APIS, answer, model, options as fast, tools};

/// Runs a test with a server of its own; without a server program it passes with a note.
fn on_a_server<F: Future<Output = ()>>(test: impl FnOnce(NatsOptions) -> F) {
    if nats_server::program().is_none() {
        eprintln!("skipped: there is no NATS server");
        return;
    }
    let server = Server::shared();
    let options = NatsOptions::new(server.url());
    let options = match server.user() {
        Some((name, password)) => {
            options.with_credentials(afterimage::journal::Credentials::User { name, password })
        }
        None => options,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test(options));
}

async fn open(options: &NatsOptions) -> NatsSession {
    let journal = NatsJournal::connect(options.clone()).await.unwrap();
    let name = SessionName::new("pilot").unwrap();
    NatsSession::open(journal, name, SessionOptions::default()).await.unwrap()
}

#[test]
fn a_branch_on_a_server_begins_where_a_request_was_made() {
    on_a_server(|options| async move {
        let model = Model::chat("m", 8_000);
        let mut session = open_as(&options, "trunk").await.unwrap();
        session.user("Is it open?").await.unwrap();
        let first = session.request(&model).await.unwrap().body;
        session.answer(said("Until six.")).await.unwrap();
        let journal = NatsJournal::connect(options.clone()).await.unwrap();
        let name = SessionName::new("branch").unwrap();
        let mut branch = session.branch(1, journal, name).await.unwrap();
        assert_eq!((session.turns(), branch.turns()), (1, 0));
        assert_eq!(branch.request(&model).await.unwrap().body, first);
        let again = session
            .branch(
                1,
                NatsJournal::connect(options.clone()).await.unwrap(),
                SessionName::new("branch").unwrap(),
            )
            .await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
    });
}

fn said(text: &str) -> String {
    format!(
        r#"{{"choices":[{{"message":{{"role":"assistant","content":"{text}"}}}}],"usage":{{"prompt_tokens":7,"completion_tokens":2}}}}"#
    )
}

#[test]
fn a_session_on_a_server_goes_on_in_another_process() {
    on_a_server(|options| async move {
        let model = Model::chat("m", 8_000);
        let mut session = open(&options).await;
        // Its futures may move between threads.
        let mut session = tokio::spawn(async move {
            session.system("Be brief.").await.unwrap();
            session.user("Is it open?").await.unwrap();
            session
        })
        .await
        .unwrap();
        let first = session.request(&model).await.unwrap();
        drop(session);
        let mut session = open(&options).await;
        assert_eq!((session.awaits(), session.unanswered()), (Awaits::Answer, Some(1)));
        assert_eq!(session.request(&model).await.unwrap().body, first.body);
        assert_eq!(session.answer(said("Yes.")).await.unwrap().text, "Yes.");
        assert_eq!(session.awaits(), Awaits::User);
        assert_eq!(open(&options).await.sent(1).await.unwrap(), first.body);
    });
}

/// A frame of the user with an image of so many letters.
fn image(letters: usize) -> Frame {
    let mut source = Object::new();
    source.put("type", "base64");
    source.put("media_type", "image/png");
    source.put("data", "iVBORw0KGgoA".repeat(letters / 12));
    let mut block = Object::new();
    block.put("type", "image");
    block.put("source", source);
    let media = Media { media_type: Some("image/png".into()), ..Media::default() };
    let source = PartSource::of_block(block.into());
    let mut facet = Facet::new(format!("plan-{letters}"), FacetType::IMAGE, "[image]");
    let part = FacetPart::new(PartContent::Image(media));
    facet.part = Some(Box::new(FacetPart { source, ..part }));
    Frame::new(0, Source::User).with(FacetOp::add(facet))
}

#[test]
fn a_step_that_no_message_holds_goes_to_the_object_store() {
    on_a_server(|options| async move {
        let model = Model::anthropic("m", 100_000);
        let mut session = open(&options).await;
        session.user("What is on this plan?").await.unwrap();
        session.push(image(4_000_000)).await.unwrap();
        let first = session.request(&model).await.unwrap();
        assert!(first.body.len() > 4_000_000, "{}", first.body.len());
        let answer = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"A harbour."}]}"#;
        session.answer(answer).await.unwrap();
        drop(session);

        let mut session = open(&options).await;
        assert_eq!((session.awaits(), session.turns()), (Awaits::User, 1));
        assert!(session.sent(1).await.unwrap() == first.body);
        // Who did not know of the step says it again, and it is there once.
        let mut late = open(&options).await;
        session.push(image(3_000_000)).await.unwrap();
        assert_eq!(late.push(image(3_600_000)).await.unwrap_err().kind(), ErrorKind::Conflict);
        let body = session.request(&model).await.unwrap().body;
        late.catch_up().await.unwrap();
        assert!(late.request(&model).await.unwrap().body == body);
        drop((session, late));

        // They go with their session.
        let (pilot, other) =
            (SessionName::new("pilot").unwrap(), SessionName::new("pilo").unwrap());
        let journal = NatsJournal::connect(options.clone()).await.unwrap();
        let others = journal.put_bytes(&other, b"the tides").await.unwrap();
        let events = journal.read(&pilot, 1, 99).await.unwrap();
        let large = events.iter().filter(|event| &*event.kind == "large-step");
        let large: Vec<(String, u64)> = large
            .map(|event| {
                let step = json::read(&event.body).unwrap();
                let bytes = step.get("bytes").unwrap().as_u64().unwrap();
                (step.str_at("object").unwrap().to_owned(), bytes)
            })
            .collect();
        assert!(large.len() > 2, "{large:?}");
        for (object, bytes) in &large {
            assert_eq!(journal.bytes(object, *bytes).await.unwrap().len() as u64, *bytes);
        }
        journal.delete(&pilot).await.unwrap();
        for (object, bytes) in &large {
            let error = journal.bytes(object, *bytes).await.unwrap_err();
            assert_eq!(error.kind(), afterimage::journal::ErrorKind::Damaged, "{error}");
        }
        assert_eq!(journal.bytes(&others, 9).await.unwrap(), b"the tides");
    });
}

#[test]
fn an_answer_streams_in_from_a_server_s_session() {
    on_a_server(|options| async move {
        let mut session = open(&options).await;
        session.user("Is it open?").await.unwrap();
        session.request(&Model::chat("m", 8_000)).await.unwrap();
        let event = |text: &str| {
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\r\n\r\n"
            )
        };
        let mut stream = session.answer_stream();
        let shown: Vec<String> =
            event("Jà.").as_bytes().chunks(1).map(|byte| stream.push(byte).text).collect();
        assert_eq!(shown.concat(), "Jà.");
        assert_eq!(stream.push(event(" Until") + &event(" five.")).text, " Until five.");
        let answer = stream.cut("the connection was reset").await.unwrap();
        assert_eq!((answer.text.as_str(), answer.cut.is_some()), ("Jà. Until five.", true));
    });
}

#[test]
fn of_two_processes_one_answer_counts_and_the_other_is_kept() {
    on_a_server(|options| async move {
        let model = Model::chat("m", 8_000);
        let mut one = open(&options).await;
        one.user("Is it open?").await.unwrap();
        let mut other = open(&options).await;
        let body = one.request(&model).await.unwrap().body;
        // The other one makes a step that is there already.
        assert_eq!(other.request(&model).await.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(other.unanswered(), Some(1));
        assert_eq!(other.request(&model).await.unwrap().body, body);

        one.answer(said("Yes.")).await.unwrap();
        let error = other.answer(said("No.")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert_eq!(other.awaits(), Awaits::User);
        let paid = other.paid_beside()[0].clone();
        assert_eq!((paid.turn, paid.api, paid.body), (1, Api::Chat, said("No.")));
        assert_eq!(paid.usage.unwrap().input, Some(7));
        assert_eq!(other.sent(paid.turn).await.unwrap(), body);

        assert_eq!(one.catch_up().await.unwrap(), 1);
        for session in [&mut one, &mut other] {
            session.catch_up().await.unwrap();
            assert_eq!((session.turns(), session.history().frames().len()), (1, 2));
            assert_eq!(session.paid_beside().len(), 1);
        }
        other.user("And tomorrow?").await.unwrap();
        let next = other.request(&model).await.unwrap().body;
        assert!(next.contains("Yes.") && !next.contains("No."), "{next}");
        assert_eq!(one.catch_up().await.unwrap(), 2);
        assert_eq!(one.request(&model).await.unwrap().body, next);
    });
}

/// Whoever catches up between its request and the answer, or finds that the others asked again.
#[test]
fn an_answer_to_a_request_that_was_answered_meanwhile_is_kept_as_paid() {
    on_a_server(|options| async move {
        let model = Model::anthropic("m", 8_000);
        let mut one = open(&options).await;
        one.user("Is it open?").await.unwrap();
        one.request(&model).await.unwrap();
        let mut other = open(&options).await;
        let body = other.request(&model).await.unwrap().body;
        let answer = |text: &str| {
            format!(
                r#"{{"type":"message","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":7,"output_tokens":2}}}}"#
            )
        };
        one.answer(answer("Yes.")).await.unwrap();
        one.user("And tomorrow?").await.unwrap();
        one.request(&Model::chat("m", 8_000)).await.unwrap();
        assert_eq!(other.catch_up().await.unwrap(), 3);
        assert_eq!(other.unanswered(), Some(2));
        // An error of the provider costs nothing.
        let refused = other.answer(r#"{"type":"error","error":{"message":"overloaded"}}"#).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Provider);
        let error = other.answer(answer("No.")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert_eq!((other.unanswered(), other.history().frames().len()), (Some(2), 3));
        one.catch_up().await.unwrap();
        for session in [&mut one, &mut other] {
            let [paid] = session.paid_beside() else { panic!("{:?}", session.paid_beside()) };
            let paid = paid.clone();
            assert_eq!((paid.turn, paid.api, paid.body), (1, Api::Messages, answer("No.")));
            assert_eq!(paid.usage.unwrap().input, Some(7));
            assert_eq!(session.sent(1).await.unwrap(), body);
        }
        one.answer(said("Tomorrow too.")).await.unwrap();
    });
}

#[test]
fn many_processes_lose_and_repeat_no_step() {
    on_a_server(|options| async move {
        let mut processes = Vec::new();
        for process in 0..4 {
            let options = options.clone();
            processes.push(tokio::spawn(async move {
                let model = Model::chat("m", 8_000);
                let mut session = open(&options).await;
                let mut asked = 0;
                while asked < 5 {
                    let said = match session.awaits() {
                        Awaits::User => {
                            session.user(format!("{process}.{asked}")).await.map(|()| {
                                asked += 1;
                            })
                        }
                        _ => match session.request(&model).await {
                            Ok(_) => session.answer(said("Yes.")).await.map(drop),
                            Err(error) => Err(error),
                        },
                    };
                    if let Err(error) = said {
                        assert!(
                            matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Other),
                            "{error}"
                        );
                        session.catch_up().await.unwrap();
                    }
                }
            }));
        }
        for process in processes {
            process.await.unwrap();
        }
        let mut session = open(&options).await;
        let frames = session.history().frames();
        let mut texts: Vec<String> = (0..frames.len())
            .filter_map(|at| Some(frames.snapshot(at)?.text().to_owned()))
            .filter(|text| text != "Yes.")
            .collect();
        texts.sort();
        let expected: Vec<String> =
            (0..4).flat_map(|of| (0..5).map(move |n| format!("{of}.{n}"))).collect();
        assert_eq!(texts, expected);
        for turn in 1..=session.turns() {
            session.sent(turn).await.unwrap();
        }
    });
}

/// Lives a session for so many requests, from wherever it stands, as `living_session::live` does.
async fn live(session: &mut NatsSession, model: &Model, turns: u64) -> Result<()> {
    session.system("You are a harbour pilot.").await?;
    session.tools(tools()).await?;
    while session.turns() < turns || session.unanswered().is_some() {
        match session.awaits() {
            Awaits::Answer => {
                let clock = format!("{} requests ago it was noon.", session.turns());
                if session.unanswered().is_none() {
                    session.ambient("clock", clock).await?;
                }
                let body = session.request(model).await?.body;
                session.answer(answer(model.api, &body)).await?;
            }
            Awaits::Results(calls) => {
                for call in calls {
                    let said = "High water at 06:10. ".repeat(1 + session.turns() as usize % 9 * 6);
                    let said = format!("{said} [{}]", session.turns());
                    session.tool_result(&call.id, said).await?;
                }
            }
            Awaits::User => {
                let harbour = session.history().frames().len();
                session.user(format!("And harbour {harbour}?")).await?;
            }
        }
    }
    Ok(())
}

/// The session with this name, and the bodies of its requests.
async fn bodies(options: &NatsOptions, name: &str) -> Vec<String> {
    let mut session = open_as(options, name).await.unwrap();
    let mut bodies = Vec::new();
    for turn in 1..=session.turns() {
        bodies.push(session.sent(turn).await.unwrap());
    }
    bodies
}

async fn open_as(options: &NatsOptions, name: &str) -> Result<NatsSession> {
    let journal = NatsJournal::connect(options.clone()).await?;
    NatsSession::open(journal, SessionName::new(name)?, fast()).await
}

/// How many requests a session makes that is killed.
const TURNS: u64 = 24;

/// Where the process that is killed finds its session: the address, the user, the API.
const CHILD: &str = "AFTERIMAGE_TEST_SESSION";

/// What is killed.
#[test]
fn child_lives_on_a_server() {
    let Ok(place) = std::env::var(CHILD) else { return };
    let parts: Vec<&str> = place.split(' ').collect();
    let [url, user, password, name, api] = parts[..] else { panic!("{place}") };
    let options = NatsOptions::new(url);
    let (user, password) = (user.to_owned(), password.to_owned());
    let options = if user.is_empty() {
        options
    } else {
        options.with_credentials(afterimage::journal::Credentials::User { name: user, password })
    };
    let api = APIS.into_iter().find(|of| of.to_string() == api).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut session = open_as(&options, name).await.unwrap();
        live(&mut session, &model(api), TURNS).await.unwrap();
    });
}

#[test]
fn a_session_on_a_server_sends_the_same_wherever_its_process_was_killed() {
    if nats_server::program().is_none() {
        return;
    }
    let server = Server::shared();
    let (user, password) = server.user().unwrap_or_default();
    let options = NatsOptions::new(server.url());
    let options = if user.is_empty() {
        options
    } else {
        options.with_credentials(afterimage::journal::Credentials::User {
            name: user.clone(),
            password: password.clone(),
        })
    };
    let kills = std::env::var("AFTERIMAGE_KILLS").ok().and_then(|text| text.parse().ok());
    let kills: u64 = kills.unwrap_or(30);
    let run = |name: &str, api: Api| {
        let place = format!("{} {user} {password} {name} {api}", server.url());
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "living_session_nats::child_lives_on_a_server"])
            .env(CHILD, place)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for api in APIS {
        let whole = format!("{api}-whole");
        let begun = std::time::Instant::now();
        assert!(run(&whole, api).wait().unwrap().success());
        let time = begun.elapsed();
        let expected = runtime.block_on(bodies(&options, &whole));
        assert_eq!(expected.len() as u64, TURNS);
        // A session that came to its end in spite of the kills is compared, and another one begun.
        let (mut dead, mut round) = (0, 0);
        for session in 0.. {
            let killed = format!("{api}-killed-{session}");
            let is_whole = loop {
                if dead == kills.div_ceil(3) {
                    break run(&killed, api).wait().unwrap().success();
                }
                let mut child = run(&killed, api);
                // At any point of a run, more often at its beginning, where it opens what there is.
                let part = u32::try_from(round * 37 % 100).unwrap();
                std::thread::sleep(Duration::from_millis(10) + time * part / 250);
                round += 1;
                child.kill().unwrap();
                if child.wait().unwrap().success() {
                    break true;
                }
                dead += 1;
            };
            assert!(is_whole, "{api}: {killed} after {dead} kills");
            let found = runtime.block_on(bodies(&options, &killed));
            for (turn, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found, expected, "{api}: request {}, {dead} times killed", turn + 1);
            }
            assert_eq!(found.len(), expected.len(), "{api}: {dead} times killed");
            if dead == kills.div_ceil(3) {
                break;
            }
        }
        eprintln!("{api}: {dead} times killed in {round} runs of {time:?}");
    }
}
