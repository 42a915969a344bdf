//! Sessions on NATS JetStream, which several processes open.

use std::future::Future;

use afterimage::{
    ErrorKind,
    journal::{NatsJournal, NatsOptions, SessionName},
    session::{Awaits, Model, NatsSession, SessionOptions},
};
use afterimage_testkit::nats_server::{self, Server};

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
        assert_eq!(other.paid_beside().len(), 1);
        assert_eq!(other.paid_beside()[0].input, Some(7));

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
