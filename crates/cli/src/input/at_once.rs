//! Several files at once, on the processors that there are.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use crate::failure::{Failure, Outcome};

/// What a thread may need for the deepest JSON that is read: as much as that of the program has.
const STACK: usize = 8 << 20;
/// So many files are read ahead of the one that is shown next, for each thread.
const AHEAD: usize = 16;

/// Something to do, and where it is to go when it is done.
type Job<I, O> = (I, SyncSender<O>);

/// Does `work` for several items at once, and hands what comes of it to `show` in the order of the
/// items, until that refuses. Few are held that wait to be shown.
pub(super) fn in_order<I: Send, O: Send>(
    items: Vec<I>,
    work: impl Fn(I) -> O + Sync,
    mut show: impl FnMut(O) -> Outcome,
) -> Outcome {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let most = threads * AHEAD;
    let (give, jobs) = sync_channel::<Job<I, O>>(most);
    let jobs = Mutex::new(jobs);
    let (jobs, work) = (&jobs, &work);
    thread::scope(|scope| {
        // The threads end with it.
        let give = give;
        for _ in 0..threads {
            let thread = thread::Builder::new().name("reader".to_owned()).stack_size(STACK);
            let started = thread.spawn_scoped(scope, move || {
                while let Some((item, done)) = next(jobs) {
                    // Nobody waits for it where the command has ended.
                    if done.send(work(item)).is_err() {
                        break;
                    }
                }
            });
            started.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        }
        let mut waiting: VecDeque<Receiver<O>> = VecDeque::with_capacity(most);
        let mut show_next = |waiting: &mut VecDeque<Receiver<O>>| {
            let Some(next) = waiting.pop_front() else { return Ok(()) };
            // The scope ends with the panic of its thread.
            let done = next.recv().map_err(|_| Failure::new("a thread panicked"))?;
            show(done)
        };
        for item in items {
            if waiting.len() == most {
                show_next(&mut waiting)?;
            }
            let (done, result) = sync_channel(1);
            waiting.push_back(result);
            if give.send((item, done)).is_err() {
                break;
            }
        }
        while !waiting.is_empty() {
            show_next(&mut waiting)?;
        }
        Ok(())
    })
}

fn next<T>(jobs: &Mutex<Receiver<T>>) -> Option<T> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
