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
        let start = || {
            let thread = thread::Builder::new().name("reader".to_owned()).stack_size(STACK);
            thread.spawn_scoped(scope, move || {
                while let Some((item, done)) = next(jobs) {
                    // Nobody waits for it where the command has ended.
                    if done.send(work(item)).is_err() {
                        break;
                    }
                }
            })
        };
        // Those that the system lets start do.
        if (0..threads).filter_map(|_| start().ok()).count() == 0 {
            return items.into_iter().try_for_each(|item| show(work(item)));
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

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use super::*;
    use crate::failure::Stop;

    #[test]
    fn what_comes_of_items_is_shown_in_their_order_whichever_is_done_first() {
        let work = |number: u64| {
            // The first ones take longest.
            thread::sleep(Duration::from_millis(if number < 3 { 20 } else { 0 }));
            number
        };
        let mut shown = Vec::new();
        in_order((0..200).collect(), work, |number| {
            shown.push(number);
            Ok(())
        })
        .unwrap();
        assert!(shown.iter().copied().eq(0..200));
    }

    #[test]
    fn nothing_more_is_begun_once_showing_is_refused() {
        let begun = AtomicUsize::new(0);
        let work = |_| begun.fetch_add(1, Ordering::Relaxed);
        let refused = in_order((0..100_000).collect(), work, |_| Err(Stop::ClosedPipe));
        assert!(matches!(refused, Err(Stop::ClosedPipe)));
        let threads = thread::available_parallelism().map_or(1, usize::from);
        assert!(begun.load(Ordering::Relaxed) <= threads * (AHEAD + 1) + 1);
    }

    #[test]
    fn a_panic_of_the_work_is_one_of_the_whole() {
        let work = |number: u64| assert!(number != 7, "seven");
        let panicked =
            catch_unwind(AssertUnwindSafe(|| in_order((0..500).collect(), work, |()| Ok(()))));
        assert!(panicked.is_err());
    }
}
