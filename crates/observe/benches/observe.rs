//! Observations: what a response of 190 KB costs on its way in, and a summary on its way out.
//! Beside it the naive way, which reads the payload and prints it prettily for each context.

use std::{fmt::Write, hint::black_box, path::Path};

use afterimage_json::Millis;
use afterimage_observe::{Moment, Observations, Policy, Response, ToolCall};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

fn spacemolt() -> Policy {
    Policy::from_json(afterimage_testkit::policies::spacemolt().into()).unwrap()
}

fn tick(tick: i64) -> Moment {
    Moment::at(Millis::new(1_760_000_000_000 + 10_000 * tick)).on(tick.unsigned_abs())
}

/// A map of 487 systems with their connections; `tick` and one of the systems differ.
fn galaxy(tick: i64) -> String {
    let mut text = format!("{{\"current_tick\":{tick},\"systems\":[");
    for at in 0..487 {
        let comma = if at > 0 { "," } else { "" };
        write!(
            text,
            "{comma}{{\"id\":\"sys_{at:03}\",\"name\":\"System {at}\",\"empire\":\"solarian\",\
             \"security\":\"High Security (active police patrols)\",\"police_level\":{},\
             \"position\":{{\"x\":{}.5,\"y\":-{}.25}},\"visited\":{},\"connections\":[",
            at % 6,
            at * 7 % 1_000,
            at * 11 % 1_000,
            at == tick % 487,
        )
        .unwrap();
        for (index, step) in [1, 7, 43].into_iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let other = (at + step) % 487;
            write!(
                text,
                "{comma}{{\"system_id\":\"sys_{other:03}\",\"name\":\"System {other}\",\"distance\":{}.5}}",
                100 + at * step % 400
            )
            .unwrap();
        }
        text.push_str("],\"pois\":4,\"bases\":1}");
    }
    text.push_str("]}");
    text
}

fn status(name: &str, tick: i64) -> String {
    format!(
        "{{\"current_tick\":{tick},\"player\":{{\"username\":\"{name}\",\"empire\":\"Solarian\",\"credits\":{}}},\
         \"location\":{{\"system_name\":\"Sol\",\"poi_name\":\"Earth\",\"docked_at\":null}},\
         \"ship\":{{\"class_name\":\"Hauler\",\"hull\":85,\"max_hull\":100,\"fuel\":60,\"max_fuel\":100,\
         \"cargo_used\":45,\"cargo_capacity\":100}},\"cargo\":[{{\"item_id\":\"ore\",\"name\":\"Ore\",\"quantity\":30}}]}}",
        5_000 + tick
    )
}

fn put(observations: &Observations, account: &str, tool: &str, text: &str, now: Moment) {
    let response = Response::text(text).unwrap();
    let call = ToolCall::of_account(account, tool, &response);
    observations.intercept(&call, now).unwrap();
}

/// A folder on a disk whose sync costs nothing, where there is one.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory).ok() } else { None };
    made.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

fn intercept(criterion: &mut Criterion) {
    let maps = [galaxy(2), galaxy(3)];
    let bytes = maps[0].len();
    let mut group = criterion.benchmark_group(format!("observe/intercept-{bytes}-bytes"));
    group.throughput(Throughput::Bytes(bytes as u64));
    let folder = scratch();
    let stores = [
        ("memory", Observations::in_memory(spacemolt()).unwrap()),
        (
            "database, sync at no cost",
            Observations::open(folder.path().join("state.db"), spacemolt()).unwrap(),
        ),
    ];
    for (name, observations) in &stores {
        let mut at = 0;
        group.bench_function(*name, |bench| {
            bench.iter(|| {
                at += 1;
                put(
                    observations,
                    "Ada",
                    "get_map",
                    &maps[at % 2],
                    tick(2 + i64::from(at % 2 == 0)),
                );
            });
        });
    }
    let disk = tempfile::tempdir().unwrap();
    let synced = Observations::open(disk.path().join("state.db"), spacemolt()).unwrap();
    let mut at = 0;
    group.bench_function("database, synced to disk", |bench| {
        bench.iter(|| {
            at += 1;
            put(&synced, "Ada", "get_map", &maps[at % 2], tick(2 + i64::from(at % 2 == 0)));
        });
    });
    group.bench_function("naive: parse and print prettily", |bench| {
        bench.iter(|| {
            let value: serde_json::Value = serde_json::from_str(black_box(&maps[0])).unwrap();
            serde_json::to_string_pretty(&value).unwrap()
        });
    });
    group.finish();
}

fn summary(criterion: &mut Criterion) {
    let map = galaxy(2);
    let mut group = criterion.benchmark_group("observe/summary-500-tokens");
    for accounts in [1, 100, 10_000] {
        let folder = scratch();
        let path = folder.path().join("state.db");
        let observations = Observations::open(path, spacemolt()).unwrap();
        for account in 0..accounts {
            let name = format!("Account {account}");
            put(&observations, &name, "get_status", &status(&name, 2), tick(2));
            put(&observations, &name, "get_ship", &status(&name, 2), tick(2));
        }
        put(&observations, "Account 0", "get_map", &map, tick(2));
        put(&observations, "Account 0", "get_system", &status("Account 0", 2), tick(2));
        let mut now = 3;
        group.bench_function(format!("database of {accounts} accounts"), |bench| {
            bench.iter(|| {
                now += 1;
                observations.summary("Account 0", tick(now), 500).unwrap()
            });
        });
        if accounts == 1 {
            group.bench_function("naive: read the payloads and print them prettily", |bench| {
                bench.iter_batched(
                    || (),
                    |()| {
                        let tools = ["get_status", "get_ship", "get_system", "get_map"];
                        let print = |tool: &str| {
                            let found = observations.get("Account 0", tool).unwrap().unwrap();
                            let value: serde_json::Value =
                                serde_json::from_str(&found.content).unwrap();
                            serde_json::to_string_pretty(&value).unwrap()
                        };
                        tools.map(print)
                    },
                    BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, intercept, summary);
criterion_main!(benches);
